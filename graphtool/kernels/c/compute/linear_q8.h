/* Product with weights of 2, 4 or 8 bits and activations that are rounded to 8 bits, a template: y
   = x·wᵀ with w = (q - zero)·scale, handed row by row to an epilogue. The products of a block are
   summed as integers; each sum is multiplied by the scales of both operands.

   GT_M GT_N GT_K  rows of x, rows of w, columns of x: constants or names among GT_PARAMS
   GT_BITS       2, 4 or 8; GT_BLOCK columns share a scale, GT_PARTS of them cover GT_K; they are
                 literals, and a block has a multiple of 32 / BITS columns
   GT_A, GT_LDA  x, and its row stride; elements of a row are adjacent
   GT_B          q packed [ceil(N/LANES)][PARTS][BLOCK·BITS/32][LANES][4 bytes]; field f of the word
                 w holds the columns (w·8/BITS + f)·4 to + 4 of the block, one in each byte
   GT_SCALES     [ceil(N/LANES)][PARTS][LANES]; GT_ZEROS likewise, or left out for the middle
   GT_HALF       the type of the scales and zeros, of 16 bits; left out: they are float
   GT_MR         up to so many rows (a literal) are summed together by vectors
   GT_DEPTH      rows of x that are rounded together
   GT_WORK(t)    memory of thread t: DEPTH rows of PARTS·BLOCK bytes, and twice of PARTS words; each
                 part begins at a multiple of 64 bytes
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` results of row m from column n on; acc
                 is vector-aligned, count is the literal LANES but in a last, partial panel */
#include "half.h"
#include "nbits.h"
#include "q8.h"
#include "operand.h"
#include "template_begin.h"

#ifndef GT_LINEAR_Q8_H
#define GT_LINEAR_Q8_H
#define GT_UP64(bytes) (((bytes) + 63) / 64 * 64)
#endif

#define GT_NV 1
enum {
    GT_JOIN(GT_NAME, _all) = (GT_PARTS) * (GT_BLOCK),
    GT_JOIN(GT_NAME, _words) = (GT_BLOCK) * GT_BITS / 32, /* of a block and row of w */
    GT_JOIN(GT_NAME, _bytes) = GT_JOIN(GT_NAME, _words) * GT_LANES * 4, /* of a block and panel */
    GT_JOIN(GT_NAME, _middle) = 1 << (GT_BITS - 1),
};

/* Where the scales and sums of rows are in a thread's memory, in bytes; integers come first. */
enum {
    GT_JOIN(GT_NAME, _scales) = GT_UP64((GT_DEPTH) * GT_JOIN(GT_NAME, _all)),
    GT_JOIN(GT_NAME, _sums) = GT_JOIN(GT_NAME, _scales) + GT_UP64((GT_DEPTH) * (GT_PARTS) * 4),
};

#include "linear_hand.h"

/* sums += dot·scales: a block's sum of a row whose scale is x and whose integers have this sum. */
GT_INLINE gt_vf GT_JOIN(GT_NAME, _scaled)(gt_vf sums, gt_vi dot, gt_vf scale, gt_vf zero, float x,
                                          int32_t sum)
{
#ifdef GT_ZEROS
    return sums + (gt_floats(dot) - zero * gt_splat((float)sum)) * (scale * gt_splat(x));
#else
    return sums + gt_floats(dot) * (scale * gt_splat(x));
#endif
}

