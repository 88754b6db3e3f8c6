/* Scaled dot-product attention of quantised numbers by a matrix unit, a template: for each head and
   block of queries the scores of all keys, rounded to a byte each; their softmax, rounded to bytes;
   and the sums of the values with these weights. A number is a byte minus a zero point, times a
   scale.

   GT_HEADS       how many independent attentions
   GT_S GT_T      query rows, at least 32, and key rows of each
   GT_D GT_DV     length of queries and keys, at most 512, and of values
   GT_Q(b) GT_KEY(b) GT_V(b)   row 0 of attention b: const uint8_t *
   GT_LDQ GT_LDK GT_LDV        row strides in elements; the elements of a row are adjacent
   GT_GRIDS       const float *, 7 numbers: the zero points of queries and keys; the factor that
                  makes steps of their products, the zero point of these steps, and the size of one;
                  the zero point of values; and how many steps of weights make 1
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of TP·((DP + VP) / 4 + 42)
                  floats, TP, DP, VP = T, D, DV rounded up to 64
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t b, int64_t s, int64_t d,
                  int64_t count GT_PARAMS): takes `count` elements of row s from d on; acc is
                  vector-aligned

   Queries and weights are read as they are, without a sign. Keys and values are packed with a sign,
   128 less than they are, and what is then missing of the zero points is added to the sums. Where
   queries do not fill the last block, it begins earlier, with rows that were handed out before. */
#include "amx.h"
#include "rows.h"
#include "scores.h"
#include "square.h"
#include "template_begin.h"

#define GT_PADDED(n) (gt_ceil_div(n, 64) * 64)
#define GT_BLOCK (2 * GT_SEGMENT) /* queries */
#define GT_PANELS gt_ceil_div(GT_T, GT_COLUMNS)
/* floats from a panel of scores to the next: rows of all of them must not share a line of cache */
#define GT_APART (GT_BLOCK * GT_COLUMNS + GT_COLUMNS)
#define GT_ONES (0x01010101 - (gt_vi){0})

/* The keys in panels of GT_COLUMNS, in groups of four bytes; `terms` are those of the zero points
   that depend on the key. */
GT_INLINE void GT_JOIN(GT_NAME, _pack_keys)(const uint8_t *x, int8_t *panels, int32_t *terms,
                                            uint8_t *rows GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_D), words = wide / 4;
    const int32_t zero = (int32_t)(GT_GRIDS)[0], rest = (GT_D) * (128 - (int32_t)(GT_GRIDS)[1]);
    for (int64_t t = 0; t < GT_PANELS * GT_COLUMNS; t += GT_LANES) {
        const int64_t some = gt_max(0, gt_min(GT_LANES, (GT_T) - t));
        memset(rows, 0, (size_t)(GT_LANES * wide));
        for (int64_t i = 0; i < some; i++)
            for (int64_t d = 0; d < (GT_D); d++)
                rows[i * wide + d] = x[(t + i) * (GT_LDK) + d] ^ 128;
        float *out = (float *)panels + t / GT_COLUMNS * words * GT_COLUMNS + t % GT_COLUMNS;
        gt_vi sum = {0};
        for (int64_t w = 0; w < words; w += GT_LANES)
            gt_transpose_square((const float *)rows + w, words, out + w * GT_COLUMNS, GT_COLUMNS);
        for (int64_t w = 0; w < words; w++)
            sum = gt_dot_quad(sum, GT_ONES, *(const gt_vi *)(out + w * GT_COLUMNS));
        *(gt_vi *)(terms + t) = -zero * (sum + rest);
    }
}

/* The values in panels of GT_COLUMNS, in groups of four rows. What lies behind the last row meets
   weights of 0. */
