/* Arithmetic of whole numbers, one function per element type, and the casts to them: every operand
   has a defined result, and a loop that calls them vectorises. */
#ifndef GT_INTEGERS_H
#define GT_INTEGERS_H

#include "vmath.h"

/* ---- whole numbers: defined for every operand, overflow wraps around ---- */

/* W is an unsigned type at least as wide as int, so that nothing is promoted to a signed one. */
#define GT_INTEGERS(t, T, W)                                                                      \
    GT_INLINE T gt_add_##t(T a, T b) { return (T)((W)a + (W)b); }                                 \
    GT_INLINE T gt_sub_##t(T a, T b) { return (T)((W)a - (W)b); }                                 \
    GT_INLINE T gt_mul_##t(T a, T b) { return (T)((W)a * (W)b); }                                 \
    GT_INLINE T gt_neg_##t(T a) { return (T)((W)0 - (W)a); }                                      \
    GT_INLINE T gt_max_##t(T a, T b) { return a > b ? a : b; }                                    \
    GT_INLINE T gt_min_##t(T a, T b) { return a < b ? a : b; }                                    \
    /* a shift by the width or more, or by a negative count, leaves 0 or the sign */              \
    GT_INLINE T gt_shift_left_##t(T a, T b)                                                       \
    {                                                                                             \
        const W bits = sizeof(T) * 8;                                                             \
        return (W)b < bits ? (T)((W)a << ((W)b & (bits - 1))) : (T)0;                             \
    }                                                                                             \
    GT_INLINE T gt_power_##t(T a, T b)                                                            \
    {                                                                                             \
        W y = 1, square = (W)a;                                                                   \
        for (W e = (W)b; e != 0; e >>= 1, square *= square) y *= e & 1 ? square : 1;              \
        return (T)y;                                                                              \
    }

/* Division by 0 gives 0, remainders of it too; the smallest number by -1 wraps around. */
#define GT_SIGNED(t, T, W)                                                                        \
    GT_INTEGERS(t, T, W)                                                                          \
    GT_INLINE T gt_abs_##t(T a) { return a < 0 ? gt_neg_##t(a) : a; }                             \
    GT_INLINE T gt_sign_##t(T a) { return (T)((a > 0) - (a < 0)); }                               \
    GT_INLINE T gt_shift_right_##t(T a, T b)                                                      \
    {                                                                                             \
        const W bits = sizeof(T) * 8;                                                             \
        return (T)(a >> ((W)b < bits ? (W)b : bits - 1));                                         \
    }                                                                                             \
    GT_INLINE T gt_div_##t(T a, T b)                                                              \
    {                                                                                             \
        return b == 0 ? (T)0 : b == -1 ? gt_neg_##t(a) : (T)(a / b);                              \
    }                                                                                             \
    GT_INLINE T gt_rem_##t(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); }            \
    GT_INLINE T gt_mod_##t(T a, T b)                                                              \
    {                                                                                             \
        const T r = gt_rem_##t(a, b);                                                             \
        return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;                                     \
    }                                                                                             \
    GT_INLINE T gt_pow_##t(T a, T b) /* a⁻ⁿ is 0, but for a = ±1 */                               \
    {                                                                                             \
        if (b >= 0) return gt_power_##t(a, b);                                                    \
        return a == 1 ? (T)1 : a == -1 ? (T)(b & 1 ? -1 : 1) : (T)0;                              \
    }

#define GT_UNSIGNED(t, T, W)                                                                      \
    GT_INTEGERS(t, T, W)                                                                          \
    GT_INLINE T gt_abs_##t(T a) { return a; }                                                     \
    GT_INLINE T gt_sign_##t(T a) { return a != 0; }                                               \
    GT_INLINE T gt_shift_right_##t(T a, T b)                                                      \
    {                                                                                             \
        const W bits = sizeof(T) * 8;                                                             \
        return (W)b < bits ? (T)(a >> ((W)b & (bits - 1))) : (T)0;                                \
    }                                                                                             \
    GT_INLINE T gt_div_##t(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }                       \
    GT_INLINE T gt_rem_##t(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }                       \
    GT_INLINE T gt_mod_##t(T a, T b) { return gt_rem_##t(a, b); }                                 \
    GT_INLINE T gt_pow_##t(T a, T b) { return gt_power_##t(a, b); }

GT_SIGNED(i8, int8_t, uint32_t)
GT_SIGNED(i16, int16_t, uint32_t)
GT_SIGNED(i32, int32_t, uint32_t)
GT_SIGNED(i64, int64_t, uint64_t)
GT_UNSIGNED(u8, uint8_t, uint32_t)
GT_UNSIGNED(u16, uint16_t, uint32_t)
GT_UNSIGNED(u32, uint32_t, uint32_t)
GT_UNSIGNED(u64, uint64_t, uint64_t)
#undef GT_SIGNED
#undef GT_UNSIGNED
#undef GT_INTEGERS

GT_INLINE uint8_t gt_max_bool(uint8_t a, uint8_t b) { return a | b; }
GT_INLINE uint8_t gt_min_bool(uint8_t a, uint8_t b) { return a & b; }

/* ---- floats to whole numbers: towards zero, clamped to the range, NaN to 0 ---- */

