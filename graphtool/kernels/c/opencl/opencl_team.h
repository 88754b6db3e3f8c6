/* What the workers of a group have together. Every worker of it calls these functions, and gets the
   same number from them. Numbers are joined in a fixed order, so a run gives the same bits each
   time. `room` is the group's memory of 8 bytes for each worker. */
#ifndef GT_OPENCL_TEAM_H
#define GT_OPENCL_TEAM_H

#include "integers.h"

#define GT_TOGETHER(name, t, T, join)                                                             \
    static T gt_team_##name##_##t(T mine, __local int64_t *room)                                  \
    {                                                                                             \
        __local T *const part = (__local T *)room;                                                \
        const uint me = (uint)get_local_id(0);                                                    \
        part[me] = mine;                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                             \
        for (uint by = GT_TEAM / 2; by > 0; by /= 2) {                                            \
            if (me < by) {                                                                        \
                const T a = part[me], b = part[me + by];                                          \
                part[me] = join;                                                                  \
            }                                                                                     \
            barrier(CLK_LOCAL_MEM_FENCE);                                                         \
        }                                                                                         \
        const T all = part[0];                                                                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                                             \
        return all;                                                                               \
    }
#include "team_functions.h"
#undef GT_TOGETHER

#endif
