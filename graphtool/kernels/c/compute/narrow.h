/* Types below 16 bits, one byte each: floats of 8 and 4 bits, integers of 4 and 2. Conversions are
   bit-exact: they round to nearest even, and a number that is too large becomes infinity or
   whatever the type has for it. A saturating conversion clamps before. */
#ifndef GT_NARROW_H
#define GT_NARROW_H

#include "prelude.h"

/* m mantissa bits and an exponent bias; `most` is the code of the largest finite number, `over`
   what lies beyond it becomes, `nan` the code of NaN. In the fnuz kinds 0x80 is NaN, not -0. */
GT_INLINE uint8_t gt_narrow(float x, int m, int bias, int sign_bit, uint8_t most, uint8_t over,
                            uint8_t nan, int fnuz)
{
    const uint32_t bits = gt_bits_of_float(x), a = bits & 0x7fffffff;
    const uint8_t sign = (uint8_t)(bits >> 31 << sign_bit);
    if (a > 0x7f800000) return (uint8_t)(fnuz ? nan : nan | sign);
    /* the exponent of the last place that is kept: no smaller than the subnormals' */
    const int least = 1 - bias, own = (int)(a >> 23) - 127, e = own > least ? own : least;
    const float places = gt_float_of_bits(a) * gt_float_of_bits((uint32_t)(127 + m - e) << 23);
    const uint32_t code = a >= 0x7f800000 ? 0x100u
                                          : ((uint32_t)(e - least) << m) + (uint32_t)rintf(places);
    if (code > most) return (uint8_t)(fnuz ? over : over | sign);
    return (uint8_t)(fnuz && code == 0 ? 0 : code | sign);
}

GT_INLINE float gt_widen(uint8_t h, int m, int bias, int sign_bit)
{
    const uint32_t a = h & ((1u << sign_bit) - 1);
    const float sign = h >> sign_bit & 1 ? -1.0f : 1.0f;
    if (a >> m == 0) return sign * (float)a * gt_float_of_bits((uint32_t)(128 - bias - m) << 23);
    return sign * gt_float_of_bits((a << (23 - m)) + ((uint32_t)(127 - bias) << 23));
}

GT_INLINE uint8_t gt_f32_to_f8e4m3fn(float x)
{
    return gt_narrow(x, 3, 7, 7, 0x7e, 0x7f, 0x7f, 0);
}
GT_INLINE float gt_f8e4m3fn_to_f32(uint8_t h)
{
    return (h & 0x7f) == 0x7f ? copysignf(NAN, h & 0x80 ? -1.0f : 1.0f) : gt_widen(h, 3, 7, 7);
}

GT_INLINE uint8_t gt_f32_to_f8e4m3fnuz(float x)
{
    return gt_narrow(x, 3, 8, 7, 0x7f, 0x80, 0x80, 1);
}
GT_INLINE float gt_f8e4m3fnuz_to_f32(uint8_t h) { return h == 0x80 ? NAN : gt_widen(h, 3, 8, 7); }

GT_INLINE uint8_t gt_f32_to_f8e5m2(float x)
{
    return gt_narrow(x, 2, 15, 7, 0x7b, 0x7c, 0x7e, 0);
}
/* the upper half of a float16 */
GT_INLINE float gt_f8e5m2_to_f32(uint8_t h) { return gt_f16_to_f32((uint16_t)(h << 8)); }

GT_INLINE uint8_t gt_f32_to_f8e5m2fnuz(float x)
{
    return gt_narrow(x, 2, 16, 7, 0x7f, 0x80, 0x80, 1);
}
GT_INLINE float gt_f8e5m2fnuz_to_f32(uint8_t h) { return h == 0x80 ? NAN : gt_widen(h, 2, 16, 7); }

GT_INLINE uint8_t gt_f32_to_f8e4m3b11fnuz(float x)
{
    return gt_narrow(x, 3, 11, 7, 0x7f, 0x80, 0x80, 1);
}
GT_INLINE float gt_f8e4m3b11fnuz_to_f32(uint8_t h)
{
    return h == 0x80 ? NAN : gt_widen(h, 3, 11, 7);
}

