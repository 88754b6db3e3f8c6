/* The threads of one run, inside it: they take the pieces of each step as they come, and wait until
   all pieces are done, not until all threads are there. A thread that has no processor and holds no
   piece delays nobody. Calls nothing of OpenMP: -fopenmp or -DGT_THREADS=1 says that there may be
   several threads; without either, one runs alone.

   The step of a run has shares · each pieces. A thread takes those of its own share first, as its
   cache holds what they read, then those of the others. Which pieces there are does not depend on
   who takes them. Steps and pieces are counted without end, so that nothing is ever reset: a thread
   that comes late to a step finds a later number there, and goes on. It may even be in a run that
   has ended, if the body reads nothing of that run but for pieces that it took.

   These functions are called, not repeated at each step: a run of many steps would become one
   function that compilers take long for, and several times its size. */
#ifndef GT_TEAM_H
#define GT_TEAM_H

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

#ifndef GT_THREADS
#ifdef _OPENMP
#define GT_THREADS 1
#else
#define GT_THREADS 0
#endif
#endif
#if GT_THREADS
#include "threads.h"
#include <time.h>
#endif

typedef struct gt_team gt_team;

/* One thread in a run. */
typedef struct {
    gt_team *team;        /* 0: it is alone */
    int thread, threads;  /* its number, and of how many */
    int piece, pieces;    /* the piece at hand, and how many the step has */
    int shares, each;     /* the step has so many shares, of so many pieces each */
    int looked;           /* shares that have nothing left */
    int loose;            /* 1: the run may end without it */
    uint64_t done;        /* pieces of this step that it did */
    uint64_t step;        /* the number of the step */
    uint64_t target;      /* pieces of all steps so far */
    void *work;           /* memory of its own; the first thread's is the caller's */
} gt_worker;

/* The memory in which a thread works: `first` is that of the first one. */
static inline void *gt_work(const gt_worker *w, void *first) { return w->thread ? w->work : first; }

#if GT_THREADS
/* How long a thread spins while it waits; then it sleeps. */
enum { GT_SPIN_NS = 50000 };

struct gt_team {
    _Alignas(64) uint64_t gate; /* job << 17, 1 << 16 while it is open, and how many came in */
    uint64_t left;              /* how many the run need not wait for any more, ever */
    _Alignas(64) uint64_t done; /* pieces done, ever */
    _Alignas(64) uint32_t sleepers;
    uint32_t quit;
    uint64_t spin;
    gt_bell bell;
    void (*body)(const void *state, gt_worker *w);
    const void *state;
    int threads, helpers, room;
    uint64_t step, target, came, run;
    gt_team *next; /* in the list of those at rest */
    void *memory;  /* what to free */
    struct {
        _Alignas(64) uint64_t taken; /* step << 16, and how many pieces of the share are taken */
        gt_thread id;
        uint64_t run; /* the last run of which the caller's pool began this part */
        gt_team *team;
        char *work, *block; /* memory to work in, and the block that it is in */
        size_t room;        /* its bytes */
    } of[];
};

static inline uint64_t gt_time(void) /* nanoseconds */
{
#ifdef _WIN32
    LARGE_INTEGER now, each; /* ticks, and how many a second has */
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&each);
    return (uint64_t)((double)now.QuadPart / (double)each.QuadPart * 1e9);
#else
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static inline void gt_pause(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Waits, as thread `thread`, until a counter has reached a number: spins a while, then sleeps. The
   order of its own reads and writes, and of those in gt_tell, is what keeps a wake-up from being
   lost. */
GT_NOINLINE void gt_await(gt_team *team, int thread, const uint64_t *counter, uint64_t number)
{
    const uint64_t start = gt_time();
    do {
        for (int i = 0; i < 32; i++) {
            if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) >= number) return;
            gt_pause();
        }
    } while ((GT_CALLER_SPINS && !thread) || gt_time() - start < team->spin);
    __atomic_fetch_add(&team->sleepers, 1, __ATOMIC_SEQ_CST);
    gt_doze(&team->bell, counter, number);
    __atomic_fetch_sub(&team->sleepers, 1, __ATOMIC_SEQ_CST);
}

