/* Scaled dot-product attention, a template: for each head and block of query rows the scores of all
   keys, or of so many at a time, their softmax, and the weighted sum of the values; sums of earlier
   keys are scaled when a higher score is found.

   GT_KEYS        the least number of keys that are processed together, if there are twice as many;
                  0: all
   GT_MR, GT_NV   the register tile of both products: up to MR rows (a literal) of NV vectors;
                  NR = NV·GT_LANES
   GT_HEADS       how many independent attentions
   GT_S GT_T      query rows and key rows of each
   GT_D GT_DV     length of queries and keys, and of values
   GT_Q(b) GT_KEY(b) GT_V(b)   row 0 of attention b: const float *, but keys and values may be of
                  16 bits (GT_HALF) or int8 (GT_BYTES); they are widened as they are read
   GT_LDQ GT_LDK GT_LDV        row strides in elements; the elements of a row are adjacent
   GT_KEY_SCALES(b) GT_V_SCALES(b)   with GT_BYTES: const float *, the factor of each key and of
                  each value; they are GT_KEY_STEP and GT_V_STEP floats apart
   GT_TOGETHER    adjacent heads with the same keys and values, which fewer than 4 queries read once
                  for all of them: a power of two that divides HEADS (default 1)
   GT_SCALE GT_SOFTCAP         factor of the scores; with c > 0, c·tanh(score / c) takes their place
   GT_CAUSAL      1: query s sees keys 0…s only
   GT_MASKED      1: GT_MASK(b, s) is added to the scores of query s, const float * of T elements
                  that are GT_MASK_STEP (0 or 1) floats apart
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of
                    D·TP + T·VP + MR·(TP + 16 + VP) floats,
                  TP = T, VP = DV rounded up to NR; for fewer than 4 queries TOGETHER·T
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t b, int64_t s, int64_t d,
                  int64_t count GT_PARAMS): takes `count` elements of row s from d on; acc is
                  vector-aligned

   A row that sees nothing gives 0. Adjacent heads that share keys and values (grouped queries) pack
   them once. */
#include "operand.h"
#include "scores.h"
#include "tile.h"
#include "attend_begin.h"
#include "attend_pack.h"

#ifndef GT_TOGETHER
#define GT_TOGETHER 1
#endif
#ifdef GT_BYTES
#define GT_FACTORS(x, b) GT_##x##_SCALES(b)
#else
#define GT_FACTORS(x, b) 0
#endif

#define GT_KEYS_AHEAD 24 /* keys between what a single query reads and what is prefetched */

#define GT_WIDE (gt_ceil_div(GT_T, GT_NR) * GT_NR + 16) /* from one row of scores to the next */

/* The scores of row s from key `from` on, scaled, capped and masked, to weights; the sum of these.
   The row is `whole` long: behind what is seen it is -inf, and becomes 0. `highest` is the greatest
   score so far. It is updated here, unless scores are plain: then it already includes these. */
GT_INLINE float GT_JOIN(GT_NAME, _weights)(float *restrict x, int64_t b, int64_t s, int64_t from,
                                           int64_t seen, int64_t whole, float *highest GT_PARAMS)
{
    float top = *highest;
    if (GT_PLAIN) return gt_softmax_row(x, whole, GT_SCALE, top);
#if GT_MASKED
    const float *mask = GT_MASK(b, s) + from * GT_MASK_STEP;
#endif
    GT_SIMD_REDUCE(max, top)
    for (int64_t i = 0; i < seen; i++) {
        float y = x[i] * GT_SCALE;
        if ((GT_SOFTCAP) > 0.0f) y = GT_SOFTCAP * gt_tanh_f32(y / GT_SOFTCAP);
#if GT_MASKED
        y += mask[i * GT_MASK_STEP];
#endif
        x[i] = y;
        top = gt_above(y, top);
    }
    *highest = top;
    return gt_softmax_row(x, whole, 1.0f, top);
}

/* The weights of `rows` queries from row s on for the keys `from` to `upto`, in place of their
   scores; `highest` and `sums` are of all keys so far, and what was summed before is to be
   multiplied by `past`. */
