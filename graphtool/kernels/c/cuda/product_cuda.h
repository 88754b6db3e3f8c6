/* Sums of products in tiles, for products and for convolutions alike: a block computes a tile of
   GT_ROWS rows by the NR columns of a panel of weights.

   A chunk of the depth is GT_CHUNK words of 32 bits. Copies bring some chunks ahead into shared
   memory; there rows lie so that no two threads of a warp ask one bank. The header that includes
   this one defines:

   GT_GROUPED     how many products there are, GT_HEIGHT rows, GT_WIDTH columns of each
   GT_DEPTH_RUNS GT_RUN  the depth: so many runs, of so many numbers. In pairs of rows a run
                  begins with a pair of its own
   GT_OPERAND(g)     the left operand of product g, GT_PANELS(g) its panels
   GT_ROW(row)    where in the left operand a row begins, GT_OFFSET(run, at) what there is to add
   GT_SEEN(row, run, at)  whether a number counts; left out: all do
   GT_WHOLE(g)    whether 16 bytes along a run start at a multiple of 16; 0 where they are not
                  adjacent
   GT_ALONG_ROWS  defined: adjacent rows are adjacent in memory, not numbers of a run
   GT_FINISH(acc, g, row, column)  hands one sum on

   and these come from the use:

   GT_INTEGERS    if it is 8, products of u8 by s8, else, 16, of two int16; sums are int32, and
                  panels have as many rows in a word as there are numbers
   GT_HALF        numbers have 16 bits, of this type; GT_PAIRS: the panels have pairs of rows
   GT_UNIT        how floats are multiplied: GT_UNIT_FMA, one at a time; GT_UNIT_TF32, rounded to
                  19 bits; GT_UNIT_PARTS, each as two numbers of 19 bits, whose sums leave the unit
                  after each chunk, because it truncates them. */
#ifndef GT_UNIT
#define GT_UNIT GT_UNIT_FMA
#endif
#ifdef GT_INTEGERS
#define GT_SUM int32_t
#define GT_PER (32 / GT_INTEGERS)
#if GT_INTEGERS == 8
#define GT_NUMBER uint8_t
#else
#define GT_NUMBER uint16_t
#endif
#elif defined GT_HALF
#define GT_SUM float
#define GT_NUMBER uint16_t
#define GT_PER 2 /* numbers in a word */
#else
#define GT_SUM float
#define GT_NUMBER float
#define GT_PER 1
#endif
#ifndef GT_SEEN
#define GT_SEEN(row, run, at) 1
#endif
#define GT_PANEL_WIDTH ((GT_NV) * GT_WARP)
#define GT_CHUNK 16
#define GT_PITCH_A (GT_CHUNK + 4)
#if defined GT_HALF && !defined GT_PAIRS
#define GT_PITCH_B (GT_PANEL_WIDTH / 2 + 4)
#define GT_LINES_B (2 * GT_CHUNK)
#define GT_LINE (GT_PANEL_WIDTH / 2) /* words of a row of a panel */
#define GT_PADDED (GT_RUN)
#else
#define GT_PITCH_B (GT_PANEL_WIDTH + 8)
#define GT_LINES_B GT_CHUNK
#define GT_LINE GT_PANEL_WIDTH
#define GT_PADDED (((GT_RUN) + GT_PER - 1) / GT_PER * GT_PER) /* numbers of a run in a panel */
#endif
/* The run that a place of the depth is in, in 32 bits where the depth fits. */
#define GT_RUN_OF(k)                                                                              \
    ((GT_DEPTH_RUNS) * (int64_t)GT_PADDED < INT32_MAX                                             \
         ? (int64_t)((uint32_t)(k) / (uint32_t)GT_PADDED)                                         \
         : (k) / GT_PADDED)