GT_INLINE void GT_JOIN(GT_NAME, _pack_values)(const uint8_t *x, uint32_t *out GT_PARAMS)
{
    for (int64_t n = 0; n < (GT_DV); n += GT_COLUMNS) {
        const int64_t count = gt_min(GT_COLUMNS, (GT_DV) - n);
        for (int64_t t = 0; t < GT_PADDED(GT_T); t += 4, out += GT_COLUMNS) {
            const uint8_t *rows[4];
            for (int i = 0; i < 4; i++) rows[i] = x + gt_min(t + i, (GT_T) - 1) * (GT_LDV) + n;
            for (int64_t l = count; l < GT_COLUMNS; l++) out[l] = 0;
            GT_SIMD
            for (int64_t l = 0; l < count; l++)
                out[l] = (rows[0][l] | (uint32_t)rows[1][l] << 8 | (uint32_t)rows[2][l] << 16
                          | (uint32_t)rows[3][l] << 24) ^ 0x80808080u;
        }
    }
}

/* The scores of a block of queries in steps, each as the bits of its sum with GT_ROUNDER,
   so that differences are right. Behind the last key they are 0, which is less. */
GT_INLINE void GT_JOIN(GT_NAME, _scores)(const uint8_t *q, const int8_t *panels,
                                         const int32_t *terms, int32_t *scores GT_PARAMS)
{
    const float factor = (GT_GRIDS)[2], low = -(GT_GRIDS)[3], high = low + 255.0f;
    int32_t sums[GT_BLOCK * GT_COLUMNS] GT_ALIGNED, along[GT_BLOCK];
    for (int i = 0; i < GT_BLOCK; i++) {
        int32_t sum = 0;
        GT_SIMD_REDUCE(+, sum)
        for (int64_t d = 0; d < (GT_D); d++) sum += q[i * (GT_LDQ) + d];
        along[i] = sum * (128 - (int32_t)(GT_GRIDS)[1]);
    }
    for (int64_t p = 0; p < GT_PANELS; p++, scores += GT_APART, terms += GT_COLUMNS) {
        const char *panel = (const char *)panels + p * GT_PADDED(GT_D) * GT_COLUMNS;
        gt_block_zero(0, sums);
        gt_block_add(0, (const char *)q, (const char *)q + GT_SEGMENT * (GT_LDQ), GT_LDQ,
                     GT_SEGMENT, panel, GT_COLUMNS, GT_D, panel, 0, sums);
        gt_block_store(0, 1, GT_COLUMNS, sums);
        for (int i = 0; i < GT_BLOCK; i++) {
            const int32_t *row = sums + i * GT_COLUMNS;
            GT_SIMD
            for (int l = 0; l < GT_COLUMNS; l++) {
                float y = gt_above((float)(row[l] + terms[l] + along[i]) * factor, low);
                y = y < high ? y : high;
                scores[i * GT_COLUMNS + l] = (int32_t)gt_bits_of_float(y + GT_ROUNDER);
            }
            for (int64_t l = (GT_T) - p * GT_COLUMNS; l < GT_COLUMNS; l++)
                scores[i * GT_COLUMNS + l] = 0;
        }
    }
}

/* e to the power of -step·d, for 0 <= d < 256 in each lane, and for any other d some number: a
   vector of lanes holds the powers of the high half of d, or those of the low half. */
typedef struct { gt_vf high, low; float factor; } GT_JOIN(GT_NAME, _powers);

GT_INLINE gt_vf GT_JOIN(GT_NAME, _power)(gt_vi d, const GT_JOIN(GT_NAME, _powers) *powers)
{
#if defined __AVX512F__ && GT_LANES == 16
    return (gt_vf)_mm512_permutexvar_ps((__m512i)(d >> 4), (__m512)powers->high)
           * (gt_vf)_mm512_permutexvar_ps((__m512i)d, (__m512)powers->low);
#else
    float y[GT_LANES] GT_ALIGNED;
    GT_SIMD
    for (int l = 0; l < GT_LANES; l++)
        y[l] = gt_exp2_negative((float)gt_min(gt_max(d[l], 0), 256) * -powers->factor);
    return gt_load(y);
#endif
}

