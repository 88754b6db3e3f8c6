/* Product of small integers with a packed right-hand side in CUDA: the macros of gemm_int.h, and
   GT_ROWS, GT_SLICES and GT_SLABS as gemm_cuda.h has them. Bytes are multiplied by the matrix unit,
   whose sums wrap around as those of the processor do. */
#include "cuda_unit.h"
#include "template_begin.h"
#include "gemm_int_operands.h"

#define GT_WHOLE(g) \
    ((((uintptr_t)GT_A(g) | (uintptr_t)((GT_LDA) * (int64_t)sizeof(GT_NUMBER))) & 15) == 0)

#include "product_cuda.h"

#include "template_end.h"
