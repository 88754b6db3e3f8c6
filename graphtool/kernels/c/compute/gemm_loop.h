/* The loop of sums over blocks of lines and panels, for templates that define, before they include
   this:

   GT_PRODUCTS  how many independent products
   GT_LINES     lines of each product: rows of A, or segments of them; a block is up to MR of them,
                a literal
   GT_HELD      bytes that a line takes of the second-level cache, and GT_RESIDENT how many bytes of
                lines stay there
   GT_WIDE      panels that such lines go through before the next lines do; left out: all of them
   GT_BY_ROWS   whether threads take lines each, or cut the whole sequence evenly
   GT_STEPS     steps in which a tile reads a panel of B, GT_PANEL the panel's bytes
   NAME_tileN(b, line, panel, ahead, step GT_ARGS)
                computes N lines of product b, of one panel, for every N up to MR. Each step
                prefetches the line at `ahead`, which moves on by `step` bytes
   GT_SHAPE     rows of a segment, for tiles of a matrix unit; left out: there are none
   GT_GROUP     if defined, NAME_group of amx_loop.h takes up to so many blocks in place of tiles */
#ifndef GT_WIDE
#define GT_WIDE panels
#endif
static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* Lines fall into balanced blocks: `longer` blocks of shorter + 1, then those of shorter.
       A unit of work is one block times one panel, in the order batch, group of panels, chunk,
       panel, block; a chunk is as many blocks as leave their lines of A in L2. Threads take a range
       of blocks each, as the kernels before and after do, or they cut the whole sequence evenly. */
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), all = gt_ceil_div(GT_LINES, GT_MR);
    if (all == 0) return;
    const int64_t shorter = (GT_LINES) / all, longer = (GT_LINES) % all;
    const int64_t each = gt_each(threads, GT_PIECES), shares = threads / each;
    int64_t base = 0, blocks = all;
    if ((GT_PRODUCTS) == 1 && (GT_BY_ROWS) && gt_by_rows(all, shares)) {
        base = gt_part(all, t / each, shares);
        blocks = gt_part(all, t / each + 1, shares) - base;
        t = (int)(t % each), threads = (int)each;
    }
    const int64_t units = (GT_PRODUCTS) * panels * blocks, end = gt_part(units, t + 1, threads);
    int64_t u = gt_part(units, t, threads);
    if (u >= end) return;
    const int64_t resident = gt_max(1, (GT_RESIDENT) / GT_MR / gt_max(1, GT_HELD));
    const int64_t chunk = gt_ceil_div(blocks, gt_ceil_div(blocks, resident));
    const int64_t groups = gt_ceil_div(panels, gt_max(1, GT_WIDE));
    const int64_t group = gt_ceil_div(panels, groups);
#ifdef GT_SHAPE
    gt_amx_shape(GT_SHAPE);
#endif
    while (u < end) {
        /* the unit u: where its product, its group and its chunk begin, and how large they are */
        const int64_t b = u / (panels * blocks), in_b = u % (panels * blocks);
        const int64_t left = in_b / (group * blocks) * group, wide = gt_min(group, panels - left);
        const int64_t in_group = in_b - left * blocks;
        const int64_t first = in_group / (wide * chunk) * chunk;
        const int64_t width = gt_min(chunk, blocks - first), in_chunk = in_group - first * wide;
        int64_t panel = left + in_chunk / width, block = first + in_chunk % width;
        for (; panel < left + wide && u < end; panel++, block = first) {
            const int64_t next = panel + 1 < left + wide ? panel + 1 : left;
#ifdef GT_GROUP
            for (; block < first + width && u < end;) {
                const int64_t some = gt_min(gt_min(GT_GROUP, first + width - block), end - u);
                GT_JOIN(GT_NAME, _group)
                (b, base + block, some, shorter, longer, panel, next, block == first GT_ARGS);
                block += some, u += some;
            }
#else
            /* together, the blocks of a panel prefetch the whole next panel */
            const int64_t step = gt_ceil_div(GT_NR * 4, width);
            const char *ahead = (const char *)(GT_B(b)) + next * GT_PANEL
                                + (block - first) * GT_STEPS * step;
            for (; block < first + width && u < end; block++, u++, ahead += GT_STEPS * step) {
                const int64_t at = base + block, line = at * shorter + gt_min(at, longer);
                GT_CALL(_tile, shorter + (at < longer), GT_MR, b, line, panel, ahead,
                        step GT_ARGS);
            }
#endif
        }
    }
#ifdef GT_SHAPE
    gt_amx_done();
#endif
}
