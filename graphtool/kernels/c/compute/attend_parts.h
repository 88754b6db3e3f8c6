/* Scaled dot-product attention of float32 by a matrix unit of bfloat16, a template: both products
   are sums of products of parts (parts.h). A block of 32 queries takes the keys some at a time:
   scores, softmax, and the weighted sum of the values; a few blocks take the same keys one after
   the other, before the next ones.

   GT_PARTS       bfloat16 numbers of a float32: 3, or 2 for sixteen digits
   GT_HEADS       how many independent attentions
   GT_S GT_T      query rows and key rows of each
   GT_D GT_DV     length of queries and keys, and of values
   GT_Q(b) GT_KEY(b) GT_V(b)   row 0 of attention b, const float *
   GT_LDQ GT_LDK GT_LDV        row strides in floats; the elements of a row are adjacent
   GT_SCALE GT_SOFTCAP         factor of the scores; with c > 0, c·tanh(score / c) takes their place
   GT_CAUSAL      1: query s sees keys 0…s only
   GT_MASKED      1: GT_MASK(b, s) is added to the scores of query s, const float * of T elements
                  that are GT_MASK_STEP (0 or 1) floats apart
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of
                    PARTS·TP·(DP + VP) / 2 + 4·32·(PARTS·DP / 2 + VP + 2)
                    + 2·32·(min(TP, 128)·(1 + PARTS / 2) + 1) floats,
                  TP, DP, VP = T, D, DV rounded up to 32
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t b, int64_t s, int64_t d,
                  int64_t count GT_PARAMS): takes `count` elements of row s from d on; acc is
                  vector-aligned

   A row that sees nothing gives 0. Adjacent heads that share keys and values (grouped queries) pack
   them once. Without tiles, and where numbers of a head do not split, its keys or values are packed
   as floats, and multiplied by multiply-adds. */
#include "parts.h"
#include "scores.h"
#include "attend_begin.h"

#define GT_NV 2
#define GT_TALL (2 * GT_SEGMENT) /* queries of a block */
#define GT_MOST 128 /* keys whose scores are kept at a time */
#define GT_FEW 4 /* blocks that take the same keys */
#define GT_STEPS(n) gt_ceil_div(n, GT_PARTS_RUN)
#define GT_PANELS(n) gt_ceil_div(n, GT_NR)
/* numbers of a step along the depth: of a block's rows in parts, and of a panel of floats; bytes of
   a panel in parts */
#define GT_ROWS_STEP (GT_TALL * GT_PARTS * GT_PARTS_RUN)
#define GT_FLOATS_STEP (GT_PARTS_RUN * GT_NR)
#define GT_PANEL_STEP (GT_PARTS * GT_PART_BYTES)
/* What a block keeps, in floats: its queries in parts; results, [panels][TALL][NR]; the highest
   scores and the sums of weights. */
#define GT_SOME gt_min(GT_STEPS(GT_T) * GT_PARTS_RUN, GT_MOST)
#define GT_QUERIES (GT_STEPS(GT_D) * GT_ROWS_STEP / 2)
#define GT_RESULTS (GT_STEPS(GT_DV) * GT_PARTS_RUN * GT_TALL)
#define GT_UNIT (GT_SOME * GT_TALL * (2 + GT_PARTS) / 2 + GT_TALL)
#define GT_KEPT (GT_QUERIES + GT_RESULTS + 2 * GT_TALL)

/* Keys and values of a head: whose they are, where they are packed, and whether in parts. */
typedef struct {
    const float *key, *v;
    float *keys, *values;
    int keys_split, values_split;
} GT_JOIN(GT_NAME, _head);

/* A block of queries: its rows from s on, whether they split, and what it keeps. */
typedef struct {
    int64_t s, rows;
    int split;
    uint16_t *queries;
    float *results, *highest, *sums;
} GT_JOIN(GT_NAME, _block);

/* `count` keys from `from` on for a block: their scores, weights, and the factors of what was
   summed before. */
