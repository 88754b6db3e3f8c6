/* What threads need of a system: to begin and to end, to lock, to sleep and to be woken. By POSIX
   threads, or those of Windows; in WebAssembly by the waits of memory that workers share, where the
   host begins them. */
#ifndef GT_THREADS_H
#define GT_THREADS_H

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __wasm__
/* No wait is allowed on the main thread of a page, so the thread that begins a run spins. */
enum { GT_CALLER_SPINS = 1 };
typedef struct { int begun; } gt_thread;
typedef uint32_t gt_mutex;
typedef struct { uint32_t rung; } gt_bell;
#define GT_MUTEX 0

/* A worker of the host calls help(place), and never returns from it; 0 if there is none left. */
__attribute__((import_module("env"), import_name("gt_thread")))
int gt_host_thread(void *(*help)(void *place), void *place);

static inline int gt_start(gt_thread *thread, void *(*help)(void *place), void *place)
{
    return thread->begun = gt_host_thread(help, place);
}

static inline void gt_join(gt_thread *thread) { (void)thread; }
static inline void gt_on_fork(void (*child)(void)) { (void)child; }

static inline void gt_lock(gt_mutex *mutex)
{
    while (__atomic_exchange_n(mutex, 1, __ATOMIC_ACQUIRE)) {
    }
}

static inline void gt_unlock(gt_mutex *mutex) { __atomic_store_n(mutex, 0, __ATOMIC_RELEASE); }
static inline void gt_bell_made(gt_bell *bell) { bell->rung = 0; }

/* Sleeps until a counter has reached a number, which is looked at whenever the bell rings. */
static inline void gt_doze(gt_bell *bell, const uint64_t *counter, uint64_t number)
{
    for (;;) {
        const uint32_t rung = __atomic_load_n(&bell->rung, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(counter, __ATOMIC_SEQ_CST) >= number) return;
        __builtin_wasm_memory_atomic_wait32((int *)&bell->rung, (int)rung, -1);
    }
}

static inline void gt_ring(gt_bell *bell)
{
    __atomic_fetch_add(&bell->rung, 1, __ATOMIC_SEQ_CST);
    __builtin_wasm_memory_atomic_notify((int *)&bell->rung, UINT32_MAX);
}
#elif defined _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#undef far
#undef near

enum { GT_CALLER_SPINS = 0 };
typedef struct { int begun; } gt_thread;
typedef SRWLOCK gt_mutex;
typedef struct {
    SRWLOCK lock;
    CONDITION_VARIABLE wake;
} gt_bell;
#define GT_MUTEX SRWLOCK_INIT

/* Begins a thread that calls help(place); whether it did. The library stays loaded from then on: it
   cannot wait for its threads while the system unloads it. */
static inline int gt_start(gt_thread *thread, void *(*help)(void *place), void *place)
{
    HMODULE library;
    const LPTHREAD_START_ROUTINE start = (LPTHREAD_START_ROUTINE)(void (*)(void))help;
    GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                       (LPCSTR)(uintptr_t)start, &library);
    const HANDLE made = CreateThread(0, (size_t)4 << 20, start, place, 0, 0);
    thread->begun = made && CloseHandle(made);
    return thread->begun;
}

static inline void gt_join(gt_thread *thread) { (void)thread; }
static inline void gt_on_fork(void (*child)(void)) { (void)child; }
static inline void gt_lock(gt_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static inline void gt_unlock(gt_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }

static inline void gt_bell_made(gt_bell *bell)
{
    InitializeSRWLock(&bell->lock);
    InitializeConditionVariable(&bell->wake);
}

/* Sleeps until a counter has reached a number, which is looked at whenever the bell rings. */
static inline void gt_doze(gt_bell *bell, const uint64_t *counter, uint64_t number)
{
    AcquireSRWLockExclusive(&bell->lock);
    while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < number)
        SleepConditionVariableSRW(&bell->wake, &bell->lock, INFINITE, 0);
    ReleaseSRWLockExclusive(&bell->lock);
}

static inline void gt_ring(gt_bell *bell)
{
    AcquireSRWLockExclusive(&bell->lock);
    WakeAllConditionVariable(&bell->wake);
    ReleaseSRWLockExclusive(&bell->lock);
}
#else
#include <pthread.h>

enum { GT_CALLER_SPINS = 0 };
typedef pthread_t gt_thread;
typedef pthread_mutex_t gt_mutex;
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
} gt_bell;
#define GT_MUTEX PTHREAD_MUTEX_INITIALIZER

/* Begins a thread that calls help(place); whether it did. */
static inline int gt_start(gt_thread *thread, void *(*help)(void *place), void *place)
{
    pthread_attr_t about;
    pthread_attr_init(&about);
    pthread_attr_setstacksize(&about, (size_t)4 << 20); /* some systems give 128 KB */
    const int failed = pthread_create(thread, &about, help, place);
    pthread_attr_destroy(&about);
    return !failed;
}

static inline void gt_join(gt_thread *thread) { pthread_join(*thread, 0); }

/* Asks once that a process that is forked calls `child`. */
static inline void gt_on_fork(void (*child)(void))
{
    static int known;
    if (!known) known = !pthread_atfork(0, 0, child);
}

static inline void gt_lock(gt_mutex *mutex) { pthread_mutex_lock(mutex); }
static inline void gt_unlock(gt_mutex *mutex) { pthread_mutex_unlock(mutex); }

static inline void gt_bell_made(gt_bell *bell)
{
    pthread_mutex_init(&bell->lock, 0);
    pthread_cond_init(&bell->wake, 0);
}

/* Sleeps until a counter has reached a number, which is looked at whenever the bell rings. */
static inline void gt_doze(gt_bell *bell, const uint64_t *counter, uint64_t number)
{
    pthread_mutex_lock(&bell->lock);
    while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < number)
        pthread_cond_wait(&bell->wake, &bell->lock);
    pthread_mutex_unlock(&bell->lock);
}

static inline void gt_ring(gt_bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    pthread_cond_broadcast(&bell->wake);
    pthread_mutex_unlock(&bell->lock);
}
#endif

#endif
