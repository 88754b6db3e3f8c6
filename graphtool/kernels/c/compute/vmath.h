/* Scalar functions, one per element type, that compilers vectorise when a loop calls them: no
   branches, no tables. The float versions are our own, but for those of lgamma, erfc, atan2,
   nextafter and remainders of large quotients, which are libm's as all double ones are. Polynomials
   are minimax fits (Lawson's iteration), errors are in units in the last place against the exact
   result. NaN and Inf keep their IEEE meaning; results below the smallest normal float may be
   flushed to zero.
   sqrt vectorises only under -fno-math-errno; never compile this with -ffast-math. */
#ifndef GT_VMATH_H
#define GT_VMATH_H

#include "prelude.h"

/* c ? a : b of a condition 0 or 1. Where exceptions count it is made of bits, three instructions:
   with `?:` the compiler moves the arithmetic of one side under a branch, and then must not
   vectorise it, as it might raise one. */
#ifdef __NO_TRAPPING_MATH__
GT_INLINE float gt_choose_f32(int c, float a, float b) { return c ? a : b; }
#ifndef GT_NO_DOUBLE
GT_INLINE double gt_choose_f64(int c, double a, double b) { return c ? a : b; }
#endif
#else
GT_INLINE float gt_choose_f32(int c, float a, float b)
{
    const uint32_t mask = -(uint32_t)c;
    return gt_float_of_bits((gt_bits_of_float(a) & mask) | (gt_bits_of_float(b) & ~mask));
}

#ifndef GT_NO_DOUBLE
GT_INLINE double gt_choose_f64(int c, double a, double b)
{
    const uint64_t mask = -(uint64_t)c;
    uint64_t bits, other;
    memcpy(&bits, &a, sizeof bits);
    memcpy(&other, &b, sizeof other);
    bits = (bits & mask) | (other & ~mask);
    memcpy(&a, &bits, sizeof a);
    return a;
}
#endif
#endif

#ifndef GT_NO_DOUBLE
/* a·b + c, rounded once where the sum fits into a double: then all machines have the same bits. */
GT_INLINE float gt_fused_f32(float a, float b, float c)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA
    return __builtin_fmaf(a, b, c);
#else
    return (float)((double)a * b + c);
#endif
}
#endif

/* ---- exponentials ---- */

/* Adding 1.5·2²³ rounds to a whole number, which is then in the low bits of the sum. */
#define GT_ROUNDER 12582912.0f

/* x = n·ln 2 + r, |r| <= ln 2 / 2; 0x1.63p-1 has few bits, so that n times it is exact */
#define GT_LN2_HIGH 0.693359375f
#define GT_LN2_LOW -2.12194440e-4f

/* exp(r) of numbers, or vectors, from -ln 2 / 2 to ln 2 / 2 */
#define GT_EXP_NEAR_0(r)                                                                          \
    ((((((1.380896338e-3f * (r) + 8.368701483e-3f) * (r) + 4.166848389e-2f) * (r) +               \
       1.666652072e-1f) * (r) + 4.99999931e-1f) * (r) + 1.0f) * (r) + 1.0f)
#define GT_EXP_LEAST -87.3365402f /* below it exp(x) is subnormal */

/* exp(x), 0.9 ULP (1.2 without FMA), where it is a normal number; `less` is taken from its bits */
GT_INLINE float gt_exp_scaled_f32(float x, uint32_t less)
{
    const float z = x * 1.44269504f + GT_ROUNDER, n = z - GT_ROUNDER;
    const float r = x - n * GT_LN2_HIGH - n * GT_LN2_LOW;
    const float p = GT_EXP_NEAR_0(r);
    /* times 2ⁿ: n goes straight into the exponent */
    return gt_float_of_bits(gt_bits_of_float(p) + (gt_bits_of_float(z) << 23) - less);
}

/* 0.9 ULP; 0 where the result would be subnormal */
GT_INLINE float gt_exp_f32(float x)
{
    const float y = gt_choose_f32(x < GT_EXP_LEAST, 0.0f, gt_exp_scaled_f32(x, 0));
    return gt_choose_f32(x <= 88.7228317f, y, x + GT_INFINITY); /* Inf beyond, and NaN stays NaN */
}

