/* Product of small integers with a packed right-hand side, a template: C[b] = A[b]·B[b] in int32,
   handed row by row to an epilogue. Define the macros, include this file, repeat; it undefines
   them at its end.

   GT_NAME       the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_PAIRS      1: A and B hold int16_t; 0: A holds uint8_t, B int8_t
   GT_MR, GT_NV  the register tile: up to MR rows (a literal) of NV vectors; NR = NV·GT_LANES
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in elements; those of a row are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       A of product b
   GT_B(b)       B of product b, packed [ceil(N/NR)][ceil(K/G)][NR][G], zero padded, 64-byte
                 aligned; G is 2 for pairs, else 4
   GT_PIECES     pieces of a thread's share (default 1); t and threads count pieces
   GT_PARAMS     more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE   static inline void f(const int32_t *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` sums of row m from column n on; acc
                 is vector-aligned, count is the literal NR but in a last, partial panel

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. With MR <= 4 the product is bound by reading B, and the
   panel itself is streamed. */
#include "int8.h"

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
#define GT_NR (GT_NV * GT_LANES)
#define GT_SIZE (GT_PAIRS ? 2 : 1) /* bytes of an element */
#define GT_PANEL (gt_ceil_div((GT_K) * GT_SIZE, 4) * GT_NR * 4)

/* The last panel of a row of panels, of which only N % NR columns exist: where that is a constant,
   the epilogue's loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const int32_t *tile, int rows, int64_t b, int64_t m,
                                         int64_t n GT_PARAMS)
{
    for (int i = 0; i < rows; i++)
        GT_EPILOGUE(tile + i * GT_NR, b, m + i, n, (GT_N) % GT_NR GT_ARGS);
}

/* Rows m to m + rows of one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    gt_vi acc[GT_MR * GT_NV];
    int32_t tile[GT_MR * GT_NR] GT_ALIGNED;
    const int64_t n = panel * GT_NR;
    gt_ints_zero(acc, rows * GT_NV);
    gt_ints_tile(acc, rows, GT_NV, (const char *)(GT_A(b) + m * (GT_LDA)), (GT_LDA) * GT_SIZE, 0, 0,
                 (const char *)GT_B(b) + panel * GT_PANEL, (GT_K) * GT_SIZE, GT_PAIRS, ahead, step,
                 GT_MR <= 4 ? 8 : 0);
    gt_ints_store(acc, rows * GT_NV, tile);
    if ((GT_N) % GT_NR != 0 && n + GT_NR > (GT_N)) {
        GT_JOIN(GT_NAME, _tail)(tile, rows, b, m, n GT_ARGS);
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

/* Blocks [first, first + width) of rows through all panels of product b, as far as `u` and `end`
   say: the units before u and from end on are others'. */
GT_INLINE void GT_JOIN(GT_NAME, _chunk)(int64_t b, int64_t first, int64_t width, int64_t u,
                                        int64_t end GT_PARAMS)
{
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), all = gt_ceil_div(GT_M, GT_MR);
    const int64_t shorter = (GT_M) / all, longer = (GT_M) % all;
    /* together, the blocks of a panel prefetch the whole next panel */
    const int64_t step = gt_ceil_div(GT_NR * 4, width);
    for (; u < end; u++) {
        const int64_t panel = u / width, block = first + u % width;
        const int64_t m = block * shorter + gt_min(block, longer);
        const char *ahead = (const char *)GT_B(b) + (panel + 1 < panels ? panel + 1 : 0) * GT_PANEL
                            + u % width * gt_ceil_div((GT_K) * GT_SIZE, 4) * step;
        if (block < longer)
            GT_JOIN(GT_NAME, _rows)(shorter + 1, b, m, panel, ahead, step GT_ARGS);
        else
            GT_JOIN(GT_NAME, _rows)(shorter, b, m, panel, ahead, step GT_ARGS);
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* Rows fall into balanced blocks. A unit of work is one block times one panel, in the order
       batch, chunk, panel, block; a chunk is as many blocks as leave their rows of A in L2. Threads
       take a range of blocks each, as the kernels before and after do, where B costs less than rows
       that move from core to core; else they cut the whole sequence evenly. */
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), all = gt_ceil_div(GT_M, GT_MR);
    if (all == 0) return;
    const int64_t each = gt_each(threads, GT_PIECES), shares = threads / each;
    const int own = (GT_BATCH) == 1 && (GT_M) * ((GT_K) + (GT_N)) >= (GT_K) * (GT_N)
                    && gt_by_rows(all, shares);
    const int64_t low = own ? gt_part(all, t / each, shares) : 0;
    const int64_t high = own ? gt_part(all, t / each + 1, shares) : all;
    const int64_t a_row = gt_max(1, (GT_K) * GT_SIZE);
    const int64_t resident = gt_max(1, 640 * 1024 / GT_MR / a_row);
    const int64_t chunk = gt_ceil_div(high - low, gt_max(1, gt_ceil_div(high - low, resident)));
    const int64_t units = (GT_BATCH) * panels * (high - low);
    const int64_t begin = own ? gt_part(units, t % each, each) : gt_part(units, t, threads);
    const int64_t end = own ? gt_part(units, t % each + 1, each) : gt_part(units, t + 1, threads);
    int64_t seen = 0; /* units of the chunks before */
    for (int64_t b = 0; b < (GT_BATCH); b++)
        for (int64_t first = low; first < high; first += chunk) {
            const int64_t width = gt_min(chunk, high - first), size = width * panels;
            const int64_t from = gt_max(begin - seen, 0), to = gt_min(end - seen, size);
            if (from < to) GT_JOIN(GT_NAME, _chunk)(b, first, width, from, to GT_ARGS);
            seen += size;
        }
}

#pragma GCC diagnostic pop
#undef GT_NAME
#undef GT_PAIRS
#undef GT_MR
#undef GT_NV
#undef GT_NR
#undef GT_SIZE
#undef GT_PANEL
#undef GT_M
#undef GT_N
#undef GT_K
#undef GT_LDA
#undef GT_BATCH
#undef GT_A
#undef GT_B
#undef GT_PIECES
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