#define GT_CHUNKS (((GT_DEPTH_RUNS) * GT_PADDED + GT_CHUNK * GT_PER - 1) / (GT_CHUNK * GT_PER))
#define GT_BUFFER (GT_ROWS * GT_PITCH_A + GT_LINES_B * GT_PITCH_B)
#define GT_AHEAD (GT_ROWS > 64 ? 3 : 4)
#define GT_PITCH_OUT (GT_PANEL_WIDTH + 4)
#define GT_OUT (GT_ROWS * GT_PITCH_OUT)
#define GT_ROOM (GT_AHEAD * GT_BUFFER > GT_OUT ? GT_AHEAD * GT_BUFFER : GT_OUT)

#include "slices_cuda.h"

/* The tile in the hands of warps: GT_DOWN by GT_ACROSS of them, each with GT_MI by GT_NI squares
   of 16 rows and 8 columns. */
#define GT_DOWN (GT_ROWS >= 32 ? 2 : 1)
#define GT_ACROSS (GT_WARPS / GT_DOWN)
#define GT_MI (GT_ROWS / GT_DOWN / 16)
#define GT_NI (GT_PANEL_WIDTH / GT_ACROSS / 8)

#if GT_PER > 1
/* One number of the left operand; 0 where there is none. */
GT_INLINE uint32_t GT_JOIN(GT_NAME, _number)(int64_t g, int64_t row, int64_t k GT_PARAMS)
{
    const int64_t run = GT_RUN_OF(k), at = k - run * GT_PADDED;
    const GT_NUMBER *x = GT_OPERAND(g);
    const int inside =
        row < (GT_HEIGHT) && run < (GT_DEPTH_RUNS) && at < (GT_RUN) && GT_SEEN(row, run, at);
    return inside ? x[GT_ROW(row) + GT_OFFSET(run, at)] : 0;
}
#endif

/* Brings a chunk of the left operand into shared memory, from rows `row` on. */
GT_INLINE void GT_JOIN(GT_NAME, _left)(uint32_t *a, int whole, int64_t g, int64_t row,
                                       int64_t chunk GT_PARAMS)
{
    if (whole) {
        const GT_NUMBER *x = GT_OPERAND(g);
        const int word = threadIdx.x % (GT_CHUNK / 4) * 4;
        const int64_t k = (chunk * GT_CHUNK + word) * GT_PER;
        const int64_t run = GT_RUN_OF(k), at = k - run * GT_PADDED;
        const int64_t step = GT_OFFSET(run, at), left = run < (GT_DEPTH_RUNS) ? (GT_RUN)-at : 0;
        const int bytes = left >= 4 * GT_PER ? 16 : left > 0 ? (int)left * (int)sizeof *x : 0;
        GT_UNROLL
        for (int r = threadIdx.x / (GT_CHUNK / 4); r < GT_ROWS; r += GT_TEAM / (GT_CHUNK / 4)) {
            const int inside = row + r < (GT_HEIGHT) && bytes && GT_SEEN(row + r, run, at);
            gt_copy_16(a + r * GT_PITCH_A + word,
                       inside ? x + GT_ROW(row + r) + step : x, inside ? bytes : 0);
        }
        return;
    }
    GT_UNROLL
    for (int i = threadIdx.x; i < GT_ROWS * GT_CHUNK; i += GT_TEAM) {
#ifdef GT_ALONG_ROWS
        const int r = i % GT_ROWS, word = i / GT_ROWS;
#else
        const int r = i / GT_CHUNK, word = i % GT_CHUNK;
#endif
        const int64_t k = (chunk * GT_CHUNK + word) * GT_PER;
#if GT_PER > 1
        uint32_t bits = 0;
        GT_UNROLL
        for (int p = 0; p < GT_PER; p++)
            bits |= GT_JOIN(GT_NAME, _number)(g, row + r, k + p GT_ARGS) << 32 / GT_PER * p;
        a[r * GT_PITCH_A + word] = bits;
#else
        const float *x = GT_OPERAND(g);
        const int64_t run = GT_RUN_OF(k), at = k - run * GT_PADDED;
        const int inside =
            row + r < (GT_HEIGHT) && run < (GT_DEPTH_RUNS) && GT_SEEN(row + r, run, at);
        gt_copy_4(a + r * GT_PITCH_A + word,
                  inside ? x + GT_ROW(row + r) + GT_OFFSET(run, at) : x, inside ? 4 : 0);
#endif
    }
}

