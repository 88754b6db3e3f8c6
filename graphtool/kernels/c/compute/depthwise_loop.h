/* The loop of a depthwise convolution over images, channels and rows, for templates that have the
   macros of depthwise.h, GT_SUMS if they sum rows, and define what channel_loop.h asks for. */
#include "channel_loop.h"

/* Rows top to top + height of one channel block; what is left over of the bands, row by row. */
GT_INLINE void GT_JOIN(GT_NAME, _slice)(int64_t n, int64_t slice, int64_t top,
                                        int64_t height GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_OW, GT_BW);
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    const int64_t first = slice * GT_LANES * (GT_CB);
    const int64_t last = gt_min(GT_C, first + GT_LANES * (GT_CB));
    for (int64_t oh = top; oh < top + height;) {
        const int64_t high = GT_BH == 1 || oh + GT_BH <= top + height;
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
