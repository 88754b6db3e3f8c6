/* What the texts of direct convolutions of small integers for devices read of conv_int.h's macros,
   as conv_operands.h does of conv_direct.h's. The rows of the product are the pixels of all
   results, and its depth is the window. */
#if GT_PAIRS
#define GT_INTEGERS 16
#else
#define GT_INTEGERS 8
#endif
#define GT_GROUPED (GT_GROUPS)
#define GT_HEIGHT ((GT_BATCH) * (GT_OH) * (GT_OW))
#define GT_WIDTH (GT_O)
#define GT_DEPTH_RUNS ((GT_KH) * (GT_RUNS))
#define GT_OPERAND(g) ((const GT_GLOBAL GT_NUMBER *)(GT_X) + (g) * (GT_GROUP_STEP))
/* Numbers of the panels of a group. */
#define GT_GROUP_WIDTH (((GT_O) + GT_PANEL_WIDTH - 1) / GT_PANEL_WIDTH * GT_PANEL_WIDTH)
#define GT_PANELS(g)                                                                              \
    ((const GT_GLOBAL GT_NUMBER *)(GT_W) +                                                        \
     (g) * (int64_t)(GT_GROUP_WIDTH * GT_DEPTH_RUNS * GT_PADDED))
#define GT_ROW(row)                                                                               \
    ((row) / ((GT_OW) * (GT_OH)) * (GT_XN) + (row) / (GT_OW) % (GT_OH) * (GT_SH) * (GT_XH) +      \
     (row) % (GT_OW) * (GT_SW) * (GT_XW))
#define GT_OFFSET(run, at)                                                                        \
    ((run) / (GT_RUNS) * (GT_DH) * (GT_XH) + (run) % (GT_RUNS) * (GT_HOP) + (at))
#define GT_FINISH_ROW(acc, g, row, column, count)                                                 \
    GT_EPILOGUE(acc, (row) / ((GT_OW) * (GT_OH)), (row) / (GT_OW) % (GT_OH), (row) % (GT_OW),     \
                (g) * (GT_O) + (column), count GT_ARGS)
#define GT_FINISH(acc, g, row, column) GT_FINISH_ROW(acc, g, row, column, 1)
