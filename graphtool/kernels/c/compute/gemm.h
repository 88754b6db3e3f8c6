/* Matrix product with a packed right-hand side, a template: C[b] = A[b]·B[b], handed row by row to
   an epilogue. Define the macros, include this file, repeat; it undefines them at its end.

   GT_NAME       the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_MR, GT_NV  the register tile: up to MR rows (a literal) of NV vectors; NR = NV·GT_LANES
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in floats
   GT_LDK        stride from one element of a row to the next; left out: they are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       const float *, A of product b
   GT_B(b)       const float *, B of product b, packed [ceil(N/NR)][K][NR], zero padded, 64-byte
                 aligned
   GT_HALF       if defined, A and B hold numbers of 16 bits in uint16_t, and this is their type, as
                 half.h calls it; sums are float still. With GT_LDK, LDA is then 1
   GT_PAIRS      if defined too, they are bfloat16 and B's rows come in pairs:
                 [ceil(N/NR)][ceil(K/2)][NR][2]
   GT_RESIDENT   bytes of rows of A that stay in the second-level cache: so many go through all
                 panels together (default 640 KB)
   GT_BY_ROWS    whether threads take rows each (1) or cut the whole sequence evenly (0); left out:
                 rows where all of B costs less than rows of A and C that move from core to core
   GT_PIECES     pieces of a thread's share (default 1); t and threads count pieces
   GT_PARAMS     more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` sums of row m from column n on; acc
                 is vector-aligned, count is the literal NR but in a last, partial panel

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. With MR <= 4 the product is bound by reading B, and the
   panel itself is streamed: make it wide, NV = 8 for one row. */
#include "tile.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifndef GT_PIECES
#define GT_PIECES 1
#endif
#ifndef GT_RESIDENT
#define GT_RESIDENT (640 * 1024)
#endif
#ifndef GT_BY_ROWS
#define GT_BY_ROWS ((GT_M) * ((GT_K) + (GT_N)) >= (GT_K) * (GT_N))
#endif
#ifdef GT_HALF
#include "half.h"
#endif
#ifdef GT_PAIRS
#include "bf16.h"
#define GT_DEPTH (((GT_K) + 1) / 2 * 2) /* numbers of a column of a panel */
#else
#define GT_DEPTH (GT_K)
#endif
#define GT_NR (GT_NV * GT_LANES)