GT_INLINE void GT_JOIN(GT_NAME, _scores)(const int rows, int64_t b, int64_t s, int64_t from,
                                         int64_t upto, const float *keys, float *scores,
                                         float *highest, float *sums, float *past GT_PARAMS)
{
    const int64_t wide = GT_WIDE;
    const float factor = (GT_PLAIN ? (GT_SCALE) : 1.0f) * 1.44269504f;
    float tops[GT_MR * GT_LANES] GT_ALIGNED;
    /* keys that all rows see: each lane keeps the greatest of their scores */
    const int64_t common = gt_max(0, (((GT_CAUSAL) ? gt_min(upto, s + 1) : upto) - from) / GT_NR);
    for (int i = 0; i < rows * GT_LANES; i++) tops[i] = -INFINITY;
    for (int64_t p = 0; p < gt_ceil_div(upto - from, GT_NR); p++) {
        gt_vf acc[GT_MR * GT_NV];
        gt_tile_zero(acc, rows, GT_NV);
        gt_tile_fma(acc, rows, GT_NV, GT_Q(b) + s * (GT_LDQ), GT_LDQ,
                    keys + (from + p * GT_NR) * (GT_D), GT_D, (const char *)keys, 0, 0);
        GT_UNROLL for (int i = 0; i < rows; i++)
            GT_UNROLL for (int j = 0; j < GT_NV; j++)
                gt_store(scores + i * wide + p * GT_NR + j * GT_LANES, acc[i * GT_NV + j]);
        if (GT_PLAIN && p < common)
            GT_ROLLED for (int i = 0; i < rows; i++)
                GT_UNROLL for (int j = 0; j < GT_NV; j++)
                {
                    const float *x = scores + i * wide + p * GT_NR + j * GT_LANES;
                    float *top = tops + i * GT_LANES;
                    for (int l = 0; l < GT_LANES; l++) top[l] = gt_above(x[l], top[l]);
                }
    }
    GT_ROLLED for (int i = 0; i < rows; i++) {
        const int64_t seen = gt_max(0, ((GT_CAUSAL) ? gt_min(upto, s + i + 1) : upto) - from);
        const int64_t whole = gt_ceil_div(seen, GT_LANES) * GT_LANES; /* no tail of scalars */
        float *row = scores + i * wide, top = highest[i];
        gt_store(row + seen, gt_splat(-INFINITY));
        if (GT_PLAIN) {
            top = gt_highest(tops + i * GT_LANES, GT_LANES, top);
            top = gt_highest(row + common * GT_NR, whole - common * GT_NR, top);
        }
        const float old = highest[i];
        const float sum = GT_JOIN(GT_NAME, _weights)(row, b, s + i, from, seen, whole,
                                                     &top GT_ARGS);
        highest[i] = top;
        if (from == 0) {
            sums[i] = sum;
        } else {
            past[i] = old == top ? 1.0f : gt_exp2_negative((old - top) * factor);
            sums[i] = sums[i] * past[i] + sum;
        }
        for (int64_t k = whole; k < upto - from; k += GT_LANES) gt_store(row + k, gt_splat(0.0f));
    }
}

/* Adds what the keys `from` to `upto` contribute to the sums in `tile`; calls the epilogue after
   the last one. */
GT_INLINE void GT_JOIN(GT_NAME, _values)(const int rows, int64_t b, int64_t s, int64_t from,
                                         int64_t upto, int64_t last, const float *values,
                                         const float *scores, const float *past,
                                         const float *sums, int64_t d, float *tile GT_PARAMS)
{
    gt_vf acc[GT_MR * GT_NV];
    if (from == 0) gt_tile_zero(acc, rows, GT_NV);
    else
        GT_UNROLL for (int i = 0; i < rows; i++)
            GT_UNROLL for (int j = 0; j < GT_NV; j++)
                acc[i * GT_NV + j] = ((gt_vf *)tile)[i * GT_NV + j] * gt_splat(past[i]);
    gt_tile_fma(acc, rows, GT_NV, scores, GT_WIDE, values + d * (GT_T) + from * GT_NR, upto - from,
                (const char *)values, 0, 0);
    if (upto < last) {
        gt_tile_store(acc, rows, GT_NV, tile);
        return;
    }
    GT_UNROLL for (int i = 0; i < rows; i++) {
        const float inverse = sums[i] > 0.0f || sums[i] != sums[i] ? 1.0f / sums[i] : 0.0f;
        GT_UNROLL for (int j = 0; j < GT_NV; j++) acc[i * GT_NV + j] *= gt_splat(inverse);
    }
    gt_tile_store(acc, rows, GT_NV, tile);
    for (int i = 0; i < rows; i++)
        GT_EPILOGUE(tile + i * GT_NR, b, s + i, d, gt_min(GT_NR, (GT_DV) - d) GT_ARGS);
}

