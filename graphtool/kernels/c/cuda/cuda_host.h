/* The device of a model: the driver libcuda, found when the first run asks for it, the code of the
   kernels, memory, and one stream in which everything is in order. Nothing of CUDA is linked.

   One thread at a time holds the device (gt_device_take). After an error all else does nothing, and
   the error stays until the device is given back. A run whose launches do not depend on what
   kernels compute is recorded as a CUDA graph, and replayed when its arguments come again: there is
   a graph for each of the last GT_GRAPHS sizes and addresses. With GT_PROFILE nothing is recorded,
   and the device's clock is read before and after each launch. */
#ifndef GT_CUDA_HOST_H
#define GT_CUDA_HOST_H

#include "arguments.h"
#include "cuda.h"
#include "cuda_image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GT_NO_DEVICE = -8, GT_DEVICE_FAILED = -9, GT_DEVICE_MEMORY = -10 };
enum { GT_OUT_OF_MEMORY = 2, GT_BAD_IMAGE = 200, GT_NO_IMAGE = 209, GT_BAD_TEXT = 218 };
enum { GT_GRAPHS = 16, GT_BLOCKS = 1 << 20, GT_ARGUMENTS = 255 };

typedef uint64_t gt_address;
#ifdef GT_PROFILE
#define GT_CLOCKS(X)                                                                              \
    X(cuEventCreate, (void **, unsigned))                                                         \
    X(cuEventRecord, (void *, void *))                                                            \
    X(cuEventElapsedTime, (float *, void *, void *))
#else
#define GT_CLOCKS(X)
#endif
#define GT_DRIVER(X)                                                                              \
    X(cuInit, (unsigned))                                                                         \
    X(cuDeviceGet, (int *, int))                                                                  \
    X(cuDeviceGetAttribute, (int *, int, int))                                                    \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                   \
    X(cuCtxSetCurrent, (void *))                                                                  \
    X(cuModuleLoadData, (void **, const void *))                                                  \
    X(cuModuleGetFunction, (void **, void *, const char *))                                       \
    X(cuMemAlloc_v2, (gt_address *, size_t))                                                      \
    X(cuMemFree_v2, (gt_address))                                                                 \
    X(cuPointerGetAttribute, (void *, int, gt_address))                                           \
    X(cuMemcpyAsync, (gt_address, gt_address, size_t, void *))                                    \
    X(cuStreamCreate, (void **, unsigned))                                                        \
    X(cuStreamSynchronize, (void *))                                                              \
    X(cuStreamBeginCapture_v2, (void *, int))                                                     \
    X(cuStreamEndCapture, (void *, void **))                                                      \
    X(cuGraphInstantiateWithFlags, (void **, void *, uint64_t))                                   \
    X(cuGraphLaunch, (void *, void *))                                                            \
    X(cuGraphDestroy, (void *))                                                                   \
    X(cuGraphExecDestroy, (void *))                                                               \
    X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,        \
                       unsigned, void *, void **, void **))                                       \
    GT_CLOCKS(X)

/* A recorded run, and its arguments. */
typedef struct {
    void *graph;
    int64_t *key;
} gt_recording;

static struct {
    pthread_mutex_t lock;
    int opened, failed; /* `failed` is the status of this run */
    void *context, *module, *stream;
    gt_address room; /* what a run works in, kept for the next one */
    size_t bytes;
    gt_recording recordings[GT_GRAPHS]; /* the one that ran last is the first */
    int recording;
#define GT_FIELD(name, arguments) int(*name) arguments;
    GT_DRIVER(GT_FIELD)
#undef GT_FIELD
} gt_device = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void gt_must(int status)
{
    if (status && !gt_device.failed)
        gt_device.failed = status == GT_OUT_OF_MEMORY ? GT_DEVICE_MEMORY : GT_DEVICE_FAILED;
}
#define GT_ASK(name, ...) \
    do { \
        if (!gt_device.failed) gt_must(gt_device.name(__VA_ARGS__)); \
    } while (0)

