/* The loop of products that copy blocks of their left operand, for templates that have the macros
   of gemm_blocked.h and define, before they include this:

   GT_PRODUCTS   how many independent products
   GT_COPY       the type of a copied number, which is that of B too
   GT_LINES      lines of A: rows, or segments of them; a block is up to MR of them, a literal
   GT_TALL       numbers of GT_COPY that a copied block takes
   GT_SET        numbers of GT_COPY that the sums of a block and a panel take, where they are set
                 aside
   GT_UNIT       the depth is cut at multiples of it
   GT_COLUMN     the depth of a panel of B, with the zeros at its end
   GT_PLANES       numbers of B for an element of the depth and a column, if they are not one
   GT_STEPS(k)   steps in which a tile reads a panel of depth k
   NAME_copy(lines, b, line, k, depth, count, to GT_ARGS)
                 copies `count` blocks of so many lines, a literal, of product b, from element k on
   NAME_tile(lines, b, line, panel, left, right, depth, ahead, step, aside, begun, ends GT_ARGS)
                 multiplies so many copied lines by a part of a panel: sums set aside go on, if
                 `begun`, and are set aside again, or handed out if it `ends`. Each step prefetches
                 the line at `ahead`, which moves on by `step` bytes
   GT_TAKES      if defined, NAME_take(b, panel, k, depth, to GT_ARGS) makes of a part of a panel
                 what tiles read instead of it, at `to`, behind the sums, and returns it
                 Without GT_B only that knows where the elements are, and nothing is prefetched
   GT_SHAPE      rows of a segment, for tiles of a matrix unit; left out: there are none */

#ifndef GT_PLANES
#define GT_PLANES 1
#endif
/* Where the sums of a block and a panel are set aside: behind the copies. */
#define GT_ASIDE(base, block, panel)                                                              \
    ((float *)((base) + (GT_CHUNK) * (GT_TALL) + ((panel) * (GT_CHUNK) + (block)) * (GT_SET)))

#define GT_INSTANCE(lines, ...)                                                                   \
    GT_NOINLINE void GT_JOIN(GT_NAME, _copy##lines)(int64_t b, int64_t line, int64_t k,           \
                                                    int64_t depth, int64_t count,                 \
                                                    GT_COPY *restrict to GT_PARAMS)               \
    {                                                                                             \
        if (GT_OCCURS(lines, GT_LINES, GT_MR))                                                    \
            GT_JOIN(GT_NAME, _copy)(lines, b, line, k, depth, count, to GT_ARGS);                 \
    }                                                                                             \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##lines)(                                              \
        int64_t b, int64_t line, int64_t panel, const GT_COPY *left, const GT_COPY *right,        \
        int64_t depth, const char *ahead, int64_t step, float *aside, int begun,                  \
        int ends GT_PARAMS)                                                                       \
    {                                                                                             \
        if (GT_OCCURS(lines, GT_LINES, GT_MR))                                                    \
            GT_JOIN(GT_NAME, _tile)(lines, b, line, panel, left, right, depth, ahead, step,       \
                                    aside, begun, ends GT_ARGS);                                  \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* Blocks c to next of product b by panels p to above: elements k to end of the depth, the copies
   first. Lines fall into balanced blocks, as in gemm_loop.h. */
GT_INLINE void GT_JOIN(GT_NAME, _part)(int64_t b, int64_t c, int64_t next, int64_t p,
                                       int64_t above, int64_t k, int64_t end,
                                       GT_COPY *work GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_LINES, GT_MR);
    const int64_t shorter = (GT_LINES) / blocks, longer = (GT_LINES) % blocks;
    int64_t step = 0;
#ifdef GT_B
    step = gt_ceil_div(GT_NR * 4, next - c); /* they prefetch the next panel */
#endif
    const int64_t turn = gt_min(gt_max(c, longer), next); /* blocks from here on are shorter */
    if (c < turn)
        GT_CALL(_copy, shorter + 1, GT_MR, b, c * (shorter + 1), k, end - k, turn - c,
                work GT_ARGS);
    if (turn < next)
        GT_CALL(_copy, shorter, GT_MR, b, turn * shorter + longer, k, end - k, next - turn,
                work + (turn - c) * (GT_TALL) GT_ARGS);
    for (int64_t q = p; q < above; q++) {
        const GT_COPY *right = work;
        const char *ahead = (const char *)work;
#ifdef GT_B
        const int64_t whole = (GT_COLUMN) * GT_PLANES * GT_NR;
        right = (const GT_COPY *)(GT_B(b)) + q * whole + k * GT_PLANES * GT_NR;
        ahead = (const char *)(right + (q + 1 < above ? whole : 0));
#endif
#ifdef GT_TAKES
        right = GT_JOIN(GT_NAME, _take)(b, q, k, end - k,
                                        (GT_COPY *)GT_ASIDE(work, 0, GT_WIDTH) GT_ARGS);
#endif
        for (int64_t i = c; i < next; i++, ahead += GT_STEPS(end - k) * step)
            GT_CALL(_tile, shorter + (i < longer), GT_MR, b, i * shorter + gt_min(i, longer), q,
                    work + (i - c) * (GT_TALL), right, end - k, ahead, step,
                    GT_ASIDE(work, i - c, q - p), k > 0, end == (GT_K) GT_ARGS);
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* Loops from the outermost: products, panels, blocks, depth; each of the last three as many at
       a time as caches hold. */
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), blocks = gt_ceil_div(GT_LINES, GT_MR);
    const int64_t units = gt_ceil_div(GT_K, GT_UNIT);
    const int64_t depths = gt_max(1, gt_ceil_div(GT_K, GT_DEEP));
    const int64_t wide = depths > 1 ? (GT_WIDTH) : panels; /* sums that need not be set aside */
    const int64_t first = (GT_BY_ROWS) ? gt_part(blocks, t, threads) : 0;
    const int64_t last = (GT_BY_ROWS) ? gt_part(blocks, t + 1, threads) : blocks;
    const int64_t left = (GT_BY_ROWS) ? 0 : gt_part(panels, t, threads);
    const int64_t right = (GT_BY_ROWS) ? panels : gt_part(panels, t + 1, threads);
    const int64_t mine = last - first, chunks = gt_ceil_div(mine, GT_CHUNK); /* balanced too */
#ifdef GT_SHAPE
    gt_amx_shape(GT_SHAPE);
#endif
    for (int64_t b = 0; b < (GT_PRODUCTS); b++)
        for (int64_t p = left; p < right; p += wide)
            for (int64_t c = 0; c < chunks; c++)
                for (int64_t d = 0; d < depths; d++)
                    GT_JOIN(GT_NAME, _part)(b, first + gt_part(mine, c, chunks),
                                            first + gt_part(mine, c + 1, chunks), p,
                                            gt_min(p + wide, right),
                                            gt_part(units, d, depths) * GT_UNIT,
                                            gt_min(gt_part(units, d + 1, depths) * GT_UNIT, GT_K),
                                            (GT_COPY *)(GT_WORK(t)) GT_ARGS);
#ifdef GT_SHAPE
    gt_amx_done();
#endif
}
