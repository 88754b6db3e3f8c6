/* Sums of products in large tiles, as product_cuda.h computes them, by the instructions of
   cuda_wide.h: a block computes GT_ROWS rows by 128 columns of a panel of weights.

   A chunk of the depth is 128 bytes of each row and each column. The rows are copied piece by
   piece, so that they may be pixels of a window; of the panel, a chunk is 16 KB side by side, which
   one thread has copied. While chunk i is multiplied, the ones behind it are on their way: into the
   buffer of chunk i - 1 too, whose products are done. The header that includes this one defines
   what product_cuda.h lists, and these come from the use:

   GT_HALF    numbers have 16 bits, of this type
   GT_UNIT    they are float, and product_cuda.h says how the unit multiplies them; with neither,
              they are u8 by s8, and sums int32
   GT_SHARED  bytes of shared memory that the launch gives: buffers for GT_STAGES chunks

   Floats are rounded, or split in two parts, before the unit reads them: those of the rows in
   registers, from where the unit takes them; those of the panel in shared memory. The sums of parts
   leave the unit after each chunk. */
#ifdef GT_HALF
#define GT_SUM float
#define GT_NUMBER uint16_t
#define GT_PRODUCT(d, a, b)                                                                       \
    (GT_HALF == GT_FLOAT16 ? gt_wide_f16(d, a, b) : gt_wide_bf16(d, a, b))
#elif defined GT_UNIT
#define GT_SUM float
#define GT_NUMBER float
#else
#define GT_SUM int32_t
#define GT_NUMBER uint8_t
#define GT_PRODUCT gt_wide_u8
#endif
#define GT_PER (16 / (int)sizeof(GT_NUMBER)) /* numbers of a piece */
#define GT_PIECES_OF_A_CHUNK (GT_ROW_BYTES / 16)
#ifndef GT_SEEN
#define GT_SEEN(row, run, at) 1
#endif
#define GT_PADDED (((GT_RUN) + GT_PER - 1) / GT_PER * GT_PER)
#define GT_CHUNKS                                                                                 \
    (((GT_DEPTH_RUNS) * GT_PADDED + GT_PER * GT_PIECES_OF_A_CHUNK - 1) /                          \
     (GT_PER * GT_PIECES_OF_A_CHUNK))
/* The run that a place of the depth is in, in 32 bits where the depth fits. */
#define GT_RUN_OF(k)                                                                              \
    ((GT_DEPTH_RUNS) * (int64_t)GT_PADDED < INT32_MAX                                             \
         ? (int64_t)((uint32_t)(k) / (uint32_t)GT_PADDED)                                         \
         : (k) / GT_PADDED)
#define GT_PANEL_WIDTH GT_WIDE_COLUMNS
#define GT_LEFT_BYTES (GT_ROWS * GT_ROW_BYTES)
#define GT_RIGHT_BYTES (GT_PANEL_WIDTH * GT_ROW_BYTES)
#if defined GT_UNIT && GT_UNIT == GT_UNIT_PARTS
#define GT_REST_BYTES GT_RIGHT_BYTES /* the second parts of a chunk of a panel */
#else
#define GT_REST_BYTES 0
#endif
#define GT_STAGES ((GT_SHARED - GT_REST_BYTES) / (GT_LEFT_BYTES + GT_RIGHT_BYTES))
#define GT_TALL (GT_ROWS / GT_WIDE_ROWS)
#define GT_STEPS (GT_ROW_BYTES / GT_WIDE_BYTES) /* of a chunk, of which each is an instruction's */
#define GT_STEP(k) GT_FURTHER((k) * GT_WIDE_BYTES * GT_WIDE_COLUMNS)
#define GT_AHEAD (GT_STAGES - 1)
#define GT_PITCH_OUT (GT_PANEL_WIDTH + 4)
#define GT_HIGH_TILES (((GT_HEIGHT) + GT_ROWS - 1) / GT_ROWS)
#define GT_WIDE_TILES (((GT_WIDTH) + GT_PANEL_WIDTH - 1) / GT_PANEL_WIDTH)
#define GT_TILES ((GT_GROUPED) * GT_HIGH_TILES * GT_WIDE_TILES)

/* One piece of the left operand, number by number; zeros where there are none. */
GT_INLINE void GT_JOIN(GT_NAME, _piece)(void *to, int64_t g, int64_t row, int64_t run,
                                        int64_t at GT_PARAMS)
{
    const GT_NUMBER *x = GT_OPERAND(g);
    GT_PIECE GT_NUMBER piece[GT_PER];
    const int inside = row < (GT_HEIGHT) && run < (GT_DEPTH_RUNS);
    GT_UNROLL
    for (int i = 0; i < GT_PER; i++)
        piece[i] = inside && at + i < (GT_RUN) && GT_SEEN(row, run, at + i)
                       ? x[GT_ROW(row) + GT_OFFSET(run, at + i)] : 0;
    gt_write_16(to, piece);
}

