/* Depthwise 2-d convolution (one filter a channel), channels last, a template. Define the macros,
   include this file, repeat; it undefines them at its end.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_BH, GT_BW   the register block: BH rows of up to BW pixels (literals); BH·BW + KW + 1
                  registers are in use, 2×7 suits 32 of them and 3×3, 1×7 larger kernels and strides
   GT_CB          vectors of channels that one sweep over the image takes: 1 for large maps, 2 small
   GT_BATCH GT_OH GT_OW GT_C            images, output rows, output columns, channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size (KW a constant), strides, dilations
   GT_X           const float *, the input, its zero halo included
   GT_XN GT_XH GT_XW  strides of the input in floats: image, row, pixel; channels are adjacent
   GT_XT          floats from one tap of a row to the next, DW pixels if left out: neighbours of few
                  channels that are taken for one pixel lie closer than pixels; SW is 1 then
   GT_W           const float *, the weights [KH][KW][C]
   GT_HALF        if defined, both hold numbers of 16 bits in uint16_t, and this is their type, as
                  half.h calls it
   GT_Y(n, oh)    if there is GT_SUMS, const float *, where the epilogue stores row oh of image n
   GT_YW GT_YC    the steps there from pixel to pixel, and from channel to channel
   GT_SUMS(n, oh) if defined, float *, where the sums over that row's pixels go
   GT_SUMC        the step there from channel to channel
   GT_PIECES      pieces of a thread's share (default 1); t and threads count pieces
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t c, int64_t count GT_PARAMS): takes `count` channels of one pixel from c
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. */
#include "tile.h"
#ifdef GT_SUMS
#include "row_sums.h"
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifndef GT_PIECES
#define GT_PIECES 1
#endif

#ifdef GT_HALF
#include "half.h"
#define GT_NUMBER uint16_t
#define GT_READ(p) gt_load_half(GT_HALF, p)
#define GT_READ_FIRST(p, count) gt_load_half_first(GT_HALF, p, count)
#else
#define GT_NUMBER float
#define GT_READ(p) gt_load(p)
#define GT_READ_FIRST(p, count) gt_load_first(p, count)
#endif
#ifdef GT_XT
#define GT_APART 1
#else
#define GT_APART 0
#define GT_XT ((GT_DW) * (GT_XW))
#endif

/* height × width pixels, one vector of channels from c on. The first `done` lanes were finished by
   the vector before: the last vector overlaps it where C is not a multiple of GT_LANES. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int height, const int width, int64_t n, int64_t oh,
                                        int64_t ow, int64_t c, int64_t done GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES;
    const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW) + c;
    gt_vf acc[GT_BH * GT_BW];
    gt_tile_zero(acc, height * width, 1);
    for (int r = 0; r < (GT_KH); r++) {
        gt_vf w[GT_KW];
        GT_UNROLL for (int s = 0; s < (GT_KW); s++)
        {
            const GT_NUMBER *p = GT_W + ((int64_t)r * (GT_KW) + s) * (GT_C) + c;
            w[s] = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
        }
        GT_UNROLL for (int h = 0; h < height; h++)
        {
            /* an input pixel is loaded once and used for every output of the row that reads it; if
               taps are so far apart that outputs share none, each loads its own */
            const int columns = (width - 1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 1;
            if (GT_APART || columns >= width * (GT_KW)) {
                GT_UNROLL for (int i = 0; i < width * (GT_KW); i++)
                {
                    const GT_NUMBER *p = x + ((int64_t)h * (GT_SH) + r * (GT_DH)) * (GT_XH)
                                         + i / (GT_KW) * (GT_SW) * (int64_t)(GT_XW)
                                         + i % (GT_KW) * (int64_t)(GT_XT);
                    const gt_vf v = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
                    acc[h * width + i / (GT_KW)] += v * w[i % (GT_KW)];
                }
            } else {
                GT_UNROLL for (int j = 0; j < columns; j++)
                {
                    const GT_NUMBER *p = x + ((int64_t)h * (GT_SH) + r * (GT_DH)) * (GT_XH)
                                         + (int64_t)j * (GT_XW);
                    const gt_vf v = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
                    GT_UNROLL for (int i = 0; i < width; i++)
                    {
                        const int offset = j - i * (GT_SW), s = offset / (GT_DW);
                        if (offset >= 0 && offset % (GT_DW) == 0 && s < (GT_KW))
                            acc[h * width + i] += v * w[s];
                    }
                }
            }
        }
    }
    float tile[GT_BH * GT_BW * GT_LANES] GT_ALIGNED;
    gt_tile_store(acc, height * width, 1, tile);
    const int64_t count = narrow ? (GT_C) : GT_LANES - done;
    for (int h = 0; h < height; h++)
        for (int i = 0; i < width; i++) {
            float *out = tile + (h * width + i) * GT_LANES;
            if (done) memmove(out, out + done, (size_t)count * sizeof(float));
            GT_EPILOGUE(out, n, oh + h, ow + i, c + done, count GT_ARGS);
        }
}