/* Brings a chunk of a panel into shared memory. */
GT_INLINE void GT_JOIN(GT_NAME, _right)(uint32_t *b, const GT_NUMBER *panel,
                                        int64_t chunk GT_PARAMS)
{
    GT_UNROLL
    for (int i = threadIdx.x; i < GT_LINES_B * GT_LINE / 4; i += GT_TEAM) {
        const int line = i / (GT_LINE / 4), word = i % (GT_LINE / 4) * 4;
        const int64_t at = chunk * GT_LINES_B + line;
        const int inside = at * (GT_CHUNK * GT_PER / GT_LINES_B) < (GT_DEPTH_RUNS) * GT_PADDED;
        gt_copy_16(b + line * GT_PITCH_B + word,
                   (const uint32_t *)panel + (inside ? at * GT_LINE + word : 0), inside ? 16 : 0);
    }
}

#if defined GT_HALF || GT_INTEGERS == 8 || GT_UNIT != GT_UNIT_FMA
/* Adds the products of a chunk to the sums of this thread, by the matrix unit. */
GT_INLINE void GT_JOIN(GT_NAME, _add)(GT_SUM (*acc)[4], const uint32_t *a, const uint32_t *b)
{
    const int lane = threadIdx.x % GT_WARP, warp = threadIdx.x / GT_WARP;
    const int down = warp / GT_ACROSS * GT_MI * 16, across = warp % GT_ACROSS * GT_NI * 8;
#if GT_PER == 1 && GT_UNIT == GT_UNIT_PARTS
    float part[GT_MI * GT_NI][4];
    GT_UNROLL
    for (int i = 0; i < GT_MI * GT_NI; i++) part[i][0] = part[i][1] = part[i][2] = part[i][3] = 0;
#endif
    GT_UNROLL
    for (int step = 0; step < GT_CHUNK; step += 8) {
        uint32_t left[GT_MI][4], right[(GT_NI + 1) / 2][4];
        GT_UNROLL
        for (int i = 0; i < GT_MI; i++)
            gt_squares(left[i],
                       a + (down + i * 16 + lane % 16) * GT_PITCH_A + step + lane / 16 * 4);
        GT_UNROLL
        for (int j = 0; j < GT_NI; j++) {
#if defined GT_HALF && !defined GT_PAIRS
            if (j % 2 == 0)
                gt_squares_across(right[j / 2], b + (2 * step + lane % 16) * GT_PITCH_B +
                                                    (across + j * 8) / 2 +
                                                    (GT_NI > 1 ? lane / 16 * 4 : 0));
#else
            const uint32_t *at = b + (step + lane % 4) * GT_PITCH_B + across + j * 8 + lane / 4;
            right[j / 2][j % 2 * 2] = at[0];
            right[j / 2][j % 2 * 2 + 1] = at[4 * GT_PITCH_B];
#endif
        }
#if GT_INTEGERS == 8
        GT_UNROLL
        for (int i = 0; i < GT_MI; i++)
            GT_UNROLL
            for (int j = 0; j < GT_NI; j++)
                gt_multiply_u8(acc[i * GT_NI + j], left[i], right[j / 2] + j % 2 * 2);
#elif defined GT_HALF
        GT_UNROLL
        for (int i = 0; i < GT_MI; i++)
            GT_UNROLL
            for (int j = 0; j < GT_NI; j++)
                if (GT_HALF == GT_FLOAT16)
                    gt_multiply_f16(acc[i * GT_NI + j], left[i], right[j / 2] + j % 2 * 2);
                else
                    gt_multiply_bf16(acc[i * GT_NI + j], left[i], right[j / 2] + j % 2 * 2);
#else
        uint32_t rests[GT_MI][4];
        GT_UNROLL
        for (int i = 0; i < GT_MI; i++)
            GT_UNROLL
            for (int s = 0; s < 4; s++) {
                rests[i][s] = gt_tf32_rest(left[i][s]);
                left[i][s] = gt_tf32(left[i][s]);
            }
        GT_UNROLL
        for (int j = 0; j < GT_NI; j++) {
            uint32_t *const wide = right[j / 2] + j % 2 * 2;
            const uint32_t rest[2] = {gt_tf32_rest(wide[0]), gt_tf32_rest(wide[1])};
            wide[0] = gt_tf32(wide[0]), wide[1] = gt_tf32(wide[1]);
            GT_UNROLL
            for (int i = 0; i < GT_MI; i++) {
#if GT_UNIT == GT_UNIT_PARTS
                gt_multiply_tf32(part[i * GT_NI + j], rests[i], wide);
                gt_multiply_tf32(part[i * GT_NI + j], left[i], rest);
                gt_multiply_tf32(part[i * GT_NI + j], left[i], wide);
#else
                (void)rests, (void)rest;
                gt_multiply_tf32(acc[i * GT_NI + j], left[i], wide);
#endif
            }
        }
#endif
    }
#if GT_PER == 1 && GT_UNIT == GT_UNIT_PARTS
    GT_UNROLL
    for (int i = 0; i < GT_MI * GT_NI; i++)
        GT_UNROLL
        for (int s = 0; s < 4; s++) acc[i][s] += part[i][s];
#endif
}

