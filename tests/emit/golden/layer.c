/* ==== model.h ==== */  /* … as in shared.c */

#define MODEL_INPUTS 1
#define MODEL_OUTPUTS 1
#define MODEL_DIMS 1
#define MODEL_ARENA_BYTES 64

/* dims[0]: B, at least 1, at most 64 */
/* inputs[0]: float x0[B, 16] */
#define MODEL_INPUT0_RANK 2
#define MODEL_INPUT0_SHAPE(dims) {(dims)[0], 16}
#define MODEL_INPUT0_COUNT(dims) ((dims)[0] * 16)
#define MODEL_INPUT0_BYTES(dims) ((size_t)((dims)[0] * 64))
/* outputs[0]: float y0[B, 24] */
#define MODEL_OUTPUT0_RANK 2
#define MODEL_OUTPUT0_SHAPE(dims) {(dims)[0], 24}
#define MODEL_OUTPUT0_COUNT(dims) ((dims)[0] * 24)
#define MODEL_OUTPUT0_BYTES(dims) ((size_t)((dims)[0] * 96))

/* What the functions return. */  /* … as in shared.c */

#pragma GCC visibility push(default)  /* … as in shared.c */

/* The weights in memory. */  /* … as in shared.c */

/* Gets the weights and returns a status. `path` names the file model.safetensors, which the
   system maps: processes share it. */
int model_load(model_weights *weights, const char *path);

/* Gives back what model_load got. */
void model_free(model_weights *weights);

/* Bytes of arena that a run with these dims needs, a multiple of 64; the arena starts at a  /* … as in shared.c */

/* Runs the model and returns a status; unless it is 0, the outputs hold nothing.
   `weights` is the data that model_load got.
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

static const void *weight_at(const run_state *s, int64_t at)
{
    return &s->weights[at];
}

static void run_thread(const void *state, gt_worker *w)
{
    const run_state *const s = state;
    const int64_t d0 = s->dims[0];
    (void)d0;
    GT_LOOSEN(w);
    /* linear + gelu */
    GT_STEP(0, 1, gt_begin(w, w->threads, 4), model_k0(w->piece, w->pieces, s->inputs[0], weight_at(s, 128), weight_at(s, 0), s->outputs[0], d0));
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
    if (!weights || !inputs || !inputs[0] || !outputs || !outputs[0]) return MODEL_NULL_POINTER;
    if (((uintptr_t)weights) % 64u) return MODEL_MISALIGNED;
    const run_state s = {weights, arena, dims, inputs, outputs};
    if (threads < 1) threads = gt_processors();
    /* so little work is done sooner by these than by waking more */
    if (threads > 1) threads = 1;
    gt_run(run_thread, &s, threads, 0);
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

/* ==== model_load.c ==== */
#define _DEFAULT_SOURCE 1 /* pread, and memory that is no file's, in any -std */
#define _DARWIN_C_SOURCE 1
#include "model.h"
#include "load.h"

int model_load(model_weights *weights, const char *path)
{
    if (!weights) return MODEL_NULL_POINTER;
    weights->data = NULL, weights->memory = NULL, weights->bytes = 0;
    if (!path) return MODEL_NULL_POINTER;
    const int status = gt_load_weights(path, 1664, &weights->data,
                                       &weights->memory, &weights->bytes);
    if (status) weights->data = NULL, weights->memory = NULL;
    return status;
}

void model_free(model_weights *weights)
{
    if (!weights) return;
    gt_free_weights(weights->memory, weights->bytes);
    weights->data = NULL, weights->memory = NULL, weights->bytes = 0;
}

/* ==== model_example.c ==== */  /* … as in shared.c */

/* Memory at a multiple of 64 bytes, filled with zeros. */  /* … as in shared.c */

static int failed(const char *what, const char *why)  /* … as in shared.c */

int main(int argc, char **argv)
{
    const int64_t dims[] = {1}; /* B */

    model_weights weights;
    const char *file = argc > 1 ? argv[1] : "model.safetensors";
    int status = model_load(&weights, file);
    if (status) return failed(file, model_status_text(status));

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
#define GT_PIECES 4
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
