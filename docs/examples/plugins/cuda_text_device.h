/* The functions that emitted CUDA calls. */
#ifndef CUDA_TEXT_DEVICE_H
#define CUDA_TEXT_DEVICE_H
#include <math.h>

/* As the operators of a graph have it: NaN wins. */
GT_DEVICE float gt_max_f32(float a, float b) { return a > b || a != a ? a : b; }
GT_DEVICE float gt_min_f32(float a, float b) { return a < b || a != a ? a : b; }
GT_DEVICE float gt_add_f32(float a, float b) { return a + b; }
GT_DEVICE int64_t gt_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
GT_DEVICE int64_t gt_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* What all threads of a block have together, for each of them. */
#define GT_BLOCK(fn)                                                                \
    GT_DEVICE float gt_block_##fn##_f32(float mine)                                 \
    {                                                                               \
        __shared__ float of[GT_TEAM];                                               \
        of[threadIdx.x] = mine;                                                     \
        __syncthreads();                                                            \
        for (unsigned n = GT_TEAM / 2; n; n /= 2) {                                 \
            if (threadIdx.x < n)                                                    \
                of[threadIdx.x] = gt_##fn##_f32(of[threadIdx.x], of[threadIdx.x + n]); \
            __syncthreads();                                                        \
        }                                                                           \
        mine = of[0];                                                               \
        __syncthreads();                                                            \
        return mine;                                                                \
    }
GT_BLOCK(add)
GT_BLOCK(max)
GT_BLOCK(min)
#endif
