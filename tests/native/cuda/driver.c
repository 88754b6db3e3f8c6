/* libcuda.so.1 on a processor: block.c runs its kernels, and unit.c has what runs beside their
   threads. A module is a shared library of the kernels. Memory has guards behind it, and is
   filled with 0x7f, so that reading what nobody wrote shows. What a program does wrong ends it. */
#include "machine.h"

#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { GUARD = 256, PAGE = 4096, LAUNCHES = 4096, CONTEXT = 77, HELD = 4096 };
enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500, ILLEGAL_STATE = 401 };

typedef struct {
    int count;
    launch launches[LAUNCHES];
} graph;

/* What a test asks: how often things happened, and what is to fail next. */
int cuda_replays, cuda_captures, cuda_allocated, cuda_current;
int cuda_made; /* contexts, modules, streams and graphs that there are */
int cuda_fail_in; /* the call that fails, counted down; 0: none */
int cuda_arch = 90;

static graph *capturing;
static void *current; /* the module of the function that was asked for last */

static int fails(void) { return cuda_fail_in && !--cuda_fail_in; }

/* Stores something that was made, unless that fails. */
static int made(void **at, void *what)
{
    if (fails()) return 1;
    *at = what, cuda_made++;
    return 0;
}

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
    return device || made(context, (void *)(intptr_t)CONTEXT);
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
    void *const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened) wrong(dlerror());
    return made(module, opened);
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
static int held, hiding, usual_known;
static struct sigaction usual; /* what happens where memory is touched that is none */

/* The pages of a piece of memory and of the guard behind it. */
static size_t pages(size_t bytes) { return (bytes + GUARD + PAGE - 1) / PAGE * PAGE; }

/* The piece of memory that so many bytes from an address on are in; `held` if there is none. */
static int piece_at(uint64_t at, size_t bytes)
{
    for (int i = 0; i < held; i++) {
        const uint64_t from = at - (uint64_t)(uintptr_t)memory_held[i].at;
        if (from < memory_held[i].bytes && bytes <= memory_held[i].bytes - from) return i;
    }
    return held;
}

int cuPointerGetAttribute(void *value, int which, uint64_t at)
{
    if (which != 2) wrong("an attribute of an address that the driver does not know");
    if (piece_at(at, 0) == held) return 1;
    *(unsigned *)value = 2;
    return 0;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    if (capturing) return ILLEGAL_STATE;
    if (!bytes || fails()) return OUT_OF_MEMORY;
    char *p = mmap(NULL, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return OUT_OF_MEMORY;
    if (held == HELD) wrong("too many pieces of memory at once");
    memory_held[held].at = p, memory_held[held++].bytes = bytes;
    memset(p, 0x7f, bytes);
    memset(p + bytes, 0x5a, GUARD);
    *at = (uint64_t)(uintptr_t)p;
    cuda_allocated++;
    return 0;
}

int cuMemFree_v2(uint64_t at)
{
    const int i = piece_at(at, 0);
    char *const p = memory_held[i].at;
    if (i == held || at != (uint64_t)(uintptr_t)p) wrong("memory is given back that is none");
    for (int g = 0; g < GUARD; g++)
        if (p[memory_held[i].bytes + (size_t)g] != 0x5a) wrong("something was written behind memory");
    munmap(p, pages(memory_held[i].bytes));
    memory_held[i] = memory_held[--held];
    cuda_allocated--;
    return fails();
}

static void touched(int signal)
{
    if (hiding) wrong("a kernel touches memory before it waits for those before it");
    sigaction(signal, &usual, NULL); /* comes again */
}

void hide(int hidden)
{
    if (!usual_known++) {
        struct sigaction own = {.sa_handler = touched};
        sigaction(SIGSEGV, &own, &usual);
    }
    hiding = hidden;
    for (int i = 0; i < held; i++)
        mprotect(memory_held[i].at, pages(memory_held[i].bytes),
                 hidden ? PROT_NONE : PROT_READ | PROT_WRITE);
}

void on_c_ask_for(const void *at, unsigned bytes)
{
    if (threads[threadIdx.x].waited) wrong("a constant is asked for too late");
    if (piece_at((uint64_t)(uintptr_t)at, bytes) == held) wrong("no memory is what is asked for");
    if ((uintptr_t)at % 16) wrong("a constant that is not aligned");
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

int cuStreamCreate(void **stream, unsigned flags) { return flags != 1 || made(stream, &host); }

int cuStreamSynchronize(void *stream)
{
    if (capturing) return ILLEGAL_STATE;
    return stream != &host || fails();
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    if (capturing) wrong("two captures at once");
    if (fails()) return 1;
    capturing = calloc(1, sizeof *capturing);
    cuda_captures++;
    return stream != &host || mode != 2;
}

int cuStreamEndCapture(void *stream, void **to)
{
    if (!capturing) wrong("no capture has begun");
    graph *const whole = capturing;
    capturing = NULL;
    if (stream == &host && !made(to, whole)) return 0;
    free(whole);
    return 1;
}

int cuGraphInstantiateWithFlags(void **exec, void *from, uint64_t flags)
{
    graph *const copied = malloc(sizeof *copied);
    memcpy(copied, from, sizeof *copied);
    return flags || made(exec, copied);
}

int cuGraphLaunch(void *exec, void *stream)
{
    const graph *g = exec;
    for (int i = 0; i < g->count; i++) run(&g->launches[i]);
    cuda_replays++;
    return stream != &host || fails();
}

int cuGraphDestroy(void *g) { return free(g), cuda_made--, fails(); }
int cuGraphExecDestroy(void *g) { return free(g), cuda_made--, fails(); }

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