/* The scores of a query become powers of e; the result is their sum by lanes. */
GT_INLINE gt_vf GT_JOIN(GT_NAME, _exponentials)(int32_t *scores,
                                                const GT_JOIN(GT_NAME, _powers) *powers GT_PARAMS)
{
    int32_t tops[GT_COLUMNS] GT_ALIGNED = {0}, top = 0, lane[GT_LANES] GT_ALIGNED;
    for (int64_t p = 0; p < GT_PANELS; p++) {
        GT_SIMD
        for (int l = 0; l < GT_COLUMNS; l++) tops[l] = gt_max(scores[p * GT_APART + l], tops[l]);
    }
    GT_SIMD_REDUCE(max, top)
    for (int l = 0; l < GT_COLUMNS; l++) top = gt_max(top, tops[l]);
    for (int l = 0; l < GT_LANES; l++) lane[l] = l;
    gt_vf sum = {0};
    for (int64_t p = 0; p < GT_PANELS - 1; p++)
        for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES) {
            gt_vi *x = (gt_vi *)(scores + p * GT_APART + j);
            const gt_vf y = GT_JOIN(GT_NAME, _power)(top - *x, powers);
            *x = (gt_vi)y;
            sum += y;
        }
    for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES) { /* behind the last key are zeros */
        gt_vi *x = (gt_vi *)(scores + (GT_PANELS - 1) * GT_APART + j);
        const int32_t some = (int32_t)((GT_T) - (GT_PANELS - 1) * GT_COLUMNS - j);
        const gt_vi there = *(const gt_vi *)lane < some;
        *x = there & (gt_vi)GT_JOIN(GT_NAME, _power)(top - *x, powers);
        sum += (gt_vf)*x;
    }
    return sum;
}

/* The weights of a block of queries. All rows take each step before the next one, which would wait
   for a sum over the lanes of one. */
GT_INLINE void GT_JOIN(GT_NAME, _weights)(int32_t *scores, uint8_t *weights GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_T);
    float steps[GT_BLOCK] GT_ALIGNED, high[GT_LANES] GT_ALIGNED, low[GT_LANES] GT_ALIGNED;
    for (int l = 0; l < GT_LANES; l++) {
        high[l] = gt_exp_f32((float)(l * GT_LANES) * -(GT_GRIDS)[4]);
        low[l] = gt_exp_f32((float)l * -(GT_GRIDS)[4]);
    }
    const GT_JOIN(GT_NAME, _powers) powers = {gt_load(high), gt_load(low),
                                              (GT_GRIDS)[4] * 1.44269504f};
    for (int i = 0; i < GT_BLOCK; i += GT_LANES) {
        gt_vf sums[GT_LANES];
        for (int l = 0; l < GT_LANES; l++)
            sums[l] = GT_JOIN(GT_NAME, _exponentials)(scores + (i + l) * GT_COLUMNS,
                                                      &powers GT_ARGS);
        gt_store(steps + i, (GT_GRIDS)[6] / gt_lane_sums(sums));
    }
    for (int i = 0; i < GT_BLOCK; i++, weights += wide) {
        memset(weights + GT_PANELS * GT_COLUMNS, 0, (size_t)(wide - GT_PANELS * GT_COLUMNS));
        for (int64_t p = 0; p < GT_PANELS; p++) {
            float y[GT_COLUMNS] GT_ALIGNED;
            for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES) {
                const float *x = (const float *)scores + p * GT_APART + i * GT_COLUMNS + j;
                gt_store(y + j, gt_load(x) * steps[i]);
            }
            gt_row_round_u8(weights + p * GT_COLUMNS, y, GT_COLUMNS, 0);
        }
    }
}

