/* What the texts of products of small integers for devices read of gemm_int.h's macros, as
   gemm_operands.h does of gemm.h's. */
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
#define GT_OPERAND(g) ((const GT_GLOBAL GT_NUMBER *)(GT_A(g)))
#define GT_PANELS(g) ((const GT_GLOBAL GT_NUMBER *)(GT_B(g)))
#define GT_ROW(row) ((row) * (GT_LDA))
#define GT_OFFSET(run, at) (at)
#define GT_FINISH_ROW(acc, g, row, column, count)                                                 \
    GT_EPILOGUE(acc, g, row, column, count GT_ARGS)
#define GT_FINISH(acc, g, row, column) GT_FINISH_ROW(acc, g, row, column, 1)
