/* What the texts of products for devices read of gemm.h's macros: where a number of the left
   operand is, which panel is multiplied with it, and who takes the sums. product_cuda.h lists these
   names. */
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
#define GT_NUMBER_STEP (GT_LDK)
#define GT_ALONG_ROWS
#else
#define GT_NUMBER_STEP 1
#endif
#define GT_OFFSET(run, at) ((at) * GT_NUMBER_STEP)
#define GT_FINISH_ROW(acc, g, row, column, count)                                                 \
    GT_EPILOGUE(acc, g, row, column, count GT_ARGS)
#define GT_FINISH(acc, g, row, column) GT_FINISH_ROW(acc, g, row, column, 1)
