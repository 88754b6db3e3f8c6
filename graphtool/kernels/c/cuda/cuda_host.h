/* The driver of CUDA, libcuda, found when the first run asks for it; nothing of CUDA is linked. The
   kernels are launched in one stream, in which everything is in order.

   A run whose launches do not depend on what kernels compute is recorded as a CUDA graph, and
   replayed when its arguments come again: there is a graph for each of the last GT_GRAPHS sizes and
   addresses. With GT_PROFILE nothing is recorded.

   On devices from sm_90 on, a launch depends programmatically on the one before: it starts earlier,
   and waits by itself (GT_AFTER of cuda.h). */
#ifndef GT_CUDA_HOST_H
#define GT_CUDA_HOST_H

#include "cuda.h"
#include "device_host.h"

#include <dlfcn.h>

enum { GT_OUT_OF_MEMORY = 2, GT_BAD_IMAGE = 200, GT_NO_IMAGE = 209, GT_BAD_TEXT = 218 };
enum { GT_MOST_SHARED = 8 }; /* the attribute: bytes that a launch may give a block */
enum { GT_GRAPHS = 16, GT_ARGUMENTS = 255 };

#ifdef GT_PROFILE
#define GT_CLOCKS(X)                                                                              \
    X(cuEventCreate, (void **, unsigned))                                                         \
    X(cuEventRecord, (void *, void *))                                                            \
    X(cuEventElapsedTime, (float *, void *, void *))
#else
#define GT_CLOCKS(X)
#endif
/* How the driver is asked for a launch: as CUlaunchConfig and CUlaunchAttribute of cuda.h are. */
typedef struct {
    int id;
    int unused;
    int64_t value[8];
} gt_attribute;
typedef struct {
    unsigned blocks, y, z, threads, ty, tz, shared;
    void *stream;
    gt_attribute *attributes;
    unsigned count;
} gt_configuration;
enum { GT_PROGRAMMATIC = 6, GT_RECORDS_IT = 12030 }; /* the release that records such launches */

#define GT_DRIVER(X)                                                                              \
    X(cuDriverGetVersion, (int *))                                                                \
    X(cuInit, (unsigned))                                                                         \
    X(cuDeviceGet, (int *, int))                                                                  \
    X(cuDeviceGetAttribute, (int *, int, int))                                                    \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                   \
    X(cuCtxSetCurrent, (void *))                                                                  \
    X(cuModuleLoadData, (void **, const void *))                                                  \
    X(cuModuleGetFunction, (void **, void *, const char *))                                       \
    X(cuFuncSetAttribute, (void *, int, int))                                                     \
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
    void *context, *module, *stream;
    gt_recording recordings[GT_GRAPHS]; /* the one that ran last is the first */
    int recording;
    int (*launch)(const gt_configuration *, void *, void **, void **); /* NULL: they wait anyway */
#define GT_FIELD(name, arguments) int(*name) arguments;
    GT_DRIVER(GT_FIELD)
#undef GT_FIELD
} gt_cuda;

