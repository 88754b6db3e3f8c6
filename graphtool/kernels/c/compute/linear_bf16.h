/* Product with weights of 2, 4 or 8 bits in bfloat16, for many rows, a template: y = x·wᵀ with w =
   (q - zero)·scale, where x and w are rounded to bfloat16 and sums are float; handed row by row to
   an epilogue. A panel of weights is widened once for all rows, which a matrix unit multiplies. It
   is widened in parts of the depth, while the unit multiplies the part before: both parts stay in
   the first cache, and the sums of all rows beside them.

   GT_M GT_N GT_K  rows of x, rows of w, columns of x: constants or names among GT_PARAMS
   GT_BITS GT_BLOCK GT_PARTS GT_A GT_LDA GT_B GT_SCALES GT_ZEROS GT_HALF  as in linear_q8.h
   GT_DEPTH      rows of x that are rounded together, a literal
   GT_WORK(t)    memory of thread t: two parts of a panel, 2·512·LANES bytes; the sums of DEPTH rows
                 up to a multiple of 32, 2·LANES floats each; DEPTH rows of PARTS·BLOCK numbers up
                 to a multiple of 32, of 2 bytes
   GT_EPILOGUE   static inline void f(const float *restrict acc, int64_t m, int64_t n,
                 int64_t count GT_PARAMS): takes the `count` results of row m from column n on; acc
                 is vector-aligned, count is the literal 2·LANES but in a last, partial panel */
#include "amx.h"
#include "half.h"
#include "nbits.h"
#include "operand.h"
#include "q8.h"
#include "rows.h"
#include "template_begin.h"

#ifndef GT_LINEAR_BF16_H
#define GT_LINEAR_BF16_H

#define GT_WIDE_STEPS 8 /* steps of the unit in a part of the depth, of 32 columns each */
#define GT_WIDE_BYTES (GT_WIDE_STEPS * 16 * GT_COLUMNS * 4) /* of a part of a panel */
#endif

#define GT_NV 2
#define GT_SUM float
#define GT_DEEPER (((GT_PARTS) * (GT_BLOCK) + 31) / 32 * 32) /* numbers of a row in memory */

#include "linear_hand.h"

enum {
    GT_JOIN(GT_NAME, _words) = (GT_BLOCK) * GT_BITS / 32, /* of a block and row of w */
    GT_JOIN(GT_NAME, _all) = GT_DEEPER * GT_BITS / 32, /* of a row of w, with zeros behind it */
    GT_JOIN(GT_NAME, _part) = GT_WIDE_STEPS * GT_BITS, /* of a part of the depth */
    GT_JOIN(GT_NAME, _pairs) = 16 / GT_BITS, /* of columns, in a word */
};

/* The part of a panel at `to`, [pairs][NR][2]: word `word` of LANES rows of w, of which `half`
   counts, as pairs of columns from row `pair` of the part on. */
GT_INLINE void GT_JOIN(GT_NAME, _widen)(int64_t half, int64_t word, int64_t pair,
                                        gt_vi *to GT_PARAMS)
{
    enum { words = GT_JOIN(GT_NAME, _words), fields = 8 / GT_BITS };
    to += pair * 2 + half % 2;
    if (word >= (GT_PARTS) * words) {
        GT_UNROLL for (int i = 0; i < GT_JOIN(GT_NAME, _pairs); i++) to[i * 2] = gt_splat_int(0);
        return;
    }
    const int64_t table = (half * (GT_PARTS) + word / words) * GT_LANES;
    const gt_vf scale = GT_READ((GT_SCALES) + table);
#ifdef GT_ZEROS
    const gt_vf middle = gt_splat((float)(1 << (GT_BITS - 1)));
    const gt_vf shift = (GT_READ((GT_ZEROS) + table) - middle) * scale;
#endif
    const uint8_t *b = (const uint8_t *)(GT_B) + (half * (GT_PARTS) * words + word) * GT_LANES * 4;
    const gt_vi packed = gt_load_words(b);
    __builtin_prefetch(b + 4096, 0, 3);
    GT_UNROLL for (int i = 0; i < fields * 2; i++) {
        const int bit = i % 2 * 16 + i / 2 * GT_BITS;
        const gt_vf low = gt_centred(GT_BITS, packed, bit) * scale;
        const gt_vf high = gt_centred(GT_BITS, packed, bit + 8) * scale;
#ifdef GT_ZEROS
        to[2 * i] = gt_rounded_pairs(low - shift, high - shift);
#else
        to[2 * i] = gt_rounded_pairs(low, high);
#endif
    }
}

/* Words `done` to `end` of the part that begins at word `from`; one or both halves of a panel. */
GT_INLINE void GT_JOIN(GT_NAME, _ready)(int64_t panel, int64_t halves, int64_t from, int64_t done,
                                        int64_t end, gt_vi *to GT_PARAMS)
{
    for (; done < end; done++) {
        const int64_t pair = done * GT_JOIN(GT_NAME, _pairs);
        GT_JOIN(GT_NAME, _widen)(2 * panel, from + done, pair, to GT_ARGS);
        if (halves == 2) GT_JOIN(GT_NAME, _widen)(2 * panel + 1, from + done, pair, to GT_ARGS);
    }
}

/* Two segments of rows, or one. The last one of all begins earlier, with rows that were handed out
   before. */
