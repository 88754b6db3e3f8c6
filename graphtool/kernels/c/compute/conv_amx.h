/* Direct 2-d convolution by a matrix unit, channels last, a template: every output pixel's sums are
   handed to an epilogue.

   GT_HALF        if defined, input and weights hold numbers of 16 bits in uint16_t, of this type
                  as half.h calls it, and sums are float; else the input holds uint8_t, the weights
                  int8_t, and sums are int32_t, which wrap around
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_O           output channels
   GT_KH GT_SH GT_SW GT_DH  rows of the kernel, strides, dilation of rows
   GT_RUNS GT_RUN GT_HOP  a kernel row is RUNS runs of RUN adjacent elements, HOP apart
   GT_GATHERED    if defined, what an output reads is copied together before it is multiplied: for
                  runs that would leave tiles half empty; MOST bytes in all at most
   GT_X           the input, its padding included
   GT_XN GT_XH GT_XW     strides of the input in elements: image, row, pixel
   GT_W           the weights [ceil(O/NR)][KH][RUNS][16·ceil(RUN/(16·G))][NR][G], zero padded,
                  64-byte aligned; NR is 2·GT_LANES, G is 2 with HALF, else 4. What is gathered
                  is one run: [ceil(O/NR)][16·ceil(KH·RUNS·RUN/(16·G))][NR][G]
   GT_EPILOGUE    static inline void f(const S *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS), S the type of a sum: takes `count` channels
                  of one pixel from channel o on; acc is vector-aligned, count is the literal NR but
                  in a last, partial panel

   Shares need no barrier among themselves. Output rows fall into segments of equal size; where they
   do not fill the last one, it begins earlier, with pixels that were handed out before. Where this
   gives fewer segments, all rows of an image are one, with the pixels that lie between them in the
   input, whose sums nobody gets. */
#include "amx.h"
#include "template_begin.h"
#include "amx_operands.h"

#define GT_NV 2
#define GT_N (GT_O)
#define GT_MR 2
#define GT_MOST 1024
#define GT_BESIDE ((GT_SH) * (GT_XH) / ((GT_SW) * (GT_XW))) /* pixels from one row to the next */
#define GT_PIXELS (((GT_OH)-1) * GT_BESIDE + (GT_OW)) /* pixels of all rows as one */
#define GT_JOINED                                                                                 \
    ((GT_OH) > 0 && (GT_SH) * (GT_XH) % ((GT_SW) * (GT_XW)) == 0                                  \
     && gt_ceil_div(GT_PIXELS, GT_SEGMENT) < (GT_OH)*gt_ceil_div(GT_OW, GT_SEGMENT))
#define GT_HIGH (GT_JOINED ? 1 : (GT_OH))
#define GT_LONG (GT_JOINED ? GT_PIXELS : (GT_OW))
#define GT_PARTS gt_ceil_div(GT_LONG, GT_SEGMENT) /* segments of a row */
#define GT_ROWS gt_ceil_div(GT_LONG, GT_PARTS) /* pixels of a segment */
#define GT_LINES ((GT_BATCH)*GT_HIGH * GT_PARTS)
#define GT_HELD (GT_ROWS * (GT_SH) * (GT_SW) * (GT_XW) * GT_SIZE)
#define GT_RESIDENT (1024 * 1024)
#define GT_TAPS ((GT_KH) * (GT_RUNS) * (GT_RUN) * GT_SIZE) /* bytes that an output reads */
#define GT_QUADS GT_RUN_ROWS((GT_RUN) * GT_SIZE) /* rows of a panel for a run */
#ifdef GT_GATHERED
#define GT_DIVIDED 0
#define GT_STEPS GT_RUN_ROWS(GT_TAPS)
#else
/* In larger images the taps of a pixel, which are near to each other, are better taken together. */
#define GT_DIVIDED ((GT_LINES) <= 8)
#define GT_STEPS ((GT_KH) * (GT_RUNS) * GT_QUADS)
#endif
#define GT_PANEL (GT_STEPS * GT_NR * 4)
#define GT_BY_ROWS ((GT_LINES) * GT_HELD >= (GT_O) * GT_STEPS * 4)
#define GT_PRODUCTS 1
#define GT_SHAPE GT_ROWS
#define GT_B(b) GT_W

/* The last panel, of which only O % NR channels exist: where that is a constant, the epilogue's
   loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const GT_SUM *sums, int64_t pixels, int64_t n, int64_t oh,
                                         int64_t ow, int64_t o GT_PARAMS)
{
    for (int64_t i = 0; i < pixels; i++)
        GT_EPILOGUE(sums + i * GT_NR, n, oh, ow + i, o, (GT_O) % GT_NR GT_ARGS);
}

/* Where a segment is: its image, its row, its first pixel, how many of its pixels are not new, and
   the first byte that it reads. */
typedef struct { int64_t n, oh, ow, again; const char *x; } GT_JOIN(GT_NAME, _segment);

GT_INLINE GT_JOIN(GT_NAME, _segment) GT_JOIN(GT_NAME, _at)(int64_t line GT_PARAMS)
{
    GT_JOIN(GT_NAME, _segment) s;
    const int64_t row = line / GT_PARTS, ow = line % GT_PARTS * GT_ROWS;
    s.n = row / gt_max(1, GT_HIGH), s.oh = row % gt_max(1, GT_HIGH);
    s.ow = gt_min(ow, GT_LONG - GT_ROWS), s.again = ow - s.ow;
    s.x = (const char *)(GT_X + s.n * (GT_XN) + s.oh * (GT_SH) * (GT_XH)
                         + s.ow * (GT_SW) * (GT_XW));
    return s;
}

