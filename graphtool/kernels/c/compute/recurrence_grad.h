/* The gradient of a recurrence over a whole sequence, a template: from the last step to the first,
   by what recurrence.h has kept. Its results are the gradients of the projections and of the first
   states; those of the weights are products over all steps, outside.

   GT_STEPS GT_DIRS GT_ROWS GT_H GT_KIND GT_GATES GT_REVERSE  as in recurrence.h
   GT_GY(s, d, b) GT_GH(d, b) GT_GC(d, b)  cotangents of y and of the last states, GT_GYS, GT_GHS
                 and GT_GCS apart; 0 where left out
   GT_Y(s, d, b) GT_KEPT(s, d, b)  of the forward pass, GT_YS and GT_KEPTS apart
   GT_H0(d, b) GT_C0(d, b)  first states, GT_H0S and GT_C0S apart; 0 where left out
   GT_R(d)       recurrent weights transposed, in panels of GT_PANEL (a literal) vectors,
                 [panels][GATES·H][PANEL·LANES]; with GT_PANEL 0 [H][GATES·H] as they are, GT_RK
                 from row to row, GT_RC between columns
   GT_DP(s, d, b) GT_DH(d, b) GT_DC(d, b)  results, GT_DPS, GT_DHS, GT_DCS apart; each optional
   GT_WORK(t)    float[GT_BLOCK·(GATES + 4)·H] of thread t, scratch
   GT_BLOCK      rows of the batch at a time, a literal; with panels, a tile of so many rows fits

   Directions and blocks of batch rows are shared out among threads. */
#include "nest.h"
#include "tile.h"
#include "template_begin.h"

#if GT_PANEL > 0
#include "recurrence_panels.h"

/* out[rows][H] += q[rows][GATES·H]·Rᵀ, of gates first to first + count. */
GT_NOINLINE void GT_JOIN(GT_NAME, _product)(int64_t rows, int64_t d, const float *q, float *out,
                                            int64_t first, int64_t count GT_PARAMS)
{
    const int64_t wide = GT_GATES * (GT_H);
    const float *panels = GT_R(d) + first * GT_PANEL * GT_LANES;
    GT_JOIN(GT_NAME, _panels)(rows, q + first, wide, count, panels, wide, out, GT_H, GT_H);
}
#else
/* out[rows][H] += q[rows][GATES·H]·Rᵀ, of gates first to first + count. */
GT_NOINLINE void GT_JOIN(GT_NAME, _product)(int64_t rows, int64_t d, const float *q, float *out,
                                            int64_t first, int64_t count GT_PARAMS)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < GT_H; j++) {
            const float *row = GT_R(d) + j * (GT_RK);
            float sum = 0;
            for (int64_t k = first; k < first + count; k++)
                sum += q[i * GT_GATES * (GT_H) + k] * row[k * (GT_RC)];
            out[i * (GT_H) + j] += sum;
        }
}
#endif

/* What the states of some rows were before step s: results of the step before, or first ones. */
GT_INLINE void GT_JOIN(GT_NAME, _before)(int64_t s, int64_t d, int64_t b, int64_t rows, int back,
                                         float *old GT_PARAMS)
{
    const int64_t n = GT_H, from = back ? s + 1 : s - 1;
    const int first = from < 0 || from >= GT_STEPS;
    if (GT_KIND > 2) return;
    for (int64_t i = 0; i < rows; i++, old += n) {
        const int64_t at = b + i;
        (void)at;
        if (!first)
            for (int64_t j = 0; j < n; j++)
                old[j] = GT_KIND == 0 ? (GT_KEPT(from, d, at))[(4 * n + j) * (GT_KEPTS)]
                                      : (GT_Y(from, d, at))[j * (GT_YS)];
        else
            for (int64_t j = 0; j < n; j++) {
                old[j] = 0;
#ifdef GT_C0
                if (GT_KIND == 0) old[j] = (GT_C0(d, at))[j * (GT_C0S)];
#endif
#ifdef GT_H0
                if (GT_KIND != 0) old[j] = (GT_H0(d, at))[j * (GT_H0S)];
#endif
            }
    }
}

#define GT_SLOPE(y) ((y) * (1 - (y)))
#define GT_OF(part) (kept[((part)*n + j) * (GT_KEPTS)])

/* One step of `rows` rows of the batch from b on: dh and dc, cotangents of its results, become
   those of the states before it; q has its gates' gradients. A GRU that resets its state gets
   d(r·h), in `a`, from a product of its own. */
