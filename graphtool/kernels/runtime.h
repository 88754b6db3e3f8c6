/* How a model's threads run: one parallel region an inference, barriers inside it. */
#ifndef GT_RUNTIME_H
#define GT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>

/* Every thread of the region waits here for all others. */
static inline void gt_barrier(int threads)
{
    if (threads > 1) {
#pragma omp barrier
    }
}

#define GT_OMP(x) _Pragma(#x)

/* The region may get fewer threads than asked for: the share of each follows what it got. */
#define GT_RUN_THREADS(fn, state, count)                                     \
    do {                                                                     \
        if ((count) <= 1) {                                                  \
            fn(state, 0, 1);                                                 \
        } else {                                                             \
            GT_OMP(omp parallel num_threads(count))                          \
            fn(state, omp_get_thread_num(), omp_get_num_threads());          \
        }                                                                    \
    } while (0)
#else
static inline void gt_barrier(int threads) { (void)threads; }

#define GT_RUN_THREADS(fn, state, count) \
    do {                                 \
        (void)(count);                   \
        fn(state, 0, 1);                 \
    } while (0)
#endif

#endif
