/* The driver of OpenCL 1.2, libOpenCL, found when the first run asks for it; nothing of OpenCL is
   linked or included. The device is the first GPU of any platform, else the first accelerator, else
   the first device of any kind. It compiles the text of a program's kernels when they are needed.

   The programs of a library share the device and its memory; each has its own kernels.

   OpenCL names memory by handles. Here each piece of memory has a range of addresses that no
   processor gives to a program: the upper half of 64 bits. A kernel takes such an address as the
   handle and the number of bytes from its start. */
#ifndef GT_OPENCL_HOST_H
#define GT_OPENCL_HOST_H

#define GT_DEVICE_SCOPE __attribute__((weak, visibility("hidden")))
#include "device_host.h"
#include "opencl.h"

#include <dlfcn.h>

_Static_assert(sizeof(void *) == 8, "addresses of a device have 64 bits");

enum { GT_NO_CODE = -11 }; /* the device's compiler refused the kernels */
enum { GT_BUILD_LOG = 0x1183, GT_COMPILER = 0x1028, GT_FLOATS_OF = 0x101b, GT_GROUP = 0x1004 };
enum { GT_PLATFORMS = 16, GT_EXACT_DIVISION = 1 << 7, GT_LEAST_PIECES = 64 };
enum { GT_NO_BUFFER = -4, GT_NO_HOST_MEMORY = -6, GT_BAD_SIZE = -61 };
#define GT_UPPER ((gt_address)1 << 63)
#define GT_PIECE_BITS 40 /* of an address within a piece of memory */

typedef void (*gt_callback)(void);
#ifdef GT_PROFILE
#define GT_QUEUE 2 /* it has clocks */
static void *gt_event;
#else
#define GT_QUEUE 0
#endif
#define GT_DRIVER(X)                                                                              \
    X(int32_t, clGetPlatformIDs, (uint32_t, void **, uint32_t *))                                 \
    X(int32_t, clGetDeviceIDs, (void *, uint64_t, uint32_t, void **, uint32_t *))                 \
    X(int32_t, clGetDeviceInfo, (void *, uint32_t, size_t, void *, size_t *))                     \
    X(void *, clCreateContext,                                                                    \
      (const intptr_t *, uint32_t, void *const *, gt_callback, void *, int32_t *))                \
    X(int32_t, clReleaseContext, (void *))                                                        \
    X(void *, clCreateCommandQueue, (void *, void *, uint64_t, int32_t *))                        \
    X(void *, clCreateProgramWithSource,                                                          \
      (void *, uint32_t, const char **, const size_t *, int32_t *))                               \
    X(int32_t, clBuildProgram,                                                                    \
      (void *, uint32_t, void *const *, const char *, gt_callback, void *))                       \
    X(int32_t, clReleaseProgram, (void *))                                                        \
    X(int32_t, clGetProgramBuildInfo, (void *, void *, uint32_t, size_t, void *, size_t *))       \
    X(void *, clCreateKernel, (void *, const char *, int32_t *))                                  \
    X(int32_t, clSetKernelArg, (void *, uint32_t, size_t, const void *))                          \
    X(int32_t, clEnqueueNDRangeKernel,                                                            \
      (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,        \
       void *const *, void **))                                                                   \
    X(void *, clCreateBuffer, (void *, uint64_t, size_t, void *, int32_t *))                      \
    X(int32_t, clReleaseMemObject, (void *))                                                      \
    X(int32_t, clEnqueueReadBuffer,                                                               \
      (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, void *const *, void **))       \
    X(int32_t, clEnqueueWriteBuffer,                                                              \
      (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, void *const *, void **)) \
    X(int32_t, clEnqueueCopyBuffer,                                                               \
      (void *, void *, void *, size_t, size_t, size_t, uint32_t, void *const *, void **))         \
    X(int32_t, clFinish, (void *))                                                                \
    X(int32_t, clWaitForEvents, (uint32_t, void *const *))                                        \
    X(int32_t, clGetEventProfilingInfo, (void *, uint32_t, size_t, void *, size_t *))             \
    X(int32_t, clReleaseEvent, (void *))

GT_DEVICE_SCOPE struct {
    void *device, *context, *queue;
    void **pieces; /* the handle of each piece of memory, NULL where it was freed */
    size_t count;
#define GT_FIELD(type, name, arguments) type(*name) arguments;
    GT_DRIVER(GT_FIELD)
#undef GT_FIELD
} gt_opencl;

static struct {
    void *kernels;
    char *log; /* what the compiler said when it refused them, NULL if nothing */
} gt_program;

static inline void gt_must(int32_t status)
{
    if (!status || gt_device.failed) return;
    const int memory = status == GT_NO_BUFFER || status == GT_NO_HOST_MEMORY ||
                       status == GT_BAD_SIZE;
    gt_device.failed = memory ? GT_DEVICE_MEMORY : GT_DEVICE_FAILED;
}
#define GT_ASK(name, ...) \
    do { \
        if (!gt_device.failed) gt_must(gt_opencl.name(__VA_ARGS__)); \
    } while (0)

