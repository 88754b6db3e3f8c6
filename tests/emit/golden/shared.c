/* ==== model.h ==== */
/* model: the interface of a compiled model. Generated; do not edit.
   model_example.c shows how to use it. */
#ifndef MODEL_H
#define MODEL_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return. */
enum {
    MODEL_BAD_DIM = -1, /* a dim is out of its range, or sizes are too large */
    MODEL_NULL_POINTER = -3, /* weights, arena, dims, an input or an output is NULL */
    MODEL_MISALIGNED = -4, /* weights or arena does not start at a multiple of 64 bytes */
    MODEL_NO_FILE = -5, /* the weights file cannot be read */
    MODEL_BAD_FILE = -6, /* the weights file is cut short, or is another model's */
    MODEL_NO_MEMORY = -7, /* there is not enough memory for the weights */
    MODEL_OK = 0
};

#pragma GCC visibility push(default)
/* A status in words; the text is constant. */
const char *model_status_text(int status);

/* The weights in memory. */
typedef struct {
    const void *data; /* what model_run takes */
    void *memory;     /* what model_free gives back */
    size_t bytes;
} model_weights;

/* Bytes of arena that a run with these dims needs, a multiple of 64; the arena starts at a
   multiple of 64 too. 0 if a dim is out of its range, or if no arena can be so large. */
size_t model_arena_bytes(const int64_t *dims);

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

const char *model_status_text(int status)
{
    switch (status) {
        case MODEL_OK: return "it succeeded";
        case MODEL_BAD_DIM: return "a dim is out of its range, or sizes are too large";
        case MODEL_NULL_POINTER: return "weights, arena, dims, an input or an output is NULL";
        case MODEL_MISALIGNED: return "weights or arena does not start at a multiple of 64 bytes";
        case MODEL_NO_FILE: return "the weights file cannot be read";
        case MODEL_BAD_FILE: return "the weights file is cut short, or is another model's";
        case MODEL_NO_MEMORY: return "there is not enough memory for the weights";
        default: return "an unknown status";
    }
}

/* ==== model_example.c ==== */
/* How to use model from C: load, run, free. Change it as you like. In this folder:
       cc -O2 *.c -lm -o example && ./example */
#define _ISOC11_SOURCE 1 /* aligned_alloc, in any -std */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>

/* Memory at a multiple of 64 bytes, filled with zeros. */
static void *zeros(size_t bytes)
{
    const size_t size = bytes / 64 * 64 + 64;
    char *p = (char *)aligned_alloc(64, size);
    for (size_t i = 0; p && i < size; i++) p[i] = 0;
    return p;
}

static int failed(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

/* ==== model_kernels0.c ==== */
#include "model_kernels.h"
#include "nest.h"
