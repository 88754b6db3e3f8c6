/* Product of small integers with a packed right-hand side in CUDA: the macros of gemm_int.h, and
   GT_ROWS, GT_SLICES and GT_SLABS as gemm_cuda.h has them. Bytes are multiplied by the matrix unit,
   whose sums wrap around as those of the processor do. */
#include "cuda_unit.h"
#include "template_begin.h"

#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#if GT_PAIRS
#define GT_INTEGERS 16
#else
#define GT_INTEGERS 8
#endif
#define GT_GROUPED (GT_BATCH)
#define GT_HEIGHT (GT_M)
#define GT_WIDTH (GT_N)
#define GT_DEPTH_RUNS 1
#define GT_RUN (GT_K)
#define GT_OPERAND(g) ((const GT_NUMBER *)(GT_A(g)))
#define GT_PANELS(g) ((const GT_NUMBER *)(GT_B(g)))
#define GT_ROW(row) ((row) * (GT_LDA))
#define GT_OFFSET(run, at) (at)
#define GT_WHOLE(g) \
    ((((uintptr_t)GT_A(g) | (uintptr_t)((GT_LDA) * (int64_t)sizeof(GT_NUMBER))) & 15) == 0)
#define GT_FINISH(acc, g, row, column) GT_EPILOGUE(acc, g, row, column, 1 GT_ARGS)

#include "product_cuda.h"

#include "template_end.h"
