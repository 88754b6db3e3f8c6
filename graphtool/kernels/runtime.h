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

#ifdef GT_PROFILE
/* The build of `graphtool profile` notes in ns when a thread enters and leaves each step: for each
   thread `steps` pairs, in an array that the caller hands over. Other builds hold nothing of it. */
#include <time.h>

static int64_t *gt_marks;

static inline int64_t gt_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define GT_PROFILED(name)                                                            \
    __attribute__((visibility("default"))) void name##_profile(int64_t *marks);      \
    void name##_profile(int64_t *marks) { gt_marks = marks; }

#define GT_STEP(i, steps, call)                                                      \
    do {                                                                             \
        int64_t *marks_ = gt_marks ? gt_marks + ((int64_t)t * (steps) + (i)) * 2 : 0; \
        if (marks_) marks_[0] = gt_now();                                            \
        call;                                                                        \
        if (marks_) marks_[1] = gt_now();                                            \
    } while (0)
#else
#define GT_PROFILED(name)
#define GT_STEP(i, steps, call) call
#endif

#endif