/* Wakes those that sleep, after a counter has grown. */
GT_NOINLINE void gt_tell(gt_team *team)
{
    if (__atomic_load_n(&team->sleepers, __ATOMIC_SEQ_CST)) gt_ring(&team->bell);
}

static inline void gt_count(gt_worker *w, uint64_t pieces)
{
    __atomic_fetch_add(&w->team->done, pieces, __ATOMIC_SEQ_CST);
}

/* Waits until all pieces of the steps so far are done. */
GT_NOINLINE void gt_barrier(gt_worker *w)
{
    if (!w->team) return;
    if (__atomic_load_n(&w->team->done, __ATOMIC_SEQ_CST) >= w->target)
        gt_tell(w->team);
    else
        gt_await(w->team, w->thread, &w->team->done, w->target);
}

/* Waits until all threads of the run are here. */
GT_NOINLINE void gt_meet(gt_worker *w)
{
    if (!w->team) return;
    w->target += (uint64_t)w->threads;
    gt_count(w, 1);
    gt_barrier(w);
}

/* Whether the thread got a piece of the step; counts those that it did once there are no more. */
static inline int gt_claim(gt_worker *w)
{
    for (; w->looked < w->shares; w->looked++) {
        const int share = (w->thread + w->looked) % w->shares;
        uint64_t *taken = &w->team->of[share].taken;
        uint64_t seen = __atomic_load_n(taken, __ATOMIC_RELAXED);
        for (;;) {
            const uint64_t count = seen >> 16 == w->step ? seen & 0xffff : 0;
            if (seen >> 16 > w->step || count == (uint64_t)w->each) break;
            if (__atomic_compare_exchange_n(taken, &seen, w->step << 16 | (count + 1), 1,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                w->piece = share * w->each + (int)count;
                w->done++;
                return 1;
            }
        }
    }
    if (w->done) gt_count(w, w->done);
    return 0;
}

/* The end of the run need not wait for this thread: from here on, its body reads of the run only
   what belongs to pieces that it takes. */
GT_NOINLINE void gt_loosen(gt_worker *w)
{
    if (!w->thread || w->loose) return;
    w->loose = 1;
    __atomic_fetch_add(&w->team->left, 1, __ATOMIC_SEQ_CST);
    gt_tell(w->team);
}
#else
static inline void gt_barrier(gt_worker *w) { (void)w; }
static inline void gt_meet(gt_worker *w) { (void)w; }
static inline void gt_loosen(gt_worker *w) { (void)w; }
static inline int gt_claim(gt_worker *w) { return (void)w, 0; }
#endif

/* Starts a step of shares · each pieces; alone, of one. */
GT_NOINLINE void gt_begin(gt_worker *w, int shares, int each)
{
    w->piece = -1, w->pieces = 1;
    if (!w->team) return;
    w->shares = shares, w->each = each, w->pieces = shares * each;
    w->looked = 0, w->done = 0;
    w->step++;
    w->target += (uint64_t)w->pieces;
}

/* Whether there is another piece for this thread. */
GT_NOINLINE int gt_take(gt_worker *w) { return w->team ? gt_claim(w) : ++w->piece < w->pieces; }

/* The same; the piece is p. */
static inline int gt_next(gt_worker *w, int *p)
{
    const int more = gt_take(w);
    *p = w->piece;
    return more;
}

/* The head of a loop over the pieces p of a phase, one for each thread, inside a kernel that has
   phases of its own. Threads take them as they come: one without a processor delays no phase. */
#define GT_EACH(w, p) for (gt_begin(w, (w)->threads, 1); gt_next(w, &(p));)

#endif
