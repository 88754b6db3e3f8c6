/* Product of float32 by a matrix unit, as parts.h computes it, with a packed right-hand side and a
   left operand that is split block by block, a template: C[b] = A[b]·B[b], handed row by row to an
   epilogue.

   GT_PARTS      parts of a number, a literal: 3, or 2 with fewer digits
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in floats; 1 with GT_LDK
   GT_LDK        stride from one element of a row to the next; left out: they are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       const float *, A of product b
   GT_B(b)       const uint16_t *, B of product b, split and packed, zero padded, 64-byte aligned:
                 [ceil(N/NR)][ceil(K/32)][PARTS][16][NR][2]; NR is 2·GT_LANES
   GT_FLOATS     if defined, B is not split yet: const float *, packed [ceil(N/NR)][K][NR]. Then a
                 part of a panel is split for the blocks of rows that are split together
   GT_DEEP       the depth that is taken at a time, a multiple of 32
   GT_CHUNK      blocks of 32 rows that are split at a time
   GT_WIDTH      panels that such rows are multiplied by before the next depth
   GT_WORK(t)    float *, workspace of thread t, 64-byte aligned, of
                 CHUNK·(16·(PARTS·DEEP + 1) + WIDTH·32·NR) floats, with FLOATS PARTS·DEEP·NR/2 + 16
                 more
   GT_BY_ROWS    whether threads share the rows (1) or the columns (0)
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): as in gemm.h

   A block of rows with numbers that do not split is multiplied by multiply-adds, as all blocks are
   where there are no tiles, and where there are fewer than 32 rows. */
#include "parts.h"
#include "template_begin.h"
#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#define GT_PRODUCTS (GT_BATCH)

#ifdef GT_LDK
#include "parts_across.h"
#else
#define GT_ONCE (GT_DEEP)
#define GT_APART (GT_LDA)
#define GT_ROOM 1

GT_INLINE const float *GT_JOIN(GT_NAME, _rows)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                               int64_t depth, float *room GT_PARAMS)
{
    (void)rows, (void)depth, (void)room;
    return GT_A(b) + m * (GT_LDA) + k;
}
#endif

#include "parts_loop.h"

#include "template_end.h"
