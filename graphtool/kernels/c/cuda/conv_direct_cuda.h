/* Direct 2-d convolution, channels last, in CUDA: the macros of conv_direct.h, of which it needs no
   tile but GT_NV, and GT_ROWS and GT_UNIT as gemm_cuda.h has them. No matrix of windows is
   written.

   GT_SLICES  slices of the depth, each with a block of its own, a literal; left out: it is whole.
   GT_SLABS   memory for the sums of all slices, as slices_cuda.h has them
   GT_IH GT_IW  rows and columns of the image, if the padding around it is not in memory; then
   GT_PT GT_PL  are the rows of padding above it, and the columns left of it */
#include "cuda_unit.h"
#include "template_begin.h"
#include "conv_operands.h"

#define GT_APART_BYTES (((GT_XN) | (GT_XH) | (GT_XW)) * (int64_t)sizeof(GT_NUMBER))
#define GT_WHOLE(g)                                                                             \
    ((GT_C) * sizeof(GT_NUMBER) % 16 == 0 &&                                                    \
     (((uintptr_t)GT_X | (uintptr_t)GT_APART_BYTES) & 15) == 0)

#include "product_cuda.h"

#include "template_end.h"
