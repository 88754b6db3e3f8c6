/* Product with weights of 2, 4 or 8 bits and few rows of activations as they are, a template:
   y = x·wᵀ with w = (q - zero)·scale, handed row by row to an epilogue. Weights become numbers in
   registers, once for all rows; the sum of a block is multiplied by its scale. Define the macros,
   include this file, repeat; it undefines them at its end.

   GT_NAME       the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_M GT_N GT_K  rows of x, rows of w, columns of x: constants or names among GT_PARAMS
   GT_BITS GT_BLOCK GT_PARTS GT_A GT_LDA GT_B GT_SCALES GT_ZEROS GT_HALF  as in linear_q8.h
   GT_MR         up to so many rows (a literal) are summed together
   GT_DEPTH      rows of x that are copied together, a literal
   GT_WORK(t)    memory of thread t: DEPTH rows of PARTS·BLOCK floats, and of PARTS
   GT_EPILOGUE   as in linear_q8.h
   GT_PARAMS     more parameters, with a leading comma (default none); GT_ARGS hands them on

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not. */
#include "half.h"
#include "nbits.h"
#include "operand.h"
#include "template_begin.h"

#define GT_NV 1
enum {
    GT_JOIN(GT_NAME, _all) = (GT_PARTS) * (GT_BLOCK),
    GT_JOIN(GT_NAME, _words) = (GT_BLOCK) * GT_BITS / 32, /* of a block and row of w */
    GT_JOIN(GT_NAME, _bytes) = GT_JOIN(GT_NAME, _words) * GT_LANES * 4, /* of a block and panel */
};

#include "linear_hand.h"

/* Copies a row, with zeros up to whole blocks, and sums its blocks, for zero points. */
GT_NOINLINE void GT_JOIN(GT_NAME, _copy)(const float *x, float *to, float *sums GT_PARAMS)
{
    memcpy(to, x, sizeof *x * (size_t)(GT_K));
    memset(to + (GT_K), 0, sizeof *x * (size_t)(GT_JOIN(GT_NAME, _all) - (GT_K)));
    memset(sums, 0, sizeof *sums * (GT_PARTS));
#ifdef GT_ZEROS
    for (int64_t p = 0; p < (GT_PARTS); p++)
        for (int64_t i = 0; i < (GT_BLOCK); i++) sums[p] += to[p * (GT_BLOCK) + i];
#endif
}

/* `rows` rows in memory, whose blocks have these sums, and which are rows of all from m on; by one
   panel. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, const float *x, const float *sums, int64_t m,
                                       int64_t panel GT_PARAMS)
{
    enum { all = GT_JOIN(GT_NAME, _all), words = GT_JOIN(GT_NAME, _words), fields = 8 / GT_BITS };
    enum { nbytes = GT_JOIN(GT_NAME, _bytes), chains = GT_MR > 1 ? 1 : 2 };
    const uint8_t *b = (const uint8_t *)(GT_B) + panel * (GT_PARTS) * nbytes;
    const int64_t table = panel * (GT_PARTS) * GT_LANES;
    gt_vf acc[GT_MR];
    GT_UNROLL for (int r = 0; r < rows; r++) acc[r] = gt_splat(0.0f);
    for (int64_t p = 0; p < (GT_PARTS); p++, b += nbytes) {
        gt_vf part[GT_MR * chains];
        for (int i = 0; i < nbytes; i += 64)
            __builtin_prefetch(b + GT_WEIGHTS_AHEAD + i, 0, 2);
        __builtin_prefetch((GT_SCALES) + table + p * GT_LANES + 512, 0, 2);
#ifdef GT_ZEROS
        __builtin_prefetch((GT_ZEROS) + table + p * GT_LANES + 512, 0, 2);
#endif
        GT_UNROLL for (int i = 0; i < rows * chains; i++) part[i] = gt_splat(0.0f);
        for (int w = 0; w < words; w++) {
            const gt_vi word = gt_load_words(b + w * GT_LANES * 4);
            GT_UNROLL for (int i = 0; i < fields * 4; i++) {
                const gt_vf q = gt_centred(GT_BITS, word, i % 4 * 8 + i / 4 * GT_BITS);
                const float *at = x + p * (GT_BLOCK) + w * fields * 4 + i;
                GT_UNROLL for (int r = 0; r < rows; r++)
                    part[r * chains + i % chains] += q * gt_splat(at[r * all]);
            }
        }
        const gt_vf scale = GT_READ((GT_SCALES) + table + p * GT_LANES);
#ifdef GT_ZEROS
        const gt_vf zero = GT_READ((GT_ZEROS) + table + p * GT_LANES)
                           - gt_splat((float)(1 << (GT_BITS - 1)));
#endif
        GT_UNROLL for (int r = 0; r < rows; r++) {
            gt_vf sum = part[r * chains];
            if (chains == 2) sum += part[r * chains + chains - 1];
#ifdef GT_ZEROS
            sum -= zero * gt_splat(sums[r * (GT_PARTS) + p]);
#endif
            acc[r] += sum * scale;
        }
    }
    float tile[GT_MR * GT_LANES] GT_ALIGNED;
    gt_tile_store(acc, rows, 1, tile);
    GT_JOIN(GT_NAME, _hand)(tile, rows, m, panel GT_ARGS);
}

#define GT_INSTANCE(rows)                                                                         \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(const float *x, const float *sums, int64_t m,  \
                                                   int64_t panel GT_PARAMS)                       \
    {                                                                                             \
        GT_JOIN(GT_NAME, _tile)(rows, x, sums, m, panel GT_ARGS);                                 \
    }
GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE

static void GT_NAME(int t, int threads GT_PARAMS)
{
    enum { all = GT_JOIN(GT_NAME, _all) };
    const int64_t panels = gt_ceil_div(GT_N, GT_LANES), end = gt_part(panels, t + 1, threads);
    float *x = GT_WORK(t), *sums = x + (GT_DEPTH) * all;
    for (int64_t m = 0; m < (GT_M); m += (GT_DEPTH)) {
        const int64_t count = gt_min(GT_DEPTH, (GT_M) - m), blocks = gt_ceil_div(count, GT_MR);
        const int64_t shorter = count / blocks, longer = count % blocks;
        for (int64_t r = 0; r < count; r++)
            GT_JOIN(GT_NAME, _copy)((GT_A) + (m + r) * (GT_LDA), x + r * all,
                                    sums + r * (GT_PARTS) GT_ARGS);
        for (int64_t p = gt_part(panels, t, threads); p < end; p++)
            for (int64_t block = 0, first = 0; block < blocks; block++) {
                const int64_t rows = shorter + (block < longer);
                GT_CALL(_tile, rows, GT_MR, x + first * all, sums + first * (GT_PARTS), m + first,
                        p GT_ARGS);
                first += rows;
            }
    }
}

#undef GT_BITS
#undef GT_PARTS
#undef GT_SCALES
#undef GT_ZEROS
#include "template_end.h"