/* The code for the device at hand: made for its very architecture, or for a lower one of the same
   generation, or else text that the driver compiles. */
static inline const gt_image *gt_suitable(const gt_image *images, int major, int minor)
{
    const gt_image *best = NULL, *text = NULL;
    for (const gt_image *i = images; i->data; i++) {
        if (i->text) text = i->arch <= 10 * major + minor ? i : text;
        else if (i->arch / 10 == major && i->arch % 10 <= minor && (!best || i->arch > best->arch))
            best = i;
    }
    return best ? best : text;
}

static inline int gt_device_open(const gt_image *images)
{
    int major = 0, minor = 0, device = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return GT_NO_DEVICE;
    int missing = 0;
    void *found;
#define GT_FIND(name, arguments)                                                                  \
    found = dlsym(library, #name);                                                                \
    missing |= !found;                                                                            \
    memcpy(&gt_device.name, &found, sizeof found);
    GT_DRIVER(GT_FIND)
#undef GT_FIND
    if (missing || gt_device.cuInit(0) || gt_device.cuDeviceGet(&device, 0)) return GT_NO_DEVICE;
    GT_ASK(cuDeviceGetAttribute, &major, 75, device);
    GT_ASK(cuDeviceGetAttribute, &minor, 76, device);
    const gt_image *image = gt_suitable(images, major, minor);
    if (!image) return GT_NO_DEVICE;
    GT_ASK(cuDevicePrimaryCtxRetain, &gt_device.context, device);
    GT_ASK(cuCtxSetCurrent, gt_device.context);
    if (gt_device.failed) return gt_device.failed;
    const int loaded = gt_device.cuModuleLoadData(&gt_device.module, image->data);
    if (loaded == GT_BAD_IMAGE || loaded == GT_NO_IMAGE || loaded == GT_BAD_TEXT)
        return GT_NO_DEVICE; /* the driver takes none of the library's code */
    gt_must(loaded);
    GT_ASK(cuStreamCreate, &gt_device.stream, 1);
    return gt_device.failed;
}

/* Takes the device for this thread; returns a status. */
static inline int gt_device_take(const gt_image *images)
{
    pthread_mutex_lock(&gt_device.lock);
    gt_device.failed = 0;
    if (!gt_device.opened) {
        gt_device.failed = gt_device_open(images);
        gt_device.opened = !gt_device.failed;
    }
    GT_ASK(cuCtxSetCurrent, gt_device.context);
    return gt_device.failed;
}

/* Waits for the device and gives it back; returns the status of what was done since. */
static inline int gt_device_give(void)
{
    GT_ASK(cuStreamSynchronize, gt_device.stream);
    const int status = gt_device.failed;
    pthread_mutex_unlock(&gt_device.lock);
    return status;
}

static inline gt_address gt_device_alloc(size_t bytes)
{
    gt_address at = 0;
    GT_ASK(cuMemAlloc_v2, &at, bytes ? bytes : 1);
    return at;
}

static inline void gt_device_free(gt_address at)
{
    if (at) GT_ASK(cuMemFree_v2, at);
}

#define GT_ADDRESS(at) ((void *)(uintptr_t)(at))

/* Copies between memory of the device and of the processor, in any direction. */
static inline void gt_device_copy(void *to, const void *from, size_t bytes)
{
    if (bytes)
        GT_ASK(cuMemcpyAsync, (gt_address)(uintptr_t)to, (gt_address)(uintptr_t)from, bytes,
               gt_device.stream);
}

static inline void gt_device_write(gt_address to, const void *from, size_t bytes)
{
    if (to != (gt_address)(uintptr_t)from) gt_device_copy(GT_ADDRESS(to), from, bytes);
}

static inline void gt_device_read(void *to, gt_address from, size_t bytes)
{
    if (from != (gt_address)(uintptr_t)to) gt_device_copy(to, GT_ADDRESS(from), bytes);
}

/* Whether an address is memory of the device. The driver knows no memory of others. */
static inline int gt_on_device(const void *at)
{
    enum { MEMORY_TYPE = 2, DEVICE_MEMORY = 2 };
    unsigned type = 0;
    return at && !gt_device.failed &&
           !gt_device.cuPointerGetAttribute(&type, MEMORY_TYPE, (gt_address)(uintptr_t)at) &&
           type == DEVICE_MEMORY;
}

static inline void gt_device_forget(gt_recording *r)
{
    if (r->graph) GT_ASK(cuGraphExecDestroy, r->graph);
    free(r->key);
    r->graph = NULL, r->key = NULL;
}

/* Memory for a run: `count` pieces of so many bytes, which hold something only while it lasts. What
   the caller has on the device already is used where it is, if kernels can read it by 16 bytes. */
static inline void gt_device_rooms(gt_address *at, const void *const *given, const size_t *bytes,
                                   int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        const gt_address where = (gt_address)(uintptr_t)given[i];
        at[i] = where % 16 == 0 && gt_on_device(given[i]) ? where : 0;
        if (!at[i]) total += (bytes[i] + 255) / 256 * 256;
    }
    if (total > gt_device.bytes) {
        for (int i = 0; i < GT_GRAPHS; i++) gt_device_forget(&gt_device.recordings[i]);
        gt_device_free(gt_device.room);
        gt_device.bytes = 0;
        gt_device.room = gt_device_alloc(total);
        gt_device.bytes = gt_device.failed ? 0 : total;
    }
    gt_address next = gt_device.room;
    for (int i = 0; i < count; i++)
        if (!at[i]) at[i] = next, next += (bytes[i] + 255) / 256 * 256;
}

