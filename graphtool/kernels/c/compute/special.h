/* Special functions of one number, in double: graphtool/scalars/special.py in C. */
#ifndef GT_SPECIAL_H
#define GT_SPECIAL_H
#include "vmath.h"

/* Logarithmic derivative of Γ: the asymptotic series from 10 on, reached by ψ(x) = ψ(x+1) - 1/x,
   and reflection below 0 (DLMF 5.11.2, 5.5.2, 5.5.4). NaN at the poles, but ∓Inf at ±0. */
GT_INLINE double gt_digamma_f64(double x)
{
    const double pi = 3.14159265358979323846;
    double y = 0.0;
    if (x == 0.0) return copysign((double)INFINITY, -x);
    if (x < 0.0) {
        const double part = remainder(x, 1.0);
        if (part == 0.0 || x == -INFINITY) return (double)GT_NAN;
        y = -pi / tan(pi * part);
        x = 1.0 - x;
    }
    for (; x < 10.0; x += 1.0) y -= 1.0 / x;
    const double r = 1.0 / (x * x);
    const double tail = 1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12));
    return y + log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * tail)));
}

GT_INLINE float gt_digamma_f32(float x) { return (float)gt_digamma_f64(x); }

/* Its n-th derivative, (-1)^(n+1) n! zeta(n+1, x): the sum until x is large, then the series of
   Euler and Maclaurin (DLMF 5.15, 25.11.43); n = 1 is reflected below 0. NaN unless n is whole and
   at most 10000, and below -10000 for n > 1. */
GT_INLINE double gt_polygamma_f64(double n, double x)
{
    GT_STATIC const double bernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                       5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
    const double pi = 3.14159265358979323846;
    const double s = n + 1.0, sign = fmod(n, 2.0) == 1.0 ? 1.0 : -1.0;
    double y = 0.0, base = 0.0;
    if (n == 0.0) return gt_digamma_f64(x);
    if (x != x || x == -INFINITY || !(n > 0.0 && n <= 1e4) || n != floor(n)) return (double)GT_NAN;
    if (x < -1e4 && n > 1.0) return (double)GT_NAN;
    if (x == INFINITY) return 0.0 * sign;
    if (x <= 0.0 && x == floor(x)) return sign * INFINITY;
    if (x < 0.0 && n == 1.0) {
        base = pi / sin(pi * remainder(x, 1.0));
        base *= base;
        x = 1.0 - x;
    }
    for (; x < 10.0 + n; x += 1.0) y += pow(x, -s);
    y += pow(x, -n) / n + 0.5 * pow(x, -s);
    double term = 0.5 * s * pow(x, -s - 1.0);
    for (int k = 1; k <= 8; k++) {
        y += bernoulli[k - 1] * term;
        term *= (s + 2 * k - 1) * (s + 2 * k) / ((2.0 * k + 1) * (2.0 * k + 2) * x * x);
    }
    return base > 0.0 ? base - y : sign * tgamma(s) * y;
}

GT_INLINE float gt_polygamma_f32(float n, float x) { return (float)gt_polygamma_f64(n, x); }

/* Winitzki's approximation, then Newton's steps on erf, or on erfc where erf is flat. */
GT_INLINE double gt_erf_inv_f64(double x)
{
    const double a = 0.147, pi = 3.14159265358979323846, magnitude = fabs(x);
    if (!(magnitude < 1.0))
        return magnitude == 1.0 ? copysign((double)INFINITY, x) : (double)GT_NAN;
    if (x == 0.0) return x;
    const double tail = log1p(-x * x), b = 2.0 / (pi * a) + 0.5 * tail;
    double y = sqrt(sqrt(b * b - tail / a) - b);
    for (int step = 0; step < 4; step++) {
        const double error = magnitude < 0.9 ? erf(y) - magnitude : (1.0 - magnitude) - erfc(y);
        y -= error * 0.88622692545275801365 * exp(y * y);
    }
    return copysign(y, x);
}

GT_INLINE float gt_erf_inv_f32(float x) { return (float)gt_erf_inv_f64(x); }

/* ---- the incomplete gamma functions: P(a, x) and Q(a, x) = 1 - P(a, x) ---- */

/* P by its series, which is short below x = a + 1 (DLMF 8.11.4). */
GT_INLINE double gt_gamma_series(double a, double x)
{
    double term = 1.0, total = 1.0;
    for (double n = a + 1.0; term > total * 1e-17; n += 1.0) {
        term *= x / n;
        total += term;
    }
    return total * exp(a * log(x) - x - lgamma(a + 1.0));
}

