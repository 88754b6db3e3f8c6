/* What OpenCL C 1.2 spells otherwise than C. The text of the kernels, which the driver compiles,
   begins with this header; the C around them needs the number of workers alone. */
#ifndef GT_OPENCL_H
#define GT_OPENCL_H

#define GT_LANES 1 /* a worker computes one element at a time */
#define GT_TEAM 64 /* workers of a group */

#ifdef __OPENCL_VERSION__
#if __OPENCL_VERSION__ < 120
#error "these kernels are OpenCL C 1.2, which this device does not have"
#endif
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#else
#define GT_NO_DOUBLE /* the float functions that others compute in double are the device's own */
#endif

#define GT_KERNEL __kernel __attribute__((reqd_work_group_size(GT_TEAM, 1, 1)))
#define GT_INLINE static
#define GT_GLOBAL __global
#define GT_STATIC
#define GT_INFINITY INFINITY
#define GT_NAN NAN
#define GT_CONSTANT(x) 0 /* whether the compiler knows its value */

typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;

#define INT8_MIN SCHAR_MIN
#define INT16_MIN SHRT_MIN
#define INT32_MIN INT_MIN
#define INT64_MIN LONG_MIN
#define INT8_MAX SCHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT32_MAX INT_MAX
#define INT64_MAX LONG_MAX
#define UINT8_MAX UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULONG_MAX
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL

/* one name for all types, without C's suffix of float */
#define atan2f atan2
#define copysignf copysign
#define erfcf erfc
#define fabsf fabs
#define fmodf fmod
#define lgammaf lgamma
#define nextafterf nextafter
#define powf pow
#define rintf rint
#define sqrtf sqrt

#ifdef __clang__
#define memcpy(to, from, size) __builtin_memcpy(to, from, size)
#else
static void memcpy(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++) ((uchar *)to)[i] = ((const uchar *)from)[i];
}
#endif

/* A device may flush subnormal floats to 0, but not while it converts halves. */
#define GT_OWN_HALVES
static float gt_f16_to_f32(uint16_t h) { return vload_half(0, (const half *)&h); }
static uint16_t gt_f32_to_f16(float x)
{
    uint16_t h;
    vstore_half_rte(x, 0, (half *)&h);
    return x == x ? h : (uint16_t)((as_uint(x) >> 16 & 0x8000) | 0x7e00);
}

#ifdef GT_NO_DOUBLE
#define GT_BUILT_IN(name) static float gt_##name##_f32(float x) { return name(x); }
GT_BUILT_IN(sin)
GT_BUILT_IN(cos)
GT_BUILT_IN(tan)
GT_BUILT_IN(asin)
GT_BUILT_IN(acos)
GT_BUILT_IN(asinh)
GT_BUILT_IN(acosh)
GT_BUILT_IN(atanh)
#undef GT_BUILT_IN
#endif
#endif

#endif