/* The last panel of a row of panels, of which only `count` columns exist. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const float *tile, int rows, int64_t b, int64_t m,
                                         int64_t n, int64_t count GT_PARAMS)
{
    for (int i = 0; i < rows; i++) GT_EPILOGUE(tile + i * GT_NR, b, m + i, n, count GT_ARGS);
}

/* Rows m to m + rows of one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    gt_vf acc[GT_MR * GT_NV];
    float tile[GT_MR * GT_NR] GT_ALIGNED;
    const int64_t n = panel * GT_NR;
    gt_tile_zero(acc, rows, GT_NV);
#ifdef GT_LDK
    (void)ahead, (void)step;
#endif
#if defined GT_PAIRS && defined GT_LDK
    gt_tile_bf16_across(acc, rows, GT_NV, GT_A(b) + m, GT_LDK, GT_B(b) + n * GT_DEPTH, GT_K);
#elif defined GT_PAIRS
    gt_tile_bf16_lines(acc, rows, GT_NV, GT_A(b) + m * (GT_LDA), GT_LDA, 0, 0,
                       GT_B(b) + n * GT_DEPTH, GT_K, ahead, step, GT_MR <= 4 ? 8 : 0);
#elif defined GT_HALF && defined GT_LDK
    gt_tile_half_across(acc, rows, GT_NV, GT_HALF, GT_A(b) + m, GT_LDK, GT_B(b) + n * GT_DEPTH,
                        GT_K, ahead, step, GT_MR <= 4 ? 8 : 0);
#elif defined GT_HALF
    gt_tile_half_lines(acc, rows, GT_NV, GT_HALF, GT_A(b) + m * (GT_LDA), GT_LDA, 0, 0,
                       GT_B(b) + n * GT_DEPTH, GT_K, ahead, step, GT_MR <= 4 ? 8 : 0);
#elif defined GT_LDK
    gt_tile_fma_across(acc, rows, GT_NV, GT_A(b) + m * (GT_LDA), GT_LDA, GT_LDK,
                       GT_B(b) + n * (GT_K), GT_K);
#else
    gt_tile_fma(acc, rows, GT_NV, GT_A(b) + m * (GT_LDA), GT_LDA, GT_B(b) + n * (GT_K), GT_K, ahead,
                step, GT_MR <= 4 ? 8 : 0);
#endif
    gt_tile_store(acc, rows, GT_NV, tile);
    if ((GT_N) % GT_NR != 0 && n + GT_NR > (GT_N)) {
        GT_JOIN(GT_NAME, _tail)(tile, rows, b, m, n, (GT_N)-n GT_ARGS);
        return;
    }
    for (int i = 0; i < rows; i++) GT_EPILOGUE(tile + i * GT_NR, b, m + i, n, GT_NR GT_ARGS);
}

#define GT_INSTANCE(rows)                                                                         \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(int64_t b, int64_t m, int64_t panel,           \
                                                   const char *ahead, int64_t step GT_PARAMS)     \
    {                                                                                             \
        if (GT_OCCURS(rows, GT_M, GT_MR))                                                         \
            GT_JOIN(GT_NAME, _tile)(rows, b, m, panel, ahead, step GT_ARGS);                      \
    }
GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE

GT_INLINE void GT_JOIN(GT_NAME, _rows)(int64_t rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    switch (rows) {
#define GT_INSTANCE(rows)                                                                         \
    case rows: GT_JOIN(GT_NAME, _tile##rows)(b, m, panel, ahead, step GT_ARGS); break;
        GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* Rows fall into balanced blocks: `longer` blocks of shorter + 1 rows, then those of shorter.
       A unit of work is one block times one panel, in the order batch, chunk, panel, block; a chunk
       is as many blocks as leave their rows of A in L2. Threads take a range of blocks each, as the
       kernels before and after do, or they cut the whole sequence evenly. */
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), all = gt_ceil_div(GT_M, GT_MR);
    if (all == 0) return;
    const int64_t shorter = (GT_M) / all, longer = (GT_M) % all;
    const int64_t each = gt_each(threads, GT_PIECES), shares = threads / each;
    int64_t base = 0, blocks = all;
    if ((GT_BATCH) == 1 && (GT_BY_ROWS) && gt_by_rows(all, shares)) {
        base = gt_part(all, t / each, shares);
        blocks = gt_part(all, t / each + 1, shares) - base;
        t = (int)(t % each), threads = (int)each;
    }
    const int64_t units = (GT_BATCH) * panels * blocks, end = gt_part(units, t + 1, threads);
    int64_t u = gt_part(units, t, threads);
    if (u >= end) return;
    const int64_t resident = gt_max(1, (GT_RESIDENT) / 4 / GT_MR / gt_max(1, GT_K));
    const int64_t chunk = gt_ceil_div(blocks, gt_ceil_div(blocks, resident));

    int64_t b = u / (panels * blocks), rest = u % (panels * blocks);
    int64_t first = rest / (panels * chunk) * chunk, width = gt_min(chunk, blocks - first);
    rest -= first * panels;
    int64_t panel = rest / width, block = first + rest % width;
    /* together, the blocks of a panel prefetch the whole next panel */
    int64_t step = gt_ceil_div(GT_NR * 4, width);
    for (; u < end; u++) {
        const int64_t at = base + block, m = at * shorter + gt_min(at, longer);
        const int64_t next = panel + 1 < panels ? panel + 1 : 0;
        const char *ahead = (const char *)(GT_B(b) + next * GT_NR * GT_DEPTH)
                            + (block - first) * (GT_K) * step;
        if (at < longer)
            GT_JOIN(GT_NAME, _rows)(shorter + 1, b, m, panel, ahead, step GT_ARGS);
        else
            GT_JOIN(GT_NAME, _rows)(shorter, b, m, panel, ahead, step GT_ARGS);

        if (++block < first + width) continue;
        block = first;
        if (++panel < panels) continue;
        panel = 0;
        first += width;
        if (first == blocks) {
            first = 0;
            b++;
        }
        block = first;
        width = gt_min(chunk, blocks - first);
        step = gt_ceil_div(GT_NR * 4, width);
    }
}

#pragma GCC diagnostic pop
#undef GT_NAME
#undef GT_MR
#undef GT_NV
#undef GT_NR
#undef GT_M
#undef GT_N
#undef GT_K
#undef GT_LDA
#undef GT_LDK
#undef GT_BATCH
#undef GT_HALF
#undef GT_PAIRS
#undef GT_DEPTH
#undef GT_RESIDENT
#undef GT_BY_ROWS
#undef GT_A
#undef GT_B
#undef GT_PIECES
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