/* 2 ULP, also where x is small */
GT_INLINE float gt_expm1_f32(float x)
{
    const float c = gt_choose_f32(x < -18.0f, -18.0f, x);
    const float z = c * 1.44269504f + GT_ROUNDER, n = z - GT_ROUNDER;
    const float r = c - n * GT_LN2_HIGH - n * GT_LN2_LOW;
    float p = 1.985037744e-4f;
    p = p * r + 1.394061813e-3f;
    p = p * r + 8.333380895e-3f;
    p = p * r + 4.166636098e-2f;
    p = p * r + 1.666666641e-1f;
    p = p * r + 5.000000044e-1f;
    p = p * (r * r) + r;
    /* 2ⁿ·(p + 1) - 1 = 2·(s·p + (s - ½)) with s = 2ⁿ⁻¹, which is finite for every n */
    const float s = gt_float_of_bits((gt_bits_of_float(z) << 23) + 0x3f000000);
    return gt_choose_f32(x <= 88.7228317f, 2.0f * (s * p + (s - 0.5f)), x * GT_INFINITY);
}

/* ½·exp(x) for x >= 0, 1 ULP: finite up to 89.41, where exp(x) is not, and Inf beyond */
GT_INLINE float gt_half_exp_f32(float x)
{
    return gt_choose_f32(x < 89.4159927f, gt_exp_scaled_f32(x, 1u << 23), x * GT_INFINITY);
}

/* 2 ULP */
GT_INLINE float gt_cosh_f32(float x)
{
    const float h = gt_half_exp_f32(fabsf(x));
    return h + 0.25f / h;
}

/* 2 ULP: the series up to 1 */
GT_INLINE float gt_sinh_f32(float x)
{
    const float h = gt_half_exp_f32(fabsf(x)), t = x * x;
    float p = 2.75573192e-6f;
    p = p * t + 1.98412698e-4f;
    p = p * t + 8.33333333e-3f;
    p = p * t + 1.66666667e-1f;
    return gt_choose_f32(fabsf(x) < 1.0f, p * t * x + x, copysignf(h - 0.25f / h, x));
}

/* 2.5 ULP */
GT_INLINE float gt_sigmoid_f32(float x) { return 1.0f / (1.0f + gt_exp_f32(-x)); }

/* 5 ULP: x·P(x²)/Q(x²) up to where tanh rounds to 1 */
GT_INLINE float gt_tanh_f32(float x)
{
    const float t = x * x;
    float p = -1.220652566e-11f;
    p = p * t + 3.058957092e-8f;
    p = p * t + 2.800949495e-5f;
    p = p * t + 3.86843294e-3f;
    p = p * t + 1.368000015e-1f;
    p = p * t + 9.999999988e-1f;
    float q = 1.287504222e-6f;
    q = q * t + 3.938813514e-4f;
    q = q * t + 2.724622746e-2f;
    q = q * t + 4.701333223e-1f;
    q = q * t + 1.0f;
    const float y = x * p / q;
    return gt_choose_f32((fabsf(x) > 9.01f) | (fabsf(y) > 1.0f), copysignf(1.0f, x), y);
}

/* 6 ULP (7 without FMA): x·P(x²)/Q(x²) up to where erf rounds to 1 */
GT_INLINE float gt_erf_f32(float x)
{
    const float t = x * x;
    float p = 2.042281698e-6f;
    p = p * t + 2.847676588e-4f;
    p = p * t + 3.77782805e-3f;
    p = p * t + 5.278481501e-2f;
    p = p * t + 1.907424407e-1f;
    p = p * t + 1.128379146f;
    float q = 3.800514491e-5f;
    q = q * t + 1.164778504e-3f;
    q = q * t + 1.499388234e-2f;
    q = q * t + 1.142404102e-1f;
    q = q * t + 5.023738185e-1f;
    q = q * t + 1.0f;
    const float y = x * p / q;
    return gt_choose_f32((fabsf(x) > 3.92f) | (fabsf(y) > 1.0f), copysignf(1.0f, x), y);
}

/* ---- logarithms ---- */

