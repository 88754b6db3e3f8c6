/* Direct 2-d convolution, channels last, in CUDA: the macros of conv_direct.h, of which it needs no
   tile but GT_NV, and GT_ROWS and GT_UNIT as gemm_cuda.h has them. The rows of the product are the
   pixels of all results, and its depth is the window: no matrix of windows is written.

   GT_IH GT_IW  rows and columns of the image, if the padding around it is not in memory; then
   GT_PT GT_PL  are the rows of padding above it, and the columns left of it */
#include "cuda_unit.h"
#include "template_begin.h"

#define GT_GROUPED (GT_GROUPS)
#define GT_HEIGHT ((GT_BATCH) * (GT_OH) * (GT_OW))
#define GT_WIDTH (GT_O)
#if defined GT_PAIRS
/* Whether the rows of a window are runs, or its pixels. */
#define GT_BY_LINES ((GT_GROUPS) == 1 && (GT_DW) == 1)
#define GT_DEPTH_RUNS (GT_BY_LINES ? (GT_KH) : (GT_KH) * (GT_KW))
#define GT_RUN (GT_BY_LINES ? (GT_KW) * (GT_C) : (GT_C))
#else
#define GT_BY_LINES 1
#define GT_DEPTH_RUNS (GT_KH)
#define GT_RUN ((GT_KW) * (GT_C))
#endif
/* The row and the column of the window. */
#define GT_R(run) (GT_BY_LINES ? (run) : (run) / (GT_KW))
#define GT_S(run, at) (GT_BY_LINES ? (at) / (GT_C) : (run) % (GT_KW))
#define GT_OPERAND(g) (GT_X + (g) * (GT_C))
/* Numbers of the panels of a group. */
#define GT_GROUP_WIDTH (((GT_O) + GT_PANEL_WIDTH - 1) / GT_PANEL_WIDTH * GT_PANEL_WIDTH)
#define GT_PANEL (GT_GROUP_WIDTH * (GT_DEPTH_RUNS) * GT_PADDED)
#define GT_PANELS(g) (GT_W + (g) * GT_PANEL)
#ifndef GT_PT
#define GT_PT 0
#define GT_PL 0
#elif !defined GT_TOP
#define GT_TOP 0
#define GT_BOTTOM (GT_IH)
#define GT_LEFT 0
#define GT_RIGHT (GT_IW)
#endif
/* The quotient of numbers that are no greater than that of the rows, in 32 bits where these do. */
#define GT_QUOTIENT(x, by)                                                                        \
    ((GT_HEIGHT) < INT32_MAX ? (int64_t)((uint32_t)(x) / (uint32_t)(by)) : (x) / (by))
#define GT_LINE_AT(row) (GT_QUOTIENT(row, GT_OW) - GT_QUOTIENT(row, (GT_OW) * (GT_OH)) * (GT_OH))
#define GT_PIXEL_AT(row) ((row) - GT_QUOTIENT(row, GT_OW) * (GT_OW))
#define GT_LINE_OF(row) (GT_LINE_AT(row) * (GT_SH) - (GT_PT))
#define GT_PIXEL_OF(row) (GT_PIXEL_AT(row) * (GT_SW) - (GT_PL))
#define GT_ROW(row)                                                                               \
    (GT_QUOTIENT(row, (GT_OW) * (GT_OH)) * (GT_XN) + GT_LINE_OF(row) * (GT_XH) +                  \
     GT_PIXEL_OF(row) * (GT_XW))
#define GT_OFFSET(run, at) (GT_R(run) * (GT_DH) * (GT_XH) + GT_S(run, at) * (GT_DW) * (GT_XW) + \
                          (at) % (GT_C))
#ifdef GT_TOP /* an image has fewer than 2^31 rows and columns */
#define GT_IN_RANGE(x, low, high) ((uint32_t)((int)(x) - (int)(low)) < (uint32_t)((high) - (low)))
#define GT_SEEN(row, run, at)                                                                     \
    (GT_IN_RANGE((int)GT_LINE_OF(row) + (int)(GT_R(run) * (GT_DH)), GT_TOP, GT_BOTTOM) &&          \
     GT_IN_RANGE((int)GT_PIXEL_OF(row) + (int)(GT_S(run, at) * (GT_DW)), GT_LEFT, GT_RIGHT))
#endif
#define GT_APART_BYTES (((GT_XN) | (GT_XH) | (GT_XW)) * (int64_t)sizeof(GT_NUMBER))
#define GT_WHOLE(g)                                                                             \
    ((GT_C) * sizeof(GT_NUMBER) % 16 == 0 &&                                                    \
     (((uintptr_t)GT_X | (uintptr_t)GT_APART_BYTES) & 15) == 0)
#define GT_FINISH(acc, g, row, column)                                                          \
    GT_EPILOGUE(acc, GT_QUOTIENT(row, (GT_OW) * (GT_OH)), GT_LINE_AT(row), GT_PIXEL_AT(row),    \
                (g) * (GT_O) + (column), 1 GT_ARGS)

#include "product_cuda.h"

#include "template_end.h"
