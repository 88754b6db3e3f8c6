/* Product of float32 by a matrix unit, as parts.h computes it, with a right-hand side that is split
   and packed and a left operand that is split block by block, a template: C[b] = A[b]·B[b], handed
   row by row to an epilogue.

   GT_PARTS      parts of a number, a literal: 3, or 2 with fewer digits
   GT_M GT_N GT_K  integer expressions, constants or names among GT_PARAMS
   GT_LDA        row stride of A in floats; 1 with GT_LDK
   GT_LDK        stride from one element of a row to the next; left out: they are adjacent
   GT_BATCH      how many independent products (default 1)
   GT_A(b)       const float *, A of product b
   GT_B(b)       const uint16_t *, B of product b, split and packed, zero padded, 64-byte aligned:
                 [ceil(N/NR)][ceil(K/32)][PARTS][16][NR][2]; NR is 2·GT_LANES
   GT_DEEP       the depth that is taken at a time, a multiple of 32
   GT_CHUNK      blocks of 32 rows that are split at a time
   GT_WIDTH      panels that such rows are multiplied by before the next depth
   GT_WORK(t)    float *, workspace of thread t, 64-byte aligned, of
                 CHUNK·(16·(PARTS·DEEP + 1) + WIDTH·32·NR) floats
   GT_BY_ROWS    whether threads share the rows (1) or the columns (0)
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): as in gemm.h

   A block of rows with numbers that do not split, and all blocks where there are no tiles, stay
   floats and are multiplied by multiply-adds. */
#include "parts.h"
#include "template_begin.h"
#ifndef GT_BATCH
#define GT_BATCH 1
#endif
#define GT_SUM float
#define GT_COPY uint16_t
#define GT_NV 2
#define GT_MR 2 /* segments */
#define GT_LINES gt_ceil_div(GT_M, GT_SEGMENT)
#define GT_ROWS gt_ceil_div(GT_M, gt_max(1, GT_LINES)) /* rows of a segment; fewer in the last */
#define GT_TILE (GT_SEGMENT * GT_PARTS_RUN) /* numbers of a tile, adjacent */
#define GT_SPLIT (2 * GT_PARTS * GT_SEGMENT * (GT_DEEP)) /* [steps][PARTS][2][16][32] */
#define GT_TALL (GT_SPLIT + 32) /* the first number behind it: whether it is split */
#define GT_SET 4 * GT_SEGMENT * GT_NR
#define GT_UNIT GT_PARTS_RUN
#define GT_COLUMN gt_ceil_div(GT_K, GT_UNIT) * GT_UNIT
#define GT_PLANES GT_PARTS
#define GT_STEPS(k) (GT_RUN_ROWS((k) * 2) * GT_PARTS)
#define GT_SHAPE GT_ROWS
#include "gemm_hand.h"

/* Where the first element k of row m is, in product b. */
GT_INLINE const float *GT_JOIN(GT_NAME, _at)(int64_t b, int64_t m, int64_t k GT_PARAMS)
{
#ifdef GT_LDK
    return GT_A(b) + m + k * (GT_LDK);
#else
    return GT_A(b) + m * (GT_LDA) + k;
#endif
}

/* A run of `rows` rows, 32 numbers or fewer of each, as rows that are adjacent: in place, or in
   `turned`. Sets their distance. */
GT_INLINE const float *GT_JOIN(GT_NAME, _rows)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                               int64_t depth, float *turned,
                                               int64_t *apart GT_PARAMS)
{
    const float *x = GT_JOIN(GT_NAME, _at)(b, m, k GT_ARGS);
#ifdef GT_LDK
    gt_turn_run(x, GT_LDK, rows, depth, turned);
    *apart = GT_PARTS_RUN;
    return turned;
#else
    (void)rows, (void)depth, (void)turned;
    *apart = GT_LDA;
    return x;
#endif
}

/* One segment of a block from element k on; returns `seen` of parts.h. */
GT_INLINE gt_vw GT_JOIN(GT_NAME, _segment)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                           int64_t depth, uint16_t *to, gt_vw seen GT_PARAMS)
{
    for (int64_t i = 0; i < depth; i += GT_PARTS_RUN, to += 2 * GT_PARTS * GT_TILE) {
        float turned[GT_SEGMENT * GT_PARTS_RUN] GT_ALIGNED;
        int64_t apart;
        const int64_t some = gt_min(GT_PARTS_RUN, depth - i);
        const float *x = GT_JOIN(GT_NAME, _rows)(b, m, k + i, rows, some, turned, &apart GT_ARGS);
        for (int64_t r = 0; r < rows; r++)
            seen = gt_split_run(x + r * apart, some, GT_PARTS, to + r * GT_PARTS_RUN, 2 * GT_TILE,
                                seen);
    }
    return seen;
}

/* The floats of a segment, [16][DEEP]. */
GT_INLINE void GT_JOIN(GT_NAME, _floats)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                         int64_t depth, float *to GT_PARAMS)
{
    for (int64_t i = 0; i < depth; i += GT_PARTS_RUN) {
        float turned[GT_SEGMENT * GT_PARTS_RUN] GT_ALIGNED;
        int64_t apart;
        const int64_t some = gt_min(GT_PARTS_RUN, depth - i);
        const float *x = GT_JOIN(GT_NAME, _rows)(b, m, k + i, rows, some, turned, &apart GT_ARGS);
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * (GT_DEEP) + i, x + r * apart, (size_t)some * sizeof(float));
    }
}