/* As in IEEE 754: the greatest exponent is that of infinity and NaN. */
GT_INLINE float gt_endless(uint8_t h, uint8_t infinity)
{
    return copysignf((h & 0x7f) == infinity ? INFINITY : NAN, h & 0x80 ? -1.0f : 1.0f);
}

GT_INLINE uint8_t gt_f32_to_f8e4m3(float x)
{
    return gt_narrow(x, 3, 7, 7, 0x77, 0x78, 0x7c, 0);
}
GT_INLINE float gt_f8e4m3_to_f32(uint8_t h)
{
    return (h & 0x78) == 0x78 ? gt_endless(h, 0x78) : gt_widen(h, 3, 7, 7);
}

GT_INLINE uint8_t gt_f32_to_f8e3m4(float x)
{
    return gt_narrow(x, 4, 3, 7, 0x6f, 0x70, 0x78, 0);
}
GT_INLINE float gt_f8e3m4_to_f32(uint8_t h)
{
    return (h & 0x70) == 0x70 ? gt_endless(h, 0x70) : gt_widen(h, 4, 3, 7);
}

/* No NaN and no infinity: what is too large is the largest, NaN is a zero of the other sign. */
GT_INLINE uint8_t gt_f32_to_f4e2m1(float x)
{
    return x != x ? (uint8_t)(signbit(x) ? 0 : 8) : gt_narrow(x, 1, 1, 3, 7, 7, 8, 0);
}
GT_INLINE float gt_f4e2m1_to_f32(uint8_t h) { return gt_widen(h, 1, 1, 3); }

/* A power of two: the exponent of a float alone. Halfway goes up; zero and less are NaN. */
GT_INLINE uint8_t gt_f32_to_f8e8m0(float x)
{
    const uint32_t bits = gt_bits_of_float(x);
    if (x != x || bits == 0 || bits >> 31) return 0xff;
    if (bits < 0x00800000) return (uint8_t)(bits > 0x00400000);
    const uint32_t rounded = (bits + 0x400000) >> 23;
    return (uint8_t)(rounded > 0xfe ? 0xff : rounded);
}
GT_INLINE float gt_f8e8m0_to_f32(uint8_t h)
{
    return h == 0xff ? NAN : gt_float_of_bits(h ? (uint32_t)h << 23 : 0x00400000);
}

#ifndef GT_NO_DOUBLE
/* A double that is rounded to float before it is rounded to a narrow type: the last bit says
   whether bits were cut off, so that two roundings give the same as one. */
GT_INLINE float gt_f64_to_odd(double x)
{
    const float y = (float)x;
    if ((double)y == x || x != x) return y;
    const uint32_t bits = gt_bits_of_float(y);
    if (bits & 1) return y;
    return gt_float_of_bits(fabs((double)y) > fabs(x) ? bits - 1 : bits | 1);
}
#endif

/* Integers wrap; from floats they clamp, and NaN is 0. */
#define GT_SMALL(name, T, smallest, largest, wrapped)                                      \
    GT_INLINE T gt_wrap_##name(int64_t x) { return (T)(wrapped); }                          \
    GT_CAST_SMALL(f32, float, name, T, smallest, largest)                                  \
    GT_CAST_SMALL_F64(name, T, smallest, largest)
#define GT_CAST_SMALL(f, F, name, T, smallest, largest)                                    \
    GT_INLINE T gt_cast_##f##_##name(F x)                                                   \
    {                                                                                      \
        return (T)(x != x ? 0 : x < (smallest) ? (smallest) : x > (largest) ? (largest) : x); \
    }
#ifdef GT_NO_DOUBLE
#define GT_CAST_SMALL_F64(...)
#else
#define GT_CAST_SMALL_F64(...) GT_CAST_SMALL(f64, double, __VA_ARGS__)
#endif
GT_SMALL(i4, int8_t, -8, 7, ((x & 15) ^ 8) - 8)
GT_SMALL(u4, uint8_t, 0, 15, x & 15)
GT_SMALL(i2, int8_t, -2, 1, ((x & 3) ^ 2) - 2)
GT_SMALL(u2, uint8_t, 0, 3, x & 3)
#undef GT_SMALL
#undef GT_CAST_SMALL
#undef GT_CAST_SMALL_F64

#endif