/* `rows` queries from row s on, against packed keys and values: all keys at once, or so many that
   their scores stay in the first cache. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int rows, int64_t b, int64_t s,
                                        const float *keys, const float *values,
                                        float *scores GT_PARAMS)
{
    const int64_t last = (GT_CAUSAL) ? gt_min(GT_T, s + rows) : (GT_T);
    const int64_t chunks = (GT_KEYS) > 0 ? last / gt_max(1, GT_KEYS) : 0;
    float highest[GT_MR], sums[GT_MR], past[GT_MR];
    for (int i = 0; i < rows; i++) {
        highest[i] = -INFINITY;
        sums[i] = past[i] = 0.0f;
    }
    if (chunks < 2) {
        float tile[GT_MR * GT_NR] GT_ALIGNED;
        GT_JOIN(GT_NAME, _scores)(rows, b, s, 0, last, keys, scores, highest, sums, past GT_ARGS);
        for (int64_t d = 0; d < (GT_DV); d += GT_NR)
            GT_JOIN(GT_NAME, _values)
            (rows, b, s, 0, last, last, values, scores, past, sums, d, tile GT_ARGS);
        return;
    }
    float *tiles = scores + GT_MR * GT_WIDE;
    const int64_t chunk = gt_ceil_div(gt_ceil_div(last, chunks), GT_NR) * GT_NR;
    for (int64_t from = 0; from < last; from += chunk) {
        const int64_t upto = gt_min(last, from + chunk);
        GT_JOIN(GT_NAME, _scores)
        (rows, b, s, from, upto, keys, scores, highest, sums, past GT_ARGS);
        for (int64_t d = 0; d < (GT_DV); d += GT_NR)
            GT_JOIN(GT_NAME, _values)
            (rows, b, s, from, upto, last, values, scores, past, sums, d,
             tiles + d * GT_MR GT_ARGS);
    }
}

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _block##rows)(int64_t b, int64_t s, const float *keys,      \
                                                    const float *values, float *scores GT_PARAMS) \
    {                                                                                             \
        GT_JOIN(GT_NAME, _block)(rows, b, s, keys, values, scores GT_ARGS);                       \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* The products of row s of GT_TOGETHER heads with the first `seen` keys: a few keys at a time,
   where a key is whole vectors, so that a vector holds a sum of each. Scores of adjacent heads are
   `wide` apart. */