/* `rows` rows of x from row `first` of the memory on, which is row m of all; by one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, int64_t first, int64_t m, int64_t panel,
                                       const char *work GT_PARAMS)
{
    enum { all = GT_JOIN(GT_NAME, _all), words = GT_JOIN(GT_NAME, _words), fields = 8 / GT_BITS };
    const char *x = work + first * all;
    const float *scales = (const float *)(work + GT_JOIN(GT_NAME, _scales)) + first * (GT_PARTS);
    const int32_t *sums = (const int32_t *)(work + GT_JOIN(GT_NAME, _sums)) + first * (GT_PARTS);
    const uint8_t *b = (const uint8_t *)(GT_B) + panel * (GT_PARTS) * GT_JOIN(GT_NAME, _bytes);
    const int64_t table = panel * (GT_PARTS) * GT_LANES;
    gt_vf acc[GT_MR];
    GT_UNROLL for (int r = 0; r < rows; r++) acc[r] = gt_splat(0.0f);
    for (int64_t p = 0; p < (GT_PARTS); p++, b += GT_JOIN(GT_NAME, _bytes)) {
        gt_vi dot[GT_MR];
        gt_prefetch(b + GT_WEIGHTS_AHEAD, GT_JOIN(GT_NAME, _bytes));
        __builtin_prefetch((GT_SCALES) + table + p * GT_LANES + 512, 0, 2);
#ifdef GT_ZEROS
        __builtin_prefetch((GT_ZEROS) + table + p * GT_LANES + 512, 0, 2);
#endif
        GT_UNROLL for (int r = 0; r < rows; r++)
#ifdef GT_ZEROS
            dot[r] = gt_splat_int(0);
#else
            dot[r] = gt_splat_int(-GT_JOIN(GT_NAME, _middle) * sums[r * (GT_PARTS) + p]);
#endif
        for (int w = 0; w < words; w++) {
            const gt_vi word = gt_load_words(b + w * GT_LANES * 4);
            GT_UNROLL for (int f = 0; f < fields; f++) {
                const int mask = GT_BITS == 8 ? -1 : GT_BITS == 4 ? 0x0f0f0f0f : 0x03030303;
                const gt_vi part = (word >> f * GT_BITS) & mask;
                GT_UNROLL for (int r = 0; r < rows; r++) {
                    const char *at = x + r * all + p * (GT_BLOCK) + (w * fields + f) * 4;
                    const gt_vi v = gt_splat_bytes(at, 4);
                    dot[r] = GT_BITS == 8 ? gt_dot_quad(dot[r], part, v)
                                          : gt_dot_low(dot[r], part, v);
                }
            }
        }
        const gt_vf scale = GT_READ((GT_SCALES) + table + p * GT_LANES);
#ifdef GT_ZEROS
        const gt_vf zero = GT_READ((GT_ZEROS) + table + p * GT_LANES);
#else
        const gt_vf zero = scale; /* not used */
#endif
        GT_UNROLL for (int r = 0; r < rows; r++) {
            const int64_t at = r * (GT_PARTS) + p;
            acc[r] = GT_JOIN(GT_NAME, _scaled)(acc[r], dot[r], scale, zero, scales[at], sums[at]);
        }
    }
    float tile[GT_MR * GT_LANES] GT_ALIGNED;
    gt_tile_store(acc, rows, 1, tile);
    GT_JOIN(GT_NAME, _hand)(tile, rows, m, panel GT_ARGS);
}

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(int64_t first, int64_t m, int64_t panel,       \
                                                   const char *work GT_PARAMS)                    \
    {                                                                                             \
        GT_JOIN(GT_NAME, _tile)(rows, first, m, panel, work GT_ARGS);                             \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* All `count` rows in memory by one panel; row 0 is row m of all. */
GT_NOINLINE void GT_JOIN(GT_NAME, _vectors)(int64_t count, int64_t m, int64_t panel,
                                            const char *work GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(count, GT_MR);
    const int64_t shorter = count / blocks, longer = count % blocks;
    for (int64_t block = 0, first = 0; block < blocks; block++) {
        const int64_t rows = shorter + (block < longer);
        GT_CALL(_tile, rows, GT_MR, first, m + first, panel, work GT_ARGS);
        first += rows;
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    enum { all = GT_JOIN(GT_NAME, _all) };
    const int64_t panels = gt_ceil_div(GT_N, GT_LANES), end = gt_part(panels, t + 1, threads);
    char *work = (char *)(GT_WORK(t));
    float *scales = (float *)(work + GT_JOIN(GT_NAME, _scales));
    int32_t *sums = (int32_t *)(work + GT_JOIN(GT_NAME, _sums));
    for (int64_t m = 0; m < (GT_M); m += (GT_DEPTH)) {
        const int64_t count = gt_min(GT_DEPTH, (GT_M) - m);
        for (int64_t r = 0; r < count; r++)
            gt_q8_row((GT_A) + (m + r) * (GT_LDA), GT_K, GT_BLOCK, GT_PARTS,
                      (int8_t *)work + r * all, scales + r * (GT_PARTS), sums + r * (GT_PARTS));
        for (int64_t p = gt_part(panels, t, threads); p < end; p++)
            GT_JOIN(GT_NAME, _vectors)(count, m, p, work GT_ARGS);
    }
}

#include "template_end.h"
