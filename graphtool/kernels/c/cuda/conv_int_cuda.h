/* Direct 2-d convolution of small integers, channels last, in CUDA: the macros of conv_int.h, of
   which it needs no tile but GT_NV, and GT_ROWS, GT_SLICES and GT_SLABS as gemm_cuda.h has them.
   The rows of the product are the pixels of all results, and its depth is the window. */
#include "cuda_unit.h"
#include "template_begin.h"

#if GT_PAIRS
#define GT_INTEGERS 16
#else
#define GT_INTEGERS 8
#endif
#define GT_GROUPED (GT_GROUPS)
#define GT_HEIGHT ((GT_BATCH) * (GT_OH) * (GT_OW))
#define GT_WIDTH (GT_O)
#define GT_DEPTH_RUNS ((GT_KH) * (GT_RUNS))
#define GT_OPERAND(g) ((const GT_NUMBER *)(GT_X) + (g) * (GT_GROUP_STEP))
/* Numbers of the panels of a group. */
#define GT_GROUP_WIDTH (((GT_O) + GT_PANEL_WIDTH - 1) / GT_PANEL_WIDTH * GT_PANEL_WIDTH)
#define GT_PANELS(g) \
    ((const GT_NUMBER *)(GT_W) + (g) * (int64_t)(GT_GROUP_WIDTH * GT_DEPTH_RUNS * GT_PADDED))
#define GT_ROW(row)                                                                               \
    ((row) / ((GT_OW) * (GT_OH)) * (GT_XN) + (row) / (GT_OW) % (GT_OH) * (GT_SH) * (GT_XH) +      \
     (row) % (GT_OW) * (GT_SW) * (GT_XW))
#define GT_OFFSET(run, at)                                                                        \
    ((run) / (GT_RUNS) * (GT_DH) * (GT_XH) + (run) % (GT_RUNS) * (GT_HOP) + (at))
#define GT_STEPS (((GT_XN) | ((GT_SH) * (GT_XH)) | ((GT_DH) * (GT_XH)) | ((GT_SW) * (GT_XW)) |    \
                   (GT_HOP) | (GT_GROUP_STEP)) * (int64_t)sizeof(GT_NUMBER))
#define GT_WHOLE(g)                                                                               \
    ((GT_DEPTH_RUNS == 1 || (GT_RUN) * sizeof(GT_NUMBER) % 16 == 0) &&                            \
     (((uintptr_t)GT_X | (uintptr_t)GT_STEPS) & 15) == 0)
#define GT_FINISH(acc, g, row, column)                                                            \
    GT_EPILOGUE(acc, (row) / ((GT_OW) * (GT_OH)), (row) / (GT_OW) % (GT_OH), (row) % (GT_OW),     \
                (g) * (GT_O) + (column), 1 GT_ARGS)

#include "product_cuda.h"

#include "template_end.h"
