/* Direct 2-d convolution of small integers, channels last, in CUDA: the macros of conv_int.h, of
   which it needs no tile but GT_NV, and GT_ROWS, GT_SLICES and GT_SLABS as gemm_cuda.h has them. */
#include "cuda_unit.h"
#include "template_begin.h"
#include "conv_int_operands.h"

#define GT_STEPS (((GT_XN) | ((GT_SH) * (GT_XH)) | ((GT_DH) * (GT_XH)) | ((GT_SW) * (GT_XW)) |    \
                   (GT_HOP) | (GT_GROUP_STEP)) * (int64_t)sizeof(GT_NUMBER))
#define GT_WHOLE(g)                                                                               \
    ((GT_DEPTH_RUNS == 1 || (GT_RUN) * sizeof(GT_NUMBER) % 16 == 0) &&                            \
     (((uintptr_t)GT_X | (uintptr_t)GT_STEPS) & 15) == 0)

#include "product_cuda.h"

#include "template_end.h"