/* 1 ULP, subnormals included */
GT_INLINE float gt_log_f32(float x)
{
    const int tiny = x < 1.17549435e-38f;
    /* x = m·2ᵉ with m in [√½, √2): cut the bits at those of √½; e stays where its bits are, 2²³ as
       large */
    const uint32_t bits = gt_bits_of_float(gt_choose_f32(tiny, x * 0x1p23f, x));
    const uint32_t whole = (bits - 0x3f3504f3u) & 0xff800000;
    const float e = (float)(int32_t)(whole - (tiny ? 23u << 23 : 0));
    const float f = gt_float_of_bits(bits - whole) - 1.0f;
    float p = -7.634437829e-2f;
    p = p * f + 1.276156306e-1f;
    p = p * f - 1.316019744e-1f;
    p = p * f + 1.420176029e-1f;
    p = p * f - 1.662335545e-1f;
    p = p * f + 2.000122666e-1f;
    p = p * f - 2.500082254e-1f;
    p = p * f + 3.333333135e-1f;
    const float square = f * f, low = e * (GT_LN2_LOW * 0x1p-23f);
    const float y = p * f * square + low - 0.5f * square + f + e * (GT_LN2_HIGH * 0x1p-23f);
    const float edge = gt_choose_f32(x == 0.0f, -GT_INFINITY, gt_choose_f32(x < 0.0f, GT_NAN, x));
    return gt_choose_f32((x > 0.0f) & (x < GT_INFINITY), y, edge);
}

/* 2 ULP, also where x is small: log(u) and what rounding 1 + x to u has lost */
GT_INLINE float gt_log1p_f32(float x)
{
    const float u = 1.0f + x, lost = (x - (u - 1.0f)) / u;
    return gt_log_f32(u) + gt_choose_f32((u > 0.0f) & (u < GT_INFINITY), lost, 0.0f);
}

/* ---- trigonometry ---- */

#ifndef GT_NO_DOUBLE
/* x less whole quarters of 2π, in [-π/4, π/4], and how many these are, mod 2³². For |x| <= 1e6 it
   is rounded once; beyond, ever fewer digits are right, as x is reduced in double and not with all
   of π. Always within [-1, 1]. */
GT_INLINE float gt_turned_f32(float x, int32_t *quarters)
{
    const double rounder = 6755399441055744.0; /* 1.5·2⁵² */
    const double d = x, z = d * 0.63661977236758134 + rounder, n = z - rounder;
    int64_t bits;
    memcpy(&bits, &z, sizeof bits);
    *quarters = (int32_t)bits;
    const double high = 1.57079632673412561417, low = 6.07710050650619224932e-11; /* π/2 */
    const float r = (float)(d - n * high - n * low);
    return gt_choose_f32(fabsf(r) > 1.0f, 0.0f, r);
}

/* sin(x + quarter·π/2), 2 ULP for |x| <= 1e6; always within [-1, 1] */
GT_INLINE float gt_sine_f32(float x, int32_t quarter)
{
    int32_t turned;
    const float r = gt_turned_f32(x, &turned), t = r * r;
    const int32_t q = turned + quarter;
    float s = -1.951473539e-4f;
    s = s * t + 8.332156973e-3f;
    s = s * t - 1.666665456e-1f;
    s = s * t * r + r;
    float c = 2.44326688e-5f;
    c = c * t - 1.388731212e-3f;
    c = c * t + 4.16666456e-2f;
    c = c * t * t - 0.5f * t + 1.0f;
    const float y = gt_choose_f32(q & 1, c, s);
    return gt_float_of_bits(gt_bits_of_float(y) ^ ((uint32_t)q << 30 & 0x80000000));
}

GT_INLINE float gt_sin_f32(float x) { return gt_sine_f32(x, 0); }
GT_INLINE float gt_cos_f32(float x) { return gt_sine_f32(x, 1); }

/* 2.1 ULP for |x| <= 1e6, and beyond no better than the sine. What rounding y and its inverse has
   lost is added to the inverse. */
