/* Scaled dot-product attention in bfloat16 by a matrix unit, a template: for each head and block of
   queries the scores of all keys, or of so many at a time, their softmax, and the weighted sum of
   the values. Scores are kept transposed, a row for each key and a column for each query, so that
   the softmax runs down the lanes of vectors, and so that weights, in pairs of rows, are a panel of
   the second product as they are.

   GT_HEADS       how many independent attentions
   GT_S GT_T      query rows and key rows of each
   GT_D GT_DV     length of queries and keys, and of values
   GT_Q(b) GT_KEY(b) GT_V(b)   row 0 of attention b: const uint16_t *, bfloat16
   GT_LDQ GT_LDK GT_LDV        row strides in elements; the elements of a row are adjacent
   GT_SCALE GT_SOFTCAP         factor of the scores; with c > 0, c·tanh(score / c) takes their place
   GT_CAUSAL      1: query s sees keys 0…s only
   GT_MASKED      1: GT_MASK(b, s) is added to the scores of query s, const float * of T elements
                  that are GT_MASK_STEP (0 or 1) floats apart
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of
                    TP·(DP + VP) / 2 + (DP + 2·VP)·NR + min(TP, 1024)·NR·3 / 2 floats,
                  TP, DP, VP = T, D, DV rounded up to 32, NR = 2·GT_LANES
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t b, int64_t s, int64_t d,
                  int64_t count GT_PARAMS): takes `count` elements of row s from d on; acc is
                  vector-aligned

   A row that sees nothing gives 0. Adjacent heads that share keys and values (grouped queries) pack
   them once. */
#include "amx.h"
#include "scores.h"
#include "square.h"
#include "attend_begin.h"

#define GT_NV 2
#define GT_PADDED(n) (gt_ceil_div(n, 32) * 32)
#define GT_MOST 1024 /* keys whose scores are kept at a time */
#define GT_SOME gt_min(GT_PADDED(GT_T), GT_MOST)

/* `count` rows of n numbers, ldx apart, as rows filled up with zeros to a multiple of 32, and
   further rows of zeros up to `rows`. */
GT_INLINE void GT_JOIN(GT_NAME, _rows)(const uint16_t *x, int64_t ldx, int64_t count, int64_t n,
                                       int64_t rows, uint16_t *restrict out)
{
    const int64_t wide = GT_PADDED(n);
    for (int64_t i = 0; i < count; i++, out += wide) {
        memcpy(out, x + i * ldx, (size_t)n * 2);
        memset(out + n, 0, (size_t)(wide - n) * 2);
    }
    memset(out, 0, (size_t)((rows - count) * wide) * 2);
}

/* The values, transposed: a row for each element of a value. */
GT_INLINE void GT_JOIN(GT_NAME, _pack_values)(const uint16_t *x, uint16_t *out GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_T);
    for (int64_t d = 0; d < (GT_DV); d += GT_SEGMENT)
        gt_turn_pairs(x + d, GT_LDV, gt_min(GT_SEGMENT, (GT_DV) - d), GT_T, out + d * wide, wide);
}

/* A block of queries as a panel: pairs of their elements, a column for each query. */
GT_INLINE void GT_JOIN(GT_NAME, _pack_queries)(int64_t b, int64_t s, uint16_t *rows,
                                               uint16_t *panel GT_PARAMS)
{
    const int64_t words = GT_PADDED(GT_D) / 2;
    GT_JOIN(GT_NAME, _rows)
    (GT_Q(b) + s * (GT_LDQ), GT_LDQ, gt_min(GT_COLUMNS, (GT_S) - s), GT_D, GT_COLUMNS, rows);
    for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES)
        for (int64_t w = 0; w < words; w += GT_LANES)
            gt_transpose_square((const float *)rows + j * words + w, words,
                                (float *)panel + w * GT_COLUMNS + j, GT_COLUMNS);
}

