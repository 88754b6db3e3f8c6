/* How a model's threads come to a run and leave it: they are kept between runs, asleep. */
#ifndef GT_RUNTIME_H
#define GT_RUNTIME_H

#include "arguments.h"
#include "marks.h"

#include <stddef.h>
#include <stdint.h>

#if GT_THREADS
#include "processors.h"
#include "teams.h"

/* A helper's life: it waits for a job, and comes in while the gate is open. */
static void *gt_help(void *place)
{
    gt_team *const team = *(gt_team **)place;
    int t = 0;
    while ((void *)&team->of[t].team != place) t++;
    for (uint64_t job = 1;; job++) {
        gt_await(team, t, &team->gate, job << 17);
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

/* Gives a new team its helpers; fewer where the system has no more. */
static void gt_hire(gt_team *team)
{
    for (int t = 1; t < team->room && team->helpers == t - 1; t++) {
        team->of[t].team = team;
        if (gt_start(&team->of[t].id, gt_help, &team->of[t].team)) team->helpers = t;
    }
}

/* Runs the body on at most `threads` threads; each but the first has `room` bytes to work in. */
static inline void gt_run(void (*body)(const void *state, gt_worker *w), const void *state,
                          int threads, size_t room)
{
    gt_team *team = threads > 1 ? gt_team_for(threads < 4096 ? threads : 4096) : 0;
    if (team && !team->helpers) gt_hire(team);
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
            gt_await(team, 0, &team->left, team->came);
        team->step = w.step, team->target = w.target;
    }
    gt_team_rests(team);
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

#endif
