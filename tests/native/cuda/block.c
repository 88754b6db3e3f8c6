/* The blocks of a launch, which run one after the other, and the instructions of their warps. The
   threads of a block are fibers, which run until they wait for each other or for their warp, both
   in an order that is drawn anew each time. Shared memory is filled before each block. */
#include "machine.h"

enum { STACK = 1 << 16 };

on_c_place threadIdx, blockIdx, blockDim, gridDim;
int cuda_launches, cuda_early; /* how often things happened */

ucontext_t host;
static char *stacks;
thread *threads;
const launch *running;
__attribute__((aligned(1024))) char room[ROOM];

void wrong(const char *what)
{
    fprintf(stderr, "driver: %s\n", what);
    abort();
}

void on_c_must_align(const void *at, unsigned bytes)
{
    if ((uintptr_t)at % bytes) wrong("a piece of memory that is not aligned");
    in_use(at);
}

static void enter(void)
{
    const int64_t *a = running->arguments;
    running->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                      a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22],
                      a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
    threads[threadIdx.x].state = ENDED;
    swapcontext(&threads[threadIdx.x].fiber, &host);
}

void stop(enum state state)
{
    const unsigned me = threadIdx.x;
    threads[me].state = state;
    swapcontext(&threads[me].fiber, &host);
    threadIdx.x = me;
}

void on_c_after(void)
{
    threads[threadIdx.x].waited = 1;
    if (running->early) stop(AT_LAUNCH);
}

void __syncthreads(void) { stop(AT_BLOCK); }

/* What the lane of this thread's warp gives, while all of them stand at one instruction. */
const void *lane(unsigned i) { return threads[threadIdx.x / WARP * WARP + i].given; }

/* Threads go on that wait, where all they wait for are there; returns whether any did. */
static int release(unsigned first, unsigned count, enum state state)
{
    for (unsigned t = first; t < first + count; t++)
        if (threads[t].state != state) return 0;
    for (unsigned t = first; t < first + count; t++) threads[t].state = READY;
    return 1;
}

/* Runs the threads of a block, those first that are drawn, until all have ended. A warp that
   is drawn stands still for a while, as far as the others go on without it. */
static void run_block(unsigned count)
{
    for (unsigned t = 0; t < count; t++) {
        thread *own = &threads[t];
        own->state = READY, own->count = own->group = own->waited = 0;
        own->tile_count = own->product_count = own->open = own->multiplied = 0;
        getcontext(&own->fiber);
        own->fiber.uc_stack.ss_sp = stacks + (size_t)t * STACK;
        own->fiber.uc_stack.ss_size = STACK;
        makecontext(&own->fiber, enter, 0);
    }
    if (running->early) hide(1);
    unsigned still[MOST / WARP] = {0}; /* rounds */
    for (unsigned left = count; left;) {
        unsigned order[MOST], ran = 0;
        for (unsigned w = 0; w * WARP < count; w++)
            still[w] = still[w] ? still[w] - 1 : rand() % 16 ? 0 : (unsigned)rand() % 32;
        for (unsigned t = 0; t < count; t++) {
            const unsigned at = (unsigned)rand() % (t + 1);
            order[t] = order[at];
            order[at] = t;
        }
        for (unsigned i = 0; i < count; i++) {
            if (threads[order[i]].state != READY) continue;
            ran++;
            if (still[order[i] / WARP]) continue;
            threadIdx.x = order[i];
            swapcontext(&host, &threads[order[i]].fiber);
            left -= threads[order[i]].state == ENDED;
        }
        for (unsigned w = 0; w + WARP <= count; w += WARP)
            ran += (unsigned)release(w, WARP, AT_WARP);
        ran += (unsigned)release(0, count, AT_BLOCK);
        if (release(0, count, AT_LAUNCH)) hide(0), ran++;
        if (!ran) wrong("some threads of a block ended where others wait");
    }
    for (unsigned t = 0; t < count; t++) {
        if (threads[t].open || threads[t].tile_count) wrong("products that nobody waited for");
        if (threads[t].multiplied != threads[0].multiplied) wrong("products of some threads only");
    }
}

void run(const launch *one)
{
    if (!stacks) stacks = malloc((size_t)MOST * STACK), threads = malloc(MOST * sizeof *threads);
    running = one;
    gridDim.x = one->blocks;
    blockDim.x = one->threads;
    unsigned *const order = malloc(one->blocks * sizeof *order);
    for (unsigned b = 0; b < one->blocks; b++) {
        const unsigned at = (unsigned)rand() % (b + 1);
        order[b] = order[at];
        order[at] = b;
    }
    for (unsigned b = 0; b < one->blocks; b++) {
        blockIdx.x = order[b];
        size_t bytes = 0;
        char *const shared = one->shared(&bytes);
        if (bytes) memset(shared, 0x7f, bytes);
        memset(room, 0x7f, sizeof room);
        no_barriers();
        run_block(one->threads);
        for (unsigned t = 0; one->early && t < one->threads; t++)
            if (!threads[t].waited) wrong("a kernel that does not wait for those before it");
    }
    free(order);
    cuda_early += one->early;
    cuda_launches++;
}

