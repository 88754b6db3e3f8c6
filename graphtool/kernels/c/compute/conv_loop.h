/* The loop of a direct convolution over its output pixels and panels of weights, for templates that
   have the macros of conv_direct.h and define, before they include this:

   GT_SUM         the type of a sum
   GT_SIZE        bytes of an element of input and weights, GT_HELD those that one of the input
                  takes of the second-level cache
   GT_STEPS       steps in which a tile reads a panel of weights, GT_PANEL the panel's bytes
   GT_LINE        elements of the input that a row of outputs of one group reads
   GT_ALIKE(ow)   if defined, the pixel before which a tile that begins at ow ends at the latest
   NAME_sums(pixels, n, oh, ow, group, w, ahead, step, tile GT_ARGS)
                  puts the sums [pixels][NR] of the pixels from (oh, ow) on, of the panel at w, into
                  tile, which is vector-aligned; pixels is a literal. Each step prefetches the line
                  at `ahead`, which moves on by `step` bytes */
#ifdef GT_ALIKE
#define GT_APART 1
#else
#define GT_APART 0
#define GT_ALIKE(ow) (GT_OW)
#endif
#ifndef GT_ROWS_FIRST
#define GT_ROWS_FIRST (all * GT_STEPS * GT_NR * 4 <= 400 * 1024)
#endif
/* pixel i of a tile: its row and column from the first one */
#define GT_DOWN(i) (GT_TALL > 1 ? (i) / (GT_OW) : 0)
#define GT_ALONG(i) (GT_TALL > 1 ? (i) % (GT_OW) : (i))

