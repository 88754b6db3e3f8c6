/* Pooling over the rows and columns of images, channels last, a template: the largest, the smallest
   or the sum of each window is handed to an epilogue. A window is joined column by column, and
   neighbours of a row share the columns they have in common.

   GT_KIND        0 sum, 1 largest, 2 smallest; a NaN in a window is its largest and its smallest
   GT_BW          up to so many pixels of a row at a time (a literal)
   GT_BATCH GT_OH GT_OW GT_C            images, output rows, output columns, channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  window (KW a constant), strides, dilations
   GT_X           const float *, the input, its padding included
   GT_XN GT_XH GT_XW  strides of the input in elements: image, row, pixel; channels are adjacent
   GT_HALF        if defined, the input holds numbers of 16 bits in uint16_t, and this is their
                  type, as half.h calls it
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t c, int64_t count GT_PARAMS): takes `count` channels of one pixel from c
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Shares need no barrier among themselves. */
#include "extremes.h"
#include "tile.h"

#ifndef GT_POOLED_H
#define GT_POOLED_H

GT_INLINE gt_vf gt_pool_join(const int kind, gt_vf a, gt_vf b)
{
    if (kind == 0) return a + b;
    return gt_extreme(kind, a, b);
}

#endif

#include "template_begin.h"
#include "operand.h"

#define GT_SUM float
#define GT_BH 1

/* `width` pixels of a row, one vector of channels from c on. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int height, const int width, int64_t n, int64_t oh,
                                        int64_t ow, int64_t c, float *tile GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES;
    const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW) + c;
    gt_vf acc[GT_BW];
    const int columns = (width - 1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 1;
    GT_UNROLL for (int j = 0; j < columns; j++)
    {
        const GT_NUMBER *p = x + (int64_t)j * (GT_XW);
        gt_vf v = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
        for (int r = 1; r < (GT_KH); r++) {
            p += (GT_DH) * (GT_XH);
            v = gt_pool_join(GT_KIND, v, narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p));
        }
        GT_UNROLL for (int i = 0; i < width; i++)
        {
            const int offset = j - i * (GT_SW), s = offset / (GT_DW);
            if (offset >= 0 && offset % (GT_DW) == 0 && s < (GT_KW))
                acc[i] = s == 0 ? v : gt_pool_join(GT_KIND, acc[i], v);
        }
    }
    gt_tile_store(acc, width, 1, tile);
}

#include "channel_loop.h"

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* The threads take balanced blocks of pixels, row by row: memory is walked in order. */
    const int64_t blocks = gt_ceil_div(GT_OW, GT_BW), units = (GT_BATCH) * (GT_OH)*blocks;
    if (units == 0) return;
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    for (int64_t u = gt_part(units, t, threads); u < gt_part(units, t + 1, threads); u++) {
        const int64_t row = u / blocks, block = u % blocks;
        const int64_t n = row / (GT_OH), oh = row % (GT_OH);
        const int64_t ow = block * shorter + gt_min(block, longer);
        GT_JOIN(GT_NAME, _pixels)(shorter + (block < longer), 1, n, oh, ow, 0, GT_C GT_ARGS);
    }
}

#include "template_end.h"
