/* Product of numbers of 16 bits by a matrix unit, with a packed right-hand side and a left operand
   of which blocks are copied, a template: C[b] = A[b]·B[b], handed row by row to an epilogue. An A
   that is transposed in memory, as in a gradient of weights, is copied as rows, since tiles read
   rows.

   GT_HALF       the type of the numbers, as half.h calls it
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in elements; 1 with GT_LDK
   GT_LDK        stride from one element of a row to the next; left out: they are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       const uint16_t *, A of product b
   GT_B(b)       const uint16_t *, B of product b, packed [ceil(N/NR)][16·ceil(K/32)][NR][2], zero
                 padded, 64-byte aligned; NR is 2·GT_LANES
   GT_DEEP       the depth that is taken at a time, a multiple of 32
   GT_CHUNK      blocks of 32 rows that are copied at a time
   GT_WIDTH      panels that such rows are multiplied by before the next depth
   GT_WORK(t)    float *, workspace of thread t, 64-byte aligned, of
                 CHUNK·(16·(DEEP + 32) + WIDTH·32·NR) floats
   GT_BY_ROWS    whether threads share the rows (1) or the columns (0)
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): as in gemm.h */
#include "amx.h"
#include "template_begin.h"
#include "amx_operands.h"
#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#define GT_PRODUCTS (GT_BATCH)
#define GT_COPY uint16_t
#define GT_NV 2
#define GT_MR 2 /* segments */
#define GT_LINES gt_ceil_div(GT_M, GT_SEGMENT)
#define GT_ROW ((GT_DEEP) + 32) /* of A as it is copied: not a multiple of 4 KB */
#define GT_TALL 2 * GT_SEGMENT * GT_ROW
#define GT_SET 4 * GT_SEGMENT * GT_NR
#define GT_UNIT (GT_RUN_BYTES / 2)
#define GT_COLUMN gt_ceil_div(GT_K, GT_UNIT) * GT_UNIT
#define GT_STEPS(k) GT_RUN_ROWS((k) * 2)
#define GT_SHAPE GT_SEGMENT
#include "gemm_hand.h"

/* `count` blocks of one or two segments of product b, from element k on, with zeros up to a whole
   step. */
GT_INLINE void GT_JOIN(GT_NAME, _copy)(const int segments, int64_t b, int64_t line, int64_t k,
                                       int64_t depth, int64_t count,
                                       uint16_t *restrict to GT_PARAMS)
{
    for (int64_t i = 0; i < count * segments; i++) {
        const int64_t m = (line + i) * GT_SEGMENT, rows = gt_min(GT_SEGMENT, (GT_M) - m);
        uint16_t *segment = to + i / segments * GT_TALL + i % segments * GT_SEGMENT * GT_ROW;
#ifdef GT_LDK
        gt_turn_pairs(GT_A(b) + m + k * (GT_LDK), GT_LDK, rows, depth, segment, GT_ROW);
#else
        for (int64_t r = 0; r < rows; r++, segment += GT_ROW) {
            const int64_t whole = gt_ceil_div(depth, GT_UNIT) * GT_UNIT;
            memcpy(segment, GT_A(b) + (m + r) * (GT_LDA) + k, (size_t)depth * 2);
            memset(segment + depth, 0, (size_t)(whole - depth) * 2);
        }
#endif
    }
}

/* Sums of one or two segments of one panel over a part of the depth. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int segments, int64_t b, int64_t line, int64_t panel,
                                       const uint16_t *left, const uint16_t *right, int64_t depth,
                                       const char *ahead, int64_t step, float *aside, int begun,
                                       int ends GT_PARAMS)
{
    float whole[2 * GT_SEGMENT * GT_NR] GT_ALIGNED, *sums = begun || !ends ? aside : whole;
    const int64_t m = line * GT_SEGMENT, columns = gt_min(GT_NR, (GT_N) - panel * GT_NR);
    if (begun)
        gt_block_load(GT_KIND, segments == 2, columns, sums);
    else
        gt_block_zero(GT_KIND, sums);
    gt_block_add(GT_KIND, (const char *)left,
                 segments == 2 ? (const char *)(left + GT_SEGMENT * GT_ROW) : 0, GT_ROW * 2,
                 GT_SEGMENT, (const char *)right, columns,
                 gt_ceil_div(depth, GT_UNIT) * GT_RUN_BYTES, ahead, step, sums);
    gt_block_store(GT_KIND, segments == 2, columns, sums);
    if (ends)
        GT_JOIN(GT_NAME, _hand)(sums, (int)gt_min(segments * GT_SEGMENT, (GT_M) - m), b, m,
                                panel GT_ARGS);
}

#include "blocked_loop.h"

#include "template_end.h"
