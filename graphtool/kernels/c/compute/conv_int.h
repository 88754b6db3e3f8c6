/* Direct 2-d convolution of small integers, channels last, a template: every output pixel's int32
   sums are handed to an epilogue. Define the macros, include this file, repeat; it undefines them
   at its end.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_PAIRS       1: input and weights hold int16_t; 0: the input uint8_t, the weights int8_t
   GT_MR, GT_NV   the register tile: up to MR pixels of a row (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_TALL        a tile covers up to so many whole output rows (a literal): for maps so narrow
                  that TALL·OW <= MR; OW is then a constant
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_GROUPS GT_O  groups, and output channels of one group
   GT_STEP        elements from one group's input channels to the next one's
   GT_KH GT_SH GT_SW GT_DH  rows of the kernel, strides, dilation of rows
   GT_RUNS GT_RUN GT_HOP  a kernel row is RUNS runs of RUN adjacent elements, HOP apart
   GT_X           the input, its padding included
   GT_XN GT_XH GT_XW     strides of the input in elements: image, row, pixel
   GT_W           the weights [groups][ceil(O/NR)][KH][RUNS][ceil(RUN/G)][NR][G], zero padded,
                  64-byte aligned; G is 2 for pairs, else 4
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t o, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from the absolute channel o on; acc is vector-aligned, count is the literal
                  NR but in a last, partial panel

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. */
#include "int8.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#define GT_NR (GT_NV * GT_LANES)
#define GT_SIZE (GT_PAIRS ? 2 : 1) /* bytes of an element */
/* pixel i of a tile: its row and column from the first one */
#define GT_DOWN(i) (GT_TALL > 1 ? (i) / (GT_OW) : 0)
#define GT_ALONG(i) (GT_TALL > 1 ? (i) % (GT_OW) : (i))
#define GT_QUADS gt_ceil_div((GT_RUN) * GT_SIZE, 4) /* of a run */
#define GT_PANEL ((GT_KH) * (GT_RUNS) * GT_QUADS * GT_NR * 4)

