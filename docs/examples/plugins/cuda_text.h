/* What a kernel is in emitted CUDA. A C compiler reads the same text, where cuda_on_c.h says what a
   thread of a block is. */
#ifndef CUDA_TEXT_H
#define CUDA_TEXT_H
#include <stdint.h>

#ifdef __CUDACC__
#define GT_KERNEL extern "C" __global__
#define GT_DEVICE static __device__ inline
#else
#define GT_KERNEL
#define GT_DEVICE static inline __attribute__((unused))
#include "cuda_on_c.h"
#endif

enum { GT_TEAM = 128 }; /* threads of a block */

#endif
