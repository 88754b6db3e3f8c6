/* Products of float32 by a matrix unit, as parts.h computes them, with a left operand that is split
   block by block: the rest of a template that has the macros of gemm_parts.h but those of A, the
   macros of gemm_hand.h, and before it includes this:

   GT_PRODUCTS   how many independent products
   NAME_rows(b, m, k, rows, depth, room GT_ARGS)
                 returns up to 16 rows of the left operand of product b from row m on, GT_APART
                 floats from each other, elements k to k + depth of them. Up to GT_ONCE elements
                 are asked for at a time, a multiple of 32. They may be written to `room`, of
                 GT_ROOM floats, and may be followed by anything
   NAME_right(b, panel, k, depth, room GT_ARGS)
                 with GT_FLOATS, if there is no GT_B: returns up to 32 rows of a panel, of GT_NR
                 floats each, from row k on. They may be written to `room`, of GT_RIGHT floats
   GT_BESIDE     if defined, the left operand is transposed in memory, with the macros of
                 gemm_parts.h, and so many numbers of a row of memory are read together, 16 for
                 each of some segments */
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

/* Splits up to 32 elements of `rows` rows; returns `seen` of parts.h. */
GT_INLINE gt_vw GT_JOIN(GT_NAME, _run)(const float *x, int64_t rows, int64_t depth, uint16_t *to,
                                       gt_vw seen GT_PARAMS)
{
    for (int64_t r = 0; r < rows; r++)
        seen = gt_split_run(x + r * GT_APART, depth, GT_PARTS, to + r * GT_PARTS_RUN, 2 * GT_TILE,
                            seen);
    return seen;
}

#ifdef GT_BESIDE
/* `count` blocks of one or two segments of product b, from element k on, of a left operand that is
   transposed in memory. Its rows of memory are read for several segments: the lines of a single
   one can all fall on the same set of the cache, and lie on many pages. */
GT_INLINE void GT_JOIN(GT_NAME, _copy)(const int segments, int64_t b, int64_t line, int64_t k,
                                       int64_t depth, int64_t count,
                                       uint16_t *restrict to GT_PARAMS)
{
    enum { together = GT_BESIDE / GT_SEGMENT };
    float beside[GT_PARTS_RUN * GT_BESIDE] GT_ALIGNED, room[GT_ROOM] GT_ALIGNED;
    for (int64_t i = 0; i < count; i++) {
        to[i * GT_TALL + GT_SPLIT] = GT_SPLITS;
        memcpy(to + i * GT_TALL + GT_SPLIT + 4, &k, sizeof k);
    }
    for (int64_t i = 0; i < depth && GT_SPLITS; i += GT_PARTS_RUN)
        for (int64_t s = 0; s < count * segments; s++) {
            const int64_t m = (line + s) * GT_ROWS, rows = gt_min(GT_ROWS, (GT_M)-m);
            const int64_t some = gt_min(GT_PARTS_RUN, depth - i);
            uint16_t *own = to + s / segments * GT_TALL;
            uint16_t *tile = own + s % segments * GT_TILE + i * 2 * GT_PARTS * GT_SEGMENT;
            if (s % together == 0)
                for (int64_t r = 0; r < some; r++)
                    memcpy(beside + r * GT_BESIDE, GT_A(b) + m + (k + i + r) * (GT_LDK),
                           (size_t)gt_min(GT_BESIDE, (GT_M)-m) * sizeof(float));
            gt_turn_run(beside + s % together * GT_ROWS, GT_BESIDE, rows, some, room);
            own[GT_SPLIT] &= (uint16_t)gt_all_split(
                GT_JOIN(GT_NAME, _run)(room, rows, some, tile, (gt_vw){0} GT_ARGS));
        }
}
#else
/* One segment of a block from element k on; returns `seen` of parts.h. */
GT_INLINE gt_vw GT_JOIN(GT_NAME, _segment)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                           int64_t depth, uint16_t *to, gt_vw seen GT_PARAMS)
{
    for (int64_t i = 0; i < depth; i += GT_PARTS_RUN, to += 2 * GT_PARTS * GT_TILE) {
        const int64_t some = gt_min(GT_PARTS_RUN, depth - i);
        float room[GT_ROOM] GT_ALIGNED;
        const float *x = GT_JOIN(GT_NAME, _rows)(b, m, k + i, rows, some, room GT_ARGS);
        seen = GT_JOIN(GT_NAME, _run)(x, rows, some, to, seen GT_ARGS);
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
#endif

#ifdef GT_TAKES
#ifdef GT_B
#define GT_RIGHT 1
GT_INLINE const float *GT_JOIN(GT_NAME, _right)(int64_t b, int64_t panel, int64_t k, int64_t depth,
                                                float *room GT_PARAMS)
{
    (void)depth, (void)room;
    return (const float *)GT_B(b) + (panel * (GT_K) + k) * GT_NR;
}
#endif

/* A part of a panel, split. */
GT_INLINE const uint16_t *GT_JOIN(GT_NAME, _take)(int64_t b, int64_t panel, int64_t k,
                                                  int64_t depth, uint16_t *to GT_PARAMS)
{
    gt_vw seen = {0};
    for (int64_t i = 0; i < depth && GT_SPLITS; i += GT_PARTS_RUN) {
        const int64_t some = gt_min(GT_PARTS_RUN, depth - i);
        float room[GT_RIGHT] GT_ALIGNED;
        const float *rows = GT_JOIN(GT_NAME, _right)(b, panel, k + i, some, room GT_ARGS);
        seen |= gt_split_panel(rows, some, GT_PARTS, (char *)(to + i * GT_PARTS * GT_NR));
    }
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
    for (int64_t s = 0; s < segments; s++, m += GT_ROWS)
        for (int64_t i = 0, some; i < depth; i += some) {
            const int64_t rows = gt_min(GT_ROWS, (GT_M)-m);
            float room[GT_ROOM] GT_ALIGNED;
#ifdef GT_FLOATS
            float beside[GT_RIGHT] GT_ALIGNED;
            some = gt_min(GT_PARTS_RUN, depth - i);
            const float *own = GT_JOIN(GT_NAME, _right)(b, panel, k + i, some, beside GT_ARGS);
            const int64_t from = 0;
            enum { parts = 0 };
            (void)right;
#else
            some = gt_min(GT_ONCE, depth - i);
            const uint16_t *own = right;
            const int64_t from = i;
            enum { parts = GT_PARTS };
            (void)panel;
#endif
            const float *x = GT_JOIN(GT_NAME, _rows)(b, m, k + i, rows, some, room GT_ARGS);
            gt_parts_rows(parts, x, GT_APART, rows, (const char *)own, from, some,
                          sums + s * GT_SEGMENT * GT_NR);
        }
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