/* Where in the tile a sum of this thread belongs. */
GT_INLINE int GT_JOIN(GT_NAME, _place)(int square, int s)
{
    const int lane = threadIdx.x % GT_WARP, warp = threadIdx.x / GT_WARP;
    const int row = (warp / GT_ACROSS * GT_MI + square / GT_NI) * 16 + lane / 4 + s / 2 * 8;
    const int column = (warp % GT_ACROSS * GT_NI + square % GT_NI) * 8 + lane % 4 * 2 + s % 2;
    return row * GT_PITCH_OUT + column;
}
#else
/* The columns of a thread are four adjacent ones, and its rows lie GT_APART from each other. */
#define GT_APART (GT_TEAM / (GT_PANEL_WIDTH / 4))

/* A sum with the products of two words added. */
#ifdef GT_INTEGERS
#define GT_ADDED(sum, x, y)                                                                       \
    ((int32_t)((uint32_t)(sum) + (uint32_t)((int32_t)(int16_t)(x) * (int16_t)(y)) +               \
               (uint32_t)((int32_t)(int16_t)((x) >> 16) * (int16_t)((y) >> 16))))
#else
#define GT_ADDED(sum, x, y) ((sum) + gt_float_of_bits(x) * gt_float_of_bits(y))
#endif

/* Adds the products of a chunk to the sums of this thread, one word after the other. */
GT_INLINE void GT_JOIN(GT_NAME, _add)(GT_SUM (*acc)[4], const uint32_t *a, const uint32_t *b)
{
    const int row = threadIdx.x / (GT_PANEL_WIDTH / 4);
    const int column = threadIdx.x % (GT_PANEL_WIDTH / 4) * 4;
    GT_UNROLL
    for (int k = 0; k < GT_CHUNK; k++) {
        uint32_t right[4];
        GT_UNROLL
        for (int s = 0; s < 4; s++) right[s] = b[k * GT_PITCH_B + column + s];
        GT_UNROLL
        for (int i = 0; i < GT_MI * GT_NI; i++) {
            const uint32_t left = a[(row + i * GT_APART) * GT_PITCH_A + k];
            GT_UNROLL
            for (int s = 0; s < 4; s++) acc[i][s] = GT_ADDED(acc[i][s], left, right[s]);
        }
    }
}

