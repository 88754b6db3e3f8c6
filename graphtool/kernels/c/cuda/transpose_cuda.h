/* Elementwise work from one order of axes to another in CUDA: the macros of transpose.h. A block
   has a square of 32 by 32 elements in shared memory: a warp reads lines along A, and writes lines
   along B, so that both sides of memory are read and written in whole lines. A line of the square
   is one word longer than its elements, which puts a column into 32 different banks.

   The epilogue gets one element at a time, adjacent ones in adjacent threads. */
#include "cuda_unit.h"
#include "template_begin.h"

#define GT_SIDE GT_WARP
#ifdef GT_PAIRS
#define GT_NUMBER uint16_t
#define GT_NUMBERS 2 /* numbers of an element */
#else
#define GT_NUMBER float
#define GT_NUMBERS 1
#endif

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    GT_SHARED_ARRAY(uint32_t, square, GT_SIDE *(GT_SIDE + 1));
    const int64_t high = ((GT_A) + GT_SIDE - 1) / GT_SIDE, wide = ((GT_B) + GT_SIDE - 1) / GT_SIDE;
    const int warp = threadIdx.x / GT_WARP, lane = threadIdx.x % GT_WARP;
    for (int64_t tile = team; tile < (GT_PLANES) * high * wide; tile += teams) {
        const int64_t p = tile / (high * wide);
        const int64_t a = tile / wide % high * GT_SIDE, b = tile % wide * GT_SIDE;
        const uint32_t *x = (const uint32_t *)(GT_X(p));
        for (int line = warp; line < GT_SIDE; line += GT_WARPS)
            if (a + lane < (GT_A) && b + line < (GT_B))
                square[line * (GT_SIDE + 1) + lane] = x[a + lane + (b + line) * (GT_XB)];
        __syncthreads();
        for (int line = warp; line < GT_SIDE; line += GT_WARPS) {
            const uint32_t *const at = square + lane * (GT_SIDE + 1) + line;
            if (a + line < (GT_A) && b + lane < (GT_B))
                GT_EPILOGUE((const GT_NUMBER *)at, p, a + line, (b + lane) * GT_NUMBERS,
                            GT_NUMBERS GT_ARGS);
        }
        __syncthreads();
    }
}

#include "template_end.h"
