/* Product with weights of 2, 4 or 8 bits and activations as they are, a template: y = x·wᵀ with w =
   (q - zero)·scale, handed row by row to an epilogue. For few rows weights become numbers in
   registers, and the sum of a block is multiplied by its scale; for more a panel of weights is
   widened once for all rows.

   GT_M GT_N GT_K  rows of x, rows of w, columns of x: constants or names among GT_PARAMS
   GT_BITS GT_BLOCK GT_PARTS GT_A GT_LDA GT_B GT_SCALES GT_ZEROS GT_HALF  as in linear_q8.h
   GT_MR         up to so many rows (a literal) are summed together
   GT_FEW        up to so many rows (a literal) are few; 0: there are more
   GT_WIDENS     if defined, there may be more
   GT_WORK(t)    memory of thread t: FEW rows of PARTS·BLOCK floats, and of PARTS; with GT_WIDENS
                 it also holds PARTS·BLOCK rows of 2·LANES floats
   GT_EPILOGUE   as in linear_q8.h */
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

#if GT_FEW
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

/* `rows` copied rows at x by one panel. `sums` are those of their blocks; the first row is row m of
   all. */
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
        gt_prefetch(b + GT_WEIGHTS_AHEAD, nbytes);
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

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(const float *x, const float *sums, int64_t m,  \
                                                   int64_t panel GT_PARAMS)                       \
    {                                                                                             \
        GT_JOIN(GT_NAME, _tile)(rows, x, sums, m, panel GT_ARGS);                                 \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* Few rows by the panels from `panel` to `end`. */
GT_NOINLINE void GT_JOIN(GT_NAME, _few)(int64_t panel, int64_t end, float *x GT_PARAMS)
{
    enum { all = GT_JOIN(GT_NAME, _all) };
    float *sums = x + (GT_FEW) * all;
    const int64_t blocks = gt_ceil_div(GT_M, GT_MR);
    const int64_t shorter = blocks ? (GT_M) / blocks : 0, longer = (GT_M) - shorter * blocks;
    for (int64_t m = 0; m < (GT_M); m++)
        GT_JOIN(GT_NAME, _copy)((GT_A) + m * (GT_LDA), x + m * all, sums + m * (GT_PARTS) GT_ARGS);
    for (; panel < end; panel++)
        for (int64_t block = 0, m = 0; block < blocks; block++) {
            const int64_t rows = shorter + (block < longer);
            GT_CALL(_tile, rows, GT_MR, x + m * all, sums + m * (GT_PARTS), m, panel GT_ARGS);
            m += rows;
        }
}
#endif

#ifdef GT_WIDENS
/* A panel as numbers, one of the two at `to`, [PARTS·BLOCK][2][LANES]. */
GT_NOINLINE void GT_JOIN(GT_NAME, _widen)(int64_t panel, float *to GT_PARAMS)
{
    enum { words = GT_JOIN(GT_NAME, _words), nbytes = GT_JOIN(GT_NAME, _bytes) };
    const uint8_t *b = (const uint8_t *)(GT_B) + panel * (GT_PARTS) * nbytes;
    for (int64_t p = 0; p < (GT_PARTS); p++, b += nbytes) {
        const int64_t table = (panel * (GT_PARTS) + p) * GT_LANES;
        const gt_vf scale = GT_READ((GT_SCALES) + table);
#ifdef GT_ZEROS
        const gt_vf zero = GT_READ((GT_ZEROS) + table) - gt_splat((float)(1 << (GT_BITS - 1)));
#endif
        gt_prefetch(b + GT_WEIGHTS_AHEAD, nbytes);
        for (int w = 0; w < words; w++) {
            const gt_vi word = gt_load_words(b + w * GT_LANES * 4);
            GT_UNROLL for (int i = 0; i < 32 / GT_BITS; i++, to += 2 * GT_LANES) {
                gt_vf q = gt_centred(GT_BITS, word, i % 4 * 8 + i / 4 * GT_BITS);
#ifdef GT_ZEROS
                q -= zero;
#endif
                gt_store(to, q * scale);
            }
        }
    }
}

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _rows##rows)(int64_t m, int64_t panel, const float *wide    \
                                                   GT_PARAMS)                                     \
    {                                                                                             \
        gt_vf acc[2 * GT_MR];                                                                     \
        float tile[GT_MR * GT_LANES] GT_ALIGNED;                                                  \
        gt_tile_zero(acc, rows, 2);                                                               \
        gt_tile_fma(acc, rows, 2, (GT_A) + m * (GT_LDA), GT_LDA, wide, GT_K, (const char *)wide,  \
                    0, 0);                                                                        \
        for (int j = 0; j < 2 && (panel + j) * GT_LANES < (GT_N); j++) {                          \
            for (int r = 0; r < rows; r++) gt_store(tile + r * GT_LANES, acc[2 * r + j]);         \
            GT_JOIN(GT_NAME, _hand)(tile, rows, m, panel + j GT_ARGS);                            \
        }                                                                                         \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* All rows by the panels from `panel` to `end`, two by two. */
GT_NOINLINE void GT_JOIN(GT_NAME, _many)(int64_t panel, int64_t end, float *wide GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_M, GT_MR);
    const int64_t shorter = (GT_M) / blocks, longer = (GT_M) % blocks;
    for (; panel < end; panel += 2) {
        GT_JOIN(GT_NAME, _widen)(panel, wide GT_ARGS);
        GT_JOIN(GT_NAME, _widen)(gt_min(panel + 1, end - 1), wide + GT_LANES GT_ARGS);
        for (int64_t block = 0, m = 0; block < blocks; block++) {
            const int64_t rows = shorter + (block < longer);
            GT_CALL(_rows, rows, GT_MR, m, panel, wide GT_ARGS);
            m += rows;
        }
    }
}
#endif

static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t panels = gt_ceil_div(GT_N, GT_LANES), pairs = gt_ceil_div(panels, 2);
#ifdef GT_WIDENS
    if ((GT_M) > (GT_FEW)) {
        GT_JOIN(GT_NAME, _many)(2 * gt_part(pairs, t, threads),
                                gt_min(panels, 2 * gt_part(pairs, t + 1, threads)),
                                GT_WORK(t) GT_ARGS);
        return;
    }
#endif
#if GT_FEW
    GT_JOIN(GT_NAME, _few)(gt_part(panels, t, threads), gt_part(panels, t + 1, threads),
                           GT_WORK(t) GT_ARGS);
#endif
}

#include "template_end.h"