static inline void gt_must(int status)
{
    if (status && !gt_device.failed)
        gt_device.failed = status == GT_OUT_OF_MEMORY ? GT_DEVICE_MEMORY : GT_DEVICE_FAILED;
}
#define GT_ASK(name, ...) \
    do { \
        if (!gt_device.failed) gt_must(gt_cuda.name(__VA_ARGS__)); \
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

/* Finds the function for launches that start early, where the code and the driver know them. */
static inline void gt_open_early(void *library, const gt_image *image)
{
#ifndef GT_PROFILE
    int version = 0;
    void *const found = dlsym(library, "cuLaunchKernelEx");
    GT_ASK(cuDriverGetVersion, &version);
    if (image->arch >= 90 && version >= GT_RECORDS_IT)
        memcpy(&gt_cuda.launch, &found, sizeof found);
#else
    (void)library, (void)image;
#endif
}

static inline int gt_driver_open(const gt_image *images)
{
    int major = 0, minor = 0, device = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return GT_NO_DEVICE;
    int missing = 0;
    void *found;
#define GT_FIND(name, arguments)                                                                  \
    found = dlsym(library, #name);                                                                \
    missing |= !found;                                                                            \
    memcpy(&gt_cuda.name, &found, sizeof found);
    GT_DRIVER(GT_FIND)
#undef GT_FIND
    if (missing || gt_cuda.cuInit(0) || gt_cuda.cuDeviceGet(&device, 0)) return GT_NO_DEVICE;
    GT_ASK(cuDeviceGetAttribute, &major, 75, device);
    GT_ASK(cuDeviceGetAttribute, &minor, 76, device);
    const gt_image *image = gt_suitable(images, major, minor);
    if (!image) return GT_NO_DEVICE;
    /* what there is already was made before an error */
    if (!gt_cuda.context) GT_ASK(cuDevicePrimaryCtxRetain, &gt_cuda.context, device);
    GT_ASK(cuCtxSetCurrent, gt_cuda.context);
    if (gt_device.failed) return gt_device.failed;
    const int loaded =
        gt_cuda.module ? 0 : gt_cuda.cuModuleLoadData(&gt_cuda.module, image->data);
    if (loaded == GT_BAD_IMAGE || loaded == GT_NO_IMAGE || loaded == GT_BAD_TEXT)
        return GT_NO_DEVICE; /* the driver takes none of the library's code */
    gt_must(loaded);
    if (!gt_cuda.stream) GT_ASK(cuStreamCreate, &gt_cuda.stream, 1);
    gt_open_early(library, image);
    return gt_device.failed;
}

static inline void gt_driver_enter(const gt_image *images)
{
    (void)images;
    GT_ASK(cuCtxSetCurrent, gt_cuda.context);
}

static inline void gt_driver_wait(void)
{
    if (gt_cuda.stream) gt_must(gt_cuda.cuStreamSynchronize(gt_cuda.stream));
}

static inline gt_address gt_driver_alloc(size_t bytes)
{
    gt_address at = 0;
    GT_ASK(cuMemAlloc_v2, &at, bytes);
    return at;
}

static inline void gt_driver_free(gt_address at) { gt_must(gt_cuda.cuMemFree_v2(at)); }

static inline void gt_driver_copy(void *to, const void *from, size_t bytes)
{
    GT_ASK(cuMemcpyAsync, (gt_address)(uintptr_t)to, (gt_address)(uintptr_t)from, bytes,
           gt_cuda.stream);
}

/* The driver knows no memory of others. */
static inline int gt_on_device(const void *at)
{
    enum { MEMORY_TYPE = 2, DEVICE_MEMORY = 2 };
    unsigned type = 0;
    return at && !gt_device.failed &&
           !gt_cuda.cuPointerGetAttribute(&type, MEMORY_TYPE, (gt_address)(uintptr_t)at) &&
           type == DEVICE_MEMORY;
}

static inline void gt_driver_launch(void **kernel, const char *name, int64_t teams, unsigned room,
                                    int64_t *values, int count, int pointers, size_t index)
{
    void *arguments[GT_ARGUMENTS + 1] = {0};
    (void)pointers, (void)index; /* a kernel reads as many bytes of a value as it takes */
    for (int i = 0; i < count; i++) arguments[i] = &values[i];
    if (teams > GT_BLOCKS) teams = GT_BLOCKS;
    if (!*kernel) {
        GT_ASK(cuModuleGetFunction, kernel, gt_cuda.module, name);
        if (room) GT_ASK(cuFuncSetAttribute, *kernel, GT_MOST_SHARED, (int)room);
    }
    if (teams > 0 && gt_cuda.launch) {
        gt_attribute early = {GT_PROGRAMMATIC, 0, {1}};
        const gt_configuration how = {(unsigned)teams, 1, 1, GT_TEAM, 1, 1, room, gt_cuda.stream,
                                      &early, 1};
        GT_ASK(launch, &how, *kernel, arguments, NULL);
    } else if (teams > 0)
        GT_ASK(cuLaunchKernel, *kernel, (unsigned)teams, 1, 1, GT_TEAM, 1, 1, room, gt_cuda.stream,
               arguments, NULL);
}

static inline void gt_cuda_forget(gt_recording *r)
{
    if (r->graph) gt_must(gt_cuda.cuGraphExecDestroy(r->graph));
    free(r->key);
    r->graph = NULL, r->key = NULL;
}

static inline void gt_driver_forget(void)
{
    for (int i = 0; i < GT_GRAPHS; i++) gt_cuda_forget(&gt_cuda.recordings[i]);
}

#ifdef GT_PROFILE
static void *gt_events[2];

static inline void gt_clock_start(void)
{
    for (int i = 0; i < 2 && !gt_events[i]; i++) GT_ASK(cuEventCreate, &gt_events[i], 0);
    GT_ASK(cuEventRecord, gt_events[0], gt_cuda.stream);
}

static inline int64_t gt_clock_stop(void)
{
    float ms = 0;
    GT_ASK(cuEventRecord, gt_events[1], gt_cuda.stream);
    GT_ASK(cuStreamSynchronize, gt_cuda.stream);
    GT_ASK(cuEventElapsedTime, &ms, gt_events[0], gt_events[1]);
    return (int64_t)(ms * 1e6f);
}

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
    gt_recording *const all = gt_cuda.recordings;
    for (int i = 0; i < GT_GRAPHS && all[i].graph; i++) {
        if (memcmp(key, all[i].key, (size_t)keys * sizeof *key)) continue;
        const gt_recording one = all[i];
        memmove(all + 1, all, (size_t)i * sizeof *all);
        all[0] = one;
        GT_ASK(cuGraphLaunch, one.graph, gt_cuda.stream);
        return 1;
    }
    return 0;
}

static inline void gt_device_record(void)
{
    GT_ASK(cuStreamBeginCapture_v2, gt_cuda.stream, 2);
    gt_cuda.recording = !gt_device.failed;
}

/* Ends a recording, keeps it in the place of the oldest, and starts what was recorded. */
static inline void gt_device_recorded(const int64_t *key, int keys)
{
    gt_recording *const all = gt_cuda.recordings;
    gt_recording one = {NULL, malloc((size_t)keys * sizeof *key)};
    void *graph = NULL;
    if (gt_cuda.recording) gt_must(gt_cuda.cuStreamEndCapture(gt_cuda.stream, &graph));
    gt_cuda.recording = 0;
    if (!one.key) gt_must(GT_OUT_OF_MEMORY);
    GT_ASK(cuGraphInstantiateWithFlags, &one.graph, graph, 0);
    if (graph) gt_must(gt_cuda.cuGraphDestroy(graph));
    if (gt_device.failed) {
        gt_cuda_forget(&one);
        return;
    }
    memcpy(one.key, key, (size_t)keys * sizeof *key);
    gt_cuda_forget(&all[GT_GRAPHS - 1]);
    memmove(all + 1, all, (GT_GRAPHS - 1) * sizeof *all);
    all[0] = one;
    GT_ASK(cuGraphLaunch, one.graph, gt_cuda.stream);
}
#endif

#endif
