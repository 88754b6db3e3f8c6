/* Matrix product with a packed right-hand side whose left operand is copied, a template: C[b] =
   A[b]·B[b], handed row by row to an epilogue. For operands of training, of which gemm.h reads
   every element from far: an A that is transposed in memory, rows a multiple of 4 KB apart, a great
   depth.

   GT_MR, GT_NV  the register tile: up to MR rows (a literal) of NV vectors; NR = NV·GT_LANES
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in floats; 1 with GT_LDK
   GT_LDK        stride from one element of a row to the next; left out: they are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       const float *, A of product b
   GT_B(b)       const float *, B of product b, packed [ceil(N/NR)][K][NR], zero padded, 64-byte
                 aligned
   GT_DEEP       the depth that is taken at a time
   GT_CHUNK      blocks of MR rows that are copied at a time
   GT_WIDTH      panels that such rows are multiplied by before the next depth
   GT_WORK(t)    float *, workspace of thread t, 64-byte aligned, of
                 CHUNK·MR·(DEEP + 16 + WIDTH·NR) floats
   GT_BY_ROWS    whether threads share the rows (1) or the columns (0)
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): as in gemm.h

   A sum that is set aside between two depths is a float, as in a register: results are those of
   gemm.h to the bit. */
#include "tile.h"
#include "template_begin.h"
#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#define GT_PRODUCTS (GT_BATCH)
#define GT_SUM float
#define GT_COPY float
#define GT_LINES GT_M
#define GT_ROW ((GT_DEEP) + 16) /* of A as it is copied: not a multiple of 4 KB */
#define GT_TALL GT_MR * GT_ROW
#define GT_SET GT_MR * GT_NR
#define GT_UNIT 1
#define GT_COLUMN GT_K
#define GT_STEPS(k) (k)
#include "gemm_hand.h"

/* `count` blocks of `rows` rows, from row m on, elements k to k + depth, to `to`: as rows, or if A
   is transposed as columns of MR numbers. These are read along rows of memory, all blocks
   together. */
GT_INLINE void GT_JOIN(GT_NAME, _copy)(const int rows, int64_t b, int64_t m, int64_t k,
                                       int64_t depth, int64_t count, float *restrict to GT_PARAMS)
{
#ifdef GT_LDK
    for (int64_t i = 0; i < depth; i++)
        for (int64_t j = 0; j < count; j++)
            memcpy(to + j * GT_TALL + i * GT_MR, GT_A(b) + m + j * rows + (k + i) * (GT_LDK),
                   (size_t)rows * sizeof(float));
#else
    for (int64_t j = 0; j < count; j++)
        for (int i = 0; i < rows; i++)
            memcpy(to + j * GT_TALL + i * GT_ROW, GT_A(b) + (m + j * rows + i) * (GT_LDA) + k,
                   (size_t)depth * sizeof(float));
#endif
}

/* Sums of rows m to m + rows of one panel over a part of the depth: those set aside go on, if
   `begun`, and are set aside again, or handed out if it `ends`. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const float *left, const float *right, int64_t depth,
                                       const char *ahead, int64_t step, float *aside, int begun,
                                       int ends GT_PARAMS)
{
    gt_vf acc[GT_MR * GT_NV];
    if (begun)
        GT_UNROLL for (int i = 0; i < rows * GT_NV; i++) acc[i] = ((const gt_vf *)aside)[i];
    else
        gt_tile_zero(acc, rows, GT_NV);
#ifdef GT_LDK
    gt_tile_fma_across(acc, rows, GT_NV, left, 1, GT_MR, right, depth, ahead, step);
#else
    gt_tile_fma(acc, rows, GT_NV, left, GT_ROW, right, depth, ahead, step, 0);
#endif
    if (!ends) {
        gt_tile_store(acc, rows, GT_NV, aside);
        return;
    }
    float tile[GT_MR * GT_NR] GT_ALIGNED;
    gt_tile_store(acc, rows, GT_NV, tile);
    GT_JOIN(GT_NAME, _hand)(tile, rows, b, m, panel GT_ARGS);
}

#include "blocked_loop.h"

#include "template_end.h"