/* Launches a kernel in so many blocks; its arguments are addresses and integers of 64 bits. */
static inline void gt_launch(const char *name, int64_t blocks, int64_t *values, int count)
{
    void *function = NULL, *arguments[GT_ARGUMENTS + 1] = {0};
    for (int i = 0; i < count; i++) arguments[i] = &values[i];
    if (blocks > GT_BLOCKS) blocks = GT_BLOCKS;
    GT_ASK(cuModuleGetFunction, &function, gt_device.module, name);
    if (blocks > 0)
        GT_ASK(cuLaunchKernel, function, (unsigned)blocks, 1, 1, GT_TEAM, 1, 1, 0,
               gt_device.stream, arguments, NULL);
}

#ifdef GT_PROFILE
/* The build of `graphtool profile` notes in ns when each step began and ended on the device, in the
   array of runtime.h; a loop's iterations are added. */
enum { GT_FIRST, GT_ENTER, GT_LEAVE, GT_INSIDE, GT_OUTSIDE, GT_TURNS, GT_MARKS };
#define GT_PROFILED(name)                                                                         \
    __attribute__((visibility("default"))) void name##_profile(int64_t *marks);                   \
    void name##_profile(int64_t *marks) { gt_marks = marks; }

static int64_t *gt_marks;
static void *gt_events[2];
static int64_t gt_time; /* since the run began, by the device */

static inline void gt_step_begin(void)
{
    for (int i = 0; i < 2 && !gt_events[i]; i++) GT_ASK(cuEventCreate, &gt_events[i], 0);
    GT_ASK(cuEventRecord, gt_events[0], gt_device.stream);
}

static inline void gt_step_end(int64_t *marks)
{
    float ms = 0;
    GT_ASK(cuEventRecord, gt_events[1], gt_device.stream);
    GT_ASK(cuStreamSynchronize, gt_device.stream);
    GT_ASK(cuEventElapsedTime, &ms, gt_events[0], gt_events[1]);
    if (!marks[GT_TURNS]++) marks[GT_FIRST] = gt_time;
    marks[GT_ENTER] = gt_time;
    gt_time += (int64_t)(ms * 1e6f);
    marks[GT_LEAVE] = gt_time;
    marks[GT_INSIDE] += marks[GT_LEAVE] - marks[GT_ENTER];
}
#define GT_STEP_BEGIN() gt_step_begin()
#define GT_STEP_END(i) \
    if (gt_marks) gt_step_end(gt_marks + (int64_t)(i) * GT_MARKS)
