/* libcuda.so.1 on a processor. A module is a shared library of the kernels; the blocks of a launch
   run one after the other, and the threads of a block are fibers, which run until they wait for
   each other, in an order that is drawn anew each time. Memory has guards behind it, and is filled
   with 0x7f, so that reading what nobody wrote shows. What a program does wrong ends it. */
#define _GNU_SOURCE
#include "on_c.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 1024, STACK = 1 << 16, GUARD = 256, ARGUMENTS = 32, LAUNCHES = 4096, CONTEXT = 77 };
enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500, ILLEGAL_STATE = 401 };

on_c_place threadIdx, blockIdx, blockDim, gridDim;

typedef void (*kernel)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
typedef struct {
    kernel function;
    unsigned blocks, threads;
    int64_t arguments[ARGUMENTS];
} launch;
typedef struct {
    int count;
    launch launches[LAUNCHES];
} graph;

/* What a test asks: how often things happened, and what is to fail next. */
int cuda_launches, cuda_replays, cuda_captures, cuda_allocated, cuda_current;
int cuda_fail_in; /* the call that fails, counted down; 0: none */
int cuda_arch = 90;

static ucontext_t host, fiber[MOST];
static char *stacks;
static int ended[MOST];
static const launch *running;
static graph *capturing;

static void wrong(const char *what)
{
    fprintf(stderr, "driver: %s\n", what);
    abort();
}

static int fails(void) { return cuda_fail_in && !--cuda_fail_in; }

static void enter(void)
{
    const int64_t *a = running->arguments;
    running->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                      a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22],
                      a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
    ended[threadIdx.x] = 1;
    swapcontext(&fiber[threadIdx.x], &host);
}

void __syncthreads(void)
{
    const unsigned me = threadIdx.x;
    swapcontext(&fiber[me], &host);
    threadIdx.x = me;
}

static void run_block(int threads)
{
    for (int t = 0; t < threads; t++) {
        ended[t] = 0;
        getcontext(&fiber[t]);
        fiber[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
        fiber[t].uc_stack.ss_size = STACK;
        makecontext(&fiber[t], enter, 0);
    }
    for (int left = threads; left;) {
        unsigned order[MOST];
        for (unsigned t = 0; t < (unsigned)threads; t++) {
            const unsigned at = (unsigned)rand() % (t + 1);
            order[t] = order[at];
            order[at] = t;
        }
        for (int i = 0; i < threads; i++) {
            threadIdx.x = order[i];
            swapcontext(&host, &fiber[order[i]]);
            left -= ended[order[i]];
        }
        if (left != 0 && left != threads)
            wrong("some threads of a block ended where others wait");
    }
}

static void run(const launch *one)
{
    if (!stacks) stacks = malloc((size_t)MOST * STACK);
    running = one;
    gridDim.x = one->blocks;
    blockDim.x = one->threads;
    for (blockIdx.x = 0; blockIdx.x < one->blocks; blockIdx.x++) run_block((int)one->threads);
    cuda_launches++;
}

/* ---- the functions of the driver ---- */

int cuInit(unsigned flags) { return flags ? 1 : fails() ? 100 : 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, fails() ? 101 : 0; }

int cuDeviceGetAttribute(int *value, int which, int device)
{
    *value = which == 75 ? cuda_arch / 10 : cuda_arch % 10;
    return device || fails();
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = (void *)(intptr_t)CONTEXT;
    return device || fails();
}

int cuCtxSetCurrent(void *context)
{
    if (context != (void *)(intptr_t)CONTEXT) wrong("another context");
    cuda_current++;
    return fails();
}

/* The size of a shared library that lies in memory: its table of sections is its end. */
int cuModuleLoadData(void **module, const void *image)
{
    const Elf64_Ehdr *head = image;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG)) return 200;
    const size_t size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    const int file = memfd_create("module", 0);
    char path[64];
    if (write(file, image, size) != (ssize_t)size) wrong("the module was not written");
    dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD); /* modules find its symbols */
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*module) wrong(dlerror());
    return fails();
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = dlsym(module, name);
    return *function && !fails() ? 0 : NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    if (capturing) return ILLEGAL_STATE;
    if (!bytes || fails()) return OUT_OF_MEMORY;
    char *p = aligned_alloc(GUARD, GUARD + (bytes + GUARD - 1) / GUARD * GUARD + GUARD);
    if (!p) return OUT_OF_MEMORY;
    memset(p + GUARD, 0x7f, bytes);
    memset(p + GUARD + bytes, 0x5a, GUARD);
    memcpy(p, &bytes, sizeof bytes);
    *at = (uint64_t)(uintptr_t)(p + GUARD);
    cuda_allocated++;
    return 0;
}

int cuMemFree_v2(uint64_t at)
{
    char *p = (char *)(uintptr_t)at - GUARD;
    size_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    for (int i = 0; i < GUARD; i++)
        if (p[GUARD + bytes + (size_t)i] != 0x5a) wrong("something was written behind memory");
    free(p);
    cuda_allocated--;
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return !stream || fails();
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return !stream || fails();
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
    memset((void *)(uintptr_t)to, value, bytes);
    return !stream || fails();
}

int cuStreamCreate(void **stream, unsigned flags) { return *stream = &host, flags != 1 || fails(); }

int cuStreamSynchronize(void *stream)
{
    if (capturing) return ILLEGAL_STATE;
    return stream != &host || fails();
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    if (capturing) wrong("two captures at once");
    capturing = calloc(1, sizeof *capturing);
    cuda_captures++;
    return stream != &host || mode != 2;
}

int cuStreamEndCapture(void *stream, void **made)
{
    if (!capturing) wrong("no capture has begun");
    *made = capturing;
    capturing = NULL;
    return stream != &host || fails();
}

int cuGraphInstantiateWithFlags(void **exec, void *from, uint64_t flags)
{
    if (fails()) return 1;
    *exec = malloc(sizeof(graph));
    memcpy(*exec, from, sizeof(graph));
    return flags != 0;
}

int cuGraphLaunch(void *exec, void *stream)
{
    const graph *g = exec;
    for (int i = 0; i < g->count; i++) run(&g->launches[i]);
    cuda_replays++;
    return stream != &host || fails();
}

int cuGraphDestroy(void *g) { return free(g), 0; }
int cuGraphExecDestroy(void *g) { return free(g), 0; }

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned ty, unsigned tz, unsigned shared, void *stream, void **arguments,
                   void **extra)
{
    if (!function || !x || y != 1 || z != 1 || ty != 1 || tz != 1 || shared || extra) return 1;
    if (threads < 1 || threads > MOST || stream != &host || fails()) return 1;
    launch one = {.blocks = x, .threads = threads};
    memcpy(&one.function, &function, sizeof function);
    for (int i = 0; i < ARGUMENTS && arguments[i]; i++)
        memcpy(&one.arguments[i], arguments[i], sizeof one.arguments[i]);
    if (!capturing) return run(&one), 0;
    if (capturing->count == LAUNCHES) wrong("a graph of too many launches");
    capturing->launches[capturing->count++] = one;
    return 0;
}
