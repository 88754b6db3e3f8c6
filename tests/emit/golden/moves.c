/* ==== model.h ==== */  /* … as in shared.c */

#define MODEL_INPUTS 2
#define MODEL_OUTPUTS 2
#define MODEL_DIMS 0
#define MODEL_ARENA_BYTES 704

/* inputs[0]: float x0[3, 40] */
#define MODEL_INPUT0_RANK 2
#define MODEL_INPUT0_SHAPE {3, 40}
#define MODEL_INPUT0_COUNT 120
#define MODEL_INPUT0_BYTES 480
/* inputs[1]: float x1[40, 2] */
#define MODEL_INPUT1_RANK 2
#define MODEL_INPUT1_SHAPE {40, 2}
#define MODEL_INPUT1_COUNT 80
#define MODEL_INPUT1_BYTES 320
/* outputs[0]: float y0[5, 40] */
#define MODEL_OUTPUT0_RANK 2
#define MODEL_OUTPUT0_SHAPE {5, 40}
#define MODEL_OUTPUT0_COUNT 200
#define MODEL_OUTPUT0_BYTES 800
/* outputs[1]: float y1[1, 42] */
#define MODEL_OUTPUT1_RANK 2
#define MODEL_OUTPUT1_SHAPE {1, 42}
#define MODEL_OUTPUT1_COUNT 42
#define MODEL_OUTPUT1_BYTES 168

/* What the functions return. */  /* … as in shared.c */

#pragma GCC visibility push(default)  /* … as in shared.c */

/* The weights in memory. */  /* … as in shared.c */

/* Gets the weights and returns a status. No file is needed: `path` is not read and may be
   NULL, and `data` becomes NULL. */
int model_load(model_weights *weights, const char *path);

/* Gives back what model_load got. */
void model_free(model_weights *weights);

/* Bytes of arena that a run with these dims needs, a multiple of 64; the arena starts at a  /* … as in shared.c */

/* Runs the model and returns a status; unless it is 0, the outputs hold nothing.
   `weights` is NULL: the library has them.
   Inputs and outputs are dense arrays, aligned to their elements; one of no elements may be NULL.
   A run keeps nothing but the threads that it made, asleep: any number of threads may call this
   at the same time if each has its own arena, dims and outputs.
   `threads` is how many of them one run may use, 0: as many as the process may use
   processors. It uses one. */
int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* ==== model.c ==== */  /* … as in shared.c */

typedef struct {  /* … as in shared.c */

static void *arena_at(const run_state *s, int64_t at)
{
    return &s->arena[at];
}

static void run_thread(const void *state, gt_worker *w)
{
    const run_state *const s = state;
    /* tanh */
    GT_STEP(0, 5, gt_begin(w, 1, 1), model_k0(w->piece, w->pieces, s->inputs[0], s->outputs[0]));
    /* transpose */
    GT_STEP(1, 5, gt_begin(w, 1, 1), model_k1(w->piece, w->pieces, s->inputs[1], s->outputs[0]));
    /* pad */
    GT_STEP(2, 5, gt_begin(w, 1, 1), model_k2(w->piece, w->pieces, arena_at(s, 0)));
    /* pad */
    GT_STEP(3, 5, gt_begin(w, 1, 1), model_k3(w->piece, w->pieces, s->inputs[0], arena_at(s, 0)));
    gt_barrier(w);
    /* reduce_sum */
    GT_STEP(4, 5, gt_begin(w, 1, 1), model_k4(w->piece, w->pieces, arena_at(s, 0), s->outputs[1]));
}
GT_PROFILED(model)

const char *model_status_text(int status)  /* … as in shared.c */

size_t model_arena_bytes(const int64_t *dims)
{
    (void)dims;
    return 704;
}

int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads)
{
    if (!arena || !inputs || !inputs[0] || !inputs[1] || !outputs || !outputs[0]) return MODEL_NULL_POINTER;
    if (!outputs[1]) return MODEL_NULL_POINTER;
    if (((uintptr_t)arena) % 64u) return MODEL_MISALIGNED;
    const run_state s = {weights, arena, dims, inputs, outputs};
    (void)threads;
    gt_run(run_thread, &s, 1, 0);
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

/* ==== model_load.c ==== */
#include "model.h"

int model_load(model_weights *weights, const char *path)
{
    if (!weights) return MODEL_NULL_POINTER;
    weights->data = NULL, weights->memory = NULL, weights->bytes = 0;
    (void)path;
    return MODEL_OK;
}

void model_free(model_weights *weights)
{
    if (!weights) return;
    weights->data = NULL, weights->memory = NULL, weights->bytes = 0;
}

/* ==== model_example.c ==== */  /* … as in shared.c */

/* Memory at a multiple of 64 bytes, filled with zeros. */  /* … as in shared.c */

static int failed(const char *what, const char *why)  /* … as in shared.c */

int main(int argc, char **argv)
{
    const int64_t *const dims = NULL; /* all sizes are fixed */

    model_weights weights;
    (void)argc, (void)argv; /* no file is needed */
    int status = model_load(&weights, NULL);
    if (status) return failed("model", model_status_text(status));

    const size_t bytes = model_arena_bytes(dims);
    if (!bytes) return failed("arena", model_status_text(MODEL_BAD_DIM));
    void *arena = zeros(bytes);
    float *input0 = (float *)zeros(MODEL_INPUT0_BYTES); /* x0 */
    float *input1 = (float *)zeros(MODEL_INPUT1_BYTES); /* x1 */
    float *output0 = (float *)zeros(MODEL_OUTPUT0_BYTES); /* y0 */
    float *output1 = (float *)zeros(MODEL_OUTPUT1_BYTES); /* y1 */
    const void *const inputs[] = {input0, input1};
    void *const outputs[] = {output0, output1};

    status = model_run(weights.data, arena, dims, inputs, outputs, 1);
    if (status) return failed("model", model_status_text(status));
    printf("outputs[0]:"); /* y0 */
    for (int64_t i = 0; i < MODEL_OUTPUT0_COUNT && i < 8; i++)
        printf(" %g", (double)output0[i]);
    printf("\n");
    printf("outputs[1]:"); /* y1 */
    for (int64_t i = 0; i < MODEL_OUTPUT1_COUNT && i < 8; i++)
        printf(" %g", (double)output1[i]);
    printf("\n");

    free(output0);
    free(output1);
    free(input0);
    free(input1);
    free(arena);
    model_free(&weights);
    return 0;
}

/* ==== model_kernels0.c ==== */  /* … as in shared.c */

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