/* `top` is the largest F that the type holds */
#define GT_CLAMP(f, F, x, smallest, top)                                                          \
    F y = gt_choose_##f(x == x, x, (F)0);                                                         \
    y = gt_choose_##f(y < (F)(smallest), (F)(smallest), y);                                       \
    y = gt_choose_##f(y > (F)(top), (F)(top), y);
/* x between `smallest` <= 0 and `largest` > 0, NaN as 0. Bits of floats of one sign are in order
   as whole numbers: I has the negative floats before all others, U has them behind. A min of whole
   numbers never becomes a branch; of floats it does, where gcc joins it with another min, max,
   relu or cast beside it. */
#define GT_BOUND(f, F, I, U)                                                                      \
    GT_INLINE F gt_bound_##F(F x, F smallest, F largest)                                          \
    {                                                                                             \
        I bits;                                                                                   \
        I low;                                                                                    \
        I high;                                                                                   \
        F y = gt_choose_##f(x == x, x, (F)0);                                                     \
        memcpy(&bits, &y, sizeof bits);                                                           \
        memcpy(&low, &smallest, sizeof low);                                                      \
        memcpy(&high, &largest, sizeof high);                                                     \
        bits = bits < high ? bits : high;                                                         \
        if (low == 0) bits = bits > 0 ? bits : 0;                                                 \
        else bits = (I)((U)bits < (U)low ? (U)bits : (U)low);                                     \
        memcpy(&y, &bits, sizeof y);                                                              \
        return y;                                                                                 \
    }
GT_BOUND(f32, float, int32_t, uint32_t)
#ifndef GT_NO_DOUBLE
GT_BOUND(f64, double, int64_t, uint64_t)
#endif
#undef GT_BOUND

/* types that F holds exactly; conversion by way of int32_t is what vectorises */
#define GT_CAST_NARROW(f, F, t, T, smallest, largest)                                             \
    GT_INLINE T gt_cast_##f##_##t(F x)                                                            \
    {                                                                                             \
        return (T)(int32_t)gt_bound_##F(x, (F)(smallest), (F)(largest));                          \
    }

/* (float)((int32_t)cast(round(x) - low) + low) of a cast to uint8_t, low <= 0 being minus the zero
   point: how many steps of its scale a quantised number has. NaN is 0 as a byte, and the result is
   never -0. */
GT_INLINE float gt_steps_u8(float x, float low)
{
    x = gt_round_f32(x);
    x = gt_choose_f32(x > low, x, low); /* NaN too */
    const int32_t bits = (int32_t)gt_bits_of_float(x), high = (int32_t)gt_bits_of_float(low + 255);
    return gt_float_of_bits((uint32_t)gt_min_i32(bits, high)) + 0.0f; /* as in gt_bound_float */
}

/* `above` is the type's largest value + 1, exact in F */
#define GT_CAST(f, F, t, T, smallest, largest, top, above)                                        \
    GT_INLINE T gt_cast_##f##_##t(F x)                                                            \
    {                                                                                             \
        GT_CLAMP(f, F, x, smallest, top)                                                          \
        const T mask = (T)-(T)(x >= (F)(above));                                                  \
        return (T)(((T)y & ~mask) | ((T)(largest)&mask));                                         \
    }
#define GT_CASTS_NARROW(f, F)                                                                     \
    GT_CAST_NARROW(f, F, i8, int8_t, INT8_MIN, INT8_MAX)                                          \
    GT_CAST_NARROW(f, F, i16, int16_t, INT16_MIN, INT16_MAX)                                      \
    GT_CAST_NARROW(f, F, u8, uint8_t, 0, UINT8_MAX)                                               \
    GT_CAST_NARROW(f, F, u16, uint16_t, 0, UINT16_MAX)                                            \
    GT_INLINE uint8_t gt_cast_##f##_bool(F x) { return x != 0; }
GT_CASTS_NARROW(f32, float)
GT_CAST(f32, float, i32, int32_t, INT32_MIN, INT32_MAX, 0x1.fffffep30, 0x1p31)
GT_CAST(f32, float, u32, uint32_t, 0, UINT32_MAX, 0x1.fffffep31, 0x1p32)
GT_CAST(f32, float, i64, int64_t, INT64_MIN, INT64_MAX, 0x1.fffffep62, 0x1p63)
GT_CAST(f32, float, u64, uint64_t, 0, UINT64_MAX, 0x1.fffffep63, 0x1p64)
#ifndef GT_NO_DOUBLE
GT_CASTS_NARROW(f64, double)
GT_CAST(f64, double, i32, int32_t, INT32_MIN, INT32_MAX, INT32_MAX, 0x1p31)
GT_CAST(f64, double, u32, uint32_t, 0, UINT32_MAX, UINT32_MAX, 0x1p32)
GT_CAST(f64, double, i64, int64_t, INT64_MIN, INT64_MAX, 0x1.fffffffffffffp62, 0x1p63)
GT_CAST(f64, double, u64, uint64_t, 0, UINT64_MAX, 0x1.fffffffffffffp63, 0x1p64)
#endif
#undef GT_CAST
#undef GT_CAST_NARROW
#undef GT_CASTS_NARROW
#undef GT_CLAMP

#endif
