/* Direct 2-d convolution of float32 by a matrix unit, channels last, a template: the product of
   gemm_parts.h whose rows are pixels of the output, each with the elements that it reads, and whose
   columns are output channels.

   GT_PARTS      parts of a number, a literal: 3, or 2 with fewer digits
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_GROUPS     groups of channels
   GT_O          output channels of a group
   GT_KH GT_SH GT_SW GT_DH  rows of the window, strides, dilation of rows
   GT_RUNS GT_RUN GT_HOP  a row of the window is RUNS runs of RUN adjacent elements, HOP apart; the
                 runs of the next group begin RUN further
   GT_X          the input, its padding included
   GT_XN GT_XH GT_XW     strides of the input in elements: image, row, pixel
   GT_W          const uint16_t *, the weights, split and packed, zero padded, 64-byte aligned:
                 [GROUPS][ceil(O/NR)][ceil(K/32)][PARTS][16][NR][2]; NR is 2·GT_LANES, K is
                 KH·RUNS·RUN
   GT_DEEP GT_CHUNK GT_WIDTH GT_WORK(t) GT_BY_ROWS  as in gemm_parts.h, for pixels as rows
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                 int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from
                 channel o on; acc is vector-aligned

   Which numbers are multiplied by multiply-adds is as in gemm_parts.h. */
#include "parts.h"
#include "template_begin.h"
#define GT_PRODUCTS (GT_GROUPS)
#define GT_M ((GT_BATCH) * (GT_OH) * (GT_OW))
#define GT_N (GT_O)
#define GT_K ((GT_KH) * (GT_RUNS) * (GT_RUN))
#define GT_B(b) (GT_W + (b)*gt_ceil_div(GT_N, GT_NR) * GT_NR * GT_PARTS * (GT_COLUMN))
#define GT_ONCE GT_PARTS_RUN
#define GT_APART GT_PIXEL
#define GT_ROOM (GT_SEGMENT * GT_PIXEL)

#include "parts_pixels.h"

GT_INLINE const float *GT_JOIN(GT_NAME, _rows)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                               int64_t depth, float *room GT_PARAMS)
{
    const float *pixels[GT_SEGMENT];
    GT_JOIN(GT_NAME, _begins)(GT_X + b * (GT_RUN), m, rows, pixels GT_ARGS);
    GT_JOIN(GT_NAME, _gather)(pixels, k, rows, depth, room GT_ARGS);
    return room;
}

/* Hands out the sums of a row of the product: of a pixel. */
GT_INLINE void GT_JOIN(GT_NAME, _pixel)(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                                        int64_t count GT_PARAMS)
{
    GT_EPILOGUE(acc, m / GT_PIXELS, m % GT_PIXELS / GT_LINE, m % GT_LINE, b * (GT_O) + n,
                count GT_ARGS);
}

#define GT_HANDED GT_JOIN(GT_NAME, _pixel)
#include "parts_loop.h"

#include "template_end.h"
