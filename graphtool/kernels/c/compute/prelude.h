/* What every kernel shares: the vector type of the target, its loads and stores, the partition of
   work over threads, and the conversions of half-precision floats. Needs no CPU-specific header. */
#ifndef GT_PRELUDE_H
#define GT_PRELUDE_H

#include "compiler.h"

#ifndef __OPENCL_VERSION__
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

/* Lanes of a vector of floats; 1 is plain scalar C. A model's own header sets the number for which
   its weights are packed. The compiler splits a vector that is wider than the machine's. */
#ifndef GT_LANES
#if defined __AVX512F__
#define GT_LANES 16
#elif defined __AVX__ && defined __FMA__
#define GT_LANES 8
#elif defined __SSE2__ || defined __ARM_NEON
#define GT_LANES 4
#else
#define GT_LANES 1
#endif
#endif

#if defined __CUDACC__
#define GT_INLINE static __device__ __forceinline__
#define GT_INFINITY __int_as_float(0x7f800000)
#define GT_NAN __int_as_float(0x7fc00000)
#define GT_CONSTANT(x) 0 /* whether the compiler knows its value */
#elif !defined __OPENCL_VERSION__ /* opencl.h has them */
#define GT_INLINE static inline __attribute__((always_inline, unused))
#define GT_INFINITY __builtin_inff()
#define GT_NAN __builtin_nanf("")
#define GT_CONSTANT(x) __builtin_constant_p(x)
#endif
#ifndef GT_GLOBAL
#define GT_GLOBAL /* memory that all workers have */
#define GT_STATIC static
#endif
#if GT_LANES == 1
#define GT_ALIGNED __attribute__((aligned(8))) /* more would only cost stack */
#else
#define GT_ALIGNED __attribute__((aligned(64)))
#endif

/* For loops of a small literal trip count, so that arrays of accumulators become registers; for
   long ones; and for those that would take registers from the ones beside them. */
#ifdef __CUDACC__
#define GT_UNROLL _Pragma("unroll")
#define GT_UNROLL_4 _Pragma("unroll 4")
#define GT_ROLLED _Pragma("unroll 1")
#elif defined __clang__
#define GT_UNROLL _Pragma("clang loop unroll(full)")
#define GT_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#define GT_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define GT_UNROLL _Pragma("GCC unroll 64")
#define GT_UNROLL_4 _Pragma("GCC unroll 4")
#define GT_ROLLED _Pragma("GCC unroll 1")
#endif

/* Asks for the cache line at p; `keep` says how near it stays. The memory of a microcontroller is
   near, but its compilers emit an instruction. */
#if defined __ARM_ARCH_PROFILE && __ARM_ARCH_PROFILE == 'M'
#define GT_FETCH(p, keep) ((void)(p))
#else
#define GT_FETCH(p, keep) __builtin_prefetch(p, 0, keep)
#endif

#define GT_JOIN_(a, b) a##b
#define GT_JOIN(a, b) GT_JOIN_(a, b)

#if GT_LANES == 1
typedef float gt_vf;
typedef float gt_vfu;
typedef int32_t gt_vi;
#else
typedef float gt_vf __attribute__((vector_size(GT_LANES * 4), may_alias));
typedef float gt_vfu __attribute__((vector_size(GT_LANES * 4), may_alias, aligned(4)));
typedef int32_t gt_vi __attribute__((vector_size(GT_LANES * 4), may_alias));
#endif

