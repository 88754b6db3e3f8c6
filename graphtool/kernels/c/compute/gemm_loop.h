/* The loop of a product over blocks of rows and panels, for templates that have the macros of
   gemm.h and define, before they include this:

   GT_SUM    the type of a sum
   GT_HELD   bytes that an element of A takes of the second-level cache
   GT_STEPS  steps in which a tile reads a panel of B, GT_PANEL the panel's bytes
   NAME_sums(rows, b, m, panel, ahead, step, tile GT_ARGS)
             puts the sums [rows][NR] of rows m to m + rows of product b, of one panel, into tile,
             which is vector-aligned; rows is a literal. Each step prefetches the line at `ahead`,
             which moves on by `step` bytes */
#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#ifndef GT_RESIDENT
#define GT_RESIDENT (640 * 1024)
#endif
#ifndef GT_BY_ROWS
#define GT_BY_ROWS ((GT_M) * ((GT_K) + (GT_N)) >= (GT_K) * (GT_N))
#endif

/* The last panel of a row of panels, of which only N % NR columns exist: where that is a constant,
   the epilogue's loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const GT_SUM *tile, int rows, int64_t b, int64_t m,
                                         int64_t n GT_PARAMS)
{
    for (int i = 0; i < rows; i++)
        GT_EPILOGUE(tile + i * GT_NR, b, m + i, n, (GT_N) % GT_NR GT_ARGS);
}

/* Rows m to m + rows of one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    GT_SUM tile[GT_MR * GT_NR] GT_ALIGNED;
    const int64_t n = panel * GT_NR;
    GT_JOIN(GT_NAME, _sums)(rows, b, m, panel, ahead, step, tile GT_ARGS);
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
    const int64_t resident = gt_max(1, (GT_RESIDENT) / GT_MR / gt_max(1, (GT_K)*GT_HELD));
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
        const char *ahead = (const char *)(GT_B(b)) + next * GT_PANEL
                            + (block - first) * GT_STEPS * step;
        if (at < longer)
            GT_CALL(_tile, shorter + 1, GT_MR, b, m, panel, ahead, step GT_ARGS);
        else
            GT_CALL(_tile, shorter, GT_MR, b, m, panel, ahead, step GT_ARGS);

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

#undef GT_HELD
#undef GT_RESIDENT
#undef GT_BY_ROWS