/* The sum of a row of `count` bytes, a multiple of 4·GT_LANES. */
GT_INLINE int32_t GT_JOIN(GT_NAME, _sum)(const uint8_t *row, int64_t count)
{
    gt_vi lanes = {0};
    for (int64_t t = 0; t < count; t += 4 * GT_LANES)
        lanes = gt_dot_quad(lanes, *(const gt_vi *)(row + t), GT_ONES);
    int32_t sum = 0;
    for (int l = 0; l < GT_LANES; l++) sum += lanes[l];
    return sum;
}

/* The queries of head b from row s on; `work` is what packed keys and values leave of it. */
GT_NOINLINE void GT_JOIN(GT_NAME, _block)(int64_t b, int64_t s, const int8_t *keys,
                                          const int32_t *terms, const uint32_t *values,
                                          float *work GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_T), first = gt_min(s, (GT_S) - GT_BLOCK);
    uint8_t *weights = (uint8_t *)work;
    int32_t *scores = (int32_t *)work + GT_BLOCK * wide / 4;
    int32_t sums[GT_BLOCK * GT_COLUMNS] GT_ALIGNED, rest[GT_BLOCK];
    GT_JOIN(GT_NAME, _scores)(GT_Q(b) + first * (GT_LDQ), keys, terms, scores GT_ARGS);
    GT_JOIN(GT_NAME, _weights)(scores, weights GT_ARGS);
    for (int i = 0; i < GT_BLOCK; i++)
        rest[i] = GT_JOIN(GT_NAME, _sum)(weights + i * wide, wide)
                  * (128 - (int32_t)(GT_GRIDS)[5]);
    for (int64_t n = 0; n < (GT_DV); n += GT_COLUMNS, values += wide / 4 * GT_COLUMNS) {
        gt_block_zero(0, sums);
        gt_block_add(0, (const char *)weights, (const char *)weights + GT_SEGMENT * wide, wide,
                     GT_SEGMENT, (const char *)values, GT_COLUMNS, wide, (const char *)values, 0,
                     sums);
        gt_block_store(0, 1, GT_COLUMNS, sums);
        for (int64_t i = s - first; i < GT_BLOCK; i++) {
            int32_t *row = sums + i * GT_COLUMNS;
            GT_SIMD
            for (int l = 0; l < GT_COLUMNS; l++) row[l] += rest[i];
            if (n + GT_COLUMNS <= (GT_DV)) GT_EPILOGUE(row, b, first + i, n, GT_COLUMNS GT_ARGS);
            else GT_EPILOGUE(row, b, first + i, n, (GT_DV) % GT_COLUMNS GT_ARGS);
        }
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    if (!gt_whole_heads(GT_HEADS, GT_PIECES, &t, &threads)) return;
    const int64_t blocks = gt_ceil_div(GT_S, GT_BLOCK), wide = GT_PADDED(GT_T);
    const int64_t units = (GT_HEADS) * blocks, end = gt_part(units, t + 1, threads);
    float *work = GT_WORK(t);
    int8_t *keys = (int8_t *)work;
    int32_t *terms = (int32_t *)(work + wide * GT_PADDED(GT_D) / 4);
    uint32_t *values = (uint32_t *)terms + wide;
    work = (float *)values + wide * GT_PADDED(GT_DV) / 4;
    int64_t packed = -1;
    gt_amx_shape(GT_SEGMENT);
    for (int64_t u = gt_part(units, t, threads); u < end; u++) {
        const int64_t b = u / blocks, s = u % blocks * GT_BLOCK;
        if (b != packed) {
            GT_JOIN(GT_NAME, _pack_keys)(GT_KEY(b), keys, terms, (uint8_t *)work GT_ARGS);
            GT_JOIN(GT_NAME, _pack_values)(GT_V(b), values GT_ARGS);
        }
        packed = b;
        GT_JOIN(GT_NAME, _block)(b, s, keys, terms, values, work GT_ARGS);
    }
    gt_amx_done();
}

#undef GT_PADDED
#undef GT_BLOCK
#undef GT_PANELS
#undef GT_APART
#undef GT_ONES
#include "template_end.h"
