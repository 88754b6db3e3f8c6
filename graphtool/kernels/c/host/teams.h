/* Teams at rest, for later runs: of several runs at once each has its own. */
#ifndef GT_TEAMS_H
#define GT_TEAMS_H

#include "team.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static gt_team *gt_teams;
static gt_mutex gt_teams_lock = GT_MUTEX;

/* A fork copies one thread only: the child makes new teams. */
static void gt_after_fork(void)
{
    const gt_mutex fresh = GT_MUTEX;
    gt_teams = 0;
    gt_teams_lock = fresh;
}

/* What OMP_WAIT_POLICY of the environment asks for, else GT_SPIN_NS. */
static uint64_t gt_spin(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY");
    if (policy && (*policy == 'p' || *policy == 'P')) return 0;
    if (policy && (*policy == 'a' || *policy == 'A')) return 1000000000;
    return GT_SPIN_NS;
}

/* A team for `threads`, the caller among them, which has no helpers yet; or none. */
static gt_team *gt_team_made(int threads)
{
    const size_t bytes = sizeof(gt_team) + (size_t)threads * sizeof(((gt_team *)0)->of[0]);
    char *memory = calloc(1, bytes + 64);
    if (!memory) return 0;
    gt_team *team = (gt_team *)(void *)(memory + (64 - (uintptr_t)memory % 64));
    gt_bell_made(&team->bell);
    team->memory = memory;
    team->spin = gt_spin();
    team->room = threads;
    return team;
}

static gt_team *gt_team_for(int threads)
{
    gt_lock(&gt_teams_lock);
    gt_on_fork(gt_after_fork);
    gt_team **at = &gt_teams, *team;
    while (*at && (*at)->room < threads) at = &(*at)->next;
    team = *at;
    if (team) *at = team->next;
    gt_unlock(&gt_teams_lock);
    return team ? team : gt_team_made(threads);
}

static inline void gt_team_rests(gt_team *team)
{
    if (!team) return;
    gt_lock(&gt_teams_lock);
    team->next = gt_teams, gt_teams = team;
    gt_unlock(&gt_teams_lock);
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
#ifdef _WIN32 /* it has ended all other threads when this would be called */
__attribute__((unused)) static void gt_teams_end(void)
#else
__attribute__((destructor)) static void gt_teams_end(void)
#endif
{
    gt_lock(&gt_teams_lock);
    while (gt_teams) {
        gt_team *const team = gt_teams;
        gt_teams = team->next;
        __atomic_store_n(&team->quit, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&team->gate, ((team->gate >> 17) + 1) << 17, __ATOMIC_SEQ_CST);
        gt_tell(team);
        for (int t = 1; t < team->room; t++) {
            if (t <= team->helpers) gt_join(&team->of[t].id);
            free(team->of[t].block);
        }
        free(team->memory);
    }
    gt_unlock(&gt_teams_lock);
}

#endif