/* The vectors of one channel block over one block of pixels. */
#define GT_INSTANCE(width)                                                                        \
    GT_INLINE void GT_JOIN(GT_NAME, _sweep##width)(const int height, int64_t n, int64_t oh,       \
                                                   int64_t ow, int64_t first,                     \
                                                   int64_t last GT_PARAMS)                        \
    {                                                                                             \
        for (int64_t c = first; c < last; c += GT_LANES)                                          \
            if (c + GT_LANES <= (GT_C) || (GT_C) < GT_LANES)                                      \
                GT_JOIN(GT_NAME, _block)(height, width, n, oh, ow, c, 0 GT_ARGS);                 \
            else                                                                                  \
                GT_JOIN(GT_NAME, _block)(height, width, n, oh, ow, (GT_C)-GT_LANES,               \
                                         c + GT_LANES - (GT_C)GT_ARGS);                           \
    }                                                                                             \
    GT_NOINLINE void GT_JOIN(GT_NAME, _high##width)(int64_t n, int64_t oh, int64_t ow,            \
                                                    int64_t first, int64_t last GT_PARAMS)        \
    {                                                                                             \
        if (GT_OCCURS(width, GT_OW, GT_BW))                                                       \
            GT_JOIN(GT_NAME, _sweep##width)(GT_BH, n, oh, ow, first, last GT_ARGS);               \
    }                                                                                             \
    GT_NOINLINE void GT_JOIN(GT_NAME, _low##width)(int64_t n, int64_t oh, int64_t ow,             \
                                                   int64_t first, int64_t last GT_PARAMS)         \
    {                                                                                             \
        if (GT_OCCURS(width, GT_OW, GT_BW))                                                       \
            GT_JOIN(GT_NAME, _sweep##width)(1, n, oh, ow, first, last GT_ARGS);                   \
    }
GT_UPTO(GT_BW, GT_INSTANCE)
#undef GT_INSTANCE

GT_INLINE void GT_JOIN(GT_NAME, _pixels)(int64_t width, int64_t high, int64_t n, int64_t oh,
                                         int64_t ow, int64_t first, int64_t last GT_PARAMS)
{
    switch (width) {
#define GT_INSTANCE(width)                                                                        \
    case width:                                                                                   \
        if (high)                                                                                 \
            GT_JOIN(GT_NAME, _high##width)(n, oh, ow, first, last GT_ARGS);                       \
        else                                                                                      \
            GT_JOIN(GT_NAME, _low##width)(n, oh, ow, first, last GT_ARGS);                        \
        break;
        GT_UPTO(GT_BW, GT_INSTANCE)
#undef GT_INSTANCE
    }
}

/* Rows top to top + height of one channel block; what is left over of the bands, row by row. */
GT_INLINE void GT_JOIN(GT_NAME, _slice)(int64_t n, int64_t slice, int64_t top,
                                        int64_t height GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_OW, GT_BW);
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    const int64_t first = slice * GT_LANES * (GT_CB);
    const int64_t last = gt_min(GT_C, first + GT_LANES * (GT_CB));
    for (int64_t oh = top; oh < top + height;) {
        const int64_t high = oh + GT_BH <= top + height;
        int64_t ow = 0;
        for (; ow < longer * (shorter + 1); ow += shorter + 1)
            GT_JOIN(GT_NAME, _pixels)(shorter + 1, high, n, oh, ow, first, last GT_ARGS);
        for (; ow < (GT_OW); ow += shorter)
            GT_JOIN(GT_NAME, _pixels)(shorter, high, n, oh, ow, first, last GT_ARGS);
#ifdef GT_SUMS
        for (int64_t row = oh; row < oh + (high ? GT_BH : 1); row++)
            gt_row_sums(GT_Y(n, row), GT_OW, GT_YW, GT_YC, GT_SUMS(n, row), GT_SUMC, first, last);
#endif
        oh += high ? GT_BH : 1;
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* The order is image, channel block, rows: so the input rows that neighbours share are still in
       cache. Threads take rows, as the kernels before and after do, so that each finds in its own
       cache what it wrote; where rows are few, they take bands of channel blocks. */
    const int64_t slices = gt_ceil_div(GT_C, GT_LANES * (GT_CB)), rows = (GT_BATCH) * (GT_OH);
    if (rows == 0 || (GT_OW) == 0) return;
    const int64_t each = gt_each(threads, GT_PIECES), shares = threads / each;
    if (gt_by_rows(rows, shares)) { /* a piece has whole blocks of rows */
        const int64_t low = gt_part(rows, t / each, shares);
        const int64_t high = gt_part(rows, t / each + 1, shares);
        const int64_t blocks = gt_ceil_div(high - low, GT_BH);
        const int64_t end = gt_min(high, low + gt_part(blocks, t % each + 1, each) * GT_BH);
        for (int64_t row = low + gt_part(blocks, t % each, each) * GT_BH; row < end;) {
            const int64_t n = row / (GT_OH), top = row % (GT_OH);
            const int64_t height = gt_min(end - row, (GT_OH)-top);
            for (int64_t slice = 0; slice < slices; slice++)
                GT_JOIN(GT_NAME, _slice)(n, slice, top, height GT_ARGS);
            row += height;
        }
        return;
    }
    const int64_t bands = gt_ceil_div(GT_OH, GT_BH), units = (GT_BATCH) * slices * bands;
    for (int64_t u = gt_part(units, t, threads); u < gt_part(units, t + 1, threads); u++) {
        const int64_t top = u % bands * GT_BH;
        GT_JOIN(GT_NAME, _slice)
        (u / (bands * slices), u / bands % slices, top, gt_min(GT_BH, (GT_OH)-top) GT_ARGS);
    }
}

#pragma GCC diagnostic pop
#undef GT_NUMBER
#undef GT_READ
#undef GT_READ_FIRST
#undef GT_HALF
#undef GT_NAME
#undef GT_BH
#undef GT_BW
#undef GT_CB
#undef GT_BATCH
#undef GT_OH
#undef GT_OW
#undef GT_C
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
#undef GT_XT
#undef GT_APART
#undef GT_W
#undef GT_Y
#undef GT_YW
#undef GT_YC
#undef GT_SUMS
#undef GT_SUMC
#undef GT_PIECES
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