#if GT_MASKED
/* Adds the masks of the queries from row s on to the scores of `count` keys. */
GT_INLINE void GT_JOIN(GT_NAME, _add_masks)(float *restrict x, int64_t b, int64_t s, int64_t from,
                                            int64_t count GT_PARAMS)
{
    const float *rows[GT_COLUMNS];
    for (int64_t l = 0; l < GT_COLUMNS; l++)
        rows[l] = GT_MASK(b, gt_min(s + l, (GT_S) - 1)) + from * GT_MASK_STEP;
    if (rows[0] == rows[GT_COLUMNS - 1]) { /* one mask for all queries */
        for (int64_t k = 0; k < count; k++)
            for (int64_t l = 0; l < GT_COLUMNS; l++)
                x[k * GT_COLUMNS + l] += rows[0][k * GT_MASK_STEP];
        return;
    }
    for (int64_t k = 0; k < count; k += GT_LANES)
        for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES) {
            float square[GT_LANES * GT_LANES] GT_ALIGNED = {0};
            float turned[GT_LANES * GT_LANES] GT_ALIGNED;
            const int64_t some = gt_min(GT_LANES, count - k);
            for (int64_t i = 0; i < GT_LANES; i++)
                for (int64_t r = 0; r < some; r++)
                    square[i * GT_LANES + r] = rows[j + i][(k + r) * GT_MASK_STEP];
            gt_transpose_square(square, GT_LANES, turned, GT_LANES);
            for (int64_t r = 0; r < some; r++)
                for (int64_t l = 0; l < GT_LANES; l++)
                    x[(k + r) * GT_COLUMNS + j + l] += turned[r * GT_LANES + l];
        }
}
#endif

/* Scales, caps and masks the scores of `count` keys. */
GT_INLINE void GT_JOIN(GT_NAME, _change)(float *restrict x, int64_t b, int64_t s, int64_t from,
                                         int64_t count GT_PARAMS)
{
    (void)b;
    if (!GT_PLAIN) {
        GT_SIMD
        for (int64_t i = 0; i < count * GT_COLUMNS; i++) {
            const float y = x[i] * (GT_SCALE);
            x[i] = (GT_SOFTCAP) > 0.0f ? (GT_SOFTCAP) * gt_tanh_f32(y / (GT_SOFTCAP)) : y;
        }
    }
#if GT_MASKED
    GT_JOIN(GT_NAME, _add_masks)(x, b, s, from, count GT_ARGS);
#endif
    if (GT_CAUSAL)
        for (int64_t k = gt_max(0, s - from + 1); k < count; k++)
            for (int64_t l = 0; l < gt_min(GT_COLUMNS, from + k - s); l++)
                x[k * GT_COLUMNS + l] = -INFINITY;
}

/* The weights of `count` keys, in pairs of rows, of their scores, which have a row to spare if
   their number is odd. `highest` and `sums` are of all keys so far, and what was summed before is
   to be multiplied by `past`. */
GT_INLINE void GT_JOIN(GT_NAME, _weights)(float *restrict x, int64_t count,
                                          uint32_t *restrict weights, float *restrict highest,
                                          float *restrict sums, float *restrict past)
{
    const float factor = (GT_PLAIN ? (GT_SCALE) : 1.0f) * 1.44269504f;
    float tops[GT_COLUMNS] GT_ALIGNED;
    int64_t some = 0;
    memcpy(tops, highest, sizeof tops);
    for (; some + 4 <= count; some += 4) { /* a column with a NaN becomes NaN, whatever its top */
        const float *row = x + some * GT_COLUMNS;
        GT_SIMD
        for (int64_t l = 0; l < GT_COLUMNS; l++) {
            const float a = gt_above(row[l], row[GT_COLUMNS + l]);
            const float b = gt_above(row[2 * GT_COLUMNS + l], row[3 * GT_COLUMNS + l]);
            tops[l] = gt_above(gt_above(a, b), tops[l]);
        }
    }
    for (; some < count; some++)
        for (int64_t l = 0; l < GT_COLUMNS; l++)
            tops[l] = gt_above(x[some * GT_COLUMNS + l], tops[l]);
    for (int64_t l = 0; l < GT_COLUMNS; l++) {
        past[l] = highest[l] == tops[l] ? 1.0f : gt_exp2_negative((highest[l] - tops[l]) * factor);
        highest[l] = tops[l];
        if (tops[l] == -INFINITY) tops[l] = 0.0f; /* no key so far: weights of 0 */
        sums[l] *= past[l];
    }
    if (count % 2)
        for (int64_t l = 0; l < GT_COLUMNS; l++) x[count * GT_COLUMNS + l] = -INFINITY;
    for (int64_t k = 0; k < count; k += 2, weights += GT_COLUMNS) {
        float *one = x + k * GT_COLUMNS, *two = one + GT_COLUMNS;
        GT_SIMD
        for (int64_t l = 0; l < GT_COLUMNS; l++) {
            one[l] = gt_exp2_negative((one[l] - tops[l]) * factor);
            two[l] = gt_exp2_negative((two[l] - tops[l]) * factor);
            sums[l] += one[l] + two[l];
        }
        for (int64_t l = 0; l < GT_COLUMNS; l += GT_LANES)
            *(gt_vi *)(weights + l) = gt_rounded_pairs(gt_load(one + l), gt_load(two + l));
    }
    memset(weights, 0, (size_t)((GT_PADDED(count) - count) / 2 * GT_COLUMNS) * 4);
}

