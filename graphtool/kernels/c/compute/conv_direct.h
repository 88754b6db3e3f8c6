/* Direct 2-d convolution, channels last, a template: every output pixel's channels are handed to an
   epilogue. Define the macros, include this file, repeat; it undefines them at its end.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_MR, GT_NV   the register tile: up to MR pixels of a row (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_TALL        a tile covers up to so many whole output rows (a literal, default 1): for maps so
                  narrow that TALL·OW <= MR; OW is then a constant
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_GROUPS GT_C GT_O   groups, and input and output channels of one group
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size, strides, dilations
   GT_X           const float *, the input, its zero halo included
   GT_XN GT_XH GT_XW     strides of the input in floats: image, row, pixel; channels are adjacent
   GT_W           const float *, the weights [groups][ceil(O/NR)][KH][KW·C][NR], zero padded,
                  64-byte aligned
   GT_HALF        if defined, input and weights hold numbers of 16 bits in uint16_t, and this is
                  their type, as half.h calls it
   GT_PAIRS       if defined too, they are bfloat16 and the weights come in pairs: with one group
                  and DW = 1 of a kernel row, [KH][ceil(KW·C/2)][NR][2], and XW = C if C is odd;
                  else of a tap, [KH][KW][ceil(C/2)][NR][2]
   GT_ROWS_FIRST  whether a row goes through all panels before the next one (1), or a panel through
                  as many rows as stay in the cache (0); left out: rows if the weights stay in it
   GT_PIECES      pieces of a thread's share (default 1); t and threads count pieces
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from the
                  absolute channel o on; acc is vector-aligned, count is the literal NR but in a
                  last, partial panel

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. A 1×1 convolution of stride 1 is better called gemm. */
#include "tile.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifndef GT_PIECES
#define GT_PIECES 1
#endif
#ifndef GT_TALL
#define GT_TALL 1
#endif
#ifndef GT_ROWS_FIRST
#define GT_ROWS_FIRST (all * size * 4 <= 400 * 1024)
#endif
#ifdef GT_HALF
#include "half.h"
#define GT_NUMBER uint16_t
#else
#define GT_NUMBER float
#endif
#ifdef GT_PAIRS
#include "bf16.h"
#define GT_EVEN(n) (((n) + 1) / 2 * 2)
#else
#define GT_EVEN(n) (n)
#endif
#define GT_NR (GT_NV * GT_LANES)
/* pixel i of a tile: its row and column from the first one */
#define GT_DOWN(i) (GT_TALL > 1 ? (i) / (GT_OW) : 0)
#define GT_ALONG(i) (GT_TALL > 1 ? (i) % (GT_OW) : (i))
#define GT_DEPTH                                                                                  \
    ((int64_t)(GT_KH) * ((GT_DW) == 1 && (GT_GROUPS) == 1 ? GT_EVEN((GT_KW) * (GT_C))             \
                                                          : (GT_KW) * GT_EVEN(GT_C)))

/* The last panel of a group, of which only O % NR channels exist: where that is a constant, the
   epilogue's loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const float *tile, int pixels, int64_t n, int64_t oh,
                                         int64_t ow, int64_t channel GT_PARAMS)
{
    for (int i = 0; i < pixels; i++)
        GT_EPILOGUE(tile + i * GT_NR, n, oh + GT_DOWN(i), ow + GT_ALONG(i), channel,
                    (GT_O) % GT_NR GT_ARGS);
}

/* `pixels` neighbours of one output row, or those of some whole rows; one panel of channels. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int pixels, int64_t n, int64_t oh, int64_t ow,
                                       int64_t group, int64_t panel, const GT_NUMBER *w,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    gt_vf acc[GT_MR * GT_NV];
    float tile[GT_MR * GT_NR] GT_ALIGNED;
    const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW)
                     + group * (GT_C);
    /* if a kernel row reads adjacent floats, its columns and channels are one loop */
    const int merged = (GT_DW) == 1 && (GT_XW) == (GT_C);
    const int64_t runs = merged ? 1 : (GT_KW), run = merged ? (GT_KW) * (GT_C) : (GT_C);
    gt_tile_zero(acc, pixels, GT_NV);
    for (int64_t r = 0; r < (GT_KH); r++)
        for (int64_t s = 0; s < runs; s++) {
            const GT_NUMBER *at = x + r * (GT_DH) * (GT_XH) + s * (GT_DW) * (GT_XW);
            const int64_t next = (GT_SW) * (GT_XW), line = GT_TALL > 1 ? (GT_OW) : 0;
#if defined GT_PAIRS
            gt_tile_bf16_lines(acc, pixels, GT_NV, at, next, line, (GT_SH) * (GT_XH), w, run,
                               ahead, step, 0);
#elif defined GT_HALF
            gt_tile_half_lines(acc, pixels, GT_NV, GT_HALF, at, next, line, (GT_SH) * (GT_XH), w,
                               run, ahead, step, 0);
#else
            gt_tile_fma_lines(acc, pixels, GT_NV, at, next, line, (GT_SH) * (GT_XH), w, run, ahead,
                              step, 0);
#endif
            w += GT_EVEN(run) * GT_NR;
            ahead += run * step;
        }
    gt_tile_store(acc, pixels, GT_NV, tile);
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
        int64_t n, int64_t oh, int64_t ow, int64_t group, int64_t panel, const GT_NUMBER *w,      \
        const char *ahead, int64_t step GT_PARAMS)                                                \
    {                                                                                             \
        if (GT_TALL > 1 ? pixels % (GT_OW) == 0 && GT_OCCURS(pixels / (GT_OW), GT_OH, GT_TALL)    \
                        : GT_OCCURS(pixels, GT_OW, GT_MR))                                        \
            GT_JOIN(GT_NAME, _tile)(pixels, n, oh, ow, group, panel, w, ahead, step GT_ARGS);     \
    }
GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE

GT_INLINE void GT_JOIN(GT_NAME, _pixels)(int64_t pixels, int64_t n, int64_t oh, int64_t ow,
                                         int64_t group, int64_t panel, const GT_NUMBER *w,
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
    const int64_t blocks = GT_TALL > 1 ? 1 : gt_ceil_div(GT_OW, GT_MR);
    const int64_t panels = gt_ceil_div(GT_O, GT_NR), all = panels * (GT_GROUPS);
    const int64_t size = GT_DEPTH * GT_NR;
    const int64_t line = ((GT_SH) * (GT_SW) * (GT_C) + (GT_O)) * (int64_t)(GT_GROUPS) * (GT_OW);
    if (!(GT_ROWS_FIRST) && gt_by_rows(rows, shares) && all * size <= rows * GT_TALL * line) {
        base = gt_part(rows, t / each, shares);
        rows = gt_part(rows, t / each + 1, shares) - base;
        t = (int)(t % each), threads = (int)each;
    }
    const int64_t units = rows * all * blocks, end = gt_part(units, t + 1, threads);
    int64_t u = gt_part(units, t, threads);
    if (u >= end) return;
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    const int64_t resident =
        GT_ROWS_FIRST
            ? 1
            : gt_max(1, 640 * 1024 / 4 / (GT_TALL * (int64_t)(GT_SH) * (GT_C) * (GT_SW) * (GT_OW)));
    const int64_t chunk = gt_ceil_div(rows, gt_ceil_div(rows, resident));

    int64_t first = u / (all * chunk * blocks) * chunk, width = gt_min(chunk, rows - first);
    int64_t rest = u - first * all * blocks;
    int64_t p = rest / (width * blocks), tile = rest % (width * blocks);
    /* together, the tiles of a panel prefetch the whole next panel */
    int64_t step = gt_ceil_div(GT_NR * 4, width * blocks);
    for (; u < end; u++) {
        const int64_t row = base + first + tile / blocks, block = tile % blocks;
        const int64_t ow = block * shorter + gt_min(block, longer);
        const int64_t n = row / bands, band = row % bands, oh = band * lower + gt_min(band, taller);
        const int64_t group = p / panels, panel = p % panels;
        const GT_NUMBER *w = GT_W + p * size;
        const char *ahead = (const char *)(GT_W + (p + 1 < all ? p + 1 : 0) * size)
                            + tile * GT_DEPTH * step;
        const int64_t pixels = GT_TALL > 1 ? (lower + (band < taller)) * (GT_OW)
                                           : shorter + (block < longer);
        GT_JOIN(GT_NAME, _pixels)(pixels, n, oh, ow, group, panel, w, ahead, step GT_ARGS);

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
#undef GT_MR
#undef GT_NV
#undef GT_NR
#undef GT_DEPTH
#undef GT_EVEN
#undef GT_NUMBER
#undef GT_HALF
#undef GT_PAIRS
#undef GT_TALL
#undef GT_ROWS_FIRST
#undef GT_DOWN
#undef GT_ALONG
#undef GT_BATCH
#undef GT_OH
#undef GT_OW
#undef GT_GROUPS
#undef GT_C
#undef GT_O
#undef GT_KH
#undef GT_KW
#undef GT_SH
#undef GT_SW
#undef GT_DH
#undef GT_DW
#undef GT_X
#undef GT_XN
#undef GT_XH
#undef GT_XW
#undef GT_W
#undef GT_PIECES
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
