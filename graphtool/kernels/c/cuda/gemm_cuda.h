/* Matrix product with a packed right-hand side in CUDA: the macros of gemm.h, and

   GT_ROWS  rows of the tile of a block, a literal: 16, 32, 64 or 128; up to 4: all rows
   GT_UNIT  how floats are multiplied, as product_cuda.h says; left out: one at a time
   GT_SLICES  slices of the depth, each with a block of its own, a literal; left out: it is whole.
   GT_SLABS   memory for the sums of all slices, as slices_cuda.h has them

   The epilogue gets one sum at a time, adjacent ones in adjacent threads. */
#include "cuda_unit.h"
#include "template_begin.h"
#include "gemm_operands.h"

#ifdef GT_ALONG_ROWS
#define GT_WHOLE(g) 0
#else
#define GT_WHOLE(g) \
    ((((uintptr_t)GT_A(g) | (uintptr_t)((GT_LDA) * (int64_t)sizeof(GT_NUMBER))) & 15) == 0)
#endif

#if GT_ROWS > 4
#include "product_cuda.h"
#else
#include "few_rows_cuda.h"
#endif

#include "template_end.h"
