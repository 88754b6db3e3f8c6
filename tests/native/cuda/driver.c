/* libcuda.so.1 on a processor. A module is a shared library of the kernels; the blocks of a launch
   run one after the other, and the threads of a block are fibers, which run until they wait for
   each other or for their warp, both in an order that is drawn anew each time. Shared memory is filled
   before each block, and copies into it land when they are waited for, not before. Memory has
   guards behind it, and is filled with 0x7f, so that reading what nobody wrote shows. What a
   program does wrong ends it. */
#define _GNU_SOURCE
#include "on_c.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 1024, STACK = 1 << 16, GUARD = 256, ARGUMENTS = 32, LAUNCHES = 4096, CONTEXT = 77, HELD = 4096 };
enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500, ILLEGAL_STATE = 401 };

on_c_place threadIdx, blockIdx, blockDim, gridDim;

typedef void (*kernel)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
typedef char *(*memory)(size_t *);
typedef struct {
    kernel function;
    memory shared;
    unsigned blocks, threads;
    int early; /* it may start while the launch before runs */
    int64_t arguments[ARGUMENTS];
} launch;
typedef struct {
    int count;
    launch launches[LAUNCHES];
} graph;

/* What a test asks: how often things happened, and what is to fail next. */
int cuda_launches, cuda_early, cuda_replays, cuda_captures, cuda_allocated, cuda_current;
int cuda_fail_in; /* the call that fails, counted down; 0: none */
int cuda_arch = 90;

enum { WARP = 32, COPIES = 4096 };
enum state { READY, AT_BLOCK, AT_WARP, ENDED };

typedef struct {
    void *to;
    const void *from;
    int size, bytes;
} copy;

/* A thread: where it stands, what it gives to its warp, and its copies that have not landed, the
   last of which is in group `group`. */
typedef struct {
    ucontext_t fiber;
    enum state state;
    const void *given;
    copy copies[COPIES];
    int group_of[COPIES], count, group, waited;
} thread;

static ucontext_t host;
static char *stacks;
static thread *threads;
static const launch *running;
static graph *capturing;
static void *current; /* the module of the function that was asked for last */

static void wrong(const char *what)
{
    fprintf(stderr, "driver: %s\n", what);
    abort();
}

void on_c_must_align(const void *at, unsigned bytes)
{
    if ((uintptr_t)at % bytes) wrong("a piece of memory that is not aligned");
}

static int fails(void) { return cuda_fail_in && !--cuda_fail_in; }

static void enter(void)
{
    const int64_t *a = running->arguments;
    running->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                      a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22],
                      a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
    threads[threadIdx.x].state = ENDED;
    swapcontext(&threads[threadIdx.x].fiber, &host);
}

static void stop(enum state state)
{
    const unsigned me = threadIdx.x;
    threads[me].state = state;
    swapcontext(&threads[me].fiber, &host);
    threadIdx.x = me;
}

void on_c_after(void) { threads[threadIdx.x].waited = 1; }

void __syncthreads(void) { stop(AT_BLOCK); }

/* What the lane of this thread's warp gives, while all of them stand at one instruction. */
static const void *lane(unsigned i) { return threads[threadIdx.x / WARP * WARP + i].given; }

/* Threads go on that wait, where all they wait for are there; returns whether any did. */
static int release(unsigned first, unsigned count, enum state state)
{
    for (unsigned t = first; t < first + count; t++)
        if (threads[t].state != state) return 0;
    for (unsigned t = first; t < first + count; t++) threads[t].state = READY;
    return 1;
}

