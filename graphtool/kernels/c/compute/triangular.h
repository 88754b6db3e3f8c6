/* Triangular systems, a template: X with A·X = B. Rows of X follow from those before; up to 32
   columns of them are side by side in registers. Only one half of A is read.

   GT_T          the type of the elements, float or double
   GT_BATCH GT_N GT_M  systems, rows of X, columns of X; integer expressions, constants or names
                 among GT_PARAMS
   GT_LOWER      1: the half on and below the diagonal is read, 0: that on and above it
   GT_UNIT       1: the diagonal is taken as ones
   GT_A(b)       matrix b, GT_AI the step to its next row, GT_AJ to the next column
   GT_R(b)       its right-hand side, GT_RI GT_RJ its steps
   GT_Y(b)       where X goes, GT_YI GT_YJ its steps */
#include "nest.h"
#include "template_begin.h"

enum { GT_JOIN(GT_NAME, _side) = 32 };

/* `count` columns of X, row after row. */
GT_INLINE void GT_JOIN(GT_NAME, _columns)(const GT_T *a, const GT_T *r, GT_T *y, int64_t n,
                                          int64_t count GT_PARAMS)
{
    GT_T sums[GT_JOIN(GT_NAME, _side)];
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = GT_LOWER ? step : n - 1 - step;
        const int64_t from = GT_LOWER ? 0 : i + 1, end = GT_LOWER ? i : n;
        for (int64_t m = 0; m < count; m++) sums[m] = r[i * (GT_RI) + m * (GT_RJ)];
        for (int64_t k = from; k < end; k++) {
            const GT_T factor = a[i * (GT_AI) + k * (GT_AJ)];
            const GT_T *x = y + k * (GT_YI);
            GT_SIMD
            for (int64_t m = 0; m < count; m++) sums[m] -= factor * x[m * (GT_YJ)];
        }
        const GT_T divisor = GT_UNIT ? (GT_T)1 : a[i * (GT_AI) + i * (GT_AJ)];
        for (int64_t m = 0; m < count; m++) y[i * (GT_YI) + m * (GT_YJ)] = sums[m] / divisor;
    }
}

/* One column of X: each element, once known, is taken out of those that come after. */
GT_INLINE void GT_JOIN(GT_NAME, _column)(const GT_T *a, const GT_T *r, GT_T *y,
                                         int64_t n GT_PARAMS)
{
    for (int64_t i = 0; i < n; i++) y[i * (GT_YI)] = r[i * (GT_RI)];
    for (int64_t step = 0; step < n; step++) {
        const int64_t k = GT_LOWER ? step : n - 1 - step;
        const int64_t from = GT_LOWER ? k + 1 : 0, end = GT_LOWER ? n : k;
        const GT_T x = GT_UNIT ? y[k * (GT_YI)] : y[k * (GT_YI)] / a[k * (GT_AI) + k * (GT_AJ)];
        y[k * (GT_YI)] = x;
        GT_SIMD
        for (int64_t i = from; i < end; i++)
            y[i * (GT_YI)] -= a[i * (GT_AI) + k * (GT_AJ)] * x;
    }
}

/* The same where rows of A are adjacent: each element needs one sum along its row. */
GT_INLINE void GT_JOIN(GT_NAME, _dots)(const GT_T *a, const GT_T *r, GT_T *y, int64_t n GT_PARAMS)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = GT_LOWER ? step : n - 1 - step;
        const int64_t from = GT_LOWER ? 0 : i + 1, end = GT_LOWER ? i : n;
        GT_T sum = (GT_T)0;
        GT_SIMD_REDUCE(+, sum)
        for (int64_t k = from; k < end; k++) sum += a[i * (GT_AI) + k * (GT_AJ)] * y[k * (GT_YI)];
        const GT_T x = r[i * (GT_RI)] - sum;
        y[i * (GT_YI)] = GT_UNIT ? x : x / a[i * (GT_AI) + i * (GT_AJ)];
    }
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    enum { side = GT_JOIN(GT_NAME, _side) };
    const int64_t n = GT_N, parts = gt_ceil_div(GT_M, side), all = parts * (GT_BATCH);
    for (int64_t u = gt_part(all, t, threads); u < gt_part(all, t + 1, threads); u++) {
        const int64_t b = u / parts, first = u % parts * side;
        const int64_t count = gt_min(side, (GT_M)-first);
        const GT_T *a = GT_A(b), *r = GT_R(b) + first * (GT_RJ);
        GT_T *y = GT_Y(b) + first * (GT_YJ);
        if (count == side)
            GT_JOIN(GT_NAME, _columns)(a, r, y, n, side GT_ARGS);
        else if (count > 4)
            GT_JOIN(GT_NAME, _columns)(a, r, y, n, count GT_ARGS);
        else
            for (int64_t m = 0; m < count; m++) {
                if ((GT_AJ) == 1)
                    GT_JOIN(GT_NAME, _dots)(a, r + m * (GT_RJ), y + m * (GT_YJ), n GT_ARGS);
                else
                    GT_JOIN(GT_NAME, _column)(a, r + m * (GT_RJ), y + m * (GT_YJ), n GT_ARGS);
            }
    }
}

#include "template_end.h"