typedef struct {
    GT_JOIN(GT_NAME, _block) *block;
    int64_t from, count;
    float *scores, *past;
    uint16_t *weights;
} GT_JOIN(GT_NAME, _unit);

#include "attend_parts_pack.h"
#include "attend_parts_products.h"

/* The scores of a unit: a job of tiles, or at once. */
GT_INLINE GT_JOIN(GT_NAME, _job) GT_JOIN(GT_NAME, _scores)(int64_t b,
                                                          const GT_JOIN(GT_NAME, _head) *head,
                                                          const GT_JOIN(GT_NAME, _unit) *unit
                                                          GT_PARAMS)
{
    const GT_JOIN(GT_NAME, _block) *block = unit->block;
    const int64_t steps = GT_STEPS(GT_D), first = unit->from / GT_NR * steps;
    const int64_t next = steps * GT_PANEL_STEP;
    const char *panel = (const char *)head->keys + first * GT_PANEL_STEP;
    const float *plain = head->keys + first * GT_FLOATS_STEP;
    const float *x = GT_Q(b) + block->s * (GT_LDQ);
    if (block->split)
        return (GT_JOIN(GT_NAME, _job)){
            GT_PANELS(unit->count), steps, 0, next, (const char *)block->queries, panel,
            unit->scores, 1, block->rows > GT_SEGMENT, 0};
    for (int64_t k = 0; k < unit->count; k += GT_NR, panel += next) {
        float *scores = unit->scores + k * GT_TALL;
        memset(scores, 0, GT_TALL * GT_NR * 4);
        if (head->keys_split)
            gt_parts_rows(GT_PARTS, x, GT_LDQ, block->rows, panel, 0, GT_D, scores);
        else
            gt_parts_rows(0, x, GT_LDQ, block->rows,
                          (const char *)(plain + k * steps * GT_PARTS_RUN), 0, GT_D, scores);
    }
    return (GT_JOIN(GT_NAME, _job)){0};
}

/* What a unit adds to the results of its block: a job of tiles, or at once. */
GT_INLINE GT_JOIN(GT_NAME, _job) GT_JOIN(GT_NAME, _values)(const GT_JOIN(GT_NAME, _head) *head,
                                                          const GT_JOIN(GT_NAME, _unit) *unit
                                                          GT_PARAMS)
{
    const GT_JOIN(GT_NAME, _block) *block = unit->block;
    const int64_t first = unit->from / GT_PARTS_RUN;
    const float *plain = head->values + first * GT_FLOATS_STEP;
    float *results = block->results;
    if (unit->from > 0)
        for (int64_t r = 0; r < block->rows; r++)
            for (int64_t d = 0; d < GT_PANELS(GT_DV) && unit->past[r] != 1.0f; d++)
                for (int l = 0; l < GT_NR; l++)
                    results[(d * GT_TALL + r) * GT_NR + l] *= unit->past[r];
    if (head->values_split)
        return (GT_JOIN(GT_NAME, _job)){
            GT_PANELS(GT_DV), GT_STEPS(unit->count), 0, GT_STEPS(GT_T) * GT_PANEL_STEP,
            (const char *)unit->weights, (const char *)head->values + first * GT_PANEL_STEP,
            results, unit->from == 0, block->rows > GT_SEGMENT, 0};
    for (int64_t d = 0; d < GT_PANELS(GT_DV); d++, results += GT_TALL * GT_NR)
        for (int64_t k = 0; k < unit->count; k += GT_NR)
            gt_parts_rows(0, unit->scores + k * GT_TALL, GT_NR, block->rows,
                          (const char *)(plain + d * GT_STEPS(GT_T) * GT_FLOATS_STEP), k,
                          gt_min(GT_NR, unit->count - k), results);
    return (GT_JOIN(GT_NAME, _job)){0};
}