/* Where in the tile a sum of this thread belongs. */
GT_INLINE int GT_JOIN(GT_NAME, _place)(int square, int s)
{
    const int row = threadIdx.x / (GT_PANEL_WIDTH / 4) + square * GT_APART;
    return row * GT_PITCH_OUT + threadIdx.x % (GT_PANEL_WIDTH / 4) * 4 + s;
}
#endif

/* Computes one tile, or a slice of it: the rows from `row` on, by panel `panel` of product g. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(uint32_t *room, int64_t tile, int64_t slice GT_PARAMS)
{
    const int64_t g = tile / (GT_HIGH_TILES * GT_WIDE_TILES), row = tile % GT_HIGH_TILES * GT_ROWS;
    const int64_t panel = tile / GT_HIGH_TILES % GT_WIDE_TILES;
    GT_SUM acc[GT_MI * GT_NI][4];
    const int64_t first = GT_SLICES > 1 ? GT_CHUNKS * slice / GT_SLICES : 0;
    const int64_t chunks = GT_SLICES > 1 ? GT_CHUNKS * (slice + 1) / GT_SLICES : GT_CHUNKS;
    const GT_NUMBER *right = GT_PANELS(g) + panel * (GT_DEPTH_RUNS) * GT_PADDED * GT_PANEL_WIDTH;
    const int whole = GT_WHOLE(g);
    GT_UNROLL
    for (int i = 0; i < GT_MI * GT_NI; i++) acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
    for (int64_t next = first; next < chunks + GT_AHEAD - 1; next++) {
        const int64_t done = next - (GT_AHEAD - 1);
        if (done >= first) {
            gt_copy_wait(GT_AHEAD - 2);
            __syncthreads();
        }
        if (next < chunks) {
            uint32_t *const stage = room + next % GT_AHEAD * GT_BUFFER;
            GT_JOIN(GT_NAME, _left)(stage, whole, g, row, next GT_ARGS);
            GT_JOIN(GT_NAME, _right)(stage + GT_ROWS * GT_PITCH_A, right, next GT_ARGS);
        }
        gt_copy_group();
        if (done >= first) {
            const uint32_t *stage = room + done % GT_AHEAD * GT_BUFFER;
            GT_JOIN(GT_NAME, _add)(acc, stage, stage + GT_ROWS * GT_PITCH_A);
        }
    }
    gt_copy_wait(0);
    __syncthreads();
    GT_SUM *const out = (GT_SUM *)room;
    GT_UNROLL
    for (int i = 0; i < GT_MI * GT_NI; i++)
        GT_UNROLL
        for (int s = 0; s < 4; s++) out[GT_JOIN(GT_NAME, _place)(i, s)] = acc[i][s];
    __syncthreads();
#if GT_SLICES > 1
    if (!GT_JOIN(GT_NAME, _joined)(out, tile, slice GT_ARGS)) return;
#endif
    const int64_t left = panel * GT_PANEL_WIDTH;
    for (int r = threadIdx.x / GT_WARP; r < GT_ROWS; r += GT_WARPS)
        for (int c = threadIdx.x % GT_WARP; c < GT_PANEL_WIDTH; c += GT_WARP)
            if (row + r < (GT_HEIGHT) && left + c < (GT_WIDTH))
                GT_FINISH(out + r * GT_PITCH_OUT + c, g, row + r, left + c);
    __syncthreads();
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    GT_SHARED_ARRAY(uint32_t, room, GT_ROOM);
    for (int64_t at = team; at < GT_TILES * GT_SLICES; at += teams)
        GT_JOIN(GT_NAME, _tile)(room, GT_TILE_OF(at), GT_SLICE_OF(at) GT_ARGS);
}