/* Runs the threads of a block, those first that are drawn, until all have ended. */
static void run_block(unsigned count)
{
    for (unsigned t = 0; t < count; t++) {
        thread *own = &threads[t];
        own->state = READY, own->count = own->group = own->waited = 0;
        getcontext(&own->fiber);
        own->fiber.uc_stack.ss_sp = stacks + (size_t)t * STACK;
        own->fiber.uc_stack.ss_size = STACK;
        makecontext(&own->fiber, enter, 0);
    }
    for (unsigned left = count; left;) {
        unsigned order[MOST], ran = 0;
        for (unsigned t = 0; t < count; t++) {
            const unsigned at = (unsigned)rand() % (t + 1);
            order[t] = order[at];
            order[at] = t;
        }
        for (unsigned i = 0; i < count; i++) {
            if (threads[order[i]].state != READY) continue;
            threadIdx.x = order[i], ran++;
            swapcontext(&host, &threads[order[i]].fiber);
            left -= threads[order[i]].state == ENDED;
        }
        for (unsigned w = 0; w + WARP <= count; w += WARP)
            ran += (unsigned)release(w, WARP, AT_WARP);
        ran += (unsigned)release(0, count, AT_BLOCK);
        if (!ran) wrong("some threads of a block ended where others wait");
    }
}

static void run(const launch *one)
{
    if (!stacks) stacks = malloc((size_t)MOST * STACK), threads = malloc(MOST * sizeof *threads);
    running = one;
    gridDim.x = one->blocks;
    blockDim.x = one->threads;
    unsigned *const order = malloc(one->blocks * sizeof *order);
    for (unsigned b = 0; b < one->blocks; b++) {
        const unsigned at = (unsigned)rand() % (b + 1);
        order[b] = order[at];
        order[at] = b;
    }
    for (unsigned b = 0; b < one->blocks; b++) {
        blockIdx.x = order[b];
        size_t bytes = 0;
        char *const shared = one->shared(&bytes);
        if (bytes) memset(shared, 0x7f, bytes);
        run_block(one->threads);
        for (unsigned t = 0; one->early && t < one->threads; t++)
            if (!threads[t].waited) wrong("a kernel that does not wait for those before it");
    }
    free(order);
    cuda_early += one->early;
    cuda_launches++;
}

/* ---- instructions of a warp ---- */

/* Gives something to the warp; returns when all of it have. */
static void give(const void *what)
{
    threads[threadIdx.x].given = what;
    stop(AT_WARP);
}

/* Ends what the warp does together: none goes on before all have taken what they need. */
static void taken(void) { stop(AT_WARP); }

static float as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float of_tf32(uint32_t word, int half) { return (void)half, as_float(word & 0xffffe000u); }
static float of_bf16(uint32_t word, int half)
{
    return as_float(half ? word & 0xffff0000u : word << 16);
}

