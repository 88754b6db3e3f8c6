/* ==== model.h ==== */  /* … as in shared.c */

#define MODEL_INPUTS 1
#define MODEL_OUTPUTS 1
#define MODEL_DIMS 1
#define MODEL_ARENA_BYTES 64

/* dims[0]: B, at least 1, at most 64 */
/* inputs[0]: float x0[B, 1000] */
#define MODEL_INPUT0_RANK 2
#define MODEL_INPUT0_SHAPE(dims) {(dims)[0], 1000}
#define MODEL_INPUT0_COUNT(dims) ((dims)[0] * 1000)
#define MODEL_INPUT0_BYTES(dims) ((size_t)((dims)[0] * 4000))
/* outputs[0]: float y0[B, 1000] */
#define MODEL_OUTPUT0_RANK 2
#define MODEL_OUTPUT0_SHAPE(dims) {(dims)[0], 1000}
#define MODEL_OUTPUT0_COUNT(dims) ((dims)[0] * 1000)
#define MODEL_OUTPUT0_BYTES(dims) ((size_t)((dims)[0] * 4000))

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
   processors. It uses 4 at most. */
int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* ==== model.c ==== */  /* … as in shared.c */

typedef struct {  /* … as in shared.c */

static void run_thread(const void *state, gt_worker *w)
{
    const run_state *const s = state;
    const int64_t d0 = s->dims[0];
    (void)d0;
    GT_LOOSEN(w);
    /* mul + softmax */
    GT_STEP(0, 1, gt_begin(w, w->threads, 4), model_k0(w->piece, w->pieces, s->inputs[0], s->outputs[0], d0));
}
GT_PROFILED(model)

const char *model_status_text(int status)  /* … as in shared.c */

size_t model_arena_bytes(const int64_t *dims)
{
    if (!dims || dims[0] < 1 || dims[0] > 64) return 0;
    return 64;
}

int model_run(const void *weights, void *arena, const int64_t *dims,
        const void *const *inputs, void *const *outputs, int threads)
{
    if (!dims) return MODEL_NULL_POINTER;
    if (!model_arena_bytes(dims)) return MODEL_BAD_DIM;
    if (!inputs || !inputs[0] || !outputs || !outputs[0]) return MODEL_NULL_POINTER;
    const run_state s = {weights, arena, dims, inputs, outputs};
    if (threads < 1) threads = gt_processors();
    if (threads > 4) threads = 4;
    /* each needs so much work that waking it pays */
    const int64_t worth = 1 + dims[0] * 22000 / 250000;
    if (threads > worth) threads = (int)worth;
    gt_run(run_thread, &s, threads, 0);
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
    const int64_t dims[] = {1}; /* B */

    model_weights weights;
    (void)argc, (void)argv; /* no file is needed */
    int status = model_load(&weights, NULL);
    if (status) return failed("model", model_status_text(status));

    const size_t bytes = model_arena_bytes(dims);
    if (!bytes) return failed("arena", model_status_text(MODEL_BAD_DIM));
    void *arena = zeros(bytes);
    float *input0 = (float *)zeros(MODEL_INPUT0_BYTES(dims)); /* x0 */
    float *output0 = (float *)zeros(MODEL_OUTPUT0_BYTES(dims)); /* y0 */
    const void *const inputs[] = {input0};
    void *const outputs[] = {output0};

    status = model_run(weights.data, arena, dims, inputs, outputs, 1);
    if (status) return failed("model", model_status_text(status));
    printf("outputs[0]:"); /* y0 */
    for (int64_t i = 0; i < MODEL_OUTPUT0_COUNT(dims) && i < 8; i++)
        printf(" %g", (double)output0[i]);
    printf("\n");

    free(output0);
    free(input0);
    free(arena);
    model_free(&weights);
    return 0;
}

/* ==== model_kernels0.c ==== */  /* … as in shared.c */

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
        const float over_acc1 = 1.0f / acc1;
        GT_SIMD
        for (int64_t i1 = 0; i1 < 1000; i1++) {
            y0[i0 * 1000 + i1] = gt_over_f32(y0[i0 * 1000 + i1], acc1, over_acc1);
        }
    }
}