/* Scales, caps and masks the scores of a row: `seen` keys from `from` on. */
GT_INLINE void GT_JOIN(GT_NAME, _change)(float *restrict row, int64_t b, int64_t s, int64_t from,
                                         int64_t seen, float factor GT_PARAMS)
{
#if GT_MASKED
    const float *mask = GT_MASK(b, s) + from * GT_MASK_STEP;
#endif
    for (int64_t k = 0; k < seen; k += GT_NR, row += GT_TALL * GT_NR) {
        GT_SIMD
        for (int64_t l = 0; l < gt_min(GT_NR, seen - k); l++) {
            float y = row[l] * factor;
            if ((GT_SOFTCAP) > 0.0f) y = GT_SOFTCAP * gt_tanh_f32(y / GT_SOFTCAP);
#if GT_MASKED
            y += mask[(k + l) * GT_MASK_STEP];
#endif
            row[l] = y;
        }
    }
}

/* The weights of a row for `panels` panels of keys instead of its scores, and their parts as a row
   of a block; their sum, in lanes. */
GT_INLINE gt_vf GT_JOIN(GT_NAME, _weights)(float *restrict row, int64_t panels, float factor,
                                           float top, uint16_t *restrict parts,
                                           GT_JOIN(GT_NAME, _queue) *queue)
{
    gt_vf sum = gt_splat(0.0f);
    for (int64_t p = 0; p < panels; p++, row += GT_TALL * GT_NR) {
        GT_SIMD
        for (int64_t l = 0; l < GT_NR; l++) row[l] = gt_exp2_negative((row[l] - top) * factor);
        sum += gt_load(row) + gt_load(row + GT_LANES);
        if (parts)
            gt_split_run(row, GT_PARTS_RUN, GT_PARTS, parts + p * GT_ROWS_STEP, GT_PARTS_RUN,
                         (gt_vw){0});
        GT_JOIN(GT_NAME, _beside)(queue);
    }
    return sum;
}

/* The softmax of a unit's scores; with `split` weights in parts. It takes the queue's jobs:
   the matrix unit works beside the vectors. */
GT_INLINE void GT_JOIN(GT_NAME, _softmax)(int64_t b, int split,
                                          const GT_JOIN(GT_NAME, _unit) *unit,
                                          GT_JOIN(GT_NAME, _queue) *queue GT_PARAMS)
{
    const GT_JOIN(GT_NAME, _block) *block = unit->block;
    const float back = block->split ? GT_PARTS_BACK : 1.0f;
    const float factor = (GT_PLAIN ? (GT_SCALE)*back : 1.0f) * 1.44269504f;
    const int64_t panels = GT_PANELS(unit->count), all = unit->count, s = block->s;
    gt_vf lanes[GT_TALL] = {0};
    GT_JOIN(GT_NAME, _plan)(queue, block->rows * panels);
    for (int64_t r = 0; r < block->rows; r++) {
        float *row = unit->scores + r * GT_NR, tops[GT_NR] GT_ALIGNED;
        const int64_t seen = (GT_CAUSAL) ? gt_max(0, gt_min(all, s + r + 1 - unit->from)) : all;
        if (!GT_PLAIN)
            GT_JOIN(GT_NAME, _change)(row, b, s + r, unit->from, seen, (GT_SCALE)*back GT_ARGS);
        for (int64_t k = seen; k < panels * GT_NR; k++)
            row[k / GT_NR * GT_TALL * GT_NR + k % GT_NR] = -INFINITY;
        for (int l = 0; l < GT_NR; l++) tops[l] = -INFINITY;
        for (int64_t p = 0; p < panels; p++)
            for (int l = 0; l < GT_NR; l++)
                tops[l] = gt_above(row[p * GT_TALL * GT_NR + l], tops[l]);
        const float old = block->highest[r], top = gt_highest(tops, GT_NR, old);
        const float past = old == top ? 1.0f : gt_exp2_negative((old - top) * factor);
        lanes[r] = GT_JOIN(GT_NAME, _weights)
            (row, panels, factor, top == -INFINITY ? 0.0f : top,
             split ? unit->weights + r * GT_PARTS * GT_PARTS_RUN : 0, queue);
        block->highest[r] = top;
        block->sums[r] *= past;
        unit->past[r] = past;
    }
    for (int64_t r = 0; r < GT_TALL; r += GT_LANES)
        gt_store(block->sums + r, gt_load(block->sums + r) + gt_lane_sums(lanes + r));
}