GT_INLINE float gt_tan_f32(float x)
{
    int32_t quarter;
    const float r = gt_turned_f32(x, &quarter), t = r * r;
    float p = 4.37759934e-3f;
    p = p * t + 8.691251424e-5f;
    p = p * t + 1.083783247e-2f;
    p = p * t + 2.128142864e-2f;
    p = p * t + 5.406006053e-2f;
    p = p * t + 1.333266199e-1f;
    p = p * t + 3.333334923e-1f;
    const float rest = p * t * r, y = r + rest, i = -1.0f / y;
    const float lost = gt_fused_f32(i, y, 1.0f) + i * (rest - (y - r));
    return gt_choose_f32(quarter & 1, lost * i + i, y);
}
#endif

/* 1.5 ULP: x + x·t·P(t) with t = x² up to 1, beyond that π/2 - atan(1/x) */
GT_INLINE float gt_atan_f32(float x)
{
    const int far = fabsf(x) > 1.0f;
    const float r = gt_choose_f32(far, -1.0f / fabsf(x), fabsf(x)), t = r * r;
    float p = 2.894809864e-3f;
    p = p * t - 1.626319916e-2f;
    p = p * t + 4.303940261e-2f;
    p = p * t - 7.537397849e-2f;
    p = p * t + 1.065894047e-1f;
    p = p * t - 1.420922642e-1f;
    p = p * t + 1.999354247e-1f;
    p = p * t - 3.333314242e-1f;
    const float y = p * t * r + r;
    return copysignf(gt_choose_f32(far, y - 4.371138829e-8f + 1.570796371f, y), x);
}

#ifndef GT_NO_DOUBLE
/* 1.8 ULP: atanh(x) = k·ln 2 / 2 + atanh(z) with z = (u - v·2ᵏ) / (u + v·2ᵏ), u = 1 + x, v = 1 - x,
   where 2ᵏ is about u / v, by their bits: |z| <= 0.204 */
GT_INLINE float gt_atanh_f32(float x)
{
    const float a = fabsf(x), u = 1.0f + a, v = 1.0f - a;
    const uint32_t k = (gt_bits_of_float(u) - gt_bits_of_float(v) + 0x400000) & 0xff800000;
    const float scale = gt_float_of_bits(k + 0x3f800000);
    const float z = gt_fused_f32(a, 1.0f + scale, 1.0f - scale) /
                    gt_fused_f32(a, 1.0f - scale, 1.0f + scale), t = z * z;
    float p = 1.208437979e-1f;
    p = p * t + 1.425115913e-1f;
    p = p * t + 2.000047863e-1f;
    p = p * t + 3.333333135e-1f;
    const float y = (float)(int32_t)k * (3.46573590e-1f * 0x1p-23f) + (p * t * z + z);
    const float edge = gt_choose_f32(a == 1.0f, GT_INFINITY, GT_NAN);
    return copysignf(gt_choose_f32(a < 1.0f, y, edge), x);
}
#endif

/* ---- in double, rounded once: 0.6 ULP ---- */

#ifndef GT_NO_DOUBLE
/* The m in [√½, √2) and the whole e with x = m·2ᵉ, for a normal x > 0. */
GT_INLINE double gt_parted_f64(double x, double *e)
{
    const double magic = 4503599627370496.0; /* 2⁵² */
    const uint64_t root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    uint64_t bits, whole;
    memcpy(&bits, &x, sizeof bits);
    bits += one - root;
    /* the exponent, from 1023 on, becomes a double in the low bits of 2⁵² */
    memcpy(&whole, &magic, sizeof whole);
    whole |= bits >> 52;
    bits = (bits & 0x000fffffffffffff) + root;
    double m;
    memcpy(&m, &bits, sizeof m);
    memcpy(e, &whole, sizeof *e);
    *e -= magic + 1023.0;
    return m;
}

/* log(1 + y) for y >= 0, to 2e-9 of itself: 1 + y = m·2ᵉ with m in [√½, √2), log m by s = (m - 1) /
   (m + 1), and what rounding 1 + y has lost. Infinity and NaN are the caller's. */
GT_INLINE double gt_log1p_wide(double y)
{
    const double u = 1.0 + y, lost = (y - (u - 1.0)) / u;
    double e, m = gt_parted_f64(u, &e);
    const double s = (m - 1.0) / (m + 1.0), t = s * s;
    const double p = (((t / 9.0 + 1.0 / 7.0) * t + 1.0 / 5.0) * t + 1.0 / 3.0) * t;
    return e * 0.69314718055994531 + 2.0 * (p * s + s) + lost;
}

