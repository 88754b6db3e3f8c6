/* A processor as a device: what the files of the driver know of each other. */
#ifndef MACHINE_H
#define MACHINE_H

#define _GNU_SOURCE
#include "on_c.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { MOST = 1024, ARGUMENTS = 32, WARP = 32, COPIES = 4096, ROOM = 227 << 10, PRODUCTS = 64,
       SUMS = 64, TILES = 4 };

typedef void (*kernel)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
typedef char *(*memory)(size_t *);
typedef struct {
    kernel function;
    memory shared;
    unsigned blocks, threads, room; /* bytes of shared memory that the launch gives */
    int early; /* it may start while the launch before runs */
    int64_t arguments[ARGUMENTS];
} launch;

enum state { READY, AT_BLOCK, AT_WARP, AT_LAUNCH, ENDED };

typedef struct {
    void *to;
    const void *from;
    int size, bytes, landed, group;
} copy;

/* Sums of a thread that the unit of a block has in hand, until they are waited for. */
typedef struct {
    void *own;
    float sums[SUMS]; /* or int32_t */
} tile;

/* A product that was asked for and is not done: of which sums, of what operands. */
typedef struct {
    tile *of;
    uint64_t a, b;
    int numbers; /* in a word */
    float (*number)(uint32_t, int); /* NULL: they are bytes */
    int held, more; /* rows are in registers; 0: the sums begin at 0 */
    uint32_t rows[2][8]; /* the words of this thread's two rows, if they are held */
} product;

/* A thread: where it stands, what it gives to its warp; its copies that have not landed, of the
   group `group` or of earlier ones, and those, and what it wrote, that were not shown to the unit; and what the unit of a block computes for it. */
typedef struct {
    ucontext_t fiber;
    enum state state;
    const void *given;
    copy copies[COPIES];
    int count, group, waited;
    tile tiles[TILES];
    product products[PRODUCTS];
    int tile_count, product_count, open, late, multiplied;
} thread;

extern ucontext_t host; /* what runs the threads */
extern thread *threads;
extern const launch *running;
extern char room[ROOM]; /* what a launch gives of shared memory */

void wrong(const char *what);
void run(const launch *one);

/* Takes all memory of the device away, or gives it back. */
void hide(int hidden);

/* Ends the turn of this thread, which then waits for this state to be over. */
void stop(enum state state);

/* What the threads of a warp do together: each gives something, and has what the others give until
   it says that it has taken what it needs. */
void give(const void *what);
const void *lane(unsigned i);
void taken(void);

/* Notes that this thread wrote or read 16 bytes of what a launch gives. */
void in_use(const void *at);

/* Forgets the barriers of a block. */
void no_barriers(void);

/* Numbers of a word, as units read them; the nearest float towards 0. */
float of_tf32(uint32_t word, int half);
float of_bf16(uint32_t word, int half);
float of_f16(uint32_t word, int half);
float cut(double x);

#endif
