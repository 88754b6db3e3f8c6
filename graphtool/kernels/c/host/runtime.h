/* How a model's threads run: one parallel region an inference, barriers inside it. */
#ifndef GT_RUNTIME_H
#define GT_RUNTIME_H

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

static inline double gt_greater(double a, double b) { return a > b ? a : b; }

static inline int gt_any_null(const void *const *pointers, int count)
{
    for (int i = 0; i < count; i++)
        if (!pointers[i]) return 1;
    return 0;
}

#ifdef _OPENMP
#include <omp.h>

/* Every thread of the region waits here for all others. */
static inline void gt_barrier(int threads)
{
    if (threads > 1) {
#pragma omp barrier
    }
}

/* A fork copies one thread only. OpenMP's other threads are missing in the child, and a region of
   several would wait for them for ever: a child of a process that had such a region runs alone. */
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>

static int gt_teamed, gt_alone;

static void gt_after_fork(void) { gt_alone = 1; }

static inline int gt_team(int count)
{
    if (count > 1 && !gt_teamed) {
        pthread_atfork(0, 0, gt_after_fork);
        gt_teamed = 1;
    }
    return gt_alone ? 1 : count;
}
#else
static inline int gt_team(int count) { return count; }
#endif

#define GT_OMP(x) _Pragma(#x)

/* The region may get fewer threads than asked for: the share of each follows what it got. */
#define GT_RUN_THREADS(fn, state, count)                                     \
    do {                                                                     \
        const int team_ = gt_team(count);                                    \
        if (team_ <= 1) {                                                    \
            fn(state, 0, 1);                                                 \
        } else {                                                             \
            GT_OMP(omp parallel num_threads(team_))                          \
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
/* The build of `graphtool profile` notes in ns what each thread does, in an array that the caller
   hands over and clears before a run: for each thread and step when it first entered, when it last
   entered and left, how long it was inside in all and then outside, and how often it ran. Other
   builds hold nothing of it. */
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

enum { GT_FIRST, GT_ENTER, GT_LEAVE, GT_INSIDE, GT_OUTSIDE, GT_TURNS, GT_MARKS };

static __thread int64_t *gt_last; /* the step before, of this thread */

static inline void gt_enter(int64_t *marks)
{
    marks[GT_ENTER] = gt_now();
    if (!marks[GT_TURNS])
        marks[GT_FIRST] = marks[GT_ENTER];
    if (gt_last && gt_last[GT_TURNS])
        gt_last[GT_OUTSIDE] += marks[GT_ENTER] - gt_last[GT_LEAVE];
}

static inline void gt_leave(int64_t *marks)
{
    marks[GT_LEAVE] = gt_now();
    marks[GT_INSIDE] += marks[GT_LEAVE] - marks[GT_ENTER];
    marks[GT_TURNS]++;
    gt_last = marks;
}

#define GT_STEP(i, steps, call)                                                      \
    do {                                                                             \
        int64_t *marks_ =                                                            \
            gt_marks ? gt_marks + ((int64_t)t * (steps) + (i)) * GT_MARKS : 0;       \
        if (marks_)                                                                  \
            gt_enter(marks_);                                                        \
        call;                                                                        \
        if (marks_)                                                                  \
            gt_leave(marks_);                                                        \
    } while (0)
#else
#define GT_PROFILED(name)
#define GT_STEP(i, steps, call) call
#endif

#endif
