/* A recurrence over a whole sequence, a template: LSTM, GRU or plain RNN, gates fused. What depends
   on the input alone, P = x·W + b, is computed beforehand for all steps.

   GT_STEPS GT_DIRS GT_ROWS GT_H  steps, directions, batch, state: constants or names of GT_PARAMS
   GT_KIND       a literal: 0 LSTM (gates i o f c), 1 GRU (z r h), 2 GRU with the reset behind the
                 product, 3 tanh, 4 relu; GT_GATES is 4, 3, 3, 1, 1
   GT_REVERSE    1 if the first direction runs backwards; the second one always does
   GT_P(s, d, b) the GATES·H projections of a step, GT_PS apart
   GT_R(d)       recurrent weights [H][GATES·H]: GT_RK from row to row, GT_RC between columns; with
                 GT_PANEL (a literal) > 0 in panels of so many vectors, [panels][H][PANEL·LANES]
   GT_B(d)       GATES·H recurrent biases, GT_BS apart; optional
   GT_H0(d, b) GT_C0(d, b)  first states, GT_H0S and GT_C0S apart; 0 where left out
   GT_Y(s, d, b) GT_HN(d, b) GT_CN(d, b)  results, GT_YS, GT_HNS and GT_CNS apart; each optional
   GT_KEPT(s, d, b)  what the gradient reads, side by side: the gates behind their activation, then
                 an LSTM's cell state, or what GRU 2 resets; of a plain RNN the state;
                 GT_KEPTS apart; optional
   GT_WORK(t)    float[GT_BLOCK·(GATES + 3)·H] of thread t, scratch
   GT_BLOCK      rows of the batch at a time, a literal; with panels, a tile of so many rows fits

   Directions and blocks of batch rows are shared out. If these are fewer than the threads, each
   step is a phase of its own, and a share of it a part of the state. */
#include "nest.h"
#include "tile.h"
#include "template_begin.h"

#if GT_PANEL > 0
#include "recurrence_panels.h"

/* out[rows][columns first to first + count] += h[rows][H]·R; a panel begins at `first`, and `ld` is
   the row length of out. */
GT_NOINLINE void GT_JOIN(GT_NAME, _product)(int64_t rows, int64_t d, const float *h, float *out,
                                            int64_t ld, int64_t first, int64_t count GT_PARAMS)
{
    GT_JOIN(GT_NAME, _panels)
    (rows, h, GT_H, GT_H, GT_R(d) + first * (GT_H), GT_H, out + first, ld, count);
}
#else
/* out[rows][columns first to first + count] += h[rows][H]·R, on weights in any order. */
GT_NOINLINE void GT_JOIN(GT_NAME, _product)(int64_t rows, int64_t d, const float *h, float *out,
                                            int64_t ld, int64_t first, int64_t count GT_PARAMS)
{
#ifdef GT_IN_ORDER /* the sum first, as on weights in panels */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = first; j < first + count; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < GT_H; k++)
                sum += h[i * (GT_H) + k] * (GT_R(d))[k * (GT_RK) + j * (GT_RC)];
            out[i * ld + j] += sum;
        }
    return;
#endif
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < GT_H; k++) {
            const float *row = GT_R(d) + k * (GT_RK);
            const float x = h[i * (GT_H) + k];
            GT_SIMD for (int64_t j = first; j < first + count; j++)
            {
                out[i * ld + j] += x * row[j * (GT_RC)];
            }
        }
}
#endif

GT_INLINE float GT_JOIN(GT_NAME, _bias)(int64_t d, int64_t j GT_PARAMS)
{
#ifdef GT_B
    return (GT_B(d))[j * (GT_BS)];
#else
    return 0;
#endif
}

/* x, kept as a part of what the gradient reads. */
#ifdef GT_KEPT
#define GT_KEEP(part, x) (kept[((part)*n + j) * (GT_KEPTS)] = (x))
#else
#define GT_KEEP(part, x) (x)
#endif

/* One step: gates, then the new states in `next` (h itself, or apart from it), of `rows` rows of
   the batch from b on; elements first to last of each state. */