/* The scores of `count` keys. */
GT_INLINE void GT_JOIN(GT_NAME, _scores)(const uint16_t *keys, int64_t count,
                                         const uint16_t *panel, float *scores GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_D);
    for (int64_t k = 0; k < count; k += 2 * GT_SEGMENT) {
        const char *first = (const char *)(keys + k * wide);
        const int two = k + GT_SEGMENT < count;
        float *sums = scores + k * GT_COLUMNS;
        gt_block_zero(GT_BFLOAT16, sums);
        gt_block_add(GT_BFLOAT16, first, two ? first + GT_SEGMENT * wide * 2 : 0, wide * 2,
                     GT_SEGMENT, (const char *)panel, GT_COLUMNS, wide * 2, (const char *)panel, 0,
                     sums);
        gt_block_store(GT_BFLOAT16, two, GT_COLUMNS, sums);
    }
}

/* Adds what `count` keys contribute to the results, a row for each element of a value. */
GT_INLINE void GT_JOIN(GT_NAME, _values)(const uint16_t *values, int64_t count, int go_on,
                                         const uint32_t *weights, const float *past,
                                         float *results GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_T);
    for (int64_t d = 0; d < (GT_DV); d += 2 * GT_SEGMENT) {
        const char *first = (const char *)(values + d * wide);
        const int two = d + GT_SEGMENT < (GT_DV);
        float *sums = results + d * GT_COLUMNS;
        if (go_on) {
            for (int64_t i = 0; i < 2 * GT_SEGMENT; i++)
                for (int64_t l = 0; l < GT_COLUMNS; l++) sums[i * GT_COLUMNS + l] *= past[l];
            gt_block_load(GT_BFLOAT16, two, GT_COLUMNS, sums);
        } else {
            gt_block_zero(GT_BFLOAT16, sums);
        }
        gt_block_add(GT_BFLOAT16, first, two ? first + GT_SEGMENT * wide * 2 : 0, wide * 2,
                     GT_SEGMENT, (const char *)weights, GT_COLUMNS, GT_PADDED(count) * 2,
                     (const char *)weights, 0, sums);
        gt_block_store(GT_BFLOAT16, two, GT_COLUMNS, sums);
    }
}

/* Divides the results by the sums of the weights and hands them out, query by query. */
GT_INLINE void GT_JOIN(GT_NAME, _hand)(float *restrict results, const float *sums, int64_t b,
                                       int64_t s, float *out GT_PARAMS)
{
    const int64_t wide = GT_PADDED(GT_DV);
    float inverse[GT_COLUMNS] GT_ALIGNED;
    for (int64_t l = 0; l < GT_COLUMNS; l++)
        inverse[l] = sums[l] > 0.0f || sums[l] != sums[l] ? 1.0f / sums[l] : 0.0f;
    for (int64_t d = 0; d < (GT_DV); d += GT_LANES) {
        float *rows = results + d * GT_COLUMNS;
        for (int64_t i = 0; i < GT_LANES; i++)
            for (int64_t l = 0; l < GT_COLUMNS; l++) rows[i * GT_COLUMNS + l] *= inverse[l];
        for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES)
            gt_transpose_square(rows + j, GT_COLUMNS, out + j * wide + d, wide);
    }
    for (int64_t i = 0; i < gt_min(GT_COLUMNS, (GT_S) - s); i++)
        GT_EPILOGUE(out + i * wide, b, s + i, 0, GT_DV GT_ARGS);
}

