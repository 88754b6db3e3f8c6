/* What main programs share: complaints and exit codes, files in memory, and tables of ports whose
   sizes come from the arrays at hand. */
#ifndef GT_PROGRAM_H
#define GT_PROGRAM_H

#include "npy.h"

#include <inttypes.h>
#include <time.h>
#if defined __unix__ || defined __APPLE__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define MAIN_MAPS 1
#else
#define MAIN_MAPS 0
#endif

enum { MAIN_FINE = 0, MAIN_USAGE = 2, MAIN_BAD_INPUT = 3, MAIN_INTERNAL = 70 };

/* An input or output; its sizes for the dims at hand are computed into `shape`. An output has
   `room` elements: as many as it can have where the run computes its sizes. */
typedef struct {
    const char *name, *type, *text; /* text: "f32[B,784]" */
    int rank;
    int64_t shape[NPY_RANK];
    int64_t room;
} main_port;

typedef struct {
    const char *name;
    int64_t least, most; /* most: -1 where there is no bound */
    int input, axis;     /* where its value is read from; -1: it stays at the least */
    int64_t at, slope, first, step; /* it is `first` where that axis has `at`, then `step` more
                                       for each `slope` */
} main_dim;

/* The value of a dim whose axis has n elements; the caller checks the shape that follows. */
static int64_t main_dim_value(const main_dim *d, int64_t n)
{
    return d->first + (n - d->at) / d->slope * d->step;
}

/* What the program calls itself; set before anything can fail. */
static const char *main_name = "model";

/* Says what is wrong, under the number that `graphtool explain` knows; hands the exit code back. */
__attribute__((format(printf, 3, 4)))
static int main_fail(int code, const char *number, const char *format, ...)
{
    char text[10000];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    for (char *c = text; *c; c++) /* a name in a file must not move the terminal's cursor */
        if ((unsigned char)*c < 32 || *c == 127) *c = '?';
    fprintf(stderr, "%s: error[%s]: %s\n", main_name, number, text);
    if (code == MAIN_USAGE) fprintf(stderr, "%s --help says more\n", main_name);
    return code;
}

/* Asks for huge pages where that many bytes fill some; nothing else depends on the answer. */
static void main_ask_huge(void *p, size_t bytes)
{
#if MAIN_MAPS && defined MADV_HUGEPAGE
    const uintptr_t page = 4096, start = ((uintptr_t)p + page - 1) / page * page;
    if (p && bytes >= (size_t)4 << 20)
        (void)!madvise((void *)start, (bytes - page) / page * page, MADV_HUGEPAGE);
#else
    (void)p, (void)bytes;
#endif
}

/* `bytes` bytes that start at a multiple of 64; never freed: the program ends soon */
static void *main_aligned(size_t bytes)
{
    char *p = calloc(1, bytes + 128);
    main_ask_huge(p, bytes);
    return p ? p + (64 - (uintptr_t)p % 64) : NULL;
}

static void main_shape(char *out, size_t room, int rank, const int64_t *shape)
{
    size_t n = (size_t)snprintf(out, room, "[");
    for (int i = 0; i < rank && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%" PRId64, i ? "," : "", shape[i]);
    if (n < room) snprintf(out + n, room - n, "]");
}

static double main_seconds(void)
{
    struct timespec now;
#ifdef TIME_UTC
    timespec_get(&now, TIME_UTC);
#else /* C99 */
    clock_gettime(CLOCK_REALTIME, &now);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
