/* What emitted loop nests use beside vmath.h: loop pragmas, index division, division by
   constants, bit casts. */
#ifndef GT_NEST_H
#define GT_NEST_H

#include "prelude.h"
#include "vmath.h"

/* The loop pragmas are OpenMP's; a compiler without it vectorises what it can by itself. */
#if defined(_OPENMP) || defined(GT_OPENMP_SIMD)
#define GT_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
/* By `omp simd` too iterations are independent, but clang unrolls a loop of few before it looks for
   vectors, and then finds scalars only. */
#define GT_SIMD GT_PRAGMA(clang loop vectorize(assume_safety) unroll(disable))
#else
#define GT_SIMD GT_PRAGMA(omp simd)
#endif
#ifdef GT_IN_ORDER
#define GT_SIMD_REDUCE(op, acc)
#else
#define GT_SIMD_REDUCE(op, acc) GT_PRAGMA(omp simd reduction(op : acc))
#endif
/* Reductions in which NaN wins, as in the elementwise max and min. */
#pragma omp declare reduction(gt_max_f32:float : omp_out = gt_max_f32(omp_out, omp_in)) \
    initializer(omp_priv = omp_orig)
#pragma omp declare reduction(gt_min_f32:float : omp_out = gt_min_f32(omp_out, omp_in)) \
    initializer(omp_priv = omp_orig)
#pragma omp declare reduction(gt_max_f64:double : omp_out = gt_max_f64(omp_out, omp_in)) \
    initializer(omp_priv = omp_orig)
#pragma omp declare reduction(gt_min_f64:double : omp_out = gt_min_f64(omp_out, omp_in)) \
    initializer(omp_priv = omp_orig)
#else
#define GT_SIMD
#define GT_SIMD_REDUCE(op, acc)
#endif

#if defined(__clang__)
/* If clang ignores a simd pragma, the loop is slower, but not wrong. */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* Floor division and modulo for a divisor > 0 and any dividend. */
GT_INLINE int64_t gt_floordiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
GT_INLINE int64_t gt_floormod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

/* x / s for a constant s, with its inverse r. A fused multiply-add knows what x·r lacks, so that
   the result is the quotient as division rounds it, but where it is subnormal; it takes a fifth of
   the time. Where the remainder would spoil it (NaN of infinity, 0 of -0), x·r is the result. */
GT_INLINE float gt_over_f32(float x, float s, float r)
{
#if (defined __FMA__ || defined __ARM_FEATURE_FMA) && !defined GT_IN_ORDER
    const float q = x * r, y = __builtin_fmaf(__builtin_fmaf(-q, s, x), r, q);
    return __builtin_islessgreater(y, 0.0f) ? y : q;
#else
    (void)r;
    return x / s;
#endif
}

#if GT_LANES > 1
/* Partial sums, or products, of a loop: as many as four vectors have lanes. Those of one vector are
   joined by halves; gcc makes vectors of that only where the quarters are vectors. */
typedef float gt_v4f __attribute__((vector_size(16), may_alias));
#define GT_PARTIAL(fn, op, zero)                                                                  \
    GT_INLINE void gt_parts_##fn(float *parts)                                                    \
    {                                                                                             \
        GT_UNROLL for (int i = 0; i < 4; i++) gt_store(parts + i * GT_LANES, gt_splat(zero));     \
    }                                                                                             \
    GT_INLINE float gt_across_##fn(gt_vf v)                                                       \
    {                                                                                             \
        gt_v4f y[GT_LANES / 4];                                                                   \
        memcpy(y, &v, sizeof y);                                                                  \
        GT_UNROLL for (int n = GT_LANES / 8; n > 0; n /= 2)                                       \
            GT_UNROLL for (int i = 0; i < n; i++) y[i] = y[i] op y[i + n];                        \
        return (y[0][0] op y[0][2]) op (y[0][1] op y[0][3]);                                      \
    }                                                                                             \
    GT_INLINE float gt_joined_##fn(const float *parts)                                            \
    {                                                                                             \
        const gt_vf low = gt_load(parts) op gt_load(parts + GT_LANES);                            \
        const gt_vf high = gt_load(parts + 2 * GT_LANES) op gt_load(parts + 3 * GT_LANES);        \
        return gt_across_##fn(low op high);                                                       \
    }
GT_PARTIAL(add, +, 0.0f)
GT_PARTIAL(mul, *, 1.0f)
#undef GT_PARTIAL
#endif

#define GT_BITCAST(from_name, from, to_name, to)                     \
    GT_INLINE to gt_bitcast_##from_name##_##to_name(from x)          \
    {                                                                \
        to y;                                                        \
        memcpy(&y, &x, sizeof y);                                    \
        return y;                                                    \
    }
GT_BITCAST(f32, float, i32, int32_t)
GT_BITCAST(f32, float, u32, uint32_t)
GT_BITCAST(i32, int32_t, f32, float)
GT_BITCAST(u32, uint32_t, f32, float)
#ifndef GT_NO_DOUBLE
GT_BITCAST(f64, double, i64, int64_t)
GT_BITCAST(f64, double, u64, uint64_t)
GT_BITCAST(i64, int64_t, f64, double)
GT_BITCAST(u64, uint64_t, f64, double)
#endif
GT_BITCAST(i32, int32_t, u32, uint32_t)
GT_BITCAST(u32, uint32_t, i32, int32_t)
GT_BITCAST(i64, int64_t, u64, uint64_t)
GT_BITCAST(u64, uint64_t, i64, int64_t)
GT_BITCAST(i16, int16_t, u16, uint16_t)
GT_BITCAST(u16, uint16_t, i16, int16_t)
GT_BITCAST(i8, int8_t, u8, uint8_t)
GT_BITCAST(u8, uint8_t, i8, int8_t)
#undef GT_BITCAST

#endif
