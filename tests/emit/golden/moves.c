/* ==== model.h ==== */
/* model: the interface of a compiled model. Generated; do not edit. */
#ifndef MODEL_H
#define MODEL_H
#include <stddef.h>
#include <stdint.h>

#define MODEL_INPUTS 2
#define MODEL_OUTPUTS 2
#define MODEL_DIMS 0
#define MODEL_ARENA_BYTES 704

/* inputs[0]: float x0[3, 40] */
/* inputs[1]: float x1[40, 2] */
/* outputs[0]: float y0[5, 40] */
/* outputs[1]: float y1[1, 42] */

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
    /* tanh */
    if (t == 0) GT_STEP(0, 5, model_k0(t, threads, (const float *)s->inputs[0], (float *)s->outputs[0]));
    /* transpose */
    if (t == 0) GT_STEP(1, 5, model_k1(t, threads, (const float *)s->inputs[1], (float *)s->outputs[0]));
    /* pad */
    if (t == 0) GT_STEP(2, 5, model_k2(t, threads, (float *)s->arena));
    /* pad */
    if (t == 0) GT_STEP(3, 5, model_k3(t, threads, (const float *)s->inputs[0], (float *)s->arena));
    gt_barrier(threads);
    /* reduce_sum */
    if (t == 0) GT_STEP(4, 5, model_k4(t, threads, (const float *)s->arena, (float *)s->outputs[1]));
}
GT_PROFILED(model)

size_t model_arena_bytes(const int64_t *dims)
{
    (void)dims;
    return (size_t)(704);
}

int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads)
{
    const run_state s = {weights, arena, dims, inputs, outputs};
    (void)threads;
    run_thread(&s, 0, 1);
    return 0;
}

/* ==== model_kernels.h ==== */
#ifndef MODEL_KERNELS_H
#define MODEL_KERNELS_H
/* weights are packed, and kernels written, for vectors of 8 floats */
#define GT_LANES 8
#include <stdint.h>
void model_k0(int t, int threads, const float *x0, float *y0);
void model_k1(int t, int threads, const float *x0, float *y0);
void model_k2(int t, int threads, float *y0);
void model_k3(int t, int threads, const float *x0, float *y0);
void model_k4(int t, int threads, const float *x0, float *y0);
#endif

/* ==== model_kernels0.c ==== */
#include "model_kernels.h"
#include "nest.h"

/* tanh */
void model_k0(int t, int threads, const float *x0, float *y0)
{
    (void)t, (void)threads;
    GT_SIMD
    for (int64_t i0 = 0; i0 < 120; i0++) {
        y0[i0] = gt_tanh_f32(x0[i0]);
    }
}

/* transpose */
void model_k1(int t, int threads, const float *x0, float *y0)
{
    (void)t, (void)threads;
    for (int64_t i0 = 0; i0 < 2; i0++) {
        GT_SIMD
        for (int64_t i1 = 0; i1 < 40; i1++) {
            y0[i0 * 40 + i1 + 120] = x0[i0 + i1 * 2];
        }
    }
}

/* pad */
void model_k2(int t, int threads, float *y0)
{
    (void)t, (void)threads;
    GT_SIMD
    for (int64_t i0 = 0; i0 < 42; i0++) {
        y0[i0] = 1.0f;
    }
    for (int64_t i1 = 0; i1 < 3; i1++) {
        GT_SIMD
        for (int64_t i2 = 0; i2 < 2; i2++) {
            y0[i1 * 42 + i2 + 82] = 1.0f;
        }
    }
}

/* pad */
void model_k3(int t, int threads, const float *x0, float *y0)
{
    (void)t, (void)threads;
    for (int64_t i0 = 0; i0 < 3; i0++) {
        GT_SIMD
        for (int64_t i1 = 0; i1 < 40; i1++) {
            y0[i0 * 42 + i1 + 42] = x0[i0 * 40 + i1];
        }
    }
}

/* reduce_sum */
void model_k4(int t, int threads, const float *x0, float *y0)
{
    (void)t, (void)threads;
    GT_SIMD
    for (int64_t i0 = 0; i0 < 42; i0++) {
        float acc0 = 0.0f;
        acc0 += x0[i0];
        acc0 += x0[i0 + 42];
        acc0 += x0[i0 + 84];
        acc0 += x0[i0 + 126];
        y0[i0] = acc0;
    }
}
