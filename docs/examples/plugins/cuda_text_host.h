/* How the C around the kernels launches one: in a grid of as many blocks as there are iterations,
   or fewer, and after those before it. */
#ifndef CUDA_TEXT_HOST_H
#define CUDA_TEXT_HOST_H
#include "arguments.h"

#include <stdint.h>

typedef void (*gt_kernel)(void);

/* Launches a kernel for so many iterations; its arguments are pointers and integers of 64 bits. */
void gt_launch(gt_kernel kernel, int64_t iterations, const int64_t *arguments);

#define GT_LAUNCH(kernel, iterations, ...) \
    gt_launch((gt_kernel)kernel, iterations, (const int64_t[16]){__VA_ARGS__})

#endif