/* Brings a chunk of the left operand into shared memory, from rows `row` on. */
GT_INLINE void GT_JOIN(GT_NAME, _left)(unsigned char *to, int whole, int64_t g, int64_t row,
                                       int64_t chunk GT_PARAMS)
{
    const GT_NUMBER *x = GT_OPERAND(g);
#ifdef GT_ALONG_ROWS
    GT_UNROLL
    for (int i = threadIdx.x; i < GT_ROWS * GT_PIECES_OF_A_CHUNK * GT_PER; i += GT_TEAM) {
        const int r = i % GT_ROWS, k = i / GT_ROWS, piece = k / GT_PER;
        const int64_t at = chunk * GT_PIECES_OF_A_CHUNK * GT_PER + k;
        const int inside = row + r < (GT_HEIGHT) && at < (GT_RUN);
        gt_copy_4(to + r * GT_ROW_BYTES + (piece ^ r % 8) * 16 + k % GT_PER * 4,
                  inside ? x + GT_ROW(row + r) + GT_OFFSET(0, at) : x, inside ? 4 : 0);
    }
#else
    const int piece = threadIdx.x % GT_PIECES_OF_A_CHUNK;
    const int64_t k = (chunk * GT_PIECES_OF_A_CHUNK + piece) * GT_PER;
    const int64_t run = GT_RUN_OF(k), at = k - run * GT_PADDED;
    const int64_t step = GT_OFFSET(run, at), left = run < (GT_DEPTH_RUNS) ? (GT_RUN)-at : 0;
    const int bytes = left >= GT_PER ? 16 : left > 0 ? (int)left * (int)sizeof *x : 0;
    GT_UNROLL
    for (int r = threadIdx.x / GT_PIECES_OF_A_CHUNK; r < GT_ROWS;
         r += GT_TEAM / GT_PIECES_OF_A_CHUNK) {
        unsigned char *const place = to + r * GT_ROW_BYTES + (piece ^ r % 8) * 16;
        const int inside = row + r < (GT_HEIGHT) && bytes && GT_SEEN(row + r, run, at);
        if (whole)
            gt_copy_16(place, inside ? x + GT_ROW(row + r) + step : x, inside ? bytes : 0);
        else
            GT_JOIN(GT_NAME, _piece)(place, g, row + r, run, at GT_ARGS);
    }
#endif
}

#ifdef GT_UNIT
/* Makes the panel's floats what the unit reads: rounds them; or, as it cuts them off by itself, has
   what that leaves in `rests`. */
GT_INLINE void GT_JOIN(GT_NAME, _right)(unsigned char *right, unsigned char *rests)
{
    GT_UNROLL
    for (int at = threadIdx.x * 16; at < GT_RIGHT_BYTES; at += GT_TEAM * 16) {
        GT_PIECE uint32_t w[4];
        gt_read_16(w, right + at);
        GT_UNROLL
        for (int i = 0; i < 4; i++) w[i] = gt_tf32(GT_REST_BYTES ? gt_tf32_cut(w[i]) : w[i]);
        gt_write_16((GT_REST_BYTES ? rests : right) + at, w);
    }
    gt_async_fence();
    __syncthreads();
}

/* Begins the products of a chunk. With parts, the sums begin at 0; the small ones are added first,
   as the unit truncates its sums. */
GT_INLINE void GT_JOIN(GT_NAME, _add)(GT_SUM (*acc)[GT_WIDE_SUMS], unsigned char *stage,
                                      unsigned char *rests)
{
    uint32_t a[GT_TALL][GT_STEPS][4], rest[GT_TALL][GT_STEPS][4];
    unsigned char *const panel = stage + GT_LEFT_BYTES;
    GT_JOIN(GT_NAME, _right)(panel, rests);
    GT_UNROLL
    for (int i = 0; i < GT_TALL; i++)
        GT_UNROLL
        for (int k = 0; k < GT_STEPS; k++) {
            gt_wide_rows(a[i][k], stage + i * GT_WIDE_ROWS * GT_ROW_BYTES, k * GT_WIDE_BYTES);
            GT_UNROLL
            for (int s = 0; s < 4; s++) {
                rest[i][k][s] = gt_tf32_rest(a[i][k][s]);
                a[i][k][s] = gt_tf32(a[i][k][s]);
            }
        }
    gt_wide_begin();
    GT_UNROLL
    for (int k = 0; GT_REST_BYTES && k < GT_STEPS; k++)
        GT_UNROLL
        for (int i = 0; i < GT_TALL; i++) {
            gt_wide_tf32(acc[i], rest[i][k], gt_in_columns(panel) + GT_STEP(k), k > 0);
            gt_wide_tf32(acc[i], a[i][k], gt_in_columns(rests) + GT_STEP(k), 1);
        }
    GT_UNROLL
    for (int k = 0; k < GT_STEPS; k++)
        GT_UNROLL
        for (int i = 0; i < GT_TALL; i++)
            gt_wide_tf32(acc[i], a[i][k], gt_in_columns(panel) + GT_STEP(k), 1);
    gt_wide_end();
}
#else
/* Adds the products of a chunk to the sums of this thread, some time before they are waited for. */
GT_INLINE void GT_JOIN(GT_NAME, _add)(GT_SUM (*acc)[GT_WIDE_SUMS], unsigned char *stage,
                                      unsigned char *rests)
{
    const uint64_t left = gt_in_rows(stage), right = gt_in_columns(stage + GT_LEFT_BYTES);
    (void)rests;
    gt_wide_begin();
    GT_UNROLL
    for (int k = 0; k < GT_STEPS; k++)
        GT_UNROLL
        for (int i = 0; i < GT_TALL; i++) {
            const uint64_t a =
                left + GT_FURTHER(i * GT_WIDE_ROWS * GT_ROW_BYTES + k * GT_WIDE_BYTES);
            GT_PRODUCT(acc[i], a, right + GT_STEP(k));
        }
    gt_wide_end();
}
#endif

