/* Scaled dot-product attention in CUDA: the macros of attend.h that name operands, sizes, scores;
   D and DV are literals up to 128. Besides

   GT_ROWS  queries of a block, a literal: 64; 1: each query has a block (attend_few_cuda.h)
   GT_UNIT  how floats are multiplied: rounded to 19 bits, or each as two numbers of 19 bits, as
            product_cuda.h says. Keys and values of 16 bits are one such number

   A warp has 16 queries, and in registers sums for all columns of their results. The queries of a
   block, and in turn some keys and their values, are in shared memory; scores become weights in the
   registers of the matrix unit. When a higher score is found, the sums so far are scaled. Sums
   leave the unit after each 16 products, because it truncates them. */
#include "cuda_unit.h"
#include "vmath.h"
#include "template_begin.h"

#ifdef GT_HALF
#define GT_NUMBER uint16_t
#define GT_AS_FLOAT(x) (GT_HALF == GT_FLOAT16 ? gt_f16_to_f32(x) : gt_bf16_to_f32(x))
#else
#define GT_NUMBER float
#define GT_AS_FLOAT(x) (x)
#endif
#ifndef GT_MASKED
#define GT_MASKED 0
#endif

/* A score as it counts: scaled, capped, masked; −∞ where the query does not see the key. */
GT_INLINE float GT_JOIN(GT_NAME, _score)(float x, int64_t b, int64_t s, int64_t key GT_PARAMS)
{
    if (s >= (GT_S) || key >= (GT_T) || ((GT_CAUSAL) && key > s)) return -GT_INFINITY;
    x *= GT_SCALE;
    if ((GT_SOFTCAP) > 0.0f) x = GT_SOFTCAP * gt_tanh_f32(x / GT_SOFTCAP);
#if GT_MASKED
    x += (GT_MASK(b, s))[key * GT_MASK_STEP];
#endif
    return x;
}

/* e^(x − top), where `top` is the highest score: 0 for what is not seen. */
GT_INLINE float GT_JOIN(GT_NAME, _weight)(float x, float top)
{
    return x == -GT_INFINITY ? 0.0f : gt_exp_f32(x - top);
}

/* What a sum of weights divides by; a row that sees nothing gives 0. */
GT_INLINE float GT_JOIN(GT_NAME, _inverse)(float sum)
{
    return sum > 0.0f || sum != sum ? 1.0f / sum : 0.0f;
}

#if GT_ROWS == 1
#include "attend_few_cuda.h"
#else
#define GT_DEPTH (((GT_D) + 7) / 8 * 8)
#define GT_WIDTH (((GT_DV) + 7) / 8 * 8)
#define GT_LONG (GT_DEPTH > GT_WIDTH ? GT_DEPTH : GT_WIDTH)
#define GT_BLOCK_KEYS (GT_LONG > 64 ? 16 : 32)
#define GT_STEPS (GT_DEPTH / 8)  /* of the unit along a query */
#define GT_ACROSS (GT_WIDTH / 8) /* squares of the results of a warp */
#define GT_SQUARES (GT_BLOCK_KEYS / 8)

/* Brings keys or values into shared memory, from row `from` on; what is not there is 0. */
GT_INLINE void GT_JOIN(GT_NAME, _bring)(float *to, const GT_NUMBER *x, int64_t from, int64_t step,
                                        const int length, const int wide GT_PARAMS)
{
    for (int i = threadIdx.x; i < GT_BLOCK_KEYS * wide; i += GT_TEAM) {
        const int key = i / wide, at = i % wide;
        float value = 0.0f;
        if (from + key < (GT_T) && at < length)
            value = GT_AS_FLOAT(x[(from + key) * step + at]);
        to[key * (wide + 4) + at] = value;
    }
}

/* The same for the queries of a block. */
GT_INLINE void GT_JOIN(GT_NAME, _queries)(float *to, int64_t b, int64_t first GT_PARAMS)
{
    for (int i = threadIdx.x; i < GT_ROWS * GT_DEPTH; i += GT_TEAM) {
        const int64_t s = first + i / GT_DEPTH, at = i % GT_DEPTH;
        const int there = s < (GT_S) && at < (GT_D);
        to[i / GT_DEPTH * (GT_DEPTH + 4) + at] = there ? (GT_Q(b))[s * (GT_LDQ) + at] : 0.0f;
    }
}

