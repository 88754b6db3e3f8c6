/* The gradient of a convolution's weights in float32 by a matrix unit, channels last, a template:
   the product of gemm_parts.h whose rows are output channels, whose columns are the elements that a
   pixel of the output reads, and whose depth are the pixels. So the left operand is the gradient of
   the output, transposed; the right one is gathered from the image, and split, for all rows that
   are split together.

   GT_PARTS      parts of a number, a literal: 3, or 2 with fewer digits
   GT_BATCH GT_OH GT_OW  images, rows and columns of the output
   GT_O          output channels
   GT_KH GT_SH GT_SW GT_DH GT_RUNS GT_RUN GT_HOP GT_X GT_XN GT_XH GT_XW  the window and the input,
                 as in conv_parts.h
   GT_A(b)       const float *, the gradient of the output, O adjacent elements for each pixel; b
                 is 0
   GT_LDK        elements between the starts of adjacent pixels of it
   GT_DEEP GT_CHUNK GT_WIDTH GT_WORK(t) GT_BY_ROWS  as in gemm_parts.h with FLOATS
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): as in gemm.h; m is an output channel, n an element that a
                 pixel reads

   Which numbers are multiplied by multiply-adds is as in gemm_parts.h. */
#include "parts.h"
#include "template_begin.h"
#define GT_PRODUCTS 1
#define GT_FLOATS
#define GT_M (GT_O)
#define GT_N ((GT_KH) * (GT_RUNS) * (GT_RUN))
#define GT_K ((GT_BATCH) * (GT_OH) * (GT_OW))
#include "parts_pixels.h"
#include "parts_across.h"

#define GT_RIGHT (GT_PARTS_RUN * GT_COLUMNS)

/* What 16 pixels read of a panel's elements, to rows of GT_COLUMNS floats. */
GT_INLINE void GT_JOIN(GT_NAME, _columns)(const float **pixels, int64_t first, int64_t rows,
                                          float *to GT_PARAMS)
{
    if ((GT_RUN) % GT_COLUMNS == 0) { /* a panel lies in a run */
        const int64_t from = GT_WHERE(first / (GT_RUN)) + first % (GT_RUN);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < GT_COLUMNS; i += GT_LANES)
                gt_store(to + r * GT_COLUMNS + i, gt_load(pixels[r] + from + i));
        return;
    }
    float room[GT_SEGMENT * GT_PIXEL] GT_ALIGNED;
    const int64_t columns = gt_min(GT_COLUMNS, (GT_N)-first);
    GT_JOIN(GT_NAME, _gather)(pixels, first, rows, columns, room GT_ARGS);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < GT_COLUMNS; i += GT_LANES) {
            const float *own = room + r * GT_PIXEL + i;
            gt_store(to + r * GT_COLUMNS + i,
                     i + GT_LANES <= columns ? gt_load(own)
                                             : gt_load_first(own, gt_max(0, columns - i)));
        }
}

GT_INLINE const float *GT_JOIN(GT_NAME, _right)(int64_t b, int64_t panel, int64_t k, int64_t depth,
                                                float *room GT_PARAMS)
{
    (void)b;
    for (int64_t r = 0; r < depth; r += GT_SEGMENT) {
        const int64_t rows = gt_min(GT_SEGMENT, depth - r);
        const float *pixels[GT_SEGMENT];
        GT_JOIN(GT_NAME, _begins)(GT_X, k + r, rows, pixels GT_ARGS);
        GT_JOIN(GT_NAME, _columns)(pixels, panel * GT_COLUMNS, rows, room + r * GT_COLUMNS GT_ARGS);
    }
    return room;
}

#include "parts_loop.h"

#include "template_end.h"