/* The queries of head b from row s on; `work` is what packed keys and values leave of it. */
GT_NOINLINE void GT_JOIN(GT_NAME, _block)(int64_t b, int64_t s, const uint16_t *keys,
                                          const uint16_t *values, float *work GT_PARAMS)
{
    const int64_t deep = GT_PADDED(GT_D), high = GT_PADDED(GT_DV);
    const int64_t last = (GT_CAUSAL) ? gt_min(GT_T, s + GT_COLUMNS) : (GT_T);
    float *panel = work, *results = panel + deep * GT_COLUMNS / 2;
    float *out = results + high * GT_COLUMNS, *scores = out + high * GT_COLUMNS;
    float *rows = scores + GT_SOME * GT_COLUMNS;
    uint32_t *weights = (uint32_t *)(rows + deep * GT_COLUMNS / 2);
    float highest[GT_COLUMNS] GT_ALIGNED, sums[GT_COLUMNS] GT_ALIGNED = {0};
    float past[GT_COLUMNS] GT_ALIGNED;
    for (int i = 0; i < GT_COLUMNS; i++) highest[i] = -INFINITY;
    GT_JOIN(GT_NAME, _pack_queries)(b, s, (uint16_t *)rows, (uint16_t *)panel GT_ARGS);
    for (int64_t from = 0; from < last; from += GT_MOST) {
        const int64_t count = gt_min(last - from, GT_MOST);
        GT_JOIN(GT_NAME, _scores)
        (keys + from * deep, count, (const uint16_t *)panel, scores GT_ARGS);
        GT_JOIN(GT_NAME, _change)(scores, b, s, from, count GT_ARGS);
        GT_JOIN(GT_NAME, _weights)(scores, count, weights, highest, sums, past);
        GT_JOIN(GT_NAME, _values)(values + from, count, from > 0, weights, past, results GT_ARGS);
    }
    if (last <= 0) memset(results, 0, (size_t)(high * GT_COLUMNS) * 4);
    GT_JOIN(GT_NAME, _hand)(results, sums, b, s, out GT_ARGS);
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    if (!gt_whole_heads(GT_HEADS, GT_PIECES, &t, &threads)) return;
    const int64_t blocks = gt_ceil_div(GT_S, GT_COLUMNS);
    const int64_t units = (GT_HEADS) * blocks, end = gt_part(units, t + 1, threads);
    uint16_t *keys = (uint16_t *)GT_WORK(t);
    uint16_t *values = keys + GT_PADDED(GT_T) * GT_PADDED(GT_D);
    float *work = (float *)(values + GT_PADDED(GT_T) * GT_PADDED(GT_DV));
    const uint16_t *packed_keys = 0, *packed_values = 0;
    gt_amx_shape(GT_SEGMENT);
    for (int64_t u = gt_part(units, t, threads); u < end; u++) {
        const int64_t b = u / blocks, s = u % blocks * GT_COLUMNS;
        if (GT_KEY(b) != packed_keys) {
            packed_keys = GT_KEY(b);
            GT_JOIN(GT_NAME, _rows)
            (packed_keys, GT_LDK, GT_T, GT_D, GT_PADDED(GT_T), keys);
        }
        if (GT_V(b) != packed_values) {
            packed_values = GT_V(b);
            GT_JOIN(GT_NAME, _pack_values)(packed_values, values GT_ARGS);
        }
        GT_JOIN(GT_NAME, _block)(b, s, keys, values, work GT_ARGS);
    }
    gt_amx_done();
}

#undef GT_PADDED
#undef GT_MOST
#undef GT_SOME
#include "template_end.h"
