/* Copies into shared memory, barriers that count them, and the unit that the warps of a block have
   together. A copy lands at once or when it is waited for, as is drawn for each; likewise the unit
   reads what it multiplies. */
#include "machine.h"

/* ---- copies, which land at once or when they are waited for ---- */

static int drawn(void) { return rand() & 1; }

static void land(copy *one)
{
    if (one->landed) return;
    memset(one->to, 0, (size_t)one->size);
    memcpy(one->to, one->from, (size_t)one->bytes);
    one->landed = 1;
}

static void begin_copy(void *to, const void *from, int size, int bytes)
{
    thread *own = &threads[threadIdx.x];
    if (own->count == COPIES) wrong("too many copies at once");
    if (bytes < 0 || bytes > size || (uintptr_t)to % (unsigned)size ||
        (uintptr_t)from % (unsigned)size)
        wrong("a copy that is not aligned");
    copy *const one = &own->copies[own->count++];
    *one = (copy){to, from, size, bytes, 0, own->group};
    if (drawn()) land(one);
}

void gt_copy_16(void *to, const void *from, int bytes) { begin_copy(to, from, 16, bytes); }
void gt_copy_4(void *to, const void *from, int bytes) { begin_copy(to, from, 4, bytes); }
void gt_copy_group(void) { threads[threadIdx.x].group++; }

enum { DONE = -1 }; /* the group of copies that were waited for */

static int in_room(const void *at)
{
    return (const char *)at >= room && (const char *)at < room + ROOM;
}

void gt_copy_wait(int groups)
{
    thread *own = &threads[threadIdx.x];
    int kept = 0;
    for (int i = 0; i < own->count; i++) {
        copy one = own->copies[i];
        if (one.group < own->group - groups) {
            land(&one);
            one.group = DONE;
            if (!in_room(one.to)) continue;
        }
        own->copies[kept++] = one;
    }
    own->count = kept;
}

void in_use(const void *at)
{
    thread *own = &threads[threadIdx.x];
    if (!in_room(at)) return;
    if (own->count == COPIES) wrong("too much that was not shown to the unit");
    own->copies[own->count++] = (copy){(void *)at, at, 16, 16, 1, DONE};
}

/* Shows the unit and bulk copies what landed, and what this thread wrote. */
void gt_async_fence(void)
{
    thread *own = &threads[threadIdx.x];
    int kept = 0;
    for (int i = 0; i < own->count; i++)
        if (own->copies[i].group != DONE) own->copies[kept++] = own->copies[i];
    own->count = kept;
}

/* ---- barriers that count the bytes of a copy ---- */

enum { BARRIERS = 16 };
static int barrier_count;
static struct {
    const uint64_t *at;
    copy copy;
    int busy;
    uint32_t turns;
} barriers[BARRIERS];

void no_barriers(void) { barrier_count = 0; }

static int barrier_at(const uint64_t *at)
{
    for (int i = 0; i < barrier_count; i++)
        if (barriers[i].at == at) return i;
    wrong("a barrier that was not made");
    return 0;
}

void gt_barrier(uint64_t *own)
{
    if (barrier_count == BARRIERS) wrong("too many barriers");
    barriers[barrier_count].at = own, barriers[barrier_count].busy = 0;
    barriers[barrier_count++].turns = 0;
}

void gt_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *barrier)
{
    const int i = barrier_at(barrier);
    if (barriers[i].busy) wrong("two copies for one barrier");
    if (((uintptr_t)to | (uintptr_t)from | bytes) % 16) wrong("a copy that is not aligned");
    barriers[i].copy = (copy){to, from, (int)bytes, (int)bytes, 0, 0};
    barriers[i].busy = 1;
    if (drawn()) land(&barriers[i].copy);
}

