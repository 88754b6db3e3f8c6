/* Product with weights of 2, 4 or 8 bits in bfloat16, for many rows, a template: y = x·wᵀ with w =
   (q - zero)·scale, where x and w are rounded to bfloat16 and sums are float; handed row by row to
   an epilogue. A panel of weights is widened once for all rows, which a matrix unit multiplies.

   GT_M GT_N GT_K  rows of x, rows of w, columns of x: constants or names among GT_PARAMS
   GT_BITS GT_BLOCK GT_PARTS GT_A GT_LDA GT_B GT_SCALES GT_ZEROS GT_HALF  as in linear_q8.h
   GT_DEPTH      rows of x that are rounded together, a literal
   GT_WORK(t)    memory of thread t: DEPTH rows and 2·LANES columns of PARTS·BLOCK numbers, up to a
                 multiple of 32, of 2 bytes
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` results of row m from column n on; acc
                 is vector-aligned, count is the literal 2·LANES but in a last, partial panel */
#include "amx.h"
#include "operand.h"
#include "q8.h"
#include "template_begin.h"

#ifndef GT_LINEAR_BF16_H
#define GT_LINEAR_BF16_H
#include "half.h"

/* Two vectors of floats as one of pairs of bfloat16. */
GT_INLINE gt_vi gt_pairs_of(gt_vf low, gt_vf high)
{
#if GT_LANES == 16 && defined __AVX512BF16__
    const __m512i order = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
        19, 3, 18, 2, 17, 1, 16, 0);
    const __m512bh both = _mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
    return (gt_vi)_mm512_permutexvar_epi16(order, (__m512i)both);
#else
    float one[GT_LANES], two[GT_LANES];
    int32_t pair[GT_LANES];
    gt_vi made;
    memcpy(one, &low, sizeof one);
    memcpy(two, &high, sizeof two);
    for (int i = 0; i < GT_LANES; i++)
        pair[i] = (int32_t)(gt_f32_to_bf16(one[i]) | (uint32_t)gt_f32_to_bf16(two[i]) << 16);
    memcpy(&made, pair, sizeof made);
    return made;
#endif
}
#endif

#define GT_NV 2
#define GT_SUM float
#define GT_DEEPER (((GT_PARTS) * (GT_BLOCK) + 31) / 32 * 32) /* numbers of a row in memory */

#include "linear_hand.h"

/* LANES columns of the panel at `to`, [GT_DEEPER / 2][NR][2]; `half` counts vectors of columns. */
GT_INLINE void GT_JOIN(GT_NAME, _widen)(int64_t half, gt_vi *to GT_PARAMS)
{
    enum { words = (GT_BLOCK) * GT_BITS / 32, fields = 8 / GT_BITS, mask = (1 << GT_BITS) - 1 };
    const uint8_t *b = (const uint8_t *)(GT_B) + half * (GT_PARTS) * words * GT_LANES * 4;
    for (int64_t p = 0; p < (GT_PARTS); p++) {
        const int64_t table = (half * (GT_PARTS) + p) * GT_LANES;
        const gt_vf scale = GT_READ((GT_SCALES) + table);
#ifdef GT_ZEROS
        const gt_vf shift = GT_READ((GT_ZEROS) + table) * scale;
#else
        const gt_vf shift = scale * gt_splat((float)(1 << (GT_BITS - 1)));
#endif
        for (int w = 0; w < words; w++, b += GT_LANES * 4) {
            gt_vi word;
            memcpy(&word, b, sizeof word);
            __builtin_prefetch(b + 4096, 0, 3);
            GT_UNROLL for (int f = 0; f < fields; f++)
                GT_UNROLL for (int j = 0; j < 2; j++, to += 2) {
                    const gt_vi low = (word >> (16 * j + f * GT_BITS)) & mask;
                    const gt_vi high = (word >> (16 * j + 8 + f * GT_BITS)) & mask;
                    *to = gt_pairs_of(gt_floats(low) * scale - shift,
                                      gt_floats(high) * scale - shift);
                }
        }
    }
    for (int64_t k = (GT_PARTS) * (GT_BLOCK); k < GT_DEEPER; k += 2, to += 2)
        *to = gt_splat_int(0);
}

/* `count` rows in memory by one panel; row 0 is row m of all. */
GT_NOINLINE void GT_JOIN(GT_NAME, _panel)(int64_t count, int64_t m, int64_t panel,
                                          const uint16_t *x, char *wide GT_PARAMS)
{
    enum { nbytes = GT_DEEPER * 2 };
    float sums[2 * GT_SEGMENT * GT_NR] GT_ALIGNED;
    const int64_t columns = gt_min(GT_NR, (GT_N) - panel * GT_NR);
    const int64_t lines = gt_ceil_div(count, GT_SEGMENT), rows = gt_ceil_div(count, lines);
    GT_JOIN(GT_NAME, _widen)(2 * panel, (gt_vi *)wide GT_ARGS);
    if (columns > GT_LANES) GT_JOIN(GT_NAME, _widen)(2 * panel + 1, (gt_vi *)wide + 1 GT_ARGS);
    for (int64_t line = 0; line < lines; line += 2) {
        /* the last segment begins earlier, with rows that were handed out before */
        const int64_t first = gt_min(line * rows, count - rows), again = line * rows - first;
        const int64_t second = gt_min((line + 1) * rows, count - rows);
        const int64_t twice = (line + 1) * rows - second;
        const int two = line + 1 < lines;
        gt_block_zero(GT_BFLOAT16, sums);
        gt_block_add(GT_BFLOAT16, (const char *)(x + first * GT_DEEPER),
                     two ? (const char *)(x + second * GT_DEEPER) : 0, nbytes, rows, wide,
                     columns, nbytes, wide, 0, sums);
        gt_block_store(GT_BFLOAT16, two, columns, sums);
        GT_JOIN(GT_NAME, _hand)(sums + again * GT_NR, rows - again, m + first + again,
                                panel GT_ARGS);
        if (two)
            GT_JOIN(GT_NAME, _hand)(sums + (GT_SEGMENT + twice) * GT_NR, rows - twice,
                                    m + second + twice, panel GT_ARGS);
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), end = gt_part(panels, t + 1, threads);
    uint16_t *x = (uint16_t *)(void *)(GT_WORK(t));
    char *wide = (char *)(x + (GT_DEPTH) * GT_DEEPER);
    for (int64_t m = 0; m < (GT_M); m += (GT_DEPTH)) {
        const int64_t count = gt_min(GT_DEPTH, (GT_M) - m);
        for (int64_t r = 0; r < count; r++) {
            const float *row = (GT_A) + (m + r) * (GT_LDA);
            uint16_t *to = x + r * GT_DEEPER;
            for (int64_t k = 0; k < (GT_K); k++) to[k] = gt_f32_to_bf16(row[k]);
            for (int64_t k = (GT_K); k < GT_DEEPER; k++) to[k] = 0;
        }
        gt_amx_shape(gt_ceil_div(count, gt_ceil_div(count, GT_SEGMENT)));
        for (int64_t p = gt_part(panels, t, threads); p < end; p++)
            GT_JOIN(GT_NAME, _panel)(count, m, p, x, wide GT_ARGS);
        gt_amx_done();
    }
}

#include "template_end.h"