/* The last panel of a group, of which only O % NR channels exist: where that is a constant, the
   epilogue's loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const int32_t *tile, int pixels, int64_t n, int64_t oh,
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
    gt_vi acc[GT_MR * GT_NV];
    int32_t tile[GT_MR * GT_NR] GT_ALIGNED;
    const char *x = (const char *)(GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH)
                                   + ow * (GT_SW) * (GT_XW) + group * (GT_STEP));
    gt_ints_zero(acc, pixels * GT_NV);
    for (int64_t r = 0; r < (GT_KH); r++)
        for (int64_t s = 0; s < (GT_RUNS); s++) {
            gt_ints_tile(acc, pixels, GT_NV, x + (r * (GT_DH) * (GT_XH) + s * (GT_HOP)) * GT_SIZE,
                         (GT_SW) * (GT_XW) * GT_SIZE, GT_TALL > 1 ? (GT_OW) : 0,
                         (GT_SH) * (GT_XH) * GT_SIZE, w, (GT_RUN) * GT_SIZE, GT_PAIRS, ahead, step,
                         0);
            w += GT_QUADS * GT_NR * 4;
            ahead += GT_QUADS * step;
        }
    gt_ints_store(acc, pixels * GT_NV, tile);
    const int64_t o = panel * GT_NR, channel = group * (GT_O) + o;
    if ((GT_O) % GT_NR != 0 && o + GT_NR > (GT_O)) {
        GT_JOIN(GT_NAME, _tail)(tile, pixels, n, oh, ow, channel GT_ARGS);
        return;
    }
    for (int i = 0; i < pixels; i++)
        GT_EPILOGUE(tile + i * GT_NR, n, oh + GT_DOWN(i), ow + GT_ALONG(i), channel, GT_NR GT_ARGS);
}

#define GT_INSTANCE(pixels)                                                                       \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##pixels)(                                             \
        int64_t n, int64_t oh, int64_t ow, int64_t group, int64_t panel, const char *w,           \
        const char *ahead, int64_t step GT_PARAMS)                                                \
    {                                                                                             \
        if (GT_TALL > 1 ? pixels % (GT_OW) == 0 && GT_OCCURS(pixels / (GT_OW), GT_OH, GT_TALL)    \
                        : GT_OCCURS(pixels, GT_OW, GT_MR))                                        \
            GT_JOIN(GT_NAME, _tile)(pixels, n, oh, ow, group, panel, w, ahead, step GT_ARGS);     \
    }
GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE

GT_INLINE void GT_JOIN(GT_NAME, _pixels)(int64_t pixels, int64_t n, int64_t oh, int64_t ow,
                                         int64_t group, int64_t panel, const char *w,
                                         const char *ahead, int64_t step GT_PARAMS)
{
    switch (pixels) {
#define GT_INSTANCE(pixels)                                                                       \
    case pixels:                                                                                  \
        GT_JOIN(GT_NAME, _tile##pixels)(n, oh, ow, group, panel, w, ahead, step GT_ARGS);         \
        break;
        GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* A row of pixels falls into balanced blocks. A unit of work is one block times one panel, in
       the order chunk of rows, panel, row, block: a chunk is one row where the weights stay in L2,
       else as many rows as do. The threads cut that sequence evenly. Where a tile is tall, a row
       here is a band of them. */
    const int64_t bands = gt_ceil_div(GT_OH, GT_TALL), rows = (GT_BATCH) * bands;
    const int64_t lower = bands ? (GT_OH) / bands : 0, taller = bands ? (GT_OH) % bands : 0;
    const int64_t blocks = GT_TALL > 1 ? 1 : gt_ceil_div(GT_OW, GT_MR);
    const int64_t panels = gt_ceil_div(GT_O, GT_NR), all = panels * (GT_GROUPS);
    const int64_t units = rows * all * blocks, end = gt_part(units, t + 1, threads);
    int64_t u = gt_part(units, t, threads);
    if (u >= end) return;
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    const int64_t line = GT_TALL * (int64_t)(GT_SH) * (GT_XH) * GT_SIZE;
    const int64_t resident = all * GT_PANEL <= 400 * 1024 ? 1 : gt_max(1, 640 * 1024 / line);
    const int64_t chunk = gt_ceil_div(rows, gt_ceil_div(rows, resident));

    int64_t first = u / (all * chunk * blocks) * chunk, width = gt_min(chunk, rows - first);
    int64_t rest = u - first * all * blocks;
    int64_t p = rest / (width * blocks), tile = rest % (width * blocks);
    /* together, the tiles of a panel prefetch the whole next panel */
    int64_t step = gt_ceil_div(GT_NR * 4, width * blocks);
    for (; u < end; u++) {
        const int64_t row = first + tile / blocks, block = tile % blocks;
        const int64_t ow = block * shorter + gt_min(block, longer);
        const int64_t n = row / bands, band = row % bands, oh = band * lower + gt_min(band, taller);
        const char *w = (const char *)(GT_W) + p * GT_PANEL;
        const char *ahead = (const char *)(GT_W) + (p + 1 < all ? p + 1 : 0) * GT_PANEL
                            + tile * (GT_PANEL / GT_NR / 4) * step;
        const int64_t pixels = GT_TALL > 1 ? (lower + (band < taller)) * (GT_OW)
                                           : shorter + (block < longer);
        GT_JOIN(GT_NAME, _pixels)(pixels, n, oh, ow, p / panels, p % panels, w, ahead,
                                  step GT_ARGS);

        if (++tile < width * blocks) continue;
        tile = 0;
        if (++p < all) continue;
        p = 0;
        first += width;
        width = gt_max(1, gt_min(chunk, rows - first));
        step = gt_ceil_div(GT_NR * 4, width * blocks);
    }
}

#pragma GCC diagnostic pop
#undef GT_NAME
#undef GT_PAIRS
#undef GT_MR
#undef GT_NV
#undef GT_NR
#undef GT_SIZE
#undef GT_TALL
#undef GT_DOWN
#undef GT_ALONG
#undef GT_QUADS
#undef GT_PANEL
#undef GT_BATCH
#undef GT_OH
#undef GT_OW
#undef GT_GROUPS
#undef GT_O
#undef GT_STEP
#undef GT_KH
#undef GT_SH
#undef GT_SW
#undef GT_DH
#undef GT_RUNS
#undef GT_RUN
#undef GT_HOP
#undef GT_X
#undef GT_XN
#undef GT_XH
#undef GT_XW
#undef GT_W
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