/* Divides the results of a block, times `back`, by the sums of the weights, and hands them out. */
GT_INLINE void GT_JOIN(GT_NAME, _hand)(int64_t b, float back,
                                       const GT_JOIN(GT_NAME, _block) *block GT_PARAMS)
{
    for (int64_t r = 0; r < block->rows; r++) {
        const float sum = block->sums[r], inverse = sum > 0.0f || sum != sum ? back / sum : 0.0f;
        for (int64_t d = 0; d < (GT_DV); d += GT_NR) {
            float *row = block->results + (d / GT_NR * GT_TALL + r) * GT_NR;
            for (int l = 0; l < GT_NR; l++) row[l] *= inverse;
            GT_EPILOGUE(row, b, block->s + r, d, gt_min(GT_NR, (GT_DV)-d) GT_ARGS);
        }
    }
}

/* The block of the queries of head b from row s on, in its memory. */
GT_INLINE GT_JOIN(GT_NAME, _block) GT_JOIN(GT_NAME, _begin)(int64_t b, int64_t s, int split,
                                                           float *kept GT_PARAMS)
{
    GT_JOIN(GT_NAME, _block) block = {0};
    block.s = s, block.rows = gt_min(GT_TALL, (GT_S)-s);
    block.queries = (uint16_t *)kept;
    block.results = kept + GT_QUERIES;
    block.highest = block.results + GT_RESULTS, block.sums = block.highest + GT_TALL;
    block.split = split && GT_JOIN(GT_NAME, _split_queries)
        (GT_Q(b) + s * (GT_LDQ), block.rows, block.queries GT_ARGS);
    memset(block.results, 0, (size_t)(GT_RESULTS + 2 * GT_TALL) * 4);
    for (int l = 0; l < GT_TALL; l++) block.highest[l] = -INFINITY;
    return block;
}

/* Unit u of n blocks, which take the same keys one after the other, in one half of the memory at
   `some`. Keys that a block does not see are none. */
GT_INLINE GT_JOIN(GT_NAME, _unit) GT_JOIN(GT_NAME, _of)(int64_t u, int64_t n, int64_t turn,
                                                       GT_JOIN(GT_NAME, _block) *blocks,
                                                       float *some GT_PARAMS)
{
    GT_JOIN(GT_NAME, _unit) unit = {blocks + u % n, u / n * GT_MOST, 0, 0, 0, 0};
    const int64_t last = (GT_CAUSAL) ? gt_min(GT_T, unit.block->s + GT_TALL) : (GT_T);
    unit.count = gt_max(0, gt_min(GT_MOST, last - unit.from));
    unit.scores = some + turn % 2 * GT_UNIT;
    unit.past = unit.scores + GT_SOME * GT_TALL;
    unit.weights = (uint16_t *)(unit.past + GT_TALL);
    return unit;
}

/* n blocks of queries of head b from row s on. While the vectors compute the softmax of a unit, the
   matrix unit has the values of the one before and the scores of the next. */
