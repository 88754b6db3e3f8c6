/* What the threads of a block, gt_team, or of a warp, gt_warp, have together. Every thread of it
   calls these functions, and gets the same number from them. Numbers are joined in a fixed order,
   so a run gives the same bits each time. */
#ifndef GT_CUDA_TEAM_H
#define GT_CUDA_TEAM_H

#include "integers.h"

/* What the lane has whose number differs in the bits `by`. */
#ifndef GT_LANE_XOR
#define GT_LANE_XOR(T, to, from, by) (to = (T)__shfl_xor_sync(0xffffffffu, from, by))
#endif

#define GT_TOGETHER(name, t, T, join)                                                             \
    static __device__ T gt_warp_##name##_##t(T mine)                                              \
    {                                                                                             \
        for (unsigned by = 1; by < GT_WARP; by *= 2) {                                            \
            T other;                                                                              \
            GT_LANE_XOR(T, other, mine, by);                                                      \
            const T a = threadIdx.x & by ? other : mine, b = threadIdx.x & by ? mine : other;     \
            mine = join;                                                                          \
        }                                                                                         \
        return mine;                                                                              \
    }                                                                                             \
    static __device__ T gt_team_##name##_##t(T mine)                                              \
    {                                                                                             \
        __shared__ T part[GT_WARPS];                                                              \
        mine = gt_warp_##name##_##t(mine);                                                        \
        if (threadIdx.x % GT_WARP == 0) part[threadIdx.x / GT_WARP] = mine;                       \
        __syncthreads();                                                                          \
        T a = part[0];                                                                            \
        for (unsigned w = 1; w < GT_WARPS; w++) {                                                 \
            const T b = part[w];                                                                  \
            a = join;                                                                             \
        }                                                                                         \
        __syncthreads();                                                                          \
        return a;                                                                                 \
    }
#include "team_functions.h"
#undef GT_TOGETHER

#endif
