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
/* inputs[0]: float x0[B, 16] */
/* outputs[0]: float y0[B, 24] */

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
    /* linear + gelu */
    GT_STEP(0, 1, model_k0(t, threads, (const float *)s->inputs[0], (const float *)(s->weights + 128), (const float *)s->weights, (float *)s->outputs[0], d0));
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
    threads = 1;
    GT_RUN_THREADS(run_thread, &s, threads);
    return 0;
}

/* ==== model_kernels.h ==== */
#ifndef MODEL_KERNELS_H
#define MODEL_KERNELS_H
/* weights are packed, and kernels written, for vectors of 8 floats */
#define GT_LANES 8
#include <stdint.h>
void model_k0(int t, int threads, const float *x0, const float *x1, const float *x2, float *y0, int64_t d0);
#endif

/* ==== model_kernels0.c ==== */
#include "model_kernels.h"
#include "nest.h"

/* linear + gelu */
GT_INLINE void model_k0_0_epilogue(const float *restrict acc, int64_t b, int64_t m, int64_t n, int64_t count, const float *x0, const float *x1, const float *x2, float *y0, int64_t d0)
{
    (void)b;
    (void)x0;
    (void)x1;
    (void)d0;
    GT_SIMD
    for (int64_t j0 = 0; j0 < count; j0++) {
        const float v0 = acc[j0] + x2[j0 + n];
        y0[j0 + m * 24 + n] = v0 * 0.5f * (gt_erf_f32(v0 * 0.70710677f) + 1.0f);
    }
}
#define GT_NAME model_k0_0
#define GT_PARAMS , const float *x0, const float *x1, const float *x2, float *y0, int64_t d0
#define GT_ARGS , x0, x1, x2, y0, d0
#define GT_MR 4
#define GT_NV 3
#define GT_M d0
#define GT_N 24
#define GT_K 16
#define GT_LDA 16
#define GT_BATCH 1
#define GT_EPILOGUE model_k0_0_epilogue
#define GT_A(b) (x0 + 0)
#define GT_B(b) (x1 + 0)
#include "gemm.h"
void model_k0(int t, int threads, const float *x0, const float *x1, const float *x2, float *y0, int64_t d0)
{
    model_k0_0(t, threads, x0, x1, x2, y0, d0);
}