/* d += a·b, where a is `high` + `low`, and b two floats. */
GT_INLINE void GT_JOIN(GT_NAME, _multiply)(float *d, const uint32_t *high, const uint32_t *low,
                                           float first, float second)
{
    const uint32_t bits[2] = {gt_bits_of_float(first), gt_bits_of_float(second)};
    const uint32_t wide[2] = {gt_tf32(bits[0]), gt_tf32(bits[1])};
#if GT_UNIT == GT_UNIT_PARTS
    gt_multiply_tf32(d, low, wide);
#ifndef GT_HALF
    const uint32_t rest[2] = {gt_tf32_rest(bits[0]), gt_tf32_rest(bits[1])};
    gt_multiply_tf32(d, high, rest);
#endif
#else
    (void)low;
#endif
    gt_multiply_tf32(d, high, wide);
}

/* Four floats as two numbers of 19 bits each. */
GT_INLINE void GT_JOIN(GT_NAME, _parts)(const float *x, uint32_t *high, uint32_t *low)
{
    GT_UNROLL
    for (int i = 0; i < 4; i++) {
        const uint32_t bits = gt_bits_of_float(x[i]);
        high[i] = gt_tf32(bits), low[i] = gt_tf32_rest(bits);
    }
}

/* The products of 16 queries with a block of keys. */
GT_INLINE void GT_JOIN(GT_NAME, _scores)(float (*scores)[4], const float *queries,
                                         const float *keys)
{
    const int lane = threadIdx.x % GT_WARP;
    const float *query = queries + (threadIdx.x / GT_WARP * 16 + lane / 4) * (GT_DEPTH + 4) +
                         lane % 4;
    GT_UNROLL
    for (int j = 0; j < GT_SQUARES; j++)
        scores[j][0] = scores[j][1] = scores[j][2] = scores[j][3] = 0.0f;
    GT_UNROLL
    for (int chunk = 0; chunk < GT_STEPS; chunk += 2) {
        float part[GT_SQUARES][4];
        GT_UNROLL
        for (int j = 0; j < GT_SQUARES; j++)
            part[j][0] = part[j][1] = part[j][2] = part[j][3] = 0.0f;
        GT_UNROLL
        for (int k = chunk; k < chunk + 2 && k < GT_STEPS; k++) {
            uint32_t high[4], low[4];
            const float *at = query + k * 8, *below = at + 8 * (GT_DEPTH + 4);
            const float numbers[4] = {at[0], below[0], at[4], below[4]};
            GT_JOIN(GT_NAME, _parts)(numbers, high, low);
            GT_UNROLL
            for (int j = 0; j < GT_SQUARES; j++) {
                const float *key = keys + (j * 8 + lane / 4) * (GT_DEPTH + 4) + k * 8 + lane % 4;
                GT_JOIN(GT_NAME, _multiply)(part[j], high, low, key[0], key[4]);
            }
        }
        GT_UNROLL
        for (int j = 0; j < GT_SQUARES; j++)
            GT_UNROLL
            for (int i = 0; i < 4; i++) scores[j][i] += part[j][i];
    }
}

/* Turns the scores of a block of keys into weights, and scales the sums so far. Of the two rows of
   a thread `top` is the highest score, and `sum` that of the weights. */
GT_INLINE void GT_JOIN(GT_NAME, _weights)(float (*scores)[4], float (*acc)[4], float *top,
                                          float *sum, int64_t b, int64_t row,
                                          int64_t from GT_PARAMS)
{
    GT_UNROLL
    for (int half = 0; half < 2; half++) {
        float highest = top[half], added = 0.0f;
        GT_UNROLL
        for (int j = 0; j < GT_SQUARES; j++)
            GT_UNROLL
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                const int64_t key = from + j * 8 + threadIdx.x % 4 * 2 + i % 2;
                scores[j][i] = GT_JOIN(GT_NAME, _score)(scores[j][i], b, row + 8 * half,
                                                        key GT_ARGS);
                highest = scores[j][i] > highest ? scores[j][i] : highest;
            }
        for (int by = 1; by < 4; by *= 2) {
            const float other = gt_other_lane(highest, by);
            highest = other > highest ? other : highest;
        }
        const float past = GT_JOIN(GT_NAME, _weight)(top[half], highest);
        GT_UNROLL
        for (int j = 0; j < GT_SQUARES; j++)
            GT_UNROLL
            for (int i = 2 * half; i < 2 * half + 2; i++)
                added += scores[j][i] = GT_JOIN(GT_NAME, _weight)(scores[j][i], highest);
        for (int by = 1; by < 4; by *= 2) added += gt_other_lane(added, by);
        top[half] = highest;
        sum[half] = sum[half] * past + added;
        GT_UNROLL
        for (int n = 0; n < GT_ACROSS; n++)
            acc[n][2 * half] *= past, acc[n][2 * half + 1] *= past;
    }
}

