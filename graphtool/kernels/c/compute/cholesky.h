/* Cholesky factors of symmetric matrices, a template: L with L·transposed(L) = A, zeros above its
   diagonal. Eight columns at a time are factored in a scratch where each column is adjacent; then
   all rows below are changed once for these eight. Only the lower half of A is read.

   GT_T          the type of the elements, float or double
   GT_BATCH GT_N matrices, and rows of a matrix; integer expressions, constants or names among
                 GT_PARAMS
   GT_A(b)       matrix b, GT_AI the step to its next row, GT_AJ to the next column
   GT_Y(b)       where its factor goes, GT_YI GT_YJ its steps
   GT_WORK(t)    GT_T[8·N] of thread t, scratch */
#include "nest.h"
#include "template_begin.h"

enum { GT_JOIN(GT_NAME, _wide) = 8 };

/* Factors the panel: column c starts at panel + c·n, its diagonal element is in row first + c.
   What comes after a column is changed by it, within the panel. */
GT_INLINE void GT_JOIN(GT_NAME, _panel)(GT_T *panel, int64_t n, int64_t first, int64_t wide)
{
    for (int64_t c = 0; c < wide; c++) {
        GT_T *column = panel + c * n;
        const GT_T root = (GT_T)sqrt((double)column[first + c]);
        column[first + c] = root;
        GT_SIMD
        for (int64_t i = first + c + 1; i < n; i++) column[i] /= root;
        for (int64_t k = c + 1; k < wide; k++) {
            GT_T *next = panel + k * n;
            const GT_T factor = column[first + k];
            GT_SIMD
            for (int64_t i = first + k; i < n; i++) next[i] -= factor * column[i];
        }
    }
}

/* The elements from `from` to `end` of a row, minus the products with those of the panel. */
GT_INLINE void GT_JOIN(GT_NAME, _row)(GT_T *row, int64_t step, const GT_T *restrict panel,
                                      int64_t n, int64_t i, int64_t from, int64_t end)
{
    GT_T f[GT_JOIN(GT_NAME, _wide)];
    GT_UNROLL for (int c = 0; c < GT_JOIN(GT_NAME, _wide); c++) f[c] = panel[c * n + i];
    GT_SIMD
    for (int64_t k = from; k < end; k++) {
        const GT_T *p = panel + k;
        const GT_T low = f[0] * p[0] + f[1] * p[n] + f[2] * p[2 * n] + f[3] * p[3 * n];
        const GT_T high = f[4] * p[4 * n] + f[5] * p[5 * n] + f[6] * p[6 * n] + f[7] * p[7 * n];
        row[k * step] -= low + high;
    }
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t n = GT_N;
    GT_T *panel = GT_WORK(t);
    for (int64_t b = gt_part(GT_BATCH, t, threads); b < gt_part(GT_BATCH, t + 1, threads); b++) {
        const GT_T *a = GT_A(b);
        GT_T *y = GT_Y(b);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j <= i; j++)
                y[i * (GT_YI) + j * (GT_YJ)] = a[i * (GT_AI) + j * (GT_AJ)];
            for (int64_t j = i + 1; j < n; j++) y[i * (GT_YI) + j * (GT_YJ)] = (GT_T)0;
        }
        for (int64_t first = 0; first < n; first += GT_JOIN(GT_NAME, _wide)) {
            const int64_t wide = gt_min(GT_JOIN(GT_NAME, _wide), n - first), rest = first + wide;
            for (int64_t i = first; i < n; i++)
                for (int64_t c = 0; c < wide; c++)
                    panel[c * n + i] = y[i * (GT_YI) + (first + c) * (GT_YJ)];
            GT_JOIN(GT_NAME, _panel)(panel, n, first, wide);
            for (int64_t i = first; i < n; i++)
                for (int64_t c = 0; c < gt_min(wide, i - first + 1); c++)
                    y[i * (GT_YI) + (first + c) * (GT_YJ)] = panel[c * n + i];
            for (int64_t i = rest; i < n; i++)
                GT_JOIN(GT_NAME, _row)(y + i * (GT_YI), GT_YJ, panel, n, i, rest, i + 1);
        }
    }
}

#include "template_end.h"