GT_INLINE float gt_asinh_f32(float x)
{
    const double a = fabsf(x);
    const float y = (float)gt_log1p_wide(a + a * a / (1.0 + sqrt(a * a + 1.0)));
    return gt_choose_f32(fabsf(x) < GT_INFINITY, copysignf(y, x), x);
}

GT_INLINE float gt_acosh_f32(float x)
{
    const double a = gt_choose_f32((x >= 1.0f) & (x < GT_INFINITY), x, 1.0f) - 1.0;
    const float y = (float)gt_log1p_wide(a + sqrt(a * (a + 2.0)));
    return gt_choose_f32(x < GT_INFINITY, gt_choose_f32(x >= 1.0f, y, GT_NAN), x);
}

/* |x|^y as 2^(y·log₂|x|), 0.53 ULP: log m of |x| = m·2ᵉ as in gt_log1p_wide */
GT_INLINE float gt_raised_f32(float x, float y)
{
    const double d = fabsf(x);
    double e, m = gt_parted_f64(d, &e);
    uint64_t bits, whole;
    const double s = (m - 1.0) / (m + 1.0), t = s * s;
    double p = 0.11792586377543285;
    p = p * t + 0.14268579396850237;
    p = p * t + 0.20000168692623446;
    p = p * t + 0.33333332818283984;
    double l = 2.8853900817779268 * (p * t * s + s) + e;
    l = gt_choose_f64(d < GT_INFINITY, l, d);
    l = gt_choose_f64(d > 0.0, l, gt_choose_f64(d == 0.0, -GT_INFINITY, l));
    double w = y * l;
    w = gt_choose_f64(w < -200.0, -200.0, w); /* the result is 0 from -150 on, Inf from 128 on */
    w = gt_choose_f64(w > 200.0, 200.0, w);
    const double rounder = 6755399441055744.0, z = w + rounder, f = w - (z - rounder);
    double r = 0.00015476852663844507;
    r = r * f + 0.0013400307305936137;
    r = r * f + 0.009618002216357127;
    r = r * f + 0.05550327700174464;
    r = r * f + 0.24022651357049538;
    r = r * f + 0.6931472062873941;
    r = r * f + 1.0;
    memcpy(&bits, &r, sizeof bits);
    memcpy(&whole, &z, sizeof whole);
    bits += whole << 52;
    memcpy(&r, &bits, sizeof r);
    return (float)r;
}

/* the signs and special values of C99 (F.9.4.4) */
GT_INLINE float gt_power_f32(float x, float y)
{
#if GT_LANES == 1 || defined __CUDACC__ || (defined __SSE2__ && !defined __SSE4_1__)
    return powf(x, y); /* nothing is won, or rintf is a call */
#else
    const int whole = rintf(y) == y, odd = whole & (rintf(0.5f * y) != 0.5f * y);
    const uint32_t sign = gt_bits_of_float(x) & 0x80000000 & -(uint32_t)odd;
    const float r = gt_float_of_bits(gt_bits_of_float(gt_raised_f32(x, y)) ^ sign);
    const int without = (x < 0.0f) & (x > -GT_INFINITY) & !whole;
    const int one = (x == 1.0f) | (y == 0.0f) | ((x == -1.0f) & (fabsf(y) == GT_INFINITY));
    return gt_choose_f32(one, 1.0f, gt_choose_f32(without, GT_NAN, r));
#endif
}

/* (asin(r) - r) / r³ for r² = t in [0, ¼] */
GT_INLINE float gt_asin_rest(float t)
{
    float p = 0.03756521308969086f;
    p = p * t + 0.01440259828798705f;
    p = p * t + 0.03181761331969172f;
    p = p * t + 0.04451572010281985f;
    p = p * t + 0.07500510918186455f;
    return p * t + 0.1666665987189417f;
}

/* 2·√part - 2·root for the rounded root: part - root², which is a float, over √part to 4 %, from
   the bits */
GT_INLINE float gt_root_lacks(float part, float root)
{
    const float lost = gt_fused_f32(-root, root, part);
    return gt_float_of_bits(0x5f3759df - (gt_bits_of_float(part) >> 1)) * lost;
}

