/* What the texts of direct convolutions for devices read of conv_direct.h's macros: the rows of the
   product are the pixels of all results, and its depth is the window. product_cuda.h lists these
   names.

   GT_BY_LINES  a run is a row of the window, 1, or one of its pixels, 0; left out: a row, except in
                pairs, which no run may split */
#define GT_NUMBER_STEP 1
#define GT_GROUPED (GT_GROUPS)
#define GT_HEIGHT ((GT_BATCH) * (GT_OH) * (GT_OW))
#define GT_WIDTH (GT_O)
/* Whether the rows of a window are runs, or its pixels. */
#if defined GT_PAIRS
#define GT_BY_LINES ((GT_GROUPS) == 1 && (GT_DW) == 1)
#elif !defined GT_BY_LINES
#define GT_BY_LINES 1
#endif
#define GT_DEPTH_RUNS (GT_BY_LINES ? (GT_KH) : (GT_KH) * (GT_KW))
#define GT_RUN (GT_BY_LINES ? (GT_KW) * (GT_C) : (GT_C))
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
#define GT_FINISH_ROW(acc, g, row, column, count)                                                 \
    GT_EPILOGUE(acc, GT_QUOTIENT(row, (GT_OW) * (GT_OH)), GT_LINE_AT(row), GT_PIXEL_AT(row),      \
                (g) * (GT_O) + (column), count GT_ARGS)
#define GT_FINISH(acc, g, row, column) GT_FINISH_ROW(acc, g, row, column, 1)
