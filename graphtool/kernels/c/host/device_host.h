/* What a run on a device consists of, whatever its driver is: memory, copies, launches, in order.
   The header of a driver includes this one, and defines the functions that are declared here.

   One thread at a time holds the device (gt_device_take). After an error all else does nothing, and
   the error stays until the device is given back. With GT_PROFILE the device's clock is read around
   each launch. */
#ifndef GT_DEVICE_HOST_H
#define GT_DEVICE_HOST_H

#include "arguments.h"
#include "device_image.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GT_NO_DEVICE = -8, GT_DEVICE_FAILED = -9, GT_DEVICE_MEMORY = -10 };
enum { GT_BLOCKS = 1 << 20 }; /* the most teams of a launch, which then take several shares */

typedef uint64_t gt_address;
#define GT_ADDRESS(at) ((void *)(uintptr_t)(at))

#ifndef GT_DEVICE_SCOPE
#define GT_DEVICE_SCOPE static /* each program of a library has the device for itself */
#endif

GT_DEVICE_SCOPE struct {
    pthread_mutex_t lock;
    int opened, failed; /* `failed` is the status of this run */
    gt_address room;    /* what a run works in, kept for the next one */
    size_t bytes;
} gt_device = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what a driver defines; after an error each does nothing, except to wait and to free ---- */

/* Finds the driver and a device that runs the code; returns a status. */
static inline int gt_driver_open(const gt_image *images);
/* Makes the device that of the calling thread, and of the kernels of this program. */
static inline void gt_driver_enter(const gt_image *images);
/* Waits until all has ended. */
static inline void gt_driver_wait(void);
static inline gt_address gt_driver_alloc(size_t bytes);
static inline void gt_driver_free(gt_address at);
/* Copies between memory of the device and of the processor, in any direction. */
static inline void gt_driver_copy(void *to, const void *from, size_t bytes);
/* Whether an address is memory of the device. */
static inline int gt_on_device(const void *at);
/* Called before the memory of recorded runs is freed. */
static inline void gt_driver_forget(void);
/* Launches the kernel `name`, which `kernel` keeps, in so many teams. The first `pointers` of the
   values are addresses, the others integers that the kernel takes in `index` bytes. */
static inline void gt_driver_launch(void **kernel, const char *name, int64_t teams, unsigned room,
                                    int64_t *values, int count, int pointers, size_t index);
#ifdef GT_PROFILE
static inline void gt_clock_start(void);
/* The nanoseconds of what was launched since the start. */
static inline int64_t gt_clock_stop(void);
#endif

/* ---- the device of a thread ---- */

/* Takes the device for this thread; returns a status. */
static inline int gt_device_take(const gt_image *images)
{
    pthread_mutex_lock(&gt_device.lock);
    gt_device.failed = 0;
    if (!gt_device.opened) {
        gt_device.failed = gt_driver_open(images);
        gt_device.opened = !gt_device.failed;
    }
    gt_driver_enter(images);
    return gt_device.failed;
}

static inline int gt_device_returned(void)
{
    const int status = gt_device.failed;
    pthread_mutex_unlock(&gt_device.lock);
    return status;
}

/* Waits for the device and gives it back; returns the status of what was done since. */
static inline int gt_device_give(void)
{
    gt_driver_wait();
    return gt_device_returned();
}

static inline gt_address gt_device_alloc(size_t bytes) { return gt_driver_alloc(bytes + !bytes); }

static inline void gt_device_free(gt_address at)
{
    if (at) gt_driver_free(at);
}

/* The same with new memory, which is the caller's if nothing has failed, and freed otherwise. */
static inline int gt_device_give_new(void **memory, gt_address at)
{
    gt_driver_wait();
    if (gt_device.failed) gt_device_free(at);
    *memory = gt_device.failed ? NULL : GT_ADDRESS(at);
    return gt_device_returned();
}

static inline void gt_device_copy(void *to, const void *from, size_t bytes)
{
    if (bytes) gt_driver_copy(to, from, bytes);
}

static inline void gt_device_write(gt_address to, const void *from, size_t bytes)
{
    if (to != (gt_address)(uintptr_t)from) gt_device_copy(GT_ADDRESS(to), from, bytes);
}

static inline void gt_device_read(void *to, gt_address from, size_t bytes)
{
    if (from != (gt_address)(uintptr_t)to) gt_device_copy(to, GT_ADDRESS(from), bytes);
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
    if (total > gt_device.bytes && !gt_device.failed) {
        gt_driver_forget();
        gt_device_free(gt_device.room);
        gt_device.bytes = 0;
        gt_device.room = gt_device_alloc(total);
        gt_device.bytes = gt_device.failed ? 0 : total;
    }
    gt_address next = gt_device.room;
    for (int i = 0; i < count; i++)
        if (!at[i]) at[i] = next, next += (bytes[i] + 255) / 256 * 256;
}

/* An integer of so many bytes that a kernel has left at an address of the device. */
static inline int64_t gt_device_value(const void *at, int bytes)
{
    int64_t value = 0; /* little-endian, as all devices are */
    gt_device_read(&value, (gt_address)(uintptr_t)at, (size_t)bytes);
    gt_driver_wait();
    return bytes == 4 ? (int32_t)value : value;
}
#define GT_DEVICE_VALUE(pointer, place) gt_device_value((pointer) + (place), (int)sizeof *(pointer))

/* ---- steps ---- */

#ifdef GT_PROFILE
/* The build of `graphtool profile` notes in ns when each step began and ended on the device, in the
   array of runtime.h; a loop's iterations are added. */
enum { GT_FIRST, GT_ENTER, GT_LEAVE, GT_INSIDE, GT_OUTSIDE, GT_TURNS, GT_MARKS };
#define GT_PROFILED(name)                                                                         \
    __attribute__((visibility("default"))) void name##_profile(int64_t *marks);                   \
    void name##_profile(int64_t *marks) { gt_marks = marks; }

static int64_t *gt_marks;
static int64_t gt_time; /* since the run began, by the device */

static inline void gt_step_end(int64_t *marks)
{
    const int64_t ns = gt_clock_stop();
    if (!marks[GT_TURNS]++) marks[GT_FIRST] = gt_time;
    marks[GT_ENTER] = gt_time;
    gt_time += ns;
    marks[GT_LEAVE] = gt_time;
    marks[GT_INSIDE] += marks[GT_LEAVE] - marks[GT_ENTER];
}
#define GT_STEP_BEGIN() gt_clock_start()
#define GT_STEP_END(i) \
    if (gt_marks) gt_step_end(gt_marks + (int64_t)(i) * GT_MARKS)
#else
#define GT_PROFILED(name)
#define GT_STEP_BEGIN() (void)0
#define GT_STEP_END(i) (void)0
#endif

/* Launches a kernel; the first `pointers` arguments are addresses, the others integers that it
   takes as `index`. */
#define GT_LAUNCH(step, steps, name, teams, room, pointers, index, ...)                           \
    do {                                                                                          \
        static void *kernel;                                                                      \
        int64_t values[] = {__VA_ARGS__};                                                         \
        GT_STEP_BEGIN();                                                                          \
        gt_driver_launch(&kernel, #name, teams, room, values,                                     \
                         (int)(sizeof values / sizeof *values), pointers, sizeof(index));         \
        GT_STEP_END(step);                                                                        \
    } while (0)

#endif