/* The last panel of a group, of which only O % NR channels exist: where that is a constant, the
   epilogue's loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const GT_SUM *tile, int pixels, int64_t n, int64_t oh,
                                         int64_t ow, int64_t channel GT_PARAMS)
{
    for (int i = 0; i < pixels; i++)
        GT_EPILOGUE(tile + i * GT_NR, n, oh + GT_DOWN(i), ow + GT_ALONG(i), channel,
                    (GT_O) % GT_NR GT_ARGS);
}

/* `pixels` neighbours of one output row, or those of some whole rows; one panel of channels. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int pixels, int64_t n, int64_t oh, int64_t ow,
                                       int64_t group, int64_t panel, const char *w,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    GT_SUM tile[GT_MR * GT_NR] GT_ALIGNED;
    GT_JOIN(GT_NAME, _sums)(pixels, n, oh, ow, group, w, ahead, step, tile GT_ARGS);
    const int64_t o = panel * GT_NR, channel = group * (GT_O) + o;
    if ((GT_O) % GT_NR != 0 && o + GT_NR > (GT_O)) {
        GT_JOIN(GT_NAME, _tail)(tile, pixels, n, oh, ow, channel GT_ARGS);
        return;
    }
    for (int i = 0; i < pixels; i++)
        GT_EPILOGUE(tile + i * GT_NR, n, oh + GT_DOWN(i), ow + GT_ALONG(i), channel, GT_NR GT_ARGS);
}

#define GT_INSTANCE(pixels, ...)                                                                  \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##pixels)(                                             \
        int64_t n, int64_t oh, int64_t ow, int64_t group, int64_t panel, const char *w,           \
        const char *ahead, int64_t step GT_PARAMS)                                                \
    {                                                                                             \
        if (GT_TALL > 1 ? pixels % (GT_OW) == 0 && GT_OCCURS(pixels / (GT_OW), GT_OH, GT_TALL)    \
                        : GT_APART || GT_OCCURS(pixels, GT_OW, GT_MR))                            \
            GT_JOIN(GT_NAME, _tile)(pixels, n, oh, ow, group, panel, w, ahead, step GT_ARGS);     \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* A row of pixels falls into balanced blocks: `longer` blocks of shorter + 1, then the others.
       A unit of work is one block times one panel, in the order chunk of rows, panel, row, block:
       a chunk is one row, or as many rows as stay in L2.
       The threads cut that sequence evenly, or, where panels are outermost, take rows each, as the
       kernels before and after do: if all weights are fewer than what would move from core to core.
       Where a tile is tall, a row here is a band of them. */
    const int64_t bands = gt_ceil_div(GT_OH, GT_TALL);
    const int64_t each = gt_each(threads, GT_PIECES), shares = threads / each;
    int64_t base = 0, rows = (GT_BATCH) * bands;
    const int64_t lower = bands ? (GT_OH) / bands : 0, taller = bands ? (GT_OH) % bands : 0;
    int64_t blocks = GT_TALL > 1 ? 1 : 0;
    for (int64_t from = 0; GT_TALL == 1 && from < (GT_OW); from = GT_ALIKE(from))
        blocks += gt_ceil_div(GT_ALIKE(from) - from, GT_MR);
    const int64_t panels = gt_ceil_div(GT_O, GT_NR), all = panels * (GT_GROUPS);
    const int64_t moved = ((GT_LINE) + (GT_O) * (int64_t)(GT_OW)) * (GT_GROUPS) * GT_SIZE;
    if (!(GT_ROWS_FIRST) && gt_by_rows(rows, shares)
        && all * GT_PANEL <= rows * GT_TALL * moved) {
        base = gt_part(rows, t / each, shares);
        rows = gt_part(rows, t / each + 1, shares) - base;
        t = (int)(t % each), threads = (int)each;
    }
    const int64_t units = rows * all * blocks, end = gt_part(units, t + 1, threads);
    int64_t u = gt_part(units, t, threads);
    if (u >= end) return;
    const int64_t resident =
        GT_ROWS_FIRST ? 1 : gt_max(1, 640 * 1024 / gt_max(1, GT_TALL * (GT_LINE)*GT_HELD));
    const int64_t chunk = gt_ceil_div(rows, gt_ceil_div(rows, resident));

    int64_t first = u / (all * chunk * blocks) * chunk, width = gt_min(chunk, rows - first);
    int64_t rest = u - first * all * blocks;
    int64_t p = rest / (width * blocks), tile = rest % (width * blocks);
    /* together, the tiles of a panel prefetch the whole next panel */
    int64_t step = gt_ceil_div(GT_NR * 4, width * blocks);
    for (; u < end; u++) {
        const int64_t row = base + first + tile / blocks;
        int64_t block = tile % blocks;
        /* the pixels `from` to `past` are alike, and `block` is now one of `some` of them */
        int64_t from = 0, past = GT_ALIKE(0), some = GT_TALL > 1 ? 1 : gt_ceil_div(past, GT_MR);
        while (block >= some) {
            block -= some;
            from = past, past = GT_ALIKE(from), some = gt_ceil_div(past - from, GT_MR);
        }
        const int64_t shorter = (past - from) / some, longer = (past - from) % some;
        const int64_t ow = from + block * shorter + gt_min(block, longer);
        const int64_t n = row / bands, band = row % bands, oh = band * lower + gt_min(band, taller);
        const int64_t group = p / panels, panel = p % panels;
        const char *w = (const char *)(GT_W) + p * GT_PANEL;
        const char *ahead = (const char *)(GT_W) + (p + 1 < all ? p + 1 : 0) * GT_PANEL
                            + tile * GT_STEPS * step;
        const int64_t pixels = GT_TALL > 1 ? (lower + (band < taller)) * (GT_OW)
                                           : shorter + (block < longer);
        GT_CALL(_tile, pixels, GT_MR, n, oh, ow, group, panel, w, ahead, step GT_ARGS);

        if (++tile < width * blocks) continue;
        tile = 0;
        if (++p < all) continue;
        p = 0;
        first += width;
        width = gt_max(1, gt_min(chunk, rows - first));
        step = gt_ceil_div(GT_NR * 4, width * blocks);
    }
}