/* Computes one tile: the rows from `row` on, by panel `panel` of product g. `turn` counts the
   chunks of this block. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(unsigned char *room, uint64_t *ready, uint32_t *turn,
                                       int64_t tile GT_PARAMS)
{
    const int64_t g = tile / (GT_HIGH_TILES * GT_WIDE_TILES), row = tile % GT_HIGH_TILES * GT_ROWS;
    const int64_t panel = tile / GT_HIGH_TILES % GT_WIDE_TILES;
    const unsigned char *right =
        (const unsigned char *)(GT_PANELS(g)) + panel * GT_CHUNKS * GT_RIGHT_BYTES;
    const int whole = GT_WHOLE(g);
    unsigned char *const rests = room + GT_STAGES * (GT_LEFT_BYTES + GT_RIGHT_BYTES);
    GT_SUM acc[GT_TALL][GT_WIDE_SUMS];
#if GT_REST_BYTES
    GT_SUM part[GT_TALL][GT_WIDE_SUMS];
#else
    GT_SUM (*const part)[GT_WIDE_SUMS] = acc;
#endif
    GT_UNROLL
    for (int i = 0; i < GT_TALL; i++)
        GT_UNROLL
        for (int s = 0; s < GT_WIDE_SUMS; s++) acc[i][s] = 0;
    for (int64_t next = 0; next < GT_CHUNKS + GT_AHEAD; next++) {
        if (next >= GT_AHEAD) {
            const uint32_t stage = *turn % GT_STAGES;
            gt_copy_wait(GT_AHEAD - 1);
            gt_barrier_wait(ready + stage, *turn / GT_STAGES % 2);
            gt_async_fence();
            gt_wide_wait(); /* for the chunk before */
            __syncthreads();
            GT_JOIN(GT_NAME, _add)(part, room + stage * (GT_LEFT_BYTES + GT_RIGHT_BYTES), rests);
            ++*turn;
        }
        if (next < GT_CHUNKS) {
            const uint32_t stage =
                (*turn + (next < GT_AHEAD ? (uint32_t)next : GT_AHEAD - 1)) % GT_STAGES;
            unsigned char *const to = room + stage * (GT_LEFT_BYTES + GT_RIGHT_BYTES);
            if (threadIdx.x == 0)
                gt_copy_bulk(to + GT_LEFT_BYTES, right + next * GT_RIGHT_BYTES, GT_RIGHT_BYTES,
                             ready + stage);
            GT_JOIN(GT_NAME, _left)(to, whole, g, row, next GT_ARGS);
        }
        gt_copy_group();
#if GT_REST_BYTES
        gt_wide_wait();
        GT_UNROLL
        for (int i = 0; next >= GT_AHEAD && i < GT_TALL; i++)
            GT_UNROLL
            for (int s = 0; s < GT_WIDE_SUMS; s++) acc[i][s] += part[i][s];
#endif
    }
    gt_wide_wait();
    __syncthreads();
    GT_SUM *const out = (GT_SUM *)room;
    const int lane = threadIdx.x % GT_WARP, first = threadIdx.x / GT_WARP * 16 + lane / 4;
    GT_UNROLL
    for (int i = 0; i < GT_TALL; i++)
        GT_UNROLL
        for (int s = 0; s < GT_WIDE_SUMS; s++)
            out[(i * GT_WIDE_ROWS + first + s / 2 % 2 * 8) * GT_PITCH_OUT + s / 4 * 8 +
                lane % 4 * 2 + s % 2] = acc[i][s];
    __syncthreads();
    const int64_t wide = panel * GT_PANEL_WIDTH;
    for (int r = threadIdx.x / GT_WARP; r < GT_ROWS; r += GT_WARPS)
        for (int c = lane; c < GT_PANEL_WIDTH; c += GT_WARP)
            if (row + r < (GT_HEIGHT) && wide + c < (GT_WIDTH))
                GT_FINISH(out + r * GT_PITCH_OUT + c, g, row + r, wide + c);
    gt_async_fence();
    __syncthreads();
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    unsigned char *const room = (unsigned char *)gt_room(GT_SHARED);
    __shared__ uint64_t ready[GT_STAGES];
    uint32_t turn = 0;
    if (threadIdx.x < GT_STAGES) gt_barrier(ready + threadIdx.x);
    gt_async_fence();
    __syncthreads();
    for (int64_t tile = team; tile < GT_TILES; tile += teams)
        GT_JOIN(GT_NAME, _tile)(room, ready, &turn, tile GT_ARGS);
}