GT_NOINLINE void GT_JOIN(GT_NAME, _blocks)(int64_t b, int64_t s, int64_t n,
                                           const GT_JOIN(GT_NAME, _head) *head,
                                           float *work GT_PARAMS)
{
    GT_JOIN(GT_NAME, _block) blocks[GT_FEW];
    GT_JOIN(GT_NAME, _unit) unit, next;
    GT_JOIN(GT_NAME, _queue) queue = {0};
    const int64_t units = gt_ceil_div(GT_T, GT_MOST) * n;
    float *some = work + GT_FEW * GT_KEPT;
    for (int64_t i = 0; i < n; i++)
        blocks[i] = GT_JOIN(GT_NAME, _begin)
            (b, s + i * GT_TALL, head->keys_split, work + i * GT_KEPT GT_ARGS);
    unit.count = 0;
    for (int64_t u = 0, turn = 0; u <= units; u++) {
        next = GT_JOIN(GT_NAME, _of)(u, n, turn, blocks, some GT_ARGS);
        if (u < units && !next.count) continue;
        if (u < units) queue.jobs[1] = GT_JOIN(GT_NAME, _scores)(b, head, &next GT_ARGS);
        if (unit.count) {
            GT_JOIN(GT_NAME, _softmax)(b, head->values_split, &unit, &queue GT_ARGS);
            queue.jobs[0] = GT_JOIN(GT_NAME, _values)(head, &unit GT_ARGS);
        } else {
            GT_JOIN(GT_NAME, _finish)(&queue);
        }
        unit = next, turn++;
    }
    GT_JOIN(GT_NAME, _finish)(&queue);
    for (int64_t i = 0; i < n; i++)
        GT_JOIN(GT_NAME, _hand)
        (b, head->values_split ? GT_PARTS_BACK : 1.0f, blocks + i GT_ARGS);
}

/* Packs the keys and values of head b, if they are others than those that are packed. */
GT_INLINE void GT_JOIN(GT_NAME, _pack)(int64_t b, GT_JOIN(GT_NAME, _head) *head GT_PARAMS)
{
    const int tiles = gt_parts_in_tiles();
    if (GT_KEY(b) != head->key) {
        head->key = GT_KEY(b);
        head->keys_split = tiles && GT_JOIN(GT_NAME, _pack_keys)(head->key, 1, head->keys GT_ARGS);
        if (!head->keys_split) GT_JOIN(GT_NAME, _pack_keys)(head->key, 0, head->keys GT_ARGS);
    }
    if (GT_V(b) != head->v) {
        head->v = GT_V(b);
        head->values_split = tiles && GT_JOIN(GT_NAME, _pack_values)(head->v, 1, head->values
                                                                     GT_ARGS);
        if (!head->values_split) GT_JOIN(GT_NAME, _pack_values)(head->v, 0, head->values GT_ARGS);
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    if (!gt_whole_heads(GT_HEADS, GT_PIECES, &t, &threads)) return;
    const int64_t blocks = gt_ceil_div(GT_S, GT_TALL);
    const int64_t keys = GT_STEPS(GT_T) * GT_PARTS_RUN * GT_PARTS; /* numbers for each element */
    const int64_t units = (GT_HEADS) * blocks, end = gt_part(units, t + 1, threads);
    GT_JOIN(GT_NAME, _head) head = {0};
    head.keys = GT_WORK(t);
    head.values = head.keys + keys * GT_STEPS(GT_D) * GT_PARTS_RUN / 2;
    float *work = head.values + keys * GT_STEPS(GT_DV) * GT_PARTS_RUN / 2;
    gt_amx_shape(GT_SEGMENT);
    for (int64_t u = gt_part(units, t, threads), some; u < end; u += some) {
        const int64_t b = u / blocks, first = u % blocks;
        some = gt_min(gt_min(end - u, blocks - first), GT_FEW);
        GT_JOIN(GT_NAME, _pack)(b, &head GT_ARGS);
        GT_JOIN(GT_NAME, _blocks)(b, first * GT_TALL, some, &head, work GT_ARGS);
    }
    gt_amx_done();
}

#undef GT_TALL
#undef GT_MOST
#undef GT_FEW
#undef GT_STEPS
#undef GT_PANELS
#undef GT_ROWS_STEP
#undef GT_FLOATS_STEP
#undef GT_PANEL_STEP
#undef GT_SOME
#undef GT_QUERIES
#undef GT_RESULTS
#undef GT_UNIT
#undef GT_KEPT
#include "template_end.h"