GT_INLINE void GT_JOIN(GT_NAME, _step)(int64_t s, int64_t d, int64_t b, int64_t rows, float *h,
                                       float *next, float *c, float *g, float *a, int64_t first,
                                       int64_t last GT_PARAMS)
{
    const int64_t n = GT_H, wide = GT_GATES * n;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = b + i;
        for (int64_t k = 0; k < wide; k += n) {
            const int apart = GT_KIND == 2 && k == 2 * n;
            for (int64_t j = k + first; j < k + last; j++) {
                const float own = GT_JOIN(GT_NAME, _bias)(d, j GT_ARGS);
                g[i * wide + j] = apart ? own : (GT_P(s, d, at))[j * (GT_PS)] + own;
            }
        }
    }
    if (last - first == n)
        GT_JOIN(GT_NAME, _product)(rows, d, h, g, wide, 0, GT_KIND == 1 ? 2 * n : wide GT_ARGS);
    else
        for (int64_t k = first; k < wide; k += n)
            GT_JOIN(GT_NAME, _product)(rows, d, h, g, wide, k, last - first GT_ARGS);
    if (GT_KIND == 1) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < n; j++)
                a[i * n + j] = gt_sigmoid_f32(g[i * wide + n + j]) * h[i * n + j];
        GT_JOIN(GT_NAME, _product)(rows, d, a, g, wide, 2 * n, n GT_ARGS);
    }
    for (int64_t i = 0; i < rows; i++) {
        const float *gate = g + i * wide, *old = h + i * n;
        float *hi = next + i * n, *ci = c + i * n;
        const int64_t at = b + i;
        (void)old, (void)ci, (void)at;
#ifdef GT_KEPT
        float *const kept = GT_KEPT(s, d, at);
#endif
        GT_SIMD for (int64_t j = first; j < last; j++)
        {
            if (GT_KIND == 0) {
                const float f = GT_KEEP(2, gt_sigmoid_f32(gate[2 * n + j])) * ci[j];
                const float in = GT_KEEP(0, gt_sigmoid_f32(gate[j]));
                ci[j] = GT_KEEP(4, f + in * GT_KEEP(3, gt_tanh_f32(gate[3 * n + j])));
                hi[j] = GT_KEEP(1, gt_sigmoid_f32(gate[n + j])) * gt_tanh_f32(ci[j]);
            } else if (GT_KIND <= 2) {
                const float z = GT_KEEP(0, gt_sigmoid_f32(gate[j]));
                const float r = GT_KEEP(1, gt_sigmoid_f32(gate[n + j]));
                float inner = gate[2 * n + j];
                if (GT_KIND == 2)
                    inner = (GT_P(s, d, at))[(2 * n + j) * (GT_PS)] + r * GT_KEEP(3, inner);
                hi[j] = (1 - z) * GT_KEEP(2, gt_tanh_f32(inner)) + z * old[j];
            } else {
                hi[j] = GT_KEEP(0, GT_KIND == 3 ? gt_tanh_f32(gate[j]) : gt_max_f32(gate[j], 0));
            }
        }
#ifdef GT_Y
        for (int64_t j = first; j < last; j++) (GT_Y(s, d, at))[j * (GT_YS)] = hi[j];
#endif
    }
}

/* Elements first to last of the first states of `rows` rows of the batch from b on. */
GT_INLINE void GT_JOIN(GT_NAME, _enter)(int64_t d, int64_t b, int64_t rows, float *h, float *c,
                                        int64_t first, int64_t last GT_PARAMS)
{
    for (int64_t i = 0; i < rows; i++, h += GT_H, c += GT_H)
        for (int64_t j = first; j < last; j++) {
            const int64_t at = b + i;
            (void)at;
            h[j] = c[j] = 0;
#ifdef GT_H0
            h[j] = (GT_H0(d, at))[j * (GT_H0S)];
#endif
#ifdef GT_C0
            c[j] = (GT_C0(d, at))[j * (GT_C0S)];
#endif
        }
}