/* 0.62 ULP: beyond ½ as π/2 - 2·asin(√((1 - x) / 2)). What the root and `high - b` lose by rounding
   is in the terms after them. */
GT_INLINE float gt_asin_f32(float x)
{
    const float a = fabsf(x), part = 0.5f - 0.5f * a, root = sqrtf(part);
    const int far = a > 0.5f;
    const float t = gt_choose_f32(far, part, a * a), p = gt_asin_rest(t);
    const float high = 1.570796371f, b = 2.0f * root, s = high - b;
    const float rest = (high - s) - b - 4.371138829e-8f - p * t * b - gt_root_lacks(part, root);
    return copysignf(gt_choose_f32(far, s + rest, p * t * a + a), x);
}

/* 0.62 ULP: π/2 - asin(x) up to ½, beyond that 2·asin(√((1 - x) / 2)), and of -x π less that. */
GT_INLINE float gt_acos_f32(float x)
{
    const float a = fabsf(x), part = 0.5f - 0.5f * a, root = sqrtf(part);
    const int far = a > 0.5f;
    const float t = gt_choose_f32(far, part, x * x), p = gt_asin_rest(t);
    const float b = gt_choose_f32(far, copysignf(2.0f * root, -x), x);
    const float lacks = copysignf(1.0f, -x) * gt_root_lacks(part, root);
    const float more = gt_choose_f32(far, lacks, 0.0f);
    const float turns = gt_choose_f32(far, gt_choose_f32(x < 0.0f, 2.0f, 0.0f), 1.0f);
    const float high = turns * 1.570796371f, s = high - b;
    return s + ((high - s) - b - turns * 4.371138829e-8f - p * t * b - more);
}
#else
GT_INLINE float gt_power_f32(float x, float y) { return powf(x, y); }
#endif

/* ---- what libm does well enough ---- */

#ifdef GT_NO_DOUBLE
#define GT_LIBM(name, fn) GT_INLINE float gt_##name##_f32(float x) { return fn##f(x); }
#define GT_LIBM_F64(name, fn)
#else
#define GT_LIBM(name, fn)                                                                         \
    GT_INLINE float gt_##name##_f32(float x) { return fn##f(x); }                                 \
    GT_INLINE double gt_##name##_f64(double x) { return fn(x); }
#define GT_LIBM_F64(name, fn)                                                                     \
    GT_INLINE double gt_##name##_f64(double x) { return fn(x); }
#endif
GT_LIBM(sqrt, sqrt)
GT_LIBM_F64(tan, tan)
GT_LIBM_F64(asin, asin)
GT_LIBM_F64(acos, acos)
GT_LIBM_F64(atan, atan)
GT_LIBM_F64(sinh, sinh)
GT_LIBM_F64(cosh, cosh)
GT_LIBM_F64(asinh, asinh)
GT_LIBM_F64(acosh, acosh)
GT_LIBM_F64(atanh, atanh)
GT_LIBM(lgamma, lgamma)
GT_LIBM(erfc, erfc)
GT_LIBM(round, rint) /* half to even */
GT_LIBM(abs, fabs)
GT_LIBM_F64(exp, exp)
GT_LIBM_F64(expm1, expm1)
GT_LIBM_F64(log, log)
GT_LIBM_F64(log1p, log1p)
GT_LIBM_F64(sin, sin)
GT_LIBM_F64(cos, cos)
GT_LIBM_F64(tanh, tanh)
GT_LIBM_F64(erf, erf)
#undef GT_LIBM
#undef GT_LIBM_F64

/* gcc vectorises rint alone of the four: the others may raise "inexact" */
GT_INLINE float gt_floor_f32(float x)
{
    const float r = rintf(x);
    return r - gt_choose_f32(r > x, 1.0f, 0.0f);
}
GT_INLINE float gt_ceil_f32(float x) { return -gt_floor_f32(-x); }
GT_INLINE float gt_trunc_f32(float x) { return copysignf(gt_floor_f32(fabsf(x)), x); }
GT_INLINE float gt_rsqrt_f32(float x) { return 1.0f / sqrtf(x); }