/* Adds the values of a block of keys, times their weights. The unit wants word lane % 4 of the
   weights: here it is key 2 (lane % 4), and the word four further on is the next key. */
GT_INLINE void GT_JOIN(GT_NAME, _values)(float (*acc)[4], float (*weights)[4], const float *values)
{
    const int lane = threadIdx.x % GT_WARP;
    GT_UNROLL
    for (int chunk = 0; chunk < GT_SQUARES; chunk += 2) {
        uint32_t high[2][4], low[2][4];
        GT_UNROLL
        for (int j = 0; j < 2; j++) {
            const float *w = weights[chunk + j];
            const float turned[4] = {w[0], w[2], w[1], w[3]};
            GT_JOIN(GT_NAME, _parts)(turned, high[j], low[j]);
        }
        GT_UNROLL
        for (int n = 0; n < GT_ACROSS; n++) {
            float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            GT_UNROLL
            for (int j = 0; j < 2; j++) {
                const float *value = values + ((chunk + j) * 8 + lane % 4 * 2) * (GT_WIDTH + 4) +
                                     n * 8 + lane / 4;
                GT_JOIN(GT_NAME, _multiply)(part, high[j], low[j], value[0], value[GT_WIDTH + 4]);
            }
            GT_UNROLL
            for (int i = 0; i < 4; i++) acc[n][i] += part[i];
        }
    }
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    GT_SHARED_ARRAY(float, queries, GT_ROWS *(GT_DEPTH + 4));
    GT_SHARED_ARRAY(float, room, GT_BLOCK_KEYS *(GT_LONG + 4)); /* keys, then values */
    const int lane = threadIdx.x % GT_WARP, warp = threadIdx.x / GT_WARP;
    const int64_t blocks = ((GT_S) + GT_ROWS - 1) / GT_ROWS;
    for (int64_t unit = team; unit < (GT_HEADS) * blocks; unit += teams) {
        const int64_t b = unit / blocks, first = unit % blocks * GT_ROWS;
        const int64_t row = first + warp * 16 + lane / 4;
        float acc[GT_ACROSS][4], scores[GT_SQUARES][4];
        float top[2] = {-GT_INFINITY, -GT_INFINITY}, sum[2] = {0.0f, 0.0f};
        GT_JOIN(GT_NAME, _queries)(queries, b, first GT_ARGS);
        GT_UNROLL
        for (int n = 0; n < GT_ACROSS; n++) acc[n][0] = acc[n][1] = acc[n][2] = acc[n][3] = 0.0f;
        const int64_t seen = (GT_CAUSAL) ? gt_min(GT_T, first + GT_ROWS) : (GT_T);
        for (int64_t from = 0; from < seen; from += GT_BLOCK_KEYS) {
            GT_JOIN(GT_NAME, _bring)(room, GT_KEY(b), from, GT_LDK, GT_D, GT_DEPTH GT_ARGS);
            __syncthreads();
            GT_JOIN(GT_NAME, _scores)(scores, queries, room);
            __syncthreads();
            GT_JOIN(GT_NAME, _bring)(room, GT_V(b), from, GT_LDV, GT_DV, GT_WIDTH GT_ARGS);
            GT_JOIN(GT_NAME, _weights)(scores, acc, top, sum, b, row, from GT_ARGS);
            __syncthreads();
            GT_JOIN(GT_NAME, _values)(acc, scores, room);
            __syncthreads();
        }
        GT_UNROLL
        for (int n = 0; n < GT_ACROSS; n++)
            GT_UNROLL
            for (int i = 0; i < 4; i++) {
                const int64_t s = row + i / 2 * 8, d = n * 8 + lane % 4 * 2 + i % 2;
                const float y = acc[n][i] * GT_JOIN(GT_NAME, _inverse)(sum[i / 2]);
                if (s < (GT_S) && d < (GT_DV)) GT_EPILOGUE(&y, b, s, d, 1 GT_ARGS);
            }
    }
}
#endif

#include "template_end.h"
