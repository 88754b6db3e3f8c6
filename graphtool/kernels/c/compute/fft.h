/* Fourier transforms of lines whose length has the factors 2, 3 and 5 only, a template. Sixteen
   lines are transformed side by side, in a scratch where their elements are adjacent, so that each
   step of Stockham's algorithm is a plain loop; it needs no reordering by bits.

   GT_T          the type of the elements, float or double
   GT_LINES GT_N GT_COUNT  lines, elements of a line, elements of a result that are stored; integer
                 expressions, constants or names among GT_PARAMS
   GT_INVERSE    1: the exponent's sign is +, 0: it is -
   GT_X(line)    the real parts of a line, GT_XS the step to the next element
   GT_XI(line)   the imaginary parts, GT_XIS their step; leave both out if they are 0
   GT_TABLE      GT_T[2·N]: the cosines of 2·pi·k/N for each k, then the sines
   GT_YR(line) GT_YRS  where the real parts go; leave both out if nobody reads them
   GT_YI(line) GT_YIS  where the imaginary parts go; likewise
   GT_WORK(t)    GT_T[64·N] of thread t, scratch */
#include "nest.h"
#include "square.h"
#include "template_begin.h"

#ifndef GT_FFT_LINES
#define GT_FFT_LINES 16
#endif

/* A step: of lines of n = r·m elements, s of them interleaved, with results in the next order.
   Element k of a group is s·m elements behind element k - 1. */
#define GT_FFT_STEP(r, LETS, RESULTS)                                                              \
    GT_INLINE void GT_JOIN(GT_NAME, _step##r)(                                                     \
        const GT_T *restrict xr, const GT_T *restrict xi, GT_T *restrict yr, GT_T *restrict yi,    \
        const GT_T *restrict table, int64_t n, int64_t m, int64_t s)                               \
    {                                                                                              \
        const int64_t wide = s * GT_FFT_LINES, far = m * wide;                                     \
        const GT_T sign = GT_INVERSE ? (GT_T)1 : (GT_T)-1;                                         \
        for (int64_t p = 0; p < m; p++) {                                                          \
            const GT_T *restrict ar = xr + p * wide, *restrict ai = xi + p * wide;                 \
            GT_T *restrict br = yr + (r)*p * wide, *restrict bi = yi + (r)*p * wide;               \
            GT_T c[r], d[r];                                                                       \
            for (int j = 1; j < (r); j++) {                                                        \
                c[j] = table[p * s * j];                                                           \
                d[j] = sign * table[n + p * s * j];                                                \
            }                                                                                      \
            GT_SIMD                                                                                \
            for (int64_t e = 0; e < wide; e++) {                                                   \
                LETS RESULTS                                                                       \
            }                                                                                      \
        }                                                                                          \
    }

/* Element k of a group, as rX and iX. */
#define GT_FFT_READ(k, x) const GT_T r##x = ar[k * far + e], i##x = ai[k * far + e];
#define GT_FFT_FIRST(re, im)                                                                       \
    br[e] = (re);                                                                                  \
    bi[e] = (im);
#define GT_FFT_TURNED(j, re, im)                                                                   \
    {                                                                                              \
        const GT_T u = (re), v = (im);                                                             \
        br[(j)*wide + e] = u * c[j] - v * d[j];                                                    \
        bi[(j)*wide + e] = u * d[j] + v * c[j];                                                    \
    }

GT_FFT_STEP(2, GT_FFT_READ(0, a) GT_FFT_READ(1, b),
            GT_FFT_FIRST(ra + rb, ia + ib) GT_FFT_TURNED(1, ra - rb, ia - ib) (void)sign;)

/* the cube roots of 1: -1/2 and +-sqrt(3)/2 */
GT_FFT_STEP(3, GT_FFT_READ(0, a) GT_FFT_READ(1, b) GT_FFT_READ(2, c)
            const GT_T high = sign * (GT_T)0.86602540378443864676;
            const GT_T sr = rb + rc; const GT_T si = ib + ic;
            const GT_T mr = ra - (GT_T)0.5 * sr; const GT_T mi = ia - (GT_T)0.5 * si;
            const GT_T tr = high * (ib - ic); const GT_T ti = high * (rb - rc);,
            GT_FFT_FIRST(ra + sr, ia + si) GT_FFT_TURNED(1, mr - tr, mi + ti)
            GT_FFT_TURNED(2, mr + tr, mi - ti))

