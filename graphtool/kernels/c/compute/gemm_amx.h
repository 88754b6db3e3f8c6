/* Product with a packed right-hand side by a matrix unit, a template: C[b] = A[b]·B[b], handed row
   by row to an epilogue.

   GT_HALF       if defined, A and B hold numbers of 16 bits in uint16_t, of this type as half.h
                 calls it, and sums are float; else A holds uint8_t, B int8_t, and sums are int32_t,
                 which wrap around
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in elements; those of a row are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       A of product b
   GT_B(b)       B of product b, packed [ceil(N/NR)][16·ceil(K/(16·G))][NR][G], zero padded, 64-byte
                 aligned; NR is 2·GT_LANES, G is 2 with HALF, else 4
   GT_EPILOGUE   static inline void f(const S *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS), S the type of a sum: takes the `count` sums of row m from
                 column n on; acc is vector-aligned, count is the literal NR but in a last, partial
                 panel

   Shares need no barrier among themselves. Rows fall into segments of equal size; where they do not
   fill the last one, it begins earlier, with rows that were handed out before. */
#include "amx.h"
#include "template_begin.h"
#include "amx_operands.h"

#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#define GT_NV 2
#define GT_MR 2
#define GT_LINES gt_ceil_div(GT_M, GT_SEGMENT)
#define GT_ROWS gt_ceil_div(GT_M, GT_LINES) /* rows of a segment */
#define GT_HELD (GT_SEGMENT * (GT_K) * GT_SIZE)
/* Blocks go one by one over all panels if these stay near, so that the epilogue reads and writes
   along rows; else as many as stay near with each panel. */
#define GT_NEAR (1024 * 1024)
#define GT_RESIDENT ((GT_N) * (GT_K) * GT_SIZE <= GT_NEAR ? 1 : GT_NEAR)
#define GT_BY_ROWS ((GT_M) * ((GT_K) + (GT_N)) >= (GT_K) * (GT_N))
#define GT_STEPS GT_RUN_ROWS((GT_K) * GT_SIZE)
#define GT_PANEL (GT_STEPS * GT_NR * 4)
#define GT_PRODUCTS GT_BATCH
#define GT_SHAPE GT_ROWS
#define GT_DIVIDED ((GT_M) > 4 * GT_SEGMENT) /* two blocks wait for memory in either way */
#include "gemm_hand.h"

/* One or two segments, by one panel: steps `from` to `upto` of the depth. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int segments, int64_t b, int64_t line, int64_t panel,
                                       int64_t from, int64_t upto, const char *ahead, int64_t step,
                                       GT_SUM *sums GT_PARAMS)
{
    const int64_t rows = GT_ROWS, columns = gt_min(GT_NR, (GT_N) - panel * GT_NR);
    const int64_t first = gt_min(line * rows, (GT_M) - rows);
    const int64_t second = gt_min((line + 1) * rows, (GT_M) - rows);
    const int64_t at = from * GT_RUN_BYTES;
    const char *a = (const char *)(GT_A(b) + first * (GT_LDA)) + at;
    gt_block_begin(GT_KIND, from == 0, segments == 2, columns, sums);
    gt_block_add(GT_KIND, a, segments == 2 ? a + (second - first) * (GT_LDA) * GT_SIZE : 0,
                 (GT_LDA) * GT_SIZE, rows,
                 (const char *)GT_B(b) + panel * GT_PANEL + from * 16 * GT_NR * 4, columns,
                 gt_min(upto * GT_RUN_BYTES, (GT_K) * GT_SIZE) - at, ahead, step, sums);
    gt_block_store(GT_KIND, segments == 2, columns, sums);
    if (upto < GT_STEPS / 16) return;
    const int64_t again = line * rows - first, twice = (line + 1) * rows - second;
    GT_JOIN(GT_NAME, _hand)(sums + again * GT_NR, (int)(rows - again), b, first + again,
                            panel GT_ARGS);
    if (segments == 2)
        GT_JOIN(GT_NAME, _hand)(sums + (GT_SEGMENT + twice) * GT_NR, (int)(rows - twice), b,
                                second + twice, panel GT_ARGS);
}

#include "amx_loop.h"

#include "template_end.h"
