/* Matrix product with a packed right-hand side, a template: C[b] = A[b]·B[b], handed row by row to
   an epilogue.

   GT_MR, GT_NV  the register tile: up to MR rows (a literal) of NV vectors; NR = NV·GT_LANES
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in floats
   GT_LDK        stride from one element of a row to the next; left out: they are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       const float *, A of product b
   GT_B(b)       const float *, B of product b, packed [ceil(N/NR)][K][NR], zero padded, 64-byte
                 aligned
   GT_HALF       if defined, A and B hold numbers of 16 bits in uint16_t, and this is their type, as
                 half.h calls it; sums are float still. With GT_LDK, LDA is then 1
   GT_PAIRS      if defined too, they are bfloat16 and B's rows come in pairs:
                 [ceil(N/NR)][ceil(K/2)][NR][2]
   GT_LAID       the vectors of a panel of B, a divisor of NV, where the tile takes several side by
                 side; panels are [ceil(N/(LAID·GT_LANES))][K][LAID·GT_LANES]. Needs MR <= 4 and
                 floats, and no LDK (default NV)
   GT_RESIDENT   bytes of rows of A that go through all panels together. Left out: 640 KB; but where
                 rows of A and C are more than B, one block of rows at a time, and it goes through
                 as many panels as 640 KB hold
   GT_BY_ROWS    whether threads take rows each (1) or cut the whole sequence evenly (0); left out:
                 rows where all of B costs less than rows of A and C that move from core to core
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` sums of row m from column n on; acc
                 is vector-aligned, count is the literal NR but in a last, partial panel

   Shares need no barrier among themselves. With MR <= 4 the product is bound by reading B, and the
   panel itself is streamed: make the tile wide, NV = 8 for one row. */
#include "tile.h"
#include "template_begin.h"
#include "operand.h"
#ifdef GT_PAIRS
#include "bf16.h"
#define GT_DEPTH (((GT_K) + 1) / 2 * 2) /* numbers of a column of a panel */
#else
#define GT_DEPTH (GT_K)
#endif
#define GT_SUM float
#define GT_HELD ((GT_K) * 4) /* of 16 bits too: fewer rows at a time are faster there */
#define GT_STEPS (GT_K)
#define GT_PANEL (GT_DEPTH * GT_NR * (int64_t)sizeof(GT_NUMBER))

/* The sums of rows m to m + rows, by one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _sums)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step, float *tile GT_PARAMS)
{
    gt_vf acc[GT_MR * GT_NV];
    const int64_t n = panel * GT_NR;
    gt_tile_zero(acc, rows, GT_NV);
#if defined GT_PAIRS && defined GT_LDK
    (void)ahead, (void)step;
    gt_tile_bf16_across(acc, rows, GT_NV, GT_A(b) + m, GT_LDK, GT_B(b) + n * GT_DEPTH, GT_K);
#elif defined GT_PAIRS
    gt_tile_bf16_lines(acc, rows, GT_NV, GT_A(b) + m * (GT_LDA), GT_LDA, 0, 0,
                       GT_B(b) + n * GT_DEPTH, GT_K, ahead, step, rows <= 4 ? 8 : 0);
#elif defined GT_HALF && defined GT_LDK
    gt_tile_half_across(acc, rows, GT_NV, GT_HALF, GT_A(b) + m, GT_LDK, GT_B(b) + n * GT_DEPTH,
                        GT_K, ahead, step, rows <= 4 ? 8 : 0);
#elif defined GT_HALF
    gt_tile_half_lines(acc, rows, GT_NV, GT_HALF, GT_A(b) + m * (GT_LDA), GT_LDA, 0, 0,
                       GT_B(b) + n * GT_DEPTH, GT_K, ahead, step, rows <= 4 ? 8 : 0);
#elif defined GT_LDK
    gt_tile_fma_across(acc, rows, GT_NV, GT_A(b) + m * (GT_LDA), GT_LDA, GT_LDK,
                       GT_B(b) + n * (GT_K), GT_K, ahead, step);
#elif defined GT_LAID
    enum { wide = (GT_LAID) * GT_LANES };
    (void)ahead, (void)step;
    gt_tile_fma_beside(acc, rows, GT_NV, GT_LAID, GT_A(b) + m * (GT_LDA), GT_LDA,
                       GT_B(b) + n * (GT_K), (GT_K) * wide, gt_ceil_div((GT_N) - n, wide), GT_K,
                       8);
#else
    gt_tile_fma(acc, rows, GT_NV, GT_A(b) + m * (GT_LDA), GT_LDA, GT_B(b) + n * (GT_K), GT_K, ahead,
                step, rows <= 4 ? 8 : 0);
#endif
    gt_tile_store(acc, rows, GT_NV, tile);
}

#include "gemm_tile.h"

#include "template_end.h"