typedef struct { int64_t first, second, again, twice; int two; } GT_JOIN(GT_NAME, _lines);

GT_INLINE GT_JOIN(GT_NAME, _lines) GT_JOIN(GT_NAME, _lines_of)(int64_t line, int64_t lines,
                                                               int64_t rows, int64_t count)
{
    GT_JOIN(GT_NAME, _lines) at;
    at.first = gt_min(line * rows, count - rows);
    at.again = line * rows - at.first;
    at.second = gt_min((line + 1) * rows, count - rows);
    at.twice = (line + 1) * rows - at.second;
    at.two = line + 1 < lines;
    return at;
}

/* Hands the finished sums of such rows out. */
GT_NOINLINE void GT_JOIN(GT_NAME, _out)(GT_JOIN(GT_NAME, _lines) at, int64_t rows, int64_t m,
                                        int64_t panel, const float *sums GT_PARAMS)
{
    GT_JOIN(GT_NAME, _hand)(sums + at.again * GT_NR, rows - at.again, m + at.first + at.again,
                            panel GT_ARGS);
    if (at.two)
        GT_JOIN(GT_NAME, _hand)(sums + (GT_SEGMENT + at.twice) * GT_NR, rows - at.twice,
                                m + at.second + at.twice, panel GT_ARGS);
}

/* `count` rows in memory by one panel; row 0 is row m of all. */
GT_NOINLINE void GT_JOIN(GT_NAME, _panel)(int64_t count, int64_t m, int64_t panel,
                                          const uint16_t *x, char *wide, float *sums GT_PARAMS)
{
    enum { nbytes = GT_DEEPER * 2, part = GT_JOIN(GT_NAME, _part), all = GT_JOIN(GT_NAME, _all) };
    const int64_t columns = gt_min(GT_NR, (GT_N) - panel * GT_NR);
    const int64_t halves = columns > GT_LANES ? 2 : 1;
    const int64_t lines = gt_ceil_div(count, GT_SEGMENT), rows = gt_ceil_div(count, lines);
    GT_JOIN(GT_NAME, _ready)(panel, halves, 0, 0, gt_min(part, all), (gt_vi *)wide GT_ARGS);
    for (int64_t from = 0, odd = 0; from < all; from += part, odd = !odd) {
        const int64_t steps = gt_min(part, all - from) / GT_BITS, next = from + part;
        const int64_t words = next < all ? gt_min(part, all - next) : 0;
        const int64_t turns = gt_ceil_div(lines, 2) * steps;
        const char *b = wide + odd * GT_WIDE_BYTES;
        gt_vi *to = (gt_vi *)(wide + !odd * GT_WIDE_BYTES);
        int64_t due = 0, done = 0, end = 0;
        for (int64_t line = 0; line < lines; line += 2) {
            const GT_JOIN(GT_NAME, _lines) at =
                GT_JOIN(GT_NAME, _lines_of)(line, lines, rows, count);
            const char *a = (const char *)(x + at.first * GT_DEEPER + from * 32 / GT_BITS);
            const char *second = (const char *)(x + at.second * GT_DEEPER + from * 32 / GT_BITS);
            float *own = sums + line * GT_SEGMENT * GT_NR;
            gt_block_begin(GT_BFLOAT16, from == 0, at.two, columns, own);
            for (int64_t step = 0; step < steps; step++) {
                gt_block_add(GT_BFLOAT16, a + step * GT_RUN_BYTES,
                             at.two ? second + step * GT_RUN_BYTES : 0, nbytes, rows,
                             b + step * GT_WIDE_BYTES / GT_WIDE_STEPS, columns, GT_RUN_BYTES, b, 0,
                             own);
                for (due += words; due >= turns; due -= turns) end++;
                GT_JOIN(GT_NAME, _ready)(panel, halves, next, done, end, to GT_ARGS);
                done = end;
            }
            gt_block_store(GT_BFLOAT16, at.two, columns, own);
            if (next >= all) GT_JOIN(GT_NAME, _out)(at, rows, m, panel, own GT_ARGS);
        }
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t panels = gt_ceil_div(GT_N, GT_NR), end = gt_part(panels, t + 1, threads);
    char *wide = (char *)(void *)(GT_WORK(t));
    float *sums = (float *)(void *)(wide + 2 * GT_WIDE_BYTES);
    uint16_t *x = (uint16_t *)(void *)(sums + gt_ceil_div(GT_DEPTH, 32) * 32 * GT_NR);
    for (int64_t m = 0; m < (GT_M); m += (GT_DEPTH)) {
        const int64_t count = gt_min(GT_DEPTH, (GT_M) - m);
        for (int64_t r = 0; r < count; r++) {
            const float *row = (GT_A) + (m + r) * (GT_LDA);
            uint16_t *to = x + r * GT_DEEPER;
            gt_row_cast_bf16(to, row, GT_K);
            for (int64_t k = (GT_K); k < GT_DEEPER; k++) to[k] = 0;
        }
        gt_amx_shape(gt_ceil_div(count, gt_ceil_div(count, GT_SEGMENT)));
        for (int64_t p = gt_part(panels, t, threads); p < end; p++)
            GT_JOIN(GT_NAME, _panel)(count, m, p, x, wide, sums GT_ARGS);
        gt_amx_done();
    }
}

#include "template_end.h"
