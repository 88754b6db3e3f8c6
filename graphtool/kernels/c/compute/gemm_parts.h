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
#define GT_SUM float
#define GT_COPY uint16_t
#define GT_NV 2
#define GT_MR 2 /* segments */
#define GT_LINES gt_ceil_div(GT_M, GT_SEGMENT)
/* rows of a segment, fewer in the last; a tile has one at least */
#define GT_ROWS gt_max(1, gt_ceil_div(GT_M, gt_max(1, GT_LINES)))
#define GT_TILE (GT_SEGMENT * GT_PARTS_RUN) /* numbers of a tile, adjacent */
#define GT_SPLIT (2 * GT_PARTS * GT_SEGMENT * (GT_DEEP)) /* [steps][PARTS][2][16][32] */
#define GT_TALL (GT_SPLIT + 32) /* behind it: whether it is split, and from which k on */
#define GT_SET 4 * GT_SEGMENT * GT_NR
#define GT_UNIT GT_PARTS_RUN
#ifdef GT_FLOATS
#define GT_TAKES
#define GT_TAKEN (GT_PARTS * (GT_DEEP) * GT_NR) /* numbers of a panel; behind them, as above */
#define GT_COLUMN (GT_K)
#define GT_PLANES 2 /* a float is as long as two numbers */
#else
#define GT_COLUMN gt_ceil_div(GT_K, GT_UNIT) * GT_UNIT
#define GT_PLANES GT_PARTS
#endif
#define GT_STEPS(k) (GT_RUN_ROWS((k) * 2) * GT_PARTS)
#define GT_SHAPE GT_ROWS
#define GT_SPLITS ((GT_M) >= 32 && gt_parts_in_tiles()) /* whether anything is split */
#include "gemm_hand.h"

#ifdef GT_LDK
#define GT_ALONG (GT_LDK) /* from an element of a row to the next */
#define GT_ACROSS 1 /* from a row to the next */
#else
#define GT_ALONG 1
#define GT_ACROSS (GT_LDA)
#endif
#define GT_ELEMENT(b, m, k) (GT_A(b) + (m) * GT_ACROSS + (k) * GT_ALONG)

/* One segment of a block from element k on; returns `seen` of parts.h. */
GT_INLINE gt_vw GT_JOIN(GT_NAME, _segment)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                           int64_t depth, uint16_t *to, gt_vw seen GT_PARAMS)
{
    for (int64_t i = 0; i < depth; i += GT_PARTS_RUN, to += 2 * GT_PARTS * GT_TILE) {
        const int64_t some = gt_min(GT_PARTS_RUN, depth - i);
        const float *x = GT_ELEMENT(b, m, k + i);
#ifdef GT_LDK
        float turned[GT_SEGMENT * GT_PARTS_RUN] GT_ALIGNED;
        gt_turn_run(x, GT_LDK, rows, some, turned);
        x = turned;
        const int64_t apart = GT_PARTS_RUN;
#else
        const int64_t apart = GT_LDA;
#endif
        for (int64_t r = 0; r < rows; r++)
            seen = gt_split_run(x + r * apart, some, GT_PARTS, to + r * GT_PARTS_RUN, 2 * GT_TILE,
                                seen);
    }
    return seen;
}

/* `count` blocks of one or two segments of product b, from element k on. */
GT_INLINE void GT_JOIN(GT_NAME, _copy)(const int segments, int64_t b, int64_t line, int64_t k,
                                       int64_t depth, int64_t count,
                                       uint16_t *restrict to GT_PARAMS)
{
    for (int64_t i = 0; i < count; i++, to += GT_TALL) {
        gt_vw seen = {0};
        const int64_t first = (line + i * segments) * GT_ROWS;
        for (int s = 0; s < segments && GT_SPLITS; s++) {
            const int64_t m = first + s * GT_ROWS;
            seen = GT_JOIN(GT_NAME, _segment)(b, m, k, gt_min(GT_ROWS, (GT_M)-m), depth,
                                              to + s * GT_TILE, seen GT_ARGS);
        }
        to[GT_SPLIT] = GT_SPLITS && gt_all_split(seen);
        memcpy(to + GT_SPLIT + 4, &k, sizeof k);
    }
}

#ifdef GT_TAKES
/* A part of a panel, split. */
GT_INLINE const uint16_t *GT_JOIN(GT_NAME, _take)(const uint16_t *right, int64_t depth,
                                                  uint16_t *to GT_PARAMS)
{
    gt_vw seen = {0};
    if (GT_SPLITS)
        seen = gt_split_panel((const float *)right, depth, GT_PARTS, (char *)to);
    to[GT_TAKEN] = (uint16_t)gt_all_split(seen);
    return to;
}
#endif

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

/* Adds a block to its sums by multiply-adds. */
GT_INLINE void GT_JOIN(GT_NAME, _plain)(const int segments, int64_t b, int64_t m, int64_t panel,
                                        const uint16_t *left, const uint16_t *right,
                                        int64_t depth, float *sums GT_PARAMS)
{
    int64_t k;
    memcpy(&k, left + GT_SPLIT + 4, sizeof k);
#ifdef GT_FLOATS
    enum { parts = 0 };
    right = (const uint16_t *)(GT_B(b) + (panel * (GT_K) + k) * GT_NR);
#else
    enum { parts = GT_PARTS };
    (void)panel;
#endif
    for (int64_t s = 0; s < segments; s++, m += GT_ROWS)
        gt_parts_rows(parts, GT_ELEMENT(b, m, k), GT_ACROSS, GT_ALONG, gt_min(GT_ROWS, (GT_M)-m),
                      (const char *)right, depth, sums + s * GT_SEGMENT * GT_NR);
}

/* Sums of one or two segments of one panel over a part of the depth. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int segments, int64_t b, int64_t line, int64_t panel,
                                       const uint16_t *left, const uint16_t *right, int64_t depth,
                                       const char *ahead, int64_t step, float *aside, int begun,
                                       int ends GT_PARAMS)
{
    float whole[2 * GT_SEGMENT * GT_NR] GT_ALIGNED, *sums = begun || !ends ? aside : whole;
    const int64_t m = line * GT_ROWS, columns = gt_min(GT_NR, (GT_N)-panel * GT_NR);
    int splits = left[GT_SPLIT];
#ifdef GT_TAKES
    splits &= right[GT_TAKEN];
#endif
    if (splits)
        GT_JOIN(GT_NAME, _tiles)(segments, columns, left, right, depth, ahead, step, begun, sums);
    else {
        if (!begun) memset(sums, 0, sizeof whole);
        GT_JOIN(GT_NAME, _plain)(segments, b, m, panel, left, right, depth, sums GT_ARGS);
    }
    if (!ends) return;
    for (int64_t s = 0; s < segments; s++)
        GT_JOIN(GT_NAME, _hand)(sums + s * GT_SEGMENT * GT_NR,
                                (int)gt_min(GT_ROWS, (GT_M)-m - s * GT_ROWS), b, m + s * GT_ROWS,
                                panel GT_ARGS);
}

#include "blocked_loop.h"

#include "template_end.h"