/* `count` blocks of one or two segments of product b, from element k on. */
GT_INLINE void GT_JOIN(GT_NAME, _copy)(const int segments, int64_t b, int64_t line, int64_t k,
                                       int64_t depth, int64_t count,
                                       uint16_t *restrict to GT_PARAMS)
{
    for (int64_t i = 0; i < count; i++, to += GT_TALL) {
        gt_vw seen = {0};
        const int64_t first = (line + i * segments) * GT_ROWS;
        for (int s = 0; s < segments && gt_parts_in_tiles(); s++) {
            const int64_t m = first + s * GT_ROWS;
            seen = GT_JOIN(GT_NAME, _segment)(b, m, k, gt_min(GT_ROWS, (GT_M)-m), depth,
                                              to + s * GT_TILE, seen GT_ARGS);
        }
        to[GT_SPLIT] = gt_parts_in_tiles() && gt_all_split(seen);
        for (int s = 0; s < segments && !to[GT_SPLIT]; s++) {
            const int64_t m = first + s * GT_ROWS;
            GT_JOIN(GT_NAME, _floats)(b, m, k, gt_min(GT_ROWS, (GT_M)-m), depth,
                                      (float *)to + s * GT_SEGMENT * (GT_DEEP) GT_ARGS);
        }
    }
}

/* Adds a block to its sums by tiles. */
GT_INLINE void GT_JOIN(GT_NAME, _tiles)(const int segments, int64_t columns, const uint16_t *left,
                                        const uint16_t *right, int64_t depth, const char *ahead,
                                        int64_t step, int begun, float *sums)
{
#ifdef GT_AMX
    float apart[2 * GT_SEGMENT * GT_NR] GT_ALIGNED, *tiles = begun ? apart : sums;
    gt_block_zero(GT_BFLOAT16, tiles);
    gt_parts_run(GT_PARTS, segments == 2, columns > GT_NR / 2, (const char *)left,
                 2 * GT_PARTS * GT_TILE * 2, GT_TILE * 2, GT_RUN_BYTES, 2 * GT_TILE * 2,
                 (const char *)right, gt_ceil_div(depth, GT_PARTS_RUN), ahead, step);
    gt_block_store(GT_BFLOAT16, segments == 2, columns, tiles);
    gt_parts_finish(tiles, segments == 2, begun, sums);
#else
    (void)segments, (void)columns, (void)left, (void)right, (void)depth, (void)ahead, (void)step;
    (void)begun, (void)sums;
#endif
}

/* Sums of one or two segments of one panel over a part of the depth. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int segments, int64_t b, int64_t line, int64_t panel,
                                       const uint16_t *left, const uint16_t *right, int64_t depth,
                                       const char *ahead, int64_t step, float *aside, int begun,
                                       int ends GT_PARAMS)
{
    float whole[2 * GT_SEGMENT * GT_NR] GT_ALIGNED, *sums = begun || !ends ? aside : whole;
    const int64_t m = line * GT_ROWS, columns = gt_min(GT_NR, (GT_N)-panel * GT_NR);
    if (left[GT_SPLIT])
        GT_JOIN(GT_NAME, _tiles)(segments, columns, left, right, depth, ahead, step, begun, sums);
    else {
        if (!begun) memset(sums, 0, sizeof whole);
        for (int64_t s = 0; s < segments; s++)
            gt_parts_rows(GT_PARTS, (const float *)left + s * GT_SEGMENT * (GT_DEEP), GT_DEEP,
                          gt_min(GT_ROWS, (GT_M)-m - s * GT_ROWS), (const char *)right, depth,
                          sums + s * GT_SEGMENT * GT_NR);
    }
    if (!ends) return;
    for (int64_t s = 0; s < segments; s++)
        GT_JOIN(GT_NAME, _hand)(sums + s * GT_SEGMENT * GT_NR,
                                (int)gt_min(GT_ROWS, (GT_M)-m - s * GT_ROWS), b, m + s * GT_ROWS,
                                panel GT_ARGS);
}

#define GT_INSTANCE(segments, ...)                                                                \
    GT_NOINLINE void GT_JOIN(GT_NAME, _copy##segments)(int64_t b, int64_t line, int64_t k,        \
                                                       int64_t depth, int64_t count,              \
                                                       uint16_t *to GT_PARAMS)                    \
    {                                                                                             \
        GT_JOIN(GT_NAME, _copy)(segments, b, line, k, depth, count, to GT_ARGS);                  \
    }                                                                                             \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##segments)(                                           \
        int64_t b, int64_t line, int64_t panel, const uint16_t *left, const uint16_t *right,      \
        int64_t depth, const char *ahead, int64_t step, float *aside, int begun,                  \
        int ends GT_PARAMS)                                                                       \
    {                                                                                             \
        GT_JOIN(GT_NAME, _tile)(segments, b, line, panel, left, right, depth, ahead, step, aside, \
                                begun, ends GT_ARGS);                                             \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

#include "blocked_loop.h"

#include "template_end.h"
