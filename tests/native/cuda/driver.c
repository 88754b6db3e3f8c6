/* libcuda.so.1 on a processor: block.c runs its kernels, and unit.c has what runs beside their
   threads. A module is a shared library of the kernels. Memory has guards behind it, and is
   filled with 0x7f, so that reading what nobody wrote shows. What a program does wrong ends it. */
#include "machine.h"

#include <elf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { GUARD = 256, LAUNCHES = 4096, CONTEXT = 77, HELD = 4096 };
enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500, ILLEGAL_STATE = 401 };

typedef struct {
    int count;
    launch launches[LAUNCHES];
} graph;

/* What a test asks: how often things happened, and what is to fail next. */
int cuda_replays, cuda_captures, cuda_allocated, cuda_current;
int cuda_fail_in; /* the call that fails, counted down; 0: none */
int cuda_arch = 90;

static graph *capturing;
static void *current; /* the module of the function that was asked for last */

static int fails(void) { return cuda_fail_in && !--cuda_fail_in; }

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

/* The function that may have more shared memory than is usual, and how much. */
enum { USUAL_ROOM = 48 << 10 };
static void *allowed;
static unsigned allowed_room;

int cuFuncSetAttribute(void *function, int which, int value)
{
    if (which != 8) wrong("an attribute of a function that the driver does not know");
    allowed = function, allowed_room = (unsigned)value;
    return value > ROOM || fails();
}

static int launched(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                    unsigned ty, unsigned tz, unsigned shared, void *stream, void **arguments,
                    void **extra, int early)
{
    if (!function || !x || y != 1 || z != 1 || ty != 1 || tz != 1 || extra) return 1;
    if (shared > USUAL_ROOM && (function != allowed || shared > allowed_room)) return 1;
    if (threads < 1 || threads > MOST || stream != &host || fails()) return 1;
    launch one = {.blocks = x, .threads = threads, .room = shared, .early = early};
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