/* x in every lane. It is written out, because `(gt_vf){0} + x` would cost an addition. */
GT_INLINE gt_vf gt_splat(float x)
{
#if GT_LANES == 1
    return x;
#elif GT_LANES == 4
    return (gt_vf){x, x, x, x};
#elif GT_LANES == 8
    return (gt_vf){x, x, x, x, x, x, x, x};
#elif GT_LANES == 16
    return (gt_vf){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#else
#error "GT_LANES must be 1, 4, 8 or 16"
#endif
}

GT_INLINE gt_vf gt_load(const float *p) { return *(const gt_vfu *)p; }
GT_INLINE void gt_store(float *p, gt_vf v) { *(gt_vfu *)p = v; }

/* The first `count` < GT_LANES floats at p and zeros after them; reads nothing beyond. */
GT_INLINE gt_vf gt_load_first(const float *p, int64_t count)
{
    gt_vf v = gt_splat(0.0f);
    memcpy(&v, p, (size_t)count * sizeof(float));
    return v;
}

GT_INLINE int64_t gt_min(int64_t a, int64_t b) { return a < b ? a : b; }
GT_INLINE int64_t gt_max(int64_t a, int64_t b) { return a > b ? a : b; }
GT_INLINE int64_t gt_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Where part t of T starts when n units are shared out: part t is [gt_part(t), gt_part(t + 1)). */
GT_INLINE int64_t gt_part(int64_t n, int64_t t, int64_t T) { return n * t / T; }

/* Pieces of a thread's share: `each`, or one if a single thread does all, or if so many threads
   take part that each has one piece. Of T pieces, piece t is in share t / each of T / each. */
GT_INLINE int64_t gt_each(int64_t T, int64_t each) { return T > 1 && T % each == 0 ? each : 1; }

/* Whether so many rows, or blocks of rows, are shared out well among several threads: the longest
   share exceeds the mean by 1/8 at most. */
GT_INLINE int gt_by_rows(int64_t rows, int64_t threads)
{
    return threads > 1 && 8 * threads * gt_ceil_div(rows, threads) <= 9 * rows;
}

GT_INLINE float gt_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

GT_INLINE uint32_t gt_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#define GT_BFLOAT16 1 /* types of 16 bits, for GT_HALF */
#define GT_FLOAT16 2

/* Half precision is kept in a uint16_t. The conversions are branch-free, so loops vectorise; their
   choices are spelled out in bits, or short rows would jump at each element. */

GT_INLINE uint32_t gt_choose_bits(int c, uint32_t a, uint32_t b)
{
    return b ^ ((a ^ b) & -(uint32_t)c);
}

#ifndef GT_OWN_HALVES
GT_INLINE float gt_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = (uint32_t)(h & 0x7fff) << 13;
    /* the exponents' biases differ by 112; a product also normalises subnormal halves */
    const float scaled = gt_float_of_bits(magnitude) * 0x1p112f;
    const uint32_t special = -(uint32_t)(magnitude >= 0x0f800000) & 0x7f800000; /* Inf, NaN */
    return gt_float_of_bits(gt_bits_of_float(scaled) | special | sign);
}

/* Rounds to nearest even; overflow gives Inf, NaN stays NaN. */
GT_INLINE uint16_t gt_f32_to_f16(float x)
{
    const uint32_t bits = gt_bits_of_float(x), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    /* normal: rebias the exponent, round the 13 dropped bits by carrying into those kept */
    const uint32_t normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    /* subnormal: adding 0.5 lets the FPU round at the half's last bit, 2^-24 */
    const uint32_t small = gt_bits_of_float(gt_float_of_bits(a) + 0.5f) - 0x3f000000;
    uint32_t h = gt_choose_bits(a < 0x38800000, small, normal);
    h = gt_choose_bits(a >= 0x477ff000, 0x7c00, h);
    h = gt_choose_bits(a > 0x7f800000, 0x7e00, h);
    return (uint16_t)(h | sign);
}
#endif

GT_INLINE float gt_bf16_to_f32(uint16_t h) { return gt_float_of_bits((uint32_t)h << 16); }

/* Rounds to nearest even; NaN stays NaN (it is made quiet, so that rounding cannot make it Inf). */
GT_INLINE uint16_t gt_f32_to_bf16(float x)
{
    const uint32_t bits = gt_bits_of_float(x);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(gt_choose_bits(x != x, bits | 0x400000, rounded) >> 16);
}

/* The half nearest to x, as a float: what the two conversions above give one after the other. */
GT_INLINE float gt_rounded_f16(float x)
{
    /* 2ᵉ <= |x|, at least the smallest normal half; adding 1.5·2¹³·2ᵉ rounds to 11 digits */
    const uint32_t power = gt_bits_of_float(x) & 0x7f800000;
    const float shift = gt_float_of_bits(power > 0x38800000 ? power : 0x38800000) * 12288.0f;
    const float near = copysignf(x + shift - shift, x);
    return gt_float_of_bits(gt_choose_bits(fabsf(x) >= 65520.0f,
                                           gt_bits_of_float(x * GT_INFINITY),
                                           gt_bits_of_float(near)));
}

GT_INLINE float gt_rounded_bf16(float x)
{
    const uint32_t bits = gt_bits_of_float(x);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    return gt_float_of_bits(gt_choose_bits(x != x, (bits & 0xffff0000) | 0x400000, rounded));
}

#endif