#else
#define GT_PROFILED(name)
#define GT_STEP_BEGIN() (void)0
#define GT_STEP_END(i) (void)0
#endif

#define GT_LAUNCH(step, steps, name, blocks, ...)                                                 \
    do {                                                                                          \
        int64_t values[] = {__VA_ARGS__};                                                         \
        GT_STEP_BEGIN();                                                                          \
        gt_launch(#name, blocks, values, (int)(sizeof values / sizeof *values));                  \
        GT_STEP_END(step);                                                                        \
    } while (0)

/* An integer of so many bytes that a kernel has left at an address of the device. */
static inline int64_t gt_device_value(const void *at, int bytes)
{
    int64_t value = 0; /* little-endian, as all devices are */
    gt_device_read(&value, (gt_address)(uintptr_t)at, (size_t)bytes);
    GT_ASK(cuStreamSynchronize, gt_device.stream);
    return bytes == 4 ? (int32_t)value : value;
}
#define GT_DEVICE_VALUE(pointer, place) gt_device_value((pointer) + (place), (int)sizeof *(pointer))

#ifdef GT_PROFILE
static inline int gt_device_replay(const int64_t *key, int keys)
{
    return (void)key, (void)keys, 0;
}
static inline void gt_device_record(void) { gt_time = 0; }
static inline void gt_device_recorded(const int64_t *key, int keys) { (void)key, (void)keys; }
#else
/* Whether a run with these arguments is recorded; then it has been started again. All runs of a
   library have as many arguments. */
static inline int gt_device_replay(const int64_t *key, int keys)
{
    gt_recording *const all = gt_device.recordings;
    for (int i = 0; i < GT_GRAPHS && all[i].graph; i++) {
        if (memcmp(key, all[i].key, (size_t)keys * sizeof *key)) continue;
        const gt_recording one = all[i];
        memmove(all + 1, all, (size_t)i * sizeof *all);
        all[0] = one;
        GT_ASK(cuGraphLaunch, one.graph, gt_device.stream);
        return 1;
    }
    return 0;
}

static inline void gt_device_record(void)
{
    GT_ASK(cuStreamBeginCapture_v2, gt_device.stream, 2);
    gt_device.recording = !gt_device.failed;
}

/* Ends a recording, keeps it in the place of the oldest, and starts what was recorded. */
static inline void gt_device_recorded(const int64_t *key, int keys)
{
    gt_recording *const all = gt_device.recordings;
    const gt_recording one = {NULL, malloc((size_t)keys * sizeof *key)};
    void *graph = NULL;
    if (gt_device.recording) gt_must(gt_device.cuStreamEndCapture(gt_device.stream, &graph));
    gt_device.recording = 0;
    if (!one.key) gt_must(GT_OUT_OF_MEMORY);
    gt_device_forget(&all[GT_GRAPHS - 1]);
    memmove(all + 1, all, (GT_GRAPHS - 1) * sizeof *all);
    all[0] = one;
    if (one.key) memcpy(one.key, key, (size_t)keys * sizeof *key);
    GT_ASK(cuGraphInstantiateWithFlags, &all[0].graph, graph, 0);
    if (graph) GT_ASK(cuGraphDestroy, graph);
    if (gt_device.failed) {
        free(all[0].key);
        memmove(all, all + 1, (GT_GRAPHS - 1) * sizeof *all);
        all[GT_GRAPHS - 1] = (gt_recording){NULL, NULL};
        return;
    }
    GT_ASK(cuGraphLaunch, all[0].graph, gt_device.stream);
}
#endif

#endif