/* Goes on when a turn has ended whose number is even or odd as `turn` is. */
void gt_barrier_wait(uint64_t *barrier, uint32_t turn)
{
    const int i = barrier_at(barrier);
    for (int tries = 0; (barriers[i].turns & 1) == turn; tries++) {
        if (tries > 1 << 16) wrong("a copy that nobody began");
        if (!barriers[i].busy) {
            stop(READY);
            continue;
        }
        land(&barriers[i].copy);
        barriers[i].busy = 0, barriers[i].turns++;
    }
}

/* ---- the unit that the warps of a block have together ---- */

void *gt_room(uint32_t bytes)
{
    if (bytes > running->room) wrong("more shared memory than the launch gives");
    return room;
}

uint32_t gt_shared(const void *at)
{
    if (!in_room(at)) wrong("an address that is not in the room");
    return (uint32_t)((const char *)at - room);
}

/* A word of an operand: of piece `piece` of row `row`, as a descriptor says. */
static uint32_t described(uint64_t how, uint32_t row, uint32_t piece, uint32_t word)
{
    static const uint32_t apart[] = {16, 128, 64, 32}, mask[] = {0, 0x70, 0x30, 0x10};
    const uint32_t mode = (uint32_t)(how >> 62), start = (uint32_t)(how & 0x3fff) << 4;
    const uint32_t pieces = mode ? 16 : (uint32_t)(how >> 16 & 0x3fff) << 4;
    const uint32_t eights = (uint32_t)(how >> 32 & 0x3fff) << 4;
    uint32_t at = start + row / 8 * eights + row % 8 * apart[mode] + piece * pieces, found;
    at ^= at >> 3 & mask[mode];
    if (at + 16 > running->room) wrong("an operand that is not in the room");
    memcpy(&found, room + at + 4 * word, sizeof found);
    return found;
}

/* Whether a copy into these bytes is still to be waited for, or to be shown, by any thread. */
static int unseen(uint64_t how, uint32_t bytes)
{
    const char *const first = room + ((how & 0x3fff) << 4);
    for (unsigned t = 0; t < blockDim.x; t++)
        for (int i = 0; i < threads[t].count; i++) {
            const char *const to = threads[t].copies[i].to;
            if (to >= first && to < first + bytes) return 1;
        }
    return 0;
}

enum { UNIT_ROWS = 64, UNIT_COLUMNS = 128, UNIT_WORDS = 8 };

/* The same of unsigned bytes by signed ones, whose sums wrap around. */
static void add_bytes(const product *p)
{
    const unsigned me = threadIdx.x, lane = me % WARP;
    for (unsigned s = 0; s < SUMS; s++) {
        const unsigned row = me / WARP % 4 * 16 + lane / 4 + s / 2 % 2 * 8;
        const unsigned column = s / 4 * 8 + lane % 4 * 2 + s % 2;
        uint32_t sum;
        memcpy(&sum, &p->of->sums[s], sizeof sum);
        for (unsigned word = 0; word < UNIT_WORDS; word++) {
            const uint32_t left = described(p->a, row, word / 4, word % 4);
            const uint32_t right = described(p->b, column, word / 4, word % 4);
            for (unsigned shift = 0; shift < 32; shift += 8)
                sum += (uint32_t)((uint8_t)(left >> shift) * (int8_t)(right >> shift));
        }
        memcpy(&p->of->sums[s], &sum, sizeof sum);
    }
}