/* Q by a continued fraction, for the other x (DLMF 8.9.2), by Lentz's method. */
GT_INLINE double gt_gamma_fraction(double a, double x)
{
    double b = x + 1.0 - a, c = 1e300, d = 1.0 / b, h = d;
    for (int i = 1; i < 10000; i++) {
        const double step = -i * (i - a);
        b += 2.0;
        d = step * d + b;
        c = b + step / c;
        d = 1.0 / (fabs(d) > 1e-300 ? d : 1e-300);
        c = fabs(c) > 1e-300 ? c : 1e-300;
        h *= d * c;
        if (fabs(d * c - 1.0) < 1e-16) break;
    }
    return h * exp(a * log(x) - x - lgamma(a));
}

/* Q for side 1 and P for -1, where a is large and both of these have terms in proportion to its
   root: Temme's expansion, uniform in x, with its first two coefficients (DLMF 8.12.3 to
   8.12.10). */
#define GT_GAMMA_LARGE 1e5
GT_INLINE double gt_gamma_large(double a, double x, double side)
{
    const double pi = 3.14159265358979323846, m = (x - a) / a;
    const int near = fabs(m) < 1e-3;
    const double excess = near ? m * m * (0.5 - m * (1.0 / 3 - m * (0.25 - m * (0.2 - m / 6))))
                               : m - log(fmax(x / a, 1e-300));
    const double eta = copysign(sqrt(2.0 * excess), m);
    const double c0 = near ? -1.0 / 3 + eta / 12 - 2.0 * eta * eta / 135 : 1.0 / m - 1.0 / eta;
    const double c1 = -1.0 / 540 - eta / 288;
    return 0.5 * erfc(side * eta * sqrt(0.5 * a)) +
           side * exp(-a * excess) / sqrt(2.0 * pi * a) * (c0 + c1 / a);
}

/* P where a limit gives it, else -1. */
GT_INLINE double gt_gamma_edge(double a, double x)
{
    if (!(a >= 0.0) || !(x >= 0.0) || (a == 0.0 && x == 0.0)) return (double)GT_NAN;
    if (a == INFINITY && x == INFINITY) return (double)GT_NAN;
    if (a == 0.0 || x == INFINITY) return 1.0;
    return x == 0.0 || a == INFINITY ? 0.0 : -1.0;
}

GT_INLINE double gt_igamma_f64(double a, double x)
{
    const double edge = gt_gamma_edge(a, x);
    if (edge != -1.0) return edge;
    if (a > GT_GAMMA_LARGE) return gt_gamma_large(a, x, -1.0);
    return x < a + 1.0 ? gt_gamma_series(a, x) : 1.0 - gt_gamma_fraction(a, x);
}

GT_INLINE double gt_igammac_f64(double a, double x)
{
    const double edge = gt_gamma_edge(a, x);
    if (edge != -1.0) return 1.0 - edge;
    if (a > GT_GAMMA_LARGE) return gt_gamma_large(a, x, 1.0);
    return x < a + 1.0 ? 1.0 - gt_gamma_series(a, x) : gt_gamma_fraction(a, x);
}

GT_INLINE float gt_igamma_f32(float a, float x) { return (float)gt_igamma_f64(a, x); }
GT_INLINE float gt_igammac_f32(float a, float x) { return (float)gt_igammac_f64(a, x); }

/* ---- modified Bessel functions of order 0 and 1, times exp(-|x|) ---- */

/* The power series below 20, which has no cancellation, then the asymptotic one (DLMF 10.25.2,
   10.40.1). */
GT_INLINE double gt_bessel_i(int order, double x)
{
    const double pi = 3.14159265358979323846;
    double term = 1.0, total = 1.0;
    if (!(x < INFINITY)) return x == INFINITY ? 0.0 : (double)GT_NAN;
    if (x < 20.0) {
        for (int k = 1; k < 60; k++) {
            term *= x * x / (4.0 * k * (k + order));
            total += term;
        }
        return total * exp(-x) * (order ? 0.5 * x : 1.0);
    }
    for (int k = 1; k < 20; k++) {
        term *= ((2.0 * k - 1) * (2.0 * k - 1) - 4 * order) / (8.0 * k * x);
        total += term;
    }
    return total / sqrt(2.0 * pi) / sqrt(x);
}

GT_INLINE double gt_i0e_f64(double x) { return gt_bessel_i(0, fabs(x)); }
GT_INLINE double gt_i1e_f64(double x) { return copysign(gt_bessel_i(1, fabs(x)), x); }
GT_INLINE float gt_i0e_f32(float x) { return (float)gt_i0e_f64(x); }
GT_INLINE float gt_i1e_f32(float x) { return (float)gt_i1e_f64(x); }

#endif
