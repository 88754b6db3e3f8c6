/* A run on threads of the caller's, whose pool begins the parts of a run. Parts take the pieces of
   each step as they come: one that begins late, even after all others have ended, finds no piece
   left and delays nobody. So parts may run at the same time or one after the other. */
#ifndef GT_CALLERS_H
#define GT_CALLERS_H

#include "arguments.h"
#include "marks.h"
#include "teams.h"

#include <stddef.h>
#include <stdint.h>

typedef void (*gt_pool)(void *pool, void (*body)(void *arg, int index, int count), void *arg,
                        int count);

/* What the parts of one run share. */
typedef struct {
    void (*body)(const void *state, gt_worker *w);
    const void *state;
    gt_team *team;
    uint64_t step, target; /* where each part begins */
    uint64_t last, done;   /* where each part has ended */
    int begun, ended, wrong;
} gt_parts;

/* One part: what the pool calls, once for each index. */
static void gt_run_part(void *arg, int index, int count)
{
    gt_parts *const run = arg;
    gt_team *const team = run->team;
    if (count != team->threads || index < 0 || index >= count ||
        __atomic_exchange_n(&team->of[index].run, team->run, __ATOMIC_ACQ_REL) == team->run) {
        __atomic_store_n(&run->wrong, 1, __ATOMIC_RELEASE);
        return;
    }
    __atomic_fetch_add(&run->begun, 1, __ATOMIC_RELAXED);
    gt_worker w = {.team = team, .thread = index, .threads = count, .step = run->step,
                   .target = run->target, .work = team->of[index].work};
    GT_BODY(run->body, run->state, &w);
    __atomic_store_n(&run->last, w.step, __ATOMIC_RELAXED);
    __atomic_store_n(&run->done, w.target, __ATOMIC_RELAXED);
    __atomic_fetch_add(&run->ended, 1, __ATOMIC_ACQ_REL);
}

/* Runs the body in at most `threads` parts; each but the first has `room` bytes to work in. Returns
   whether the pool ran each part once. If parts still run, nobody uses their team again. */
static inline int gt_run_on(void (*body)(const void *state, gt_worker *w), const void *state,
                            int threads, size_t room, gt_pool run, void *pool)
{
    gt_team *const team = threads > 1 ? gt_team_for(threads) : 0;
    int wrong = 0;
    threads = team ? gt_room(team, threads, room) : 1;
    if (threads == 1) {
        gt_worker alone = {.threads = 1};
        GT_BODY(body, state, &alone);
    } else {
        gt_parts parts = {.body = body, .state = state, .team = team, .step = team->step,
                          .target = team->target, .last = team->step, .done = team->target};
        team->threads = threads;
        team->run++;
        run(pool, gt_run_part, &parts, threads);
        const int ended = __atomic_load_n(&parts.ended, __ATOMIC_ACQUIRE);
        wrong = ended != threads || __atomic_load_n(&parts.wrong, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&parts.begun, __ATOMIC_ACQUIRE) != ended) return 0;
        team->step = __atomic_load_n(&parts.last, __ATOMIC_RELAXED);
        team->target = __atomic_load_n(&parts.done, __ATOMIC_RELAXED);
    }
    gt_team_rests(team);
    return !wrong;
}

#endif
