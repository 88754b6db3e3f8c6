/* How a model's threads come to a run and leave it: they are kept between runs, asleep. */
#ifndef GT_RUNTIME_H
#define GT_RUNTIME_H

#include "arguments.h"
#include "team.h"
#ifdef GT_NORMAL
#include "subnormals.h"
#else
#define GT_BODY(body, state, w) (body)(state, w)
#endif
#if GT_THREADS
#include "processors.h"
#endif

#include <stddef.h>
#include <stdint.h>

#if GT_THREADS
#include <stdlib.h>
#include <string.h>

/* Teams at rest, for later runs: of several runs at once each has its own. */
static gt_team *gt_teams;
static pthread_mutex_t gt_teams_lock = PTHREAD_MUTEX_INITIALIZER;

/* A fork copies one thread only: the child makes new teams. */
static void gt_after_fork(void)
{
    const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    gt_teams = 0;
    gt_teams_lock = fresh;
}

/* A helper's life: it waits for a job, and comes in while the gate is open. */
static void *gt_help(void *place)
{
    gt_team *const team = *(gt_team **)place;
    int t = 0;
    while ((void *)&team->of[t].team != place) t++;
    for (uint64_t job = 1;; job++) {
        gt_await(team, &team->gate, job << 17);
        uint64_t gate = __atomic_load_n(&team->gate, __ATOMIC_ACQUIRE);
        job = gate >> 17;
        if (__atomic_load_n(&team->quit, __ATOMIC_ACQUIRE)) return 0;
        while (gate >> 17 == job && gate & 1 << 16)
            if (__atomic_compare_exchange_n(&team->gate, &gate, gate + 1, 1, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                gt_worker w = {.team = team, .thread = t, .threads = team->threads,
                               .step = team->step, .target = team->target,
                               .work = team->of[t].work};
                if (t < w.threads) GT_BODY(team->body, team->state, &w);
                gt_loosen(&w);
                gt_tell(team); /* of its last pieces: there may be no barrier behind them */
                break;
            }
    }
}

/* What OMP_WAIT_POLICY of the environment asks for, else GT_SPIN_NS. */
static uint64_t gt_spin(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY");
    if (policy && (*policy == 'p' || *policy == 'P')) return 0;
    if (policy && (*policy == 'a' || *policy == 'A')) return 1000000000;
    return GT_SPIN_NS;
}

/* A team of `threads`, the caller among them; with fewer where the system has no more, or none. */
static gt_team *gt_team_made(int threads)
{
    const size_t bytes = sizeof(gt_team) + (size_t)threads * sizeof(((gt_team *)0)->of[0]);
    char *memory = calloc(1, bytes + 64);
    if (!memory) return 0;
    gt_team *team = (gt_team *)(void *)(memory + (64 - (uintptr_t)memory % 64));
    pthread_attr_t about;
    pthread_mutex_init(&team->lock, 0);
    pthread_cond_init(&team->wake, 0);
    pthread_attr_init(&about);
    pthread_attr_setstacksize(&about, (size_t)4 << 20); /* some systems give 128 KB */
    team->memory = memory;
    team->spin = gt_spin();
    team->room = threads;
    for (int t = 1; t < threads; t++) {
        team->of[t].team = team;
        if (pthread_create(&team->of[t].id, &about, gt_help, &team->of[t].team)) break;
        team->helpers = t;
    }
    pthread_attr_destroy(&about);
    return team;
}

static gt_team *gt_team_for(int threads)
{
    static int known;
    pthread_mutex_lock(&gt_teams_lock);
    if (!known) known = !pthread_atfork(0, 0, gt_after_fork);
    gt_team **at = &gt_teams, *team;
    while (*at && (*at)->room < threads) at = &(*at)->next;
    team = *at;
    if (team) *at = team->next;
    pthread_mutex_unlock(&gt_teams_lock);
    return team ? team : gt_team_made(threads);
}

/* How many of these threads can have so many bytes each to work in; the first one has the caller's.
   A thread that is late in an earlier run holds no piece of it, so it needs its memory no more. */
static int gt_room(gt_team *team, int threads, size_t bytes)
{
    for (int t = 1; t < threads && bytes; t++) {
        if (team->of[t].room >= bytes) continue;
        free(team->of[t].block);
        char *const block = malloc(bytes + 64);
        team->of[t].block = block, team->of[t].room = block ? bytes : 0;
        if (!block) return t;
        team->of[t].work = block + (64 - (uintptr_t)block % 64);
    }
    return threads;
}

/* Ends the helpers at rest, before their code is unloaded. */
__attribute__((destructor)) static void gt_teams_end(void)
{
    pthread_mutex_lock(&gt_teams_lock);
    while (gt_teams) {
        gt_team *const team = gt_teams;
        gt_teams = team->next;
        __atomic_store_n(&team->quit, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&team->gate, ((team->gate >> 17) + 1) << 17, __ATOMIC_SEQ_CST);
        gt_tell(team);
        for (int t = 1; t <= team->helpers; t++) {
            pthread_join(team->of[t].id, 0);
            free(team->of[t].block);
        }
        free(team->memory);
    }
    pthread_mutex_unlock(&gt_teams_lock);
}

/* Runs the body on at most `threads` threads; each but the first has `room` bytes to work in. */
static inline void gt_run(void (*body)(const void *state, gt_worker *w), const void *state,
                          int threads, size_t room)
{
    gt_team *team = threads > 1 ? gt_team_for(threads < 4096 ? threads : 4096) : 0;
    const int most = team ? team->helpers + 1 : 1;
    threads = team ? gt_room(team, threads < most ? threads : most, room) : 1;
    if (threads == 1) {
        gt_worker alone = {.threads = 1};
        GT_BODY(body, state, &alone);
    } else {
        gt_worker w = {.team = team, .threads = threads,
                       .step = team->step, .target = team->target};
        team->body = body, team->state = state, team->threads = w.threads;
        const uint64_t job = (__atomic_load_n(&team->gate, __ATOMIC_RELAXED) >> 17) + 1;
        __atomic_store_n(&team->gate, job << 17 | 1 << 16, __ATOMIC_SEQ_CST);
        gt_tell(team);
        GT_BODY(body, state, &w);
        gt_barrier(&w);
        team->came += __atomic_fetch_sub(&team->gate, 1 << 16, __ATOMIC_SEQ_CST) & 0xffff;
        if (__atomic_load_n(&team->left, __ATOMIC_ACQUIRE) < team->came)
            gt_await(team, &team->left, team->came);
        team->step = w.step, team->target = w.target;
    }
    if (team) {
        pthread_mutex_lock(&gt_teams_lock);
        team->next = gt_teams, gt_teams = team;
        pthread_mutex_unlock(&gt_teams_lock);
    }
}
#else
static inline int gt_processors(void) { return 1; }

/* a macro, so that the body is called by its name and not through a pointer */
#define gt_run(body, state, wanted, room)                                            \
    do {                                                                             \
        gt_worker alone = {.threads = 1};                                            \
        (void)(wanted), (void)(room);                                                \
        GT_BODY(body, state, &alone);                                                \
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
