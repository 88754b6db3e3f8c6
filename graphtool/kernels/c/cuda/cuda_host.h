/* The device of a model: the driver libcuda, found when the first run asks for it, the code of the
   kernels, memory, and one stream in which everything is in order. Nothing of CUDA is linked.

   One thread at a time holds the device (gt_device_take). After an error all else does nothing, and
   the error stays until the device is given back. A run whose launches do not depend on what
   kernels compute is recorded once as a CUDA graph, and replayed while its arguments stay. */
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
enum { GT_OUT_OF_MEMORY = 2, GT_KEY = 64, GT_BLOCKS = 1 << 20, GT_ARGUMENTS = 255 };

typedef uint64_t gt_address;
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
    X(cuMemcpyHtoDAsync_v2, (gt_address, const void *, size_t, void *))                           \
    X(cuMemcpyDtoHAsync_v2, (void *, gt_address, size_t, void *))                                 \
    X(cuMemsetD8Async, (gt_address, unsigned char, size_t, void *))                               \
    X(cuStreamCreate, (void **, unsigned))                                                        \
    X(cuStreamSynchronize, (void *))                                                              \
    X(cuStreamBeginCapture_v2, (void *, int))                                                     \
    X(cuStreamEndCapture, (void *, void **))                                                      \
    X(cuGraphInstantiateWithFlags, (void **, void *, uint64_t))                                   \
    X(cuGraphLaunch, (void *, void *))                                                            \
    X(cuGraphDestroy, (void *))                                                                   \
    X(cuGraphExecDestroy, (void *))                                                               \
    X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,        \
                       unsigned, void *, void **, void **))

static struct {
    pthread_mutex_t lock;
    int opened, failed; /* `failed` is the status of this run */
    void *context, *module, *stream, *graph;
    gt_address room; /* what a run works in, kept for the next one */
    size_t bytes;
    int64_t key[GT_KEY]; /* the arguments of the recorded run */
    int keys, recording;
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
    GT_ASK(cuModuleLoadData, &gt_device.module, image->data);
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

static inline void gt_device_write(gt_address to, const void *from, size_t bytes)
{
    if (bytes) GT_ASK(cuMemcpyHtoDAsync_v2, to, from, bytes, gt_device.stream);
}

static inline void gt_device_read(void *to, gt_address from, size_t bytes)
{
    if (bytes) GT_ASK(cuMemcpyDtoHAsync_v2, to, from, bytes, gt_device.stream);
}

static inline void gt_device_forget(void)
{
    if (gt_device.graph) GT_ASK(cuGraphExecDestroy, gt_device.graph);
    gt_device.graph = NULL;
}

/* Memory for a run: `count` pieces of so many bytes, which hold something only while it lasts. */
static inline void gt_device_rooms(gt_address *at, const size_t *bytes, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) at[i] = total, total += (bytes[i] + 255) / 256 * 256;
    if (total > gt_device.bytes) {
        gt_device_forget();
        gt_device_free(gt_device.room);
        gt_device.bytes = 0;
        gt_device.room = gt_device_alloc(total);
        gt_device.bytes = gt_device.failed ? 0 : total;
    }
    for (int i = 0; i < count; i++) at[i] += gt_device.room;
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
#define GT_LAUNCH(name, blocks, ...)                                                              \
    do {                                                                                          \
        int64_t values[] = {__VA_ARGS__};                                                         \
        gt_launch(#name, blocks, values, (int)(sizeof values / sizeof *values));                  \
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

/* Whether a run with these arguments is recorded; then it has been started again. */
static inline int gt_device_replay(const int64_t *key, int keys)
{
    if (!gt_device.graph || keys != gt_device.keys ||
        memcmp(key, gt_device.key, (size_t)keys * sizeof *key))
        return 0;
    GT_ASK(cuGraphLaunch, gt_device.graph, gt_device.stream);
    return 1;
}

static inline void gt_device_record(void)
{
    gt_device_forget();
    GT_ASK(cuStreamBeginCapture_v2, gt_device.stream, 2);
    gt_device.recording = !gt_device.failed;
}

/* Ends a recording, and starts what was recorded. */
static inline void gt_device_recorded(const int64_t *key, int keys)
{
    void *graph = NULL;
    if (gt_device.recording) gt_must(gt_device.cuStreamEndCapture(gt_device.stream, &graph));
    gt_device.recording = 0;
    GT_ASK(cuGraphInstantiateWithFlags, &gt_device.graph, graph, 0);
    if (graph) GT_ASK(cuGraphDestroy, graph);
    if (gt_device.failed) gt_device.graph = NULL;
    if (keys <= GT_KEY) memcpy(gt_device.key, key, (size_t)keys * sizeof *key);
    gt_device.keys = keys <= GT_KEY ? keys : -1;
    GT_ASK(cuGraphLaunch, gt_device.graph, gt_device.stream);
}

#endif
