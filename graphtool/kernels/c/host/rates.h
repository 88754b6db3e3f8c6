/* Loops whose number of operations is known, from which the rates of a machine are measured. Each
   returns how many operations it did: 0 where this target has no instruction for them. */
#ifndef GT_RATES_H
#define GT_RATES_H

#include "amx.h"

#define GT_RATE __attribute__((visibility("default"))) int64_t
#define GT_SUMS 12 /* independent sums: more than a core has multiply-adds in flight */
#define GT_HIDE(x) __asm__ volatile("" : "+m"(x)::"memory") /* its value is not known here */

#define GT_RATE_OF(name, type)                                                                    \
    GT_RATE gt_rate_##name(int64_t steps)                                                         \
    {                                                                                             \
        typedef type lanes __attribute__((vector_size(4 * GT_LANES)));                            \
        lanes sums[GT_SUMS] = {{0}}, by = {0};                                                    \
        GT_HIDE(by);                                                                              \
        for (int64_t n = 0; n < steps; n++)                                                       \
            GT_UNROLL for (int i = 0; i < GT_SUMS; i++) sums[i] = sums[i] * by + by;              \
        GT_HIDE(sums);                                                                            \
        return steps * GT_SUMS * 2 * (int64_t)(sizeof(lanes) / sizeof(type));                     \
    }

GT_RATE_OF(f32, float)
GT_RATE_OF(f64, double)
#if defined __AVX512FP16__ || defined __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
GT_RATE_OF(f16, _Float16)
#else
GT_RATE gt_rate_f16(int64_t steps) { return steps * 0; }
#endif

/* Cycles: additions that wait for each other. */
GT_RATE gt_rate_clock(int64_t steps)
{
    int64_t x = steps;
    for (int64_t n = 0; n < steps; n++)
        GT_UNROLL for (int i = 0; i < 32; i++) {
            x += steps;
            __asm__ volatile("" : "+r"(x));
        }
    return steps * 32;
}

/* Dot products of four u8 by four s8, and of pairs of bfloat16, in each lane. */
GT_RATE gt_rate_int8(int64_t steps)
{
#if (defined __AVX512VNNI__ && GT_LANES == 16) || (defined __AVXVNNI__ && GT_LANES == 8)          \
    || (GT_LANES == 4 && (defined __ARM_FEATURE_MATMUL_INT8 || defined __ARM_FEATURE_DOTPROD))
    gt_vi sums[GT_SUMS] = {{0}}, by = {0};
    GT_HIDE(by);
    for (int64_t n = 0; n < steps; n++)
        GT_UNROLL for (int i = 0; i < GT_SUMS; i++) sums[i] = gt_dot_quad(sums[i], by, by);
    GT_HIDE(sums);
    return steps * GT_SUMS * 8 * GT_LANES;
#else
    return steps * 0;
#endif
}

GT_RATE gt_rate_bf16(int64_t steps)
{
#if (defined __AVX512BF16__ && GT_LANES == 16) || (defined __ARM_FEATURE_BF16 && GT_LANES == 4)
    gt_vf sums[GT_SUMS] = {{0}};
    gt_vi by = {0};
    GT_HIDE(by);
    for (int64_t n = 0; n < steps; n++)
        GT_UNROLL for (int i = 0; i < GT_SUMS; i++) sums[i] = gt_dot_bf16(sums[i], by, by);
    GT_HIDE(sums);
    return steps * GT_SUMS * 4 * GT_LANES;
#else
    return steps * 0;
#endif
}

/* Products of whole tiles, two by two. */
#ifdef GT_AMX
#define GT_RATE_TILES(name, bf16)                                                                 \
    GT_RATE gt_rate_tile_##name(int64_t steps)                                                    \
    {                                                                                             \
        static const char zeros[16 * GT_RUN_BYTES] GT_ALIGNED;                                    \
        if (!gt_amx_allowed()) return 0;                                                          \
        gt_amx_shape(GT_SEGMENT);                                                                 \
        GT_TILE_ZERO(0);                                                                          \
        GT_TILE_ZERO(1);                                                                          \
        GT_TILE_ZERO(2);                                                                          \
        GT_TILE_ZERO(3);                                                                          \
        GT_TILE_LOAD(4, zeros, GT_RUN_BYTES);                                                     \
        GT_TILE_LOAD(5, zeros, GT_RUN_BYTES);                                                     \
        GT_TILE_LOAD(6, zeros, GT_RUN_BYTES);                                                     \
        GT_TILE_LOAD(7, zeros, GT_RUN_BYTES);                                                     \
        for (int64_t n = 0; n < steps; n++) {                                                     \
            GT_TILE_DOT(bf16, 0, 4, 6);                                                           \
            GT_TILE_DOT(bf16, 1, 4, 7);                                                           \
            GT_TILE_DOT(bf16, 2, 5, 6);                                                           \
            GT_TILE_DOT(bf16, 3, 5, 7);                                                           \
        }                                                                                         \
        gt_amx_done();                                                                            \
        return steps * 4 * 16 * 16 * (bf16 ? 32 : 64) * 2;                                        \
    }
#else
#define GT_RATE_TILES(name, bf16) GT_RATE gt_rate_tile_##name(int64_t steps) { return steps * 0; }
#endif
GT_RATE_TILES(bf16, 1)
GT_RATE_TILES(int8, 0)

/* Meetings of so many threads, which all call this: each adds to `place`, 0 at first, and waits. */
GT_RATE gt_rate_meet(int64_t *place, int64_t threads, int64_t steps)
{
    for (int64_t n = 1; n <= steps; n++) {
        __atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(place, __ATOMIC_ACQUIRE) < n * threads) __asm__ volatile("");
    }
    return steps;
}

/* Bytes of x, read `times` times. */
GT_RATE gt_rate_read(const float *x, int64_t count, int64_t times)
{
    gt_vf sums[8];
    for (int i = 0; i < 8; i++) sums[i] = gt_splat(0.0f);
    for (int64_t n = 0; n < times; n++) {
        for (int64_t i = 0; i + 8 * GT_LANES <= count; i += 8 * GT_LANES)
            GT_UNROLL for (int r = 0; r < 8; r++)
                sums[r] += *(const gt_vf *)(x + i + r * GT_LANES);
        __asm__ volatile("" ::: "memory");
    }
    GT_HIDE(sums);
    return count / (8 * GT_LANES) * 8 * GT_LANES * 4 * times;
}

#endif
