/* Product of small integers with a packed right-hand side, a template: C[b] = A[b]·B[b] in int32,
   handed row by row to an epilogue.

   GT_PAIRS      1: A and B hold int16_t; 0: A holds uint8_t, B int8_t
   GT_MR, GT_NV  the register tile: up to MR rows (a literal) of NV vectors; NR = NV·GT_LANES
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in elements; those of a row are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       A of product b
   GT_B(b)       B of product b, packed [ceil(N/NR)][ceil(K/G)][NR][G], zero padded, 64-byte
                 aligned; G is 2 for pairs, else 4
   GT_EPILOGUE   static inline void f(const int32_t *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` sums of row m from column n on; acc
                 is vector-aligned, count is the literal NR but in a last, partial panel

   Shares need no barrier among themselves. With MR <= 4 the product is bound by reading B, and the
   panel itself is streamed. */
#include "int8.h"
#include "template_begin.h"

#define GT_SUM int32_t
#define GT_SIZE (GT_PAIRS ? 2 : 1) /* bytes of an element */
#define GT_HELD ((GT_K) * GT_SIZE)
#define GT_STEPS gt_ceil_div((GT_K) * GT_SIZE, 4)
#define GT_PANEL (GT_STEPS * GT_NR * 4)

/* The sums of rows m to m + rows, by one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _sums)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step, int32_t *tile GT_PARAMS)
{
    gt_vi acc[GT_MR * GT_NV];
    gt_ints_zero(acc, rows * GT_NV);
    gt_ints_tile(acc, rows, GT_NV, (const char *)(GT_A(b) + m * (GT_LDA)), (GT_LDA) * GT_SIZE, 0, 0,
                 (const char *)GT_B(b) + panel * GT_PANEL, (GT_K) * GT_SIZE, GT_PAIRS, ahead, step,
                 rows <= 4 ? 8 : 0);
    gt_ints_store(acc, rows * GT_NV, tile);
}

#include "gemm_tile.h"

#include "template_end.h"