/* What the unit adds to the sums of this thread. */
static void add(const product *p)
{
    const unsigned me = threadIdx.x, lane = me % WARP;
    float left[2][16], right[16];
    if ((!p->held && unseen(p->a, 7 * 1024)) || unseen(p->b, 2 * 16 * UNIT_COLUMNS))
        wrong("an operand that was not waited for, or not shown");
    if (!p->number) {
        add_bytes(p);
        return;
    }
    for (unsigned half = 0; half < 2; half++)
        for (unsigned k = 0; k < UNIT_WORDS * (unsigned)p->numbers; k++) {
            const unsigned word = k / (unsigned)p->numbers;
            const uint32_t bits = p->held ? p->rows[half][word]
                                          : described(p->a, me / WARP % 4 * 16 + lane / 4 + half * 8,
                                                      word / 4, word % 4);
            left[half][k] = p->number(bits, (int)k % p->numbers);
        }
    for (unsigned i = 0; i < UNIT_COLUMNS / 4; i++) {
        const unsigned column = i / 2 * 8 + lane % 4 * 2 + i % 2;
        double sums[2] = {0, 0};
        for (unsigned half = 0; p->more && half < 2; half++)
            sums[half] = p->of->sums[i / 2 * 4 + i % 2 + half * 2];
        for (unsigned k = 0; k < UNIT_WORDS * (unsigned)p->numbers; k++) {
            const unsigned word = k / (unsigned)p->numbers;
            right[k] = p->number(described(p->b, column, word / 4, word % 4), (int)k % p->numbers);
            for (unsigned half = 0; half < 2; half++)
                sums[half] += (double)left[half][k] * (double)right[k];
        }
        for (unsigned half = 0; half < 2; half++)
            p->of->sums[i / 2 * 4 + i % 2 + half * 2] = cut(sums[half]);
    }
}

void gt_wide_begin(void)
{
    thread *own = &threads[threadIdx.x];
    own->open = 1, own->late = drawn();
}

/* Takes a product, of sums that are at d. */
static void wide(void *d, product one)
{
    thread *own = &threads[threadIdx.x];
    if (!own->open) wrong("a product outside of a group");
    if (blockDim.x % (4 * WARP)) wrong("a product of fewer than four warps");
    int i = 0;
    while (i < own->tile_count && own->tiles[i].own != d) i++;
    if (i == TILES || own->product_count == PRODUCTS) wrong("too many products at once");
    if (i == own->tile_count) {
        own->tiles[i].own = d;
        memcpy(own->tiles[i].sums, d, sizeof own->tiles[i].sums);
        memset(d, 0x7f, sizeof own->tiles[i].sums);
        own->tile_count++;
    }
    own->multiplied++;
    one.of = &own->tiles[i];
    if (own->late) own->products[own->product_count++] = one;
    else add(&one);
}

/* The same, of operands in shared memory. */
static void shared(void *d, uint64_t a, uint64_t b, int numbers, float number(uint32_t, int))
{
    wide(d, (product){.a = a, .b = b, .numbers = numbers, .number = number, .more = 1});
}

void gt_wide_bf16(float *d, uint64_t a, uint64_t b) { shared(d, a, b, 2, of_bf16); }
void gt_wide_f16(float *d, uint64_t a, uint64_t b) { shared(d, a, b, 2, of_f16); }
void gt_wide_u8(int32_t *d, uint64_t a, uint64_t b) { shared(d, a, b, 4, NULL); }

void gt_wide_tf32(float *d, const uint32_t *a, uint64_t b, int more)
{
    product one = {.b = b, .numbers = 1, .number = of_tf32, .held = 1, .more = more};
    give(a);
    for (unsigned half = 0; half < 2; half++)
        for (unsigned k = 0; k < UNIT_WORDS; k++) {
            const uint32_t *words = lane(threadIdx.x % WARP / 4 * 4 + k % 4);
            one.rows[half][k] = words[k / 4 * 2 + half];
        }
    taken();
    wide(d, one);
}

void gt_wide_end(void) { threads[threadIdx.x].open = 0; }

void gt_wide_wait(void)
{
    thread *own = &threads[threadIdx.x];
    if (own->open) wrong("a group that has no end");
    for (int i = 0; i < own->product_count; i++) add(&own->products[i]);
    for (int i = 0; i < own->tile_count; i++)
        memcpy(own->tiles[i].own, own->tiles[i].sums, sizeof own->tiles[i].sums);
    own->product_count = own->tile_count = 0;
}
