/* Launches a kernel on the processor: its blocks one after the other, the threads of a block as
   fibers, which run until they wait for each other. A block of which some threads end while others
   wait is wrong, and ends the program. */
#include "cuda_on_c.h"
#include "cuda_text_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { THREADS = 128, STACK = 1 << 16, BLOCKS = 5 };

cuda_place threadIdx, blockIdx, blockDim = {THREADS}, gridDim;

static ucontext_t host, fiber[THREADS];
static char stacks[THREADS][STACK];
static int ended[THREADS];
static gt_kernel running;
static const int64_t *given;

typedef void (*any)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                    int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

static void enter(void)
{
    const int64_t *a = given;
    ((any)running)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
                   a[13], a[14], a[15]);
    ended[threadIdx.x] = 1;
    swapcontext(&fiber[threadIdx.x], &host);
}

void __syncthreads(void)
{
    const unsigned me = threadIdx.x;
    swapcontext(&fiber[me], &host);
    threadIdx.x = me;
}

static void block(void)
{
    for (int t = 0; t < THREADS; t++) {
        ended[t] = 0;
        getcontext(&fiber[t]);
        fiber[t].uc_stack.ss_sp = stacks[t];
        fiber[t].uc_stack.ss_size = STACK;
        makecontext(&fiber[t], enter, 0);
    }
    for (int left = THREADS; left;) {
        unsigned order[THREADS];
        for (unsigned t = 0; t < THREADS; t++) {
            const unsigned at = (unsigned)rand() % (t + 1);
            order[t] = order[at];
            order[at] = t;
        }
        for (int i = 0; i < THREADS; i++) {
            threadIdx.x = order[i];
            swapcontext(&host, &fiber[order[i]]);
            left -= ended[order[i]];
        }
        if (left != 0 && left != THREADS) {
            fprintf(stderr, "some threads of a block ended where others wait\n");
            abort();
        }
    }
}

void gt_launch(gt_kernel kernel, int64_t iterations, const int64_t *arguments)
{
    running = kernel;
    given = arguments;
    gridDim.x = iterations < BLOCKS ? (unsigned)iterations : BLOCKS;
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) block();
}