#ifndef GT_NO_DOUBLE
GT_INLINE double gt_floor_f64(double x)
{
    const double r = rint(x);
    return r - gt_choose_f64(r > x, 1.0, 0.0);
}
GT_INLINE double gt_ceil_f64(double x) { return -gt_floor_f64(-x); }
GT_INLINE double gt_trunc_f64(double x) { return copysign(gt_floor_f64(fabs(x)), x); }

GT_INLINE double gt_rsqrt_f64(double x) { return 1.0 / sqrt(x); }

GT_INLINE double gt_sigmoid_f64(double x)
{
    const double e = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

GT_INLINE double gt_power_f64(double a, double b) { return pow(a, b); }
GT_INLINE double gt_rem_f64(double a, double b) { return fmod(a, b); }
#endif

/* ---- the same text for float and double ---- */

/* The remainder with the dividend's sign. A division may round a quotient below 2²³ up to the next
   integer q; then a - q·b, which is a float, has the other sign, and b is added once. */
GT_INLINE float gt_rem_f32(float a, float b)
{
#if (defined(__SSE2__) || defined(__aarch64__)) && !defined(GT_NO_DOUBLE)
    const float x = fabsf(a), y = fabsf(b), q = x / y;
    if (q < 0x1p23f && y < GT_INFINITY) {
        const float r = gt_fused_f32(-(float)(int32_t)q, y, x);
        return copysignf(r < 0.0f ? r + y : r, a);
    }
#endif
    return fmodf(a, b);
}

/* c ? a : b, and b if it is NaN. In plain C no branch depends on data: a run then takes the same
   instructions for all inputs. */
#ifdef GT_PLAIN
#define GT_BEYOND(t, c, a, b) gt_choose_##t(c, gt_choose_##t(b != b, b, a), b)
#else
#define GT_BEYOND(t, c, a, b) (c) ? (b != b ? b : a) : b
#endif

#define GT_FLOATS(t, T, f)                                                                        \
    GT_INLINE T gt_sign_##t(T x) /* zeros and NaN as they are */                                  \
    {                                                                                             \
        return gt_choose_##t(fabs##f(x) > 0, copysign##f((T)1, x), x);                            \
    }                                                                                             \
    /* NaN wins on either side; against a literal this is one comparison */                       \
    GT_INLINE T gt_max_##t(T a, T b) { return GT_BEYOND(t, !(a <= b), a, b); }                    \
    GT_INLINE T gt_min_##t(T a, T b) { return GT_BEYOND(t, !(a >= b), a, b); }                    \
    /* gcc makes a square root of a vector's pow(a, 0.5), but the root of -infinity is NaN and   \
       that of -0 is -0, where C99 (F.10.4.4) says infinity and 0 */                              \
    GT_INLINE T gt_pow_##t(T a, T b)                                                              \
    {                                                                                             \
        if (!GT_CONSTANT(b) || b != (T)0.5) return gt_power_##t(a, b);                            \
        return a == -(T)GT_INFINITY ? (T)GT_INFINITY : sqrt##f(a) + 0;                            \
    }                                                                                             \
    GT_INLINE T gt_atan2_##t(T a, T b) { return atan2##f(a, b); }                                 \
    GT_INLINE T gt_next_after_##t(T a, T b) { return nextafter##f(a, b); }                        \
    GT_INLINE T gt_mod_##t(T a, T b) /* the divisor's sign */                                     \
    {                                                                                             \
        const T r = gt_rem_##t(a, b);                                                             \
        if (r == 0) return copysign##f((T)0, b);                                                  \
        return (r < 0) != (b < 0) ? r + b : r;                                                    \
    }                                                                                             \
    GT_INLINE int gt_is_nan_##t(T x) { return x != x; }                                           \
    GT_INLINE int gt_is_inf_##t(T x) { return fabs##f(x) == (T)GT_INFINITY; }                     \
    GT_INLINE int gt_is_finite_##t(T x) { return fabs##f(x) < (T)GT_INFINITY; }
GT_FLOATS(f32, float, f)
#ifndef GT_NO_DOUBLE
GT_FLOATS(f64, double, )
#endif
#undef GT_FLOATS

#endif
