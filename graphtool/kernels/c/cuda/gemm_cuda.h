/* Matrix product with a packed right-hand side in CUDA: the macros of gemm.h, and

   GT_ROWS  rows of the tile of a block, a literal: 16, 32, 64 or 128; up to 4: all rows
   GT_UNIT  how floats are multiplied, as product_cuda.h says; left out: one at a time

   The epilogue gets one sum at a time, adjacent ones in adjacent threads. */
#include "cuda_unit.h"
#include "template_begin.h"

#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#define GT_GROUPED (GT_BATCH)
#define GT_HEIGHT (GT_M)
#define GT_WIDTH (GT_N)
#define GT_DEPTH_RUNS 1
#define GT_RUN (GT_K)
#define GT_OPERAND(g) (GT_A(g))
#define GT_PANELS(g) (GT_B(g) + 0)
#define GT_ROW(row) ((row) * (GT_LDA))
#ifdef GT_LDK
#define GT_OFFSET(run, at) ((at) * (GT_LDK))
#define GT_WHOLE(g) 0
#define GT_ALONG_ROWS
#else
#define GT_OFFSET(run, at) (at)
#define GT_WHOLE(g) \
    ((((uintptr_t)GT_A(g) | (uintptr_t)((GT_LDA) * (int64_t)sizeof(GT_NUMBER))) & 15) == 0)
#endif
#define GT_FINISH(acc, g, row, column) GT_EPILOGUE(acc, g, row, column, 1 GT_ARGS)

#if GT_ROWS > 4
#include "product_cuda.h"
#else
#include "few_rows_cuda.h"
#endif

#include "template_end.h"