/* ---- the device ---- */

/* The first device of a kind in any platform; NULL if there is none. */
static inline void *gt_first_device(uint64_t kind)
{
    void *platforms[GT_PLATFORMS], *device = NULL;
    uint32_t count = 0, devices = 0;
    if (gt_opencl.clGetPlatformIDs(GT_PLATFORMS, platforms, &count)) return NULL;
    for (uint32_t i = 0; i < count && i < GT_PLATFORMS; i++)
        if (!gt_opencl.clGetDeviceIDs(platforms[i], kind, 1, &device, &devices) && devices)
            return device;
    return NULL;
}

/* A number of at most 64 bits that the device says of itself; 0 if it does not. */
static inline uint64_t gt_device_number(uint32_t what)
{
    uint64_t number = 0;
    return gt_opencl.clGetDeviceInfo(gt_opencl.device, what, sizeof number, &number, NULL) ? 0
                                                                                         : number;
}

static inline void gt_keep_log(void)
{
    size_t bytes = 0;
    free(gt_program.log);
    gt_program.log = NULL;
    if (gt_opencl.clGetProgramBuildInfo(gt_program.kernels, gt_opencl.device, GT_BUILD_LOG, 0, NULL,
                                        &bytes))
        return;
    gt_program.log = calloc(1, bytes + 1);
    if (gt_program.log)
        gt_opencl.clGetProgramBuildInfo(gt_program.kernels, gt_opencl.device, GT_BUILD_LOG, bytes,
                                        gt_program.log, NULL);
}

/* Compiles the kernels, if they are not. */
static inline void gt_driver_enter(const gt_image *images)
{
    if (gt_device.failed || gt_program.kernels) return;
    const char *text = images->data;
    const int exact = (gt_device_number(GT_FLOATS_OF) & GT_EXACT_DIVISION) != 0;
    const char *options = exact ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                                : "-cl-std=CL1.2";
    int32_t status = 0;
    gt_program.kernels =
        gt_opencl.clCreateProgramWithSource(gt_opencl.context, 1, &text, NULL, &status);
    gt_must(status);
    if (gt_device.failed) return;
    if (!gt_opencl.clBuildProgram(gt_program.kernels, 1, &gt_opencl.device, options, NULL, NULL))
        return;
    gt_keep_log();
    gt_opencl.clReleaseProgram(gt_program.kernels);
    gt_program.kernels = NULL;
    gt_device.failed = GT_NO_CODE;
}

static inline int gt_driver_open(const gt_image *images)
{
    (void)images;
    enum { GPU = 4, ACCELERATOR = 8 };
    const uint64_t any = 0xffffffff;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL), *found;
    if (!library) library = dlopen(NULL, RTLD_NOW); /* one that the program has already */
    if (!library) return GT_NO_DEVICE;
    int missing = 0;
#define GT_FIND(type, name, arguments)                                                            \
    found = dlsym(library, #name);                                                                \
    missing |= !found;                                                                            \
    memcpy(&gt_opencl.name, &found, sizeof found);
    GT_DRIVER(GT_FIND)
#undef GT_FIND
    if (missing) return GT_NO_DEVICE;
    gt_opencl.device = gt_first_device(GPU);
    if (!gt_opencl.device) gt_opencl.device = gt_first_device(ACCELERATOR);
    if (!gt_opencl.device) gt_opencl.device = gt_first_device(any);
    if (!gt_opencl.device || !gt_device_number(GT_COMPILER) || gt_device_number(GT_GROUP) < GT_TEAM)
        return GT_NO_DEVICE;
    int32_t status = 0;
    gt_opencl.context =
        gt_opencl.clCreateContext(NULL, 1, &gt_opencl.device, NULL, NULL, &status);
    gt_must(status);
    if (!gt_device.failed) {
        gt_opencl.queue = gt_opencl.clCreateCommandQueue(gt_opencl.context, gt_opencl.device,
                                                         GT_QUEUE, &status);
        gt_must(status);
    }
    if (gt_device.failed && gt_opencl.context) {
        gt_opencl.clReleaseContext(gt_opencl.context);
        gt_opencl.context = NULL;
    }
    return gt_device.failed;
}

static inline void gt_driver_wait(void)
{
    if (gt_opencl.queue) gt_must(gt_opencl.clFinish(gt_opencl.queue));
}

static inline void gt_driver_forget(void) {}

/* The messages of the device's compiler; "" if there are none. */
static inline const char *gt_device_log(void) { return gt_program.log ? gt_program.log : ""; }

/* ---- memory ---- */

/* The number of the piece of memory that an address is in. */
static inline size_t gt_piece_of(gt_address at)
{
    return (size_t)((at & ~GT_UPPER) >> GT_PIECE_BITS);
}

static inline size_t gt_offset_of(gt_address at)
{
    return (size_t)(at & (((gt_address)1 << GT_PIECE_BITS) - 1));
}