/* Elements first to last of the last states. */
GT_INLINE void GT_JOIN(GT_NAME, _leave)(int64_t d, int64_t b, int64_t rows, const float *h,
                                        const float *c, int64_t first, int64_t last GT_PARAMS)
{
    for (int64_t i = 0; i < rows; i++, h += GT_H, c += GT_H)
        for (int64_t j = first; j < last; j++) {
            const int64_t at = b + i;
            (void)at;
#ifdef GT_HN
            (GT_HN(d, at))[j * (GT_HNS)] = h[j];
#endif
#ifdef GT_CN
            (GT_CN(d, at))[j * (GT_CNS)] = c[j];
#endif
        }
}

/* The step at which a direction is after so many. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _at)(int64_t d, int64_t step GT_PARAMS)
{
    return d == 1 || GT_REVERSE ? GT_STEPS - 1 - step : step;
}

/* A whole sequence of a block of the batch, by one thread. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sequence)(int64_t d, int64_t b, float *work GT_PARAMS)
{
    const int64_t n = GT_H, rows = gt_min(GT_BLOCK, GT_ROWS - b);
    float *h = work, *c = h + GT_BLOCK * n, *a = c + GT_BLOCK * n, *g = a + GT_BLOCK * n;
    GT_JOIN(GT_NAME, _enter)(d, b, rows, h, c, 0, n GT_ARGS);
    for (int64_t step = 0; step < GT_STEPS; step++)
        GT_JOIN(GT_NAME, _step)
        (GT_JOIN(GT_NAME, _at)(d, step GT_ARGS), d, b, rows, h, h, c, g, a, 0, n GT_ARGS);
    GT_JOIN(GT_NAME, _leave)(d, b, rows, h, c, 0, n GT_ARGS);
}

/* The same by all threads: each step is a phase, and a share of it a part of the state, of
   its cells and of its gates. The states are in two places by turns. */
GT_NOINLINE void GT_JOIN(GT_NAME, _shared)(int64_t parts, int64_t d, int64_t b GT_PARAMS)
{
    const int64_t n = GT_H, rows = gt_min(GT_BLOCK, GT_ROWS - b);
    const int64_t nr = GT_PANEL > 0 ? GT_PANEL * GT_LANES : 1;
    float *h = GT_COMMON, *const c = h + GT_BLOCK * n, *next = c + GT_BLOCK * n;
    float *const gates = next + GT_BLOCK * n;
    int p;
#define GT_FROM (gt_part(n / nr, p, parts) * nr)
#define GT_UNTIL (gt_part(n / nr, p + 1, parts) * nr)
    GT_PHASE(p)
    GT_JOIN(GT_NAME, _enter)
    (d, b, rows, h, c, GT_FROM, GT_UNTIL GT_ARGS);
    GT_WAIT;
    for (int64_t step = 0; step < GT_STEPS; step++) {
        const int64_t s = GT_JOIN(GT_NAME, _at)(d, step GT_ARGS);
        GT_PHASE(p)
        GT_JOIN(GT_NAME, _step)
        (s, d, b, rows, h, next, c, gates, c, GT_FROM, GT_UNTIL GT_ARGS);
        GT_WAIT;
        float *const old = h;
        h = next, next = old;
    }
    GT_PHASE(p)
    GT_JOIN(GT_NAME, _leave)
    (d, b, rows, h, c, GT_FROM, GT_UNTIL GT_ARGS);
    GT_WAIT;
#undef GT_FROM
#undef GT_UNTIL
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_ROWS, GT_BLOCK), units = (GT_DIRS) * blocks, n = GT_H;
    /* a wait costs as much time as about 10⁴ weights of a step */
    const int64_t nr = GT_PANEL > 0 ? GT_PANEL * GT_LANES : 1;
    const int shared = GT_PANEL > 0 && GT_KIND != 1 && units < threads && n % nr == 0 && n > nr
                       && GT_GATES * n * n >= 1 << 16;
    if (shared)
        for (int64_t u = 0; u < units; u++)
            GT_JOIN(GT_NAME, _shared)(threads, u / blocks, u % blocks * GT_BLOCK GT_ARGS);
    else
        GT_PHASE(t)
        for (int64_t u = gt_part(units, t, threads); u < gt_part(units, t + 1, threads); u++)
            GT_JOIN(GT_NAME, _sequence)(u / blocks, u % blocks * GT_BLOCK, GT_WORK(t) GT_ARGS);
}

#include "template_end.h"