/* ---- instructions of a warp ---- */

/* Gives something to the warp; returns when all of it have. */
void give(const void *what)
{
    threads[threadIdx.x].given = what;
    stop(AT_WARP);
}

/* Ends what the warp does together: none goes on before all have taken what they need. */
void taken(void) { stop(AT_WARP); }

static float as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float of_tf32(uint32_t word, int half) { return (void)half, as_float(word & 0xffffe000u); }
float of_bf16(uint32_t word, int half)
{
    return as_float(half ? word & 0xffff0000u : word << 16);
}

float of_f16(uint32_t word, int half)
{
    const uint16_t bits = (uint16_t)(half ? word >> 16 : word);
    _Float16 x;
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

/* The nearest float towards 0: the unit cuts off what it does not keep. */
float cut(double x)
{
    float y = (float)x;
    if (y - y == 0 && (y < 0 ? -(double)y : (double)y) > (x < 0 ? -x : x)) {
        uint32_t bits;
        memcpy(&bits, &y, sizeof y);
        y = as_float(bits - 1);
    }
    return y;
}

/* d += a·b: 16 rows, 8 columns, 8 words of `halves` numbers. */
static void multiply(float *d, const uint32_t *a, const uint32_t *b, int halves,
                     float number(uint32_t, int))
{
    const struct { const uint32_t *a, *b; } own = {a, b};
    const unsigned me = threadIdx.x % WARP;
    give(&own);
    for (unsigned s = 0; s < 4; s++) {
        double sum = d[s];
        for (unsigned word = 0; word < 8; word++) {
            const uint32_t *const *left = lane(me / 4 * 4 + word % 4);
            const uint32_t *const *right = lane((me % 4 * 2 + s % 2) * 4 + word % 4);
            for (int half = 0; half < halves; half++)
                sum += (double)number(left[0][word / 4 * 2 + s / 2], half) *
                       (double)number(right[1][word / 4], half);
        }
        d[s] = cut(sum);
    }
    taken();
}

void gt_multiply_tf32(float *d, const uint32_t *a, const uint32_t *b)
{
    multiply(d, a, b, 1, of_tf32);
}

void gt_multiply_bf16(float *d, const uint32_t *a, const uint32_t *b)
{
    multiply(d, a, b, 2, of_bf16);
}

void gt_multiply_f16(float *d, const uint32_t *a, const uint32_t *b)
{
    multiply(d, a, b, 2, of_f16);
}

void gt_multiply_u8(int32_t *d, const uint32_t *a, const uint32_t *b)
{
    const struct { const uint32_t *a, *b; } own = {a, b};
    const unsigned me = threadIdx.x % WARP;
    give(&own);
    for (unsigned s = 0; s < 4; s++)
        for (unsigned i = 0; i < 32; i++) {
            const unsigned word = i / 4, shift = i % 4 * 8;
            const uint32_t *const *left = lane(me / 4 * 4 + word % 4);
            const uint32_t *const *right = lane((me % 4 * 2 + s % 2) * 4 + word % 4);
            const uint8_t x = (uint8_t)(left[0][word / 4 * 2 + s / 2] >> shift);
            const int8_t y = (int8_t)(right[1][word / 4] >> shift);
            d[s] = (int32_t)((uint32_t)d[s] + (uint32_t)(x * y));
        }
    taken();
}

void gt_squares(uint32_t *r, const void *row)
{
    const unsigned me = threadIdx.x % WARP;
    if ((uintptr_t)row % 16) wrong("a row of a square that is not aligned");
    give(row);
    for (unsigned s = 0; s < 4; s++)
        memcpy(&r[s], (const char *)lane(s * 8 + me / 4) + me % 4 * 4, 4);
    taken();
}

void gt_squares_across(uint32_t *r, const void *row)
{
    const unsigned me = threadIdx.x % WARP;
    if ((uintptr_t)row % 16) wrong("a row of a square that is not aligned");
    give(row);
    for (unsigned s = 0; s < 4; s++) {
        uint16_t pair[2];
        for (unsigned i = 0; i < 2; i++)
            memcpy(&pair[i], (const char *)lane(s * 8 + me % 4 * 2 + i) + me / 4 * 2, 2);
        memcpy(&r[s], pair, sizeof pair);
    }
    taken();
}

void __syncwarp(void) { stop(AT_WARP); }

void on_c_lane_xor(void *to, const void *from, unsigned bytes, unsigned by)
{
    const unsigned me = threadIdx.x;
    char own[16];
    memcpy(own, from, bytes);
    give(own);
    memcpy(to, lane(me % WARP ^ by), bytes);
    taken();
}

float gt_other_lane(float x, int bits)
{
    const float own = x;
    give(&own);
    memcpy(&x, lane(threadIdx.x % WARP ^ (unsigned)bits), sizeof x);
    taken();
    return x;
}