GT_FFT_STEP(4, GT_FFT_READ(0, a) GT_FFT_READ(1, b) GT_FFT_READ(2, c) GT_FFT_READ(3, d)
            const GT_T pr = ra + rc; const GT_T pi = ia + ic;
            const GT_T qr = ra - rc; const GT_T qi = ia - ic;
            const GT_T ur = rb + rd; const GT_T ui = ib + id;
            const GT_T vr = sign * (ib - id); const GT_T vi = sign * (rb - rd);,
            GT_FFT_FIRST(pr + ur, pi + ui) GT_FFT_TURNED(1, qr - vr, qi + vi)
            GT_FFT_TURNED(2, pr - ur, pi - ui) GT_FFT_TURNED(3, qr + vr, qi - vi))

/* cosines and sines of 72 and 144 degrees */
GT_FFT_STEP(5, GT_FFT_READ(0, a) GT_FFT_READ(1, b) GT_FFT_READ(2, c) GT_FFT_READ(3, d)
            GT_FFT_READ(4, e)
            const GT_T ca = (GT_T)0.30901699437494742410;
            const GT_T cb = (GT_T)-0.80901699437494742410;
            const GT_T sa = sign * (GT_T)0.95105651629515357212;
            const GT_T sb = sign * (GT_T)0.58778525229247312917;
            const GT_T pra = rb + re; const GT_T pia = ib + ie;
            const GT_T prb = rc + rd; const GT_T pib = ic + id;
            const GT_T qra = rb - re; const GT_T qia = ib - ie;
            const GT_T qrb = rc - rd; const GT_T qib = ic - id;
            const GT_T era = ra + ca * pra + cb * prb; const GT_T eia = ia + ca * pia + cb * pib;
            const GT_T erb = ra + cb * pra + ca * prb; const GT_T eib = ia + cb * pia + ca * pib;
            const GT_T fra = sa * qia + sb * qib; const GT_T fia = sa * qra + sb * qrb;
            const GT_T frb = sb * qia - sa * qib; const GT_T fib = sb * qra - sa * qrb;,
            GT_FFT_FIRST(ra + pra + prb, ia + pia + pib) GT_FFT_TURNED(1, era - fra, eia + fia)
            GT_FFT_TURNED(2, erb - frb, eib + fib) GT_FFT_TURNED(3, erb + frb, eib - fib)
            GT_FFT_TURNED(4, era + fra, eia - fia))

/* All steps; returns where the results are: at `at`, or behind the 32·n elements there. The radix
   is a matter of n too, so that the compiler leaves out the steps that a constant n cannot have. */
GT_INLINE GT_T *GT_JOIN(GT_NAME, _steps)(GT_T *at, const GT_T *table, int64_t n)
{
    const int64_t half = n * GT_FFT_LINES;
    GT_T *from = at, *to = at + 2 * half;
    for (int64_t left = n, s = 1; left > 1;) {
        const int64_t r = left % 4 == 0 ? 4 : left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : 5;
        const int64_t m = left / r;
        if (n % 4 == 0 && r == 4)
            GT_JOIN(GT_NAME, _step4)(from, from + half, to, to + half, table, n, m, s);
        else if (n % 2 == 0 && r == 2)
            GT_JOIN(GT_NAME, _step2)(from, from + half, to, to + half, table, n, m, s);
        else if (n % 3 == 0 && r == 3)
            GT_JOIN(GT_NAME, _step3)(from, from + half, to, to + half, table, n, m, s);
        else if (n % 5 == 0)
            GT_JOIN(GT_NAME, _step5)(from, from + half, to, to + half, table, n, m, s);
        GT_T *swap = from;
        from = to;
        to = swap;
        left = m;
        s *= r;
    }
    return from;
}

/* Whether lines are at equal distances, so that squares of floats are transposed in registers. */
GT_INLINE int GT_JOIN(GT_NAME, _squares)(const GT_T *const *lines, int64_t held, int64_t step)
{
    int even = held == GT_FFT_LINES && step == 1 && sizeof(GT_T) == sizeof(float);
    for (int64_t l = 2; l < held; l++) even &= lines[l] - lines[l - 1] == lines[1] - lines[0];
    return even && GT_FFT_LINES % GT_LANES == 0;
}