static float of_f16(uint32_t word, int half)
{
    const uint16_t bits = (uint16_t)(half ? word >> 16 : word);
    _Float16 x;
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

/* The nearest float towards 0: the unit cuts off what it does not keep. */
static float cut(double x)
{
    float y = (float)x;
    if (y - y == 0 && (y < 0 ? -(double)y : (double)y) > (x < 0 ? -x : x)) {
        uint32_t bits;
        memcpy(&bits, &y, sizeof y);
        y = as_float(bits - 1);
    }
    return y;
}

/* d += a·b: 16 rows, 8 columns, 8 words of `halves` numbers. */
static void multiply(float *d, const uint32_t *a, const uint32_t *b, int halves,
                     float number(uint32_t, int))
{
    const struct { const uint32_t *a, *b; } own = {a, b};
    const unsigned me = threadIdx.x % WARP;
    give(&own);
    for (unsigned s = 0; s < 4; s++) {
        double sum = d[s];
        for (unsigned word = 0; word < 8; word++) {
            const uint32_t *const *left = lane(me / 4 * 4 + word % 4);
            const uint32_t *const *right = lane((me % 4 * 2 + s % 2) * 4 + word % 4);
            for (int half = 0; half < halves; half++)
                sum += (double)number(left[0][word / 4 * 2 + s / 2], half) *
                       (double)number(right[1][word / 4], half);
        }
        d[s] = cut(sum);
    }
    taken();
}

void gt_multiply_tf32(float *d, const uint32_t *a, const uint32_t *b)
{
    multiply(d, a, b, 1, of_tf32);
}

void gt_multiply_bf16(float *d, const uint32_t *a, const uint32_t *b)
{
    multiply(d, a, b, 2, of_bf16);
}

void gt_multiply_f16(float *d, const uint32_t *a, const uint32_t *b)
{
    multiply(d, a, b, 2, of_f16);
}

void gt_multiply_u8(int32_t *d, const uint32_t *a, const uint32_t *b)
{
    const struct { const uint32_t *a, *b; } own = {a, b};
    const unsigned me = threadIdx.x % WARP;
    give(&own);
    for (unsigned s = 0; s < 4; s++)
        for (unsigned i = 0; i < 32; i++) {
            const unsigned word = i / 4, shift = i % 4 * 8;
            const uint32_t *const *left = lane(me / 4 * 4 + word % 4);
            const uint32_t *const *right = lane((me % 4 * 2 + s % 2) * 4 + word % 4);
            const uint8_t x = (uint8_t)(left[0][word / 4 * 2 + s / 2] >> shift);
            const int8_t y = (int8_t)(right[1][word / 4] >> shift);
            d[s] = (int32_t)((uint32_t)d[s] + (uint32_t)(x * y));
        }
    taken();
}

void gt_squares(uint32_t *r, const void *row)
{
    const unsigned me = threadIdx.x % WARP;
    if ((uintptr_t)row % 16) wrong("a row of a square that is not aligned");
    give(row);
    for (unsigned s = 0; s < 4; s++)
        memcpy(&r[s], (const char *)lane(s * 8 + me / 4) + me % 4 * 4, 4);
    taken();
}

void gt_squares_across(uint32_t *r, const void *row)
{
    const unsigned me = threadIdx.x % WARP;
    if ((uintptr_t)row % 16) wrong("a row of a square that is not aligned");
    give(row);
    for (unsigned s = 0; s < 4; s++) {
        uint16_t pair[2];
        for (unsigned i = 0; i < 2; i++)
            memcpy(&pair[i], (const char *)lane(s * 8 + me % 4 * 2 + i) + me / 4 * 2, 2);
        memcpy(&r[s], pair, sizeof pair);
    }
    taken();
}

void __syncwarp(void) { stop(AT_WARP); }

void on_c_lane_xor(void *to, const void *from, unsigned bytes, unsigned by)
{
    const unsigned me = threadIdx.x;
    char own[16];
    memcpy(own, from, bytes);
    give(own);
    memcpy(to, lane(me % WARP ^ by), bytes);
    taken();
}

float gt_other_lane(float x, int bits)
{
    const float own = x;
    give(&own);
    memcpy(&x, lane(threadIdx.x % WARP ^ (unsigned)bits), sizeof x);
    taken();
    return x;
}

/* ---- copies, which land when they are waited for ---- */

static void begin_copy(void *to, const void *from, int size, int bytes)
{
    thread *own = &threads[threadIdx.x];
    if (own->count == COPIES) wrong("too many copies at once");
    if (bytes < 0 || bytes > size || (uintptr_t)to % (unsigned)size ||
        (uintptr_t)from % (unsigned)size)
        wrong("a copy that is not aligned");
    own->group_of[own->count] = own->group;
    own->copies[own->count++] = (copy){to, from, size, bytes};
}

void gt_copy_16(void *to, const void *from, int bytes) { begin_copy(to, from, 16, bytes); }
void gt_copy_4(void *to, const void *from, int bytes) { begin_copy(to, from, 4, bytes); }
void gt_copy_group(void) { threads[threadIdx.x].group++; }

void gt_copy_wait(int groups)
{
    thread *own = &threads[threadIdx.x];
    int kept = 0;
    for (int i = 0; i < own->count; i++) {
        const copy one = own->copies[i];
        if (own->group_of[i] < own->group - groups) {
            memset(one.to, 0, (size_t)one.size);
            memcpy(one.to, one.from, (size_t)one.bytes);
        } else {
            own->group_of[kept] = own->group_of[i];
            own->copies[kept++] = one;
        }
    }
    own->count = kept;
}

/* ---- the functions of the driver ---- */

int cuInit(unsigned flags) { return flags ? 1 : fails() ? 100 : 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, fails() ? 101 : 0; }

int cuDeviceGetAttribute(int *value, int which, int device)
{
    *value = which == 75 ? cuda_arch / 10 : which == 76 ? cuda_arch % 10 : 132;
    return device || fails();
}

int cuDriverGetVersion(int *version) { return *version = 13000, fails(); }
int cuDeviceGetCount(int *count) { return *count = 1, fails(); }

int cuDeviceGetName(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, "a processor as a GPU");
    return device || fails();
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)3 << 29;
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
    if (head->e_machine != EM_X86_64) return 209; /* code for a real device */
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
    current = module;
    return *function && !fails() ? 0 : NOT_FOUND;
}