GT_INLINE void GT_JOIN(GT_NAME, _hand)(const GT_SUM *sums, GT_JOIN(GT_NAME, _segment) s,
                                       int64_t panel GT_PARAMS)
{
    const int64_t o = panel * GT_NR;
    if (GT_JOINED) {
        for (int64_t at = s.ow + s.again; at < s.ow + GT_ROWS; at++) {
            const int64_t ow = at % GT_BESIDE;
            const GT_SUM *own = sums + (at - s.ow) * GT_NR;
            if (ow >= (GT_OW)) continue;
            if ((GT_O) % GT_NR != 0 && o + GT_NR > (GT_O))
                GT_JOIN(GT_NAME, _tail)(own, 1, s.n, at / GT_BESIDE, ow, o GT_ARGS);
            else
                GT_EPILOGUE(own, s.n, at / GT_BESIDE, ow, o, GT_NR GT_ARGS);
        }
        return;
    }
    sums += s.again * GT_NR;
    if ((GT_O) % GT_NR != 0 && o + GT_NR > (GT_O)) {
        GT_JOIN(GT_NAME, _tail)(sums, GT_ROWS - s.again, s.n, s.oh, s.ow + s.again, o GT_ARGS);
        return;
    }
    for (int64_t i = s.again; i < GT_ROWS; i++, sums += GT_NR)
        GT_EPILOGUE(sums, s.n, s.oh, s.ow + i, o, GT_NR GT_ARGS);
}

#ifdef GT_GATHERED
#define GT_PATCH (GT_RUN_ROWS(GT_TAPS) * 4) /* bytes of what an output reads, and zeros */
GT_INLINE void GT_JOIN(GT_NAME, _gather)(char *patch, const char *x GT_PARAMS)
{
    for (int64_t i = 0; i < GT_ROWS; i++, x += (GT_SW) * (GT_XW) * GT_SIZE, patch += GT_PATCH) {
        char *to = patch;
        for (int64_t r = 0; r < (GT_KH); r++)
            for (int64_t s = 0; s < (GT_RUNS); s++, to += (GT_RUN) * GT_SIZE)
                memcpy(to, x + (r * (GT_DH) * (GT_XH) + s * (GT_HOP)) * GT_SIZE,
                       (size_t)((GT_RUN) * GT_SIZE));
        memset(to, 0, (size_t)(GT_PATCH - GT_TAPS));
    }
}
#endif

/* One or two segments, by one panel: steps `from` to `upto` of the depth. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int segments, int64_t b, int64_t line, int64_t panel,
                                       int64_t from, int64_t upto, const char *ahead, int64_t step,
                                       GT_SUM *sums GT_PARAMS)
{
    const GT_JOIN(GT_NAME, _segment) first = GT_JOIN(GT_NAME, _at)(line GT_ARGS);
    const GT_JOIN(GT_NAME, _segment) second = GT_JOIN(GT_NAME, _at)(line + segments - 1 GT_ARGS);
    const int64_t columns = gt_min(GT_NR, (GT_O) - panel * GT_NR);
    const char *w = (const char *)(GT_W) + panel * GT_PANEL + from * 16 * GT_NR * 4;
    (void)b;
    gt_block_begin(GT_KIND, from == 0, segments == 2, columns, sums);
#ifdef GT_GATHERED
    char patch[2 * GT_SEGMENT * GT_MOST] GT_ALIGNED;
    char *other = patch + GT_SEGMENT * GT_PATCH;
    GT_JOIN(GT_NAME, _gather)(patch, first.x GT_ARGS);
    if (segments == 2) GT_JOIN(GT_NAME, _gather)(other, second.x GT_ARGS);
    gt_block_add(GT_KIND, patch, segments == 2 ? other : 0, GT_PATCH, GT_ROWS, w, columns, GT_PATCH,
                 ahead, step, sums);
#else
    if (!(GT_DIVIDED)) {
        for (int64_t r = 0; r < (GT_KH); r++)
            for (int64_t s = 0; s < (GT_RUNS); s++) {
                const int64_t at = (r * (GT_DH) * (GT_XH) + s * (GT_HOP)) * GT_SIZE;
                gt_block_add(GT_KIND, first.x + at, segments == 2 ? second.x + at : 0,
                             (GT_SW) * (GT_XW) * GT_SIZE, GT_ROWS, w, columns, (GT_RUN) * GT_SIZE,
                             ahead, step, sums);
                w += GT_QUADS * GT_NR * 4;
                ahead += GT_QUADS * step;
            }
    } else while (from < upto) {
        const int64_t run = from / (GT_QUADS / 16), begun = from % (GT_QUADS / 16);
        const int64_t some = gt_min(GT_QUADS / 16 - begun, upto - from);
        const int64_t r = run / (GT_RUNS), s = run % (GT_RUNS);
        const int64_t at = (r * (GT_DH) * (GT_XH) + s * (GT_HOP)) * GT_SIZE + begun * GT_RUN_BYTES;
        const int64_t rest = (GT_RUN) * GT_SIZE - begun * GT_RUN_BYTES;
        gt_block_add(GT_KIND, first.x + at, segments == 2 ? second.x + at : 0,
                     (GT_SW) * (GT_XW) * GT_SIZE, GT_ROWS, w, columns,
                     gt_min(some * GT_RUN_BYTES, rest), ahead, step, sums);
        w += some * 16 * GT_NR * 4;
        ahead += some * 16 * step;
        from += some;
    }
#endif
    gt_block_store(GT_KIND, segments == 2, columns, sums);
    if (upto < GT_STEPS / 16) return;
    GT_JOIN(GT_NAME, _hand)(sums, first, panel GT_ARGS);
    if (segments == 2)
        GT_JOIN(GT_NAME, _hand)(sums + GT_SEGMENT * GT_NR, second, panel GT_ARGS);
}

#include "amx_loop.h"

#include "template_end.h"