GT_INLINE void GT_JOIN(GT_NAME, _dots)(int64_t b, int64_t s, int64_t seen, int64_t wide,
                                       float *scores GT_PARAMS)
{
    const GT_NUMBER *keys = GT_KEY(b);
    const float *queries[GT_TOGETHER];
    int64_t k = 0;
    GT_UNROLL for (int h = 0; h < GT_TOGETHER; h++)
    {
        const int64_t head = b + h;
        queries[h] = GT_Q(head) + s * (GT_LDQ);
        (void)head;
    }
#if GT_LANES > 1
    enum { some = GT_LANES >= GT_TOGETHER ? GT_LANES / GT_TOGETHER : 1 };
    if ((GT_D) % GT_LANES == 0 && (GT_D) > 0 && some * GT_TOGETHER == GT_LANES)
        for (; k + some <= seen; k += some) {
            gt_vf part[GT_LANES];
            float sums[GT_LANES] GT_ALIGNED;
            GT_UNROLL for (int i = 0; i < some; i++)
            {
                const GT_NUMBER *key = keys + (k + i) * (GT_LDK);
                gt_prefetch(key + GT_KEYS_AHEAD * (GT_LDK), (GT_D) * (int64_t)sizeof *key);
                GT_UNROLL for (int h = 0; h < GT_TOGETHER; h++)
                    part[h * some + i] = gt_load(queries[h]) * GT_READ(key);
                for (int64_t d = GT_LANES; d < (GT_D); d += GT_LANES)
                    GT_UNROLL for (int h = 0; h < GT_TOGETHER; h++)
                        part[h * some + i] += gt_load(queries[h] + d) * GT_READ(key + d);
            }
            gt_store(sums, gt_lane_sums(part));
            GT_UNROLL for (int h = 0; h < GT_TOGETHER; h++)
                memcpy(scores + h * wide + k, sums + h * some, some * sizeof(float));
        }
#endif
    for (; k < seen; k++)
        for (int h = 0; h < GT_TOGETHER; h++) {
            const GT_NUMBER *key = keys + k * (GT_LDK);
            float sum = 0.0f;
            GT_SIMD_REDUCE(+, sum)
            for (int64_t d = 0; d < (GT_D); d++) sum += queries[h][d] * GT_READ_ONE(key + d);
            scores[h * wide + k] = sum;
        }
}

/* For each of GT_TOGETHER heads the sum of `width` <= NR columns of the first `seen` values, each
   times its weight, which are added to rows of NR. With the `first` columns whole values are
   prefetched. */
GT_INLINE void GT_JOIN(GT_NAME, _weighted)(const float *weights, int64_t wide,
                                           const GT_NUMBER *values, int64_t seen, int64_t width,
                                           int first, float *out GT_PARAMS)
{
    if (width == GT_NR) {
        enum {
            tile = GT_TOGETHER * GT_NV,
            several = tile > 8 ? 1 : tile > 4 ? 2 : 4 /* keys with sums of their own, which need
                                                         not wait */
        };
        gt_vf acc[several * tile];
        int64_t k = 0;
        gt_tile_zero(acc, several, tile);
        for (; k + several <= seen; k += several)
            GT_UNROLL for (int i = 0; i < several; i++)
            {
                if (first)
                    gt_prefetch(values + (k + i + GT_KEYS_AHEAD) * (GT_LDV),
                                    (GT_DV) * (int64_t)sizeof *values);
                GT_UNROLL for (int j = 0; j < GT_NV; j++)
                {
                    const gt_vf v = GT_READ(values + (k + i) * (GT_LDV) + j * GT_LANES);
                    GT_UNROLL for (int h = 0; h < GT_TOGETHER; h++)
                        acc[i * tile + h * GT_NV + j] += gt_splat(weights[h * wide + k + i]) * v;
                }
            }
        for (; k < seen; k++)
            GT_UNROLL for (int j = 0; j < GT_NV; j++)
                GT_UNROLL for (int h = 0; h < GT_TOGETHER; h++)
                    acc[h * GT_NV + j] += gt_splat(weights[h * wide + k])
                                          * GT_READ(values + k * (GT_LDV) + j * GT_LANES);
        GT_UNROLL for (int i = 1; i < several; i++)
            GT_UNROLL for (int j = 0; j < tile; j++) acc[j] += acc[i * tile + j];
        gt_tile_store(acc, GT_TOGETHER, GT_NV, out);
        return;
    }
    for (int h = 0; h < GT_TOGETHER; h++)
        for (int64_t k = 0; k < seen; k++) {
            GT_SIMD
            for (int64_t j = 0; j < width; j++)
                out[h * GT_NR + j] += weights[h * wide + k]
                                      * GT_READ_ONE(values + k * (GT_LDV) + j);
        }
}

/* x[k] times the factor of key k. */
GT_INLINE void GT_JOIN(GT_NAME, _times)(float *restrict x, const float *restrict factors,
                                        int64_t step, int64_t seen)
{
    GT_SIMD
    for (int64_t k = 0; k < seen; k++) x[k] *= factors[k * step];
}

/* Row s of GT_TOGETHER heads, computed from the rows of keys and values without packing. Factors of
   int8 multiply scores and weights, not keys and values. */