GT_INLINE void GT_JOIN(GT_NAME, _step)(int64_t s, int64_t d, int64_t b, int64_t rows, int back,
                                       float *dh, float *dc, float *a, float *old, float *q
                                           GT_PARAMS)
{
    const int64_t n = GT_H, wide = GT_GATES * n;
    GT_JOIN(GT_NAME, _before)(s, d, b, rows, back, old GT_ARGS);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = b + i;
        const float *const kept = GT_KEPT(s, d, at), *const before = old + i * n;
        float *const h = dh + i * n, *const c = dc + i * n, *const out = q + i * wide;
        (void)c, (void)before;
        GT_SIMD for (int64_t j = 0; j < n; j++)
        {
            float g = h[j];
#ifdef GT_GY
            g += (GT_GY(s, d, at))[j * (GT_GYS)];
#endif
            if (GT_KIND == 0) {
                const float tanh_c = gt_tanh_f32(GT_OF(4)), f = GT_OF(2);
                const float cell = c[j] + g * GT_OF(1) * (1 - tanh_c * tanh_c);
                out[j] = cell * GT_OF(3) * GT_SLOPE(GT_OF(0));
                out[n + j] = g * tanh_c * GT_SLOPE(GT_OF(1));
                out[2 * n + j] = cell * before[j] * GT_SLOPE(f);
                out[3 * n + j] = cell * GT_OF(0) * (1 - GT_OF(3) * GT_OF(3));
                c[j] = cell * f;
                h[j] = 0;
            } else if (GT_KIND <= 2) {
                const float z = GT_OF(0), r = GT_OF(1), new = GT_OF(2);
                const float inner = g * (1 - z) * (1 - new * new);
                out[j] = g * (before[j] - new) * GT_SLOPE(z);
                out[n + j] = GT_KIND == 2 ? inner * GT_OF(3) * GT_SLOPE(r) : 0;
                out[2 * n + j] = inner;
                h[j] = g * z;
            } else {
                const float y = GT_OF(0);
                out[j] = GT_KIND == 3 ? g * (1 - y * y) : y > 0 ? g : 0;
                h[j] = 0;
            }
        }
    }
    if (GT_KIND == 1) {
        for (int64_t i = 0; i < rows * n; i++) a[i] = 0;
        GT_JOIN(GT_NAME, _product)(rows, d, q, a, 2 * n, n GT_ARGS);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = b + i;
            const float *const kept = GT_KEPT(s, d, at);
            for (int64_t j = 0; j < n; j++) {
                const float r = GT_OF(1), reset = a[i * n + j];
                q[i * wide + n + j] = reset * old[i * n + j] * GT_SLOPE(r);
                dh[i * n + j] += reset * r;
            }
        }
    }
#ifdef GT_DP
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = b + i;
        for (int64_t j = 0; j < wide; j++) (GT_DP(s, d, at))[j * (GT_DPS)] = q[i * wide + j];
    }
#endif
    if (GT_KIND == 2) {
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = b + i;
            const float *const kept = GT_KEPT(s, d, at);
            for (int64_t j = 0; j < n; j++) q[i * wide + 2 * n + j] *= GT_OF(1);
        }
    }
    GT_JOIN(GT_NAME, _product)(rows, d, q, dh, 0, GT_KIND == 1 ? 2 * n : wide GT_ARGS);
}

/* A whole sequence, of the rows of the batch from b on. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sequence)(int64_t d, int64_t b, float *dh, float *dc, float *a,
                                             float *old, float *q GT_PARAMS)
{
    const int64_t n = GT_H, rows = gt_min(GT_BLOCK, GT_ROWS - b);
    const int back = d == 1 || GT_REVERSE;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = b + i;
            (void)at;
            dh[i * n + j] = dc[i * n + j] = 0;
#ifdef GT_GH
            dh[i * n + j] = (GT_GH(d, at))[j * (GT_GHS)];
#endif
#ifdef GT_GC
            dc[i * n + j] = (GT_GC(d, at))[j * (GT_GCS)];
#endif
        }
    for (int64_t step = GT_STEPS - 1; step >= 0; step--)
        GT_JOIN(GT_NAME, _step)
        (back ? GT_STEPS - 1 - step : step, d, b, rows, back, dh, dc, a, old, q GT_ARGS);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = b + i;
            (void)at;
#ifdef GT_DH
            (GT_DH(d, at))[j * (GT_DHS)] = dh[i * n + j];
#endif
#ifdef GT_DC
            (GT_DC(d, at))[j * (GT_DCS)] = dc[i * n + j];
#endif
        }
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_ROWS, GT_BLOCK), units = (GT_DIRS) * blocks, n = GT_H;
    float *dh = GT_WORK(t), *dc = dh + GT_BLOCK * n, *a = dc + GT_BLOCK * n;
    float *old = a + GT_BLOCK * n, *q = old + GT_BLOCK * n;
    for (int64_t u = gt_part(units, t, threads); u < gt_part(units, t + 1, threads); u++)
        GT_JOIN(GT_NAME, _sequence)(u / blocks, u % blocks * GT_BLOCK, dh, dc, a, old, q GT_ARGS);
}

#include "template_end.h"
