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
#define GT_TOGETHER_FLOATS(t, T)                                                                  \
    GT_TOGETHER(add, t, T, a + b)                                                                 \
    GT_TOGETHER(mul, t, T, a * b)                                                                 \
    GT_TOGETHER(max, t, T, gt_max_##t(a, b))                                                      \
    GT_TOGETHER(min, t, T, gt_min_##t(a, b))
#define GT_TOGETHER_INTEGERS(t, T)                                                                \
    GT_TOGETHER(add, t, T, gt_add_##t(a, b))                                                      \
    GT_TOGETHER(mul, t, T, gt_mul_##t(a, b))                                                      \
    GT_TOGETHER(max, t, T, gt_max_##t(a, b))                                                      \
    GT_TOGETHER(min, t, T, gt_min_##t(a, b))                                                      \
    GT_TOGETHER(and, t, T, (T)(a & b))                                                            \
    GT_TOGETHER(or, t, T, (T)(a | b))
GT_TOGETHER_FLOATS(f32, float)
GT_TOGETHER_FLOATS(f64, double)
GT_TOGETHER_INTEGERS(i8, int8_t)
GT_TOGETHER_INTEGERS(i16, int16_t)
GT_TOGETHER_INTEGERS(i32, int32_t)
GT_TOGETHER_INTEGERS(i64, int64_t)
GT_TOGETHER_INTEGERS(u8, uint8_t)
GT_TOGETHER_INTEGERS(u16, uint16_t)
GT_TOGETHER_INTEGERS(u32, uint32_t)
GT_TOGETHER_INTEGERS(u64, uint64_t)
GT_TOGETHER(max, bool, uint8_t, gt_max_bool(a, b))
GT_TOGETHER(min, bool, uint8_t, gt_min_bool(a, b))
GT_TOGETHER(and, bool, uint8_t, (uint8_t)(a & b))
GT_TOGETHER(or, bool, uint8_t, (uint8_t)(a | b))
#undef GT_TOGETHER
#undef GT_TOGETHER_FLOATS
#undef GT_TOGETHER_INTEGERS

#endif
