/* How the body of a run takes the pieces of its steps, and what a build with clocks notes. */
#ifndef GT_MARKS_H
#define GT_MARKS_H

#include "team.h"
#ifdef GT_NORMAL
#include "subnormals.h"
#else
#define GT_BODY(body, state, w) (body)(state, w)
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

#define GT_STEP(i, steps, begin, call)                                               \
    do {                                                                             \
        int64_t *marks_ =                                                            \
            gt_marks ? gt_marks + ((int64_t)w->thread * (steps) + (i)) * GT_MARKS : 0;    \
        int any_ = 0;                                                                \
        for (begin; gt_take(w); any_ = 1) {                                          \
            if (marks_ && !any_)                                                     \
                gt_enter(marks_);                                                    \
            call;                                                                    \
        }                                                                            \
        if (marks_ && any_)                                                          \
            gt_leave(marks_);                                                        \
    } while (0)

#define GT_PHASED(i, steps, call)                                                    \
    do {                                                                             \
        int64_t *marks_ =                                                            \
            gt_marks ? gt_marks + ((int64_t)w->thread * (steps) + (i)) * GT_MARKS : 0;    \
        if (marks_)                                                                  \
            gt_enter(marks_);                                                        \
        call;                                                                        \
        if (marks_)                                                                  \
            gt_leave(marks_);                                                        \
    } while (0)
#define GT_LOOSEN(w) ((void)0) /* a run waits for all threads: the marks are the caller's */
#else
#define GT_PROFILED(name)
#define GT_STEP(i, steps, begin, call) \
    for (begin; gt_take(w);) call
#define GT_PHASED(i, steps, call) call
#ifndef GT_LOOSEN /* a test has its own, with late threads */
#define GT_LOOSEN(w) gt_loosen(w)
#endif
#endif

#endif
