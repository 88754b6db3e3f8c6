/* ==== model.h ==== */
/* model: the interface of a compiled model. Generated; do not edit. */
#ifndef MODEL_H
#define MODEL_H
#include <stddef.h>
#include <stdint.h>

#define MODEL_INPUTS 1
#define MODEL_OUTPUTS 1
#define MODEL_DIMS 1
#define MODEL_ARENA_BYTES 0

/* dims[0]: B, at least 1, at most 64 */
/* inputs[0]: float x0[B, 1000] */
/* outputs[0]: float y0[B, 1000] */

#pragma GCC visibility push(default)
/* Bytes of arena that a run needs; align it to 64. */
size_t model_arena_bytes(const int64_t *dims);

/* Runs the model. `weights` points behind the header of the weights file: 8 bytes and
   as many as its first uint64_t says. Aligned to 64; NULL where they are built in.
   Returns 0, or -1 for a dim out of range. Nothing is allocated; runs on different
   arenas may go on at the same time. */
int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads);
#pragma GCC visibility pop
#endif

/* ==== model.c ==== */
#include "model.h"
#include "model_kernels.h"
#include "runtime.h"

typedef struct {
    const char *weights;
    char *arena;
    const int64_t *dims;
    const void *const *inputs;
    void *const *outputs;
} run_state;

static void run_thread(const run_state *s, int t, int threads)
{
    const int64_t d0 = s->dims[0];
    (void)d0;
    /* mul + softmax */
    GT_STEP(0, 1, model_k0(t, threads, (const float *)s->inputs[0], (float *)s->outputs[0], d0));
}
GT_PROFILED(model)

size_t model_arena_bytes(const int64_t *dims)
{
    const int64_t d0 = dims[0];
    (void)d0;
    (void)dims;
    return (size_t)(0);
}

int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads)
{
    if (dims[0] < 1 || dims[0] > 64) return -1;
    const run_state s = {weights, arena, dims, inputs, outputs};
    if (threads > 4) threads = 4;
    /* so little work is done sooner by one thread than by waking others */
    if (dims[0] * 22000 < 250000) threads = 1;
    GT_RUN_THREADS(run_thread, &s, threads);
    return 0;
}

/* ==== model_kernels.h ==== */
#ifndef MODEL_KERNELS_H
#define MODEL_KERNELS_H
/* weights are packed, and kernels written, for vectors of 8 floats */
#define GT_LANES 8
#include <stdint.h>
void model_k0(int t, int threads, const float *x0, float *y0, int64_t d0);
#endif

/* ==== model_kernels0.c ==== */
#include "model_kernels.h"
#include "nest.h"

/* mul + softmax */
void model_k0(int t, int threads, const float *x0, float *y0, int64_t d0)
{
    const int64_t i0_end = gt_part(d0, t + 1, threads);
    for (int64_t i0 = gt_part(d0, t, threads); i0 < i0_end; i0++) {
        float acc0 = -INFINITY;
        GT_SIMD_REDUCE(gt_max_f32, acc0)
        for (int64_t r0 = 0; r0 < 1000; r0++) {
            acc0 = gt_max_f32(acc0, x0[i0 * 1000 + r0] * 0.5f);
        }
        float acc1 = 0.0f;
        GT_SIMD_REDUCE(+, acc1)
        for (int64_t r1 = 0; r1 < 1000; r1++) {
            const float kept = gt_exp_f32(x0[i0 * 1000 + r1] * 0.5f - acc0);
            y0[i0 * 1000 + r1] = kept;
            acc1 += kept;
        }
        GT_SIMD
        for (int64_t i1 = 0; i1 < 1000; i1++) {
            y0[i0 * 1000 + i1] = y0[i0 * 1000 + i1] / acc1;
        }
    }
}