GT_INLINE int GT_JOIN(GT_NAME, _adjacent)(const GT_T *const *lines, int64_t held)
{
    int adjacent = held == GT_FFT_LINES;
    for (int64_t l = 1; l < held; l++) adjacent &= lines[l] == lines[0] + l;
    return adjacent;
}

/* Lines at `lines`, `step` between their elements, into the scratch, side by side. */
static void GT_JOIN(GT_NAME, _gather)(const GT_T *const *lines, int64_t held, int64_t step,
                                      int64_t n, GT_T *restrict to)
{
    int64_t k = 0;
    if (GT_JOIN(GT_NAME, _adjacent)(lines, held)) {
        for (; k < n; k++)
            memcpy(to + k * GT_FFT_LINES, lines[0] + k * step, GT_FFT_LINES * sizeof(GT_T));
    } else if (GT_JOIN(GT_NAME, _squares)(lines, held, step)) {
        for (; k + GT_LANES <= n; k += GT_LANES)
            for (int64_t l = 0; l < GT_FFT_LINES; l += GT_LANES)
                gt_transpose_square((const float *)(lines[l] + k), lines[1] - lines[0],
                                    (float *)(to + k * GT_FFT_LINES + l), GT_FFT_LINES);
    }
    for (; k < n; k++)
        for (int64_t l = 0; l < GT_FFT_LINES; l++)
            to[k * GT_FFT_LINES + l] = l < held ? lines[l][k * step] : (GT_T)0;
}

/* The first `count` elements of each line from the scratch to where the lines go. */
static void GT_JOIN(GT_NAME, _scatter)(GT_T *const *lines, int64_t held, int64_t step,
                                       int64_t count, const GT_T *restrict from)
{
    int64_t first = 0;
    if (GT_JOIN(GT_NAME, _adjacent)((const GT_T *const *)lines, held)) {
        for (; first < count; first++)
            memcpy(lines[0] + first * step, from + first * GT_FFT_LINES,
                   GT_FFT_LINES * sizeof(GT_T));
    } else if (GT_JOIN(GT_NAME, _squares)((const GT_T *const *)lines, held, step)) {
        for (; first + GT_LANES <= count; first += GT_LANES)
            for (int64_t l = 0; l < GT_FFT_LINES; l += GT_LANES)
                gt_transpose_square((const float *)(from + first * GT_FFT_LINES + l),
                                    GT_FFT_LINES, (float *)(lines[l] + first),
                                    lines[1] - lines[0]);
    }
    for (int64_t l = 0; l < held; l++)
        for (int64_t k = first; k < count; k++) lines[l][k * step] = from[k * GT_FFT_LINES + l];
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    enum { lines = GT_FFT_LINES };
    const int64_t n = GT_N, half = n * lines, blocks = gt_ceil_div(GT_LINES, lines);
    GT_T *work = GT_WORK(t);
    for (int64_t b = gt_part(blocks, t, threads); b < gt_part(blocks, t + 1, threads); b++) {
        const int64_t held = gt_min(lines, GT_LINES - b * lines);
        const GT_T *x[lines];
        for (int64_t l = 0; l < held; l++) x[l] = GT_X((b * lines + l));
        GT_JOIN(GT_NAME, _gather)(x, held, GT_XS, n, work);
#ifdef GT_XI
        for (int64_t l = 0; l < held; l++) x[l] = GT_XI((b * lines + l));
        GT_JOIN(GT_NAME, _gather)(x, held, GT_XIS, n, work + half);
#else
        memset(work + half, 0, (size_t)half * sizeof(GT_T));
#endif
        const GT_T *made = GT_JOIN(GT_NAME, _steps)(work, GT_TABLE, n);
        GT_T *y[lines];
#ifdef GT_YR
        for (int64_t l = 0; l < held; l++) y[l] = GT_YR((b * lines + l));
        GT_JOIN(GT_NAME, _scatter)(y, held, GT_YRS, GT_COUNT, made);
#endif
#ifdef GT_YI
        for (int64_t l = 0; l < held; l++) y[l] = GT_YI((b * lines + l));
        GT_JOIN(GT_NAME, _scatter)(y, held, GT_YIS, GT_COUNT, made + half);
#endif
    }
}

#include "template_end.h"