GT_INLINE void GT_JOIN(GT_NAME, _single)(int64_t b, int64_t s, float *scores GT_PARAMS)
{
    const int64_t seen = (GT_CAUSAL) ? gt_min(GT_T, s + 1) : (GT_T), wide = GT_T;
    float inverse[GT_TOGETHER];
    GT_JOIN(GT_NAME, _dots)(b, s, seen, wide, scores GT_ARGS);
    for (int h = 0; h < GT_TOGETHER; h++) {
        float *row = scores + h * wide;
#ifdef GT_BYTES
        GT_JOIN(GT_NAME, _times)(row, GT_KEY_SCALES(b), GT_KEY_STEP, seen);
#endif
        float top = GT_PLAIN ? gt_highest(row, seen, -INFINITY) : -INFINITY;
        const float sum = GT_JOIN(GT_NAME, _weights)(row, b + h, s, 0, seen, seen, &top GT_ARGS);
        inverse[h] = sum > 0.0f || sum != sum ? 1.0f / sum : 0.0f;
#ifdef GT_BYTES
        GT_JOIN(GT_NAME, _times)(row, GT_V_SCALES(b), GT_V_STEP, seen);
#endif
    }
    for (int64_t d = 0; d < (GT_DV); d += GT_NR) {
        const int64_t width = gt_min(GT_NR, (GT_DV) - d);
        float out[GT_TOGETHER * GT_NR] GT_ALIGNED = {0};
        GT_JOIN(GT_NAME, _weighted)(scores, wide, GT_V(b) + d, seen, width, d == 0, out GT_ARGS);
        for (int h = 0; h < GT_TOGETHER; h++) {
            for (int64_t j = 0; j < width; j++) out[h * GT_NR + j] *= inverse[h];
            GT_EPILOGUE(out + h * GT_NR, b + h, s, d, width GT_ARGS);
        }
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    if (!gt_whole_heads(GT_HEADS, GT_PIECES, &t, &threads)) return;
    float *keys = GT_WORK(t);
    if ((GT_S) < 4) { /* packing would cost more than the products */
        const int64_t units = (GT_HEADS) / GT_TOGETHER * (GT_S);
        const int64_t end = gt_part(units, t + 1, threads);
        for (int64_t u = gt_part(units, t, threads); u < end; u++)
            GT_JOIN(GT_NAME, _single)(u / (GT_S) * GT_TOGETHER, u % (GT_S), keys GT_ARGS);
        return;
    }
    const int64_t blocks = gt_ceil_div(GT_S, GT_MR);
    const int64_t units = (GT_HEADS) * blocks, end = gt_part(units, t + 1, threads);
    int64_t u = gt_part(units, t, threads);
    float *values = keys + (GT_D) * gt_ceil_div(GT_T, GT_NR) * GT_NR;
    float *scores = values + (GT_T) * gt_ceil_div(GT_DV, GT_NR) * GT_NR;
    const int64_t shorter = (GT_S) / blocks, longer = (GT_S) % blocks;
    const GT_NUMBER *packed_keys = 0, *packed_values = 0;
    for (; u < end; u++) {
        const int64_t b = u / blocks, block = u % blocks;
        if (GT_KEY(b) != packed_keys) {
            packed_keys = GT_KEY(b);
            GT_JOIN(GT_NAME, _pack_keys)(packed_keys, GT_FACTORS(KEY, b), keys GT_ARGS);
        }
        if (GT_V(b) != packed_values) {
            packed_values = GT_V(b);
            GT_JOIN(GT_NAME, _pack_values)(packed_values, GT_FACTORS(V, b), values GT_ARGS);
        }
        const int64_t s = block * shorter + gt_min(block, longer);
        const int64_t rows = shorter + (block < longer);
        GT_CALL(_block, rows, GT_MR, b, s, keys, values, scores GT_ARGS);
    }
}

#undef GT_FACTORS
#undef GT_TOGETHER
#undef GT_KEY_SCALES
#undef GT_V_SCALES
#undef GT_KEY_STEP
#undef GT_V_STEP
#undef GT_WIDE
#undef GT_KEYS
#undef GT_KEYS_AHEAD
#include "template_end.h"