/* Memory of the device: what of the rest of memory is none of it. */
static struct {
    char *at;
    size_t bytes;
} memory_held[HELD];
static int held;

int cuPointerGetAttribute(void *value, int which, uint64_t at)
{
    if (which != 2) wrong("an attribute of an address that the driver does not know");
    for (int i = 0; i < held; i++)
        if (at - (uint64_t)(uintptr_t)memory_held[i].at < memory_held[i].bytes) {
            *(unsigned *)value = 2;
            return 0;
        }
    return 1;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    if (capturing) return ILLEGAL_STATE;
    if (!bytes || fails()) return OUT_OF_MEMORY;
    char *p = aligned_alloc(GUARD, GUARD + (bytes + GUARD - 1) / GUARD * GUARD + GUARD);
    if (!p) return OUT_OF_MEMORY;
    if (held == HELD) wrong("too many pieces of memory at once");
    memory_held[held].at = p + GUARD, memory_held[held++].bytes = bytes;
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
    for (int i = 0; i < held; i++)
        if (memory_held[i].at == p + GUARD) memory_held[i] = memory_held[--held];
    free(p);
    cuda_allocated--;
    return 0;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return !stream || fails();
}

int cuEventCreate(void **event, unsigned flags)
{
    *event = calloc(1, sizeof(struct timespec));
    return flags || !*event || fails();
}

int cuEventRecord(void *event, void *stream)
{
    return stream != &host || clock_gettime(CLOCK_MONOTONIC, event) || fails();
}

int cuEventElapsedTime(float *ms, void *first, void *last)
{
    const struct timespec *a = first, *b = last;
    *ms = (float)(b->tv_sec - a->tv_sec) * 1e3f + (float)(b->tv_nsec - a->tv_nsec) * 1e-6f;
    return fails();
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

static int launched(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                    unsigned ty, unsigned tz, unsigned shared, void *stream, void **arguments,
                    void **extra, int early)
{
    if (!function || !x || y != 1 || z != 1 || ty != 1 || tz != 1 || shared || extra) return 1;
    if (threads < 1 || threads > MOST || stream != &host || fails()) return 1;
    launch one = {.blocks = x, .threads = threads, .early = early};
    void *const memory_of = dlsym(current, "on_c_shared");
    memcpy(&one.function, &function, sizeof function);
    memcpy(&one.shared, &memory_of, sizeof memory_of);
    for (int i = 0; i < ARGUMENTS && arguments[i]; i++)
        memcpy(&one.arguments[i], arguments[i], sizeof one.arguments[i]);
    if (!capturing) return run(&one), 0;
    if (capturing->count == LAUNCHES) wrong("a graph of too many launches");
    capturing->launches[capturing->count++] = one;
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned ty, unsigned tz, unsigned shared, void *stream, void **arguments,
                   void **extra)
{
    return launched(function, x, y, z, threads, ty, tz, shared, stream, arguments, extra, 0);
}

/* As cuda.h declares them. */
typedef struct {
    int id;
    char pad[8 - sizeof(int)];
    union {
        char pad[64];
        int allowed;
    } value;
} attribute;
typedef struct {
    unsigned x, y, z, threads, ty, tz, shared;
    void *stream;
    attribute *attributes;
    unsigned count;
} configuration;

int cuLaunchKernelEx(const configuration *how, void *function, void **arguments, void **extra)
{
    const int early = how->count == 1 && how->attributes->id == 6 && how->attributes->value.allowed;
    if (!early) wrong("a launch with other attributes");
    return launched(function, how->x, how->y, how->z, how->threads, how->ty, how->tz, how->shared,
                    how->stream, arguments, extra, 1);
}