static inline int gt_on_device(const void *pointer)
{
    const gt_address at = (gt_address)(uintptr_t)pointer;
    return (at & GT_UPPER) && gt_piece_of(at) < gt_opencl.count
        && gt_opencl.pieces[gt_piece_of(at)];
}

static inline gt_address gt_driver_alloc(size_t bytes)
{
    size_t piece = 0;
    int32_t status = 0;
    while (piece < gt_opencl.count && gt_opencl.pieces[piece]) piece++;
    if (gt_device.failed) return 0;
    if (bytes >> GT_PIECE_BITS) return gt_must(GT_BAD_SIZE), 0;
    if (piece == gt_opencl.count) {
        const size_t count = 2 * piece + GT_LEAST_PIECES;
        void **more = realloc(gt_opencl.pieces, count * sizeof *more);
        if (!more) return gt_must(GT_NO_HOST_MEMORY), 0;
        memset(more + piece, 0, (count - piece) * sizeof *more);
        gt_opencl.pieces = more, gt_opencl.count = count;
    }
    void *const handle = gt_opencl.clCreateBuffer(gt_opencl.context, 1, bytes, NULL, &status);
    gt_must(status);
    if (gt_device.failed) return 0;
    gt_opencl.pieces[piece] = handle;
    return GT_UPPER | (gt_address)piece << GT_PIECE_BITS;
}

static inline void gt_driver_free(gt_address at)
{
    if (!gt_on_device(GT_ADDRESS(at))) return;
    gt_must(gt_opencl.clReleaseMemObject(gt_opencl.pieces[gt_piece_of(at)]));
    gt_opencl.pieces[gt_piece_of(at)] = NULL;
}

static inline void gt_driver_copy(void *to, const void *from, size_t bytes)
{
    const gt_address target = (gt_address)(uintptr_t)to, source = (gt_address)(uintptr_t)from;
    const int there = gt_on_device(to), here = gt_on_device(from);
    if (gt_device.failed) return;
    void *const written = there ? gt_opencl.pieces[gt_piece_of(target)] : NULL;
    void *const read = here ? gt_opencl.pieces[gt_piece_of(source)] : NULL;
    if (there && here)
        GT_ASK(clEnqueueCopyBuffer, gt_opencl.queue, read, written, gt_offset_of(source),
               gt_offset_of(target), bytes, 0, NULL, NULL);
    else if (there)
        GT_ASK(clEnqueueWriteBuffer, gt_opencl.queue, written, 0, gt_offset_of(target), bytes, from,
               0, NULL, NULL);
    else if (here)
        GT_ASK(clEnqueueReadBuffer, gt_opencl.queue, read, 0, gt_offset_of(source), bytes, to, 0,
               NULL, NULL);
    else
        memcpy(to, from, bytes);
}

/* ---- launches ---- */

static inline void gt_driver_launch(void **kernel, const char *name, int64_t teams, unsigned room,
                                    int64_t *values, int count, int pointers, size_t index)
{
    (void)room; /* its kernels declare the memory of a group */
    int32_t status = 0;
    uint32_t at = 0;
    if (!gt_device.failed && !*kernel) {
        *kernel = gt_opencl.clCreateKernel(gt_program.kernels, name, &status);
        gt_must(status);
    }
    for (int i = 0; i < count; i++) {
        const gt_address address = (gt_address)values[i];
        if (i >= pointers) {
            GT_ASK(clSetKernelArg, *kernel, at++, index, &values[i]); /* lower bytes are first */
            continue;
        }
        const uint64_t offset = gt_offset_of(address);
        void **const handle = gt_on_device(GT_ADDRESS(address)) ?
            &gt_opencl.pieces[gt_piece_of(address)] : NULL;
        GT_ASK(clSetKernelArg, *kernel, at++, sizeof(void *), handle);
        GT_ASK(clSetKernelArg, *kernel, at++, sizeof offset, &offset);
    }
    if (teams > GT_BLOCKS) teams = GT_BLOCKS;
    const size_t all = (size_t)teams * GT_TEAM, team = GT_TEAM;
#ifdef GT_PROFILE
    void **const event = &gt_event;
#else
    void **const event = NULL;
#endif
    if (teams > 0)
        GT_ASK(clEnqueueNDRangeKernel, gt_opencl.queue, *kernel, 1, NULL, &all, &team, 0, NULL,
               event);
}

#ifdef GT_PROFILE
static inline void gt_clock_start(void) { gt_event = NULL; }

static inline int64_t gt_clock_stop(void)
{
    enum { START = 0x1282, END = 0x1283 };
    uint64_t start = 0, end = 0;
    if (!gt_event) return 0;
    GT_ASK(clWaitForEvents, 1, &gt_event);
    GT_ASK(clGetEventProfilingInfo, gt_event, START, sizeof start, &start, NULL);
    GT_ASK(clGetEventProfilingInfo, gt_event, END, sizeof end, &end, NULL);
    GT_ASK(clReleaseEvent, gt_event);
    return (int64_t)(end - start);
}
#endif

#endif
