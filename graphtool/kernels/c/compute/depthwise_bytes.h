/* Depthwise 2-d convolution of bytes by s8, channels last, for processors without vectors, a
   template. The image has no padding in memory. Of one channel after the other, the rows that a
   window sees are held as 16-bit differences to the zero point in a ring, where padding is 0: each
   byte of a band of rows is read once, and then its place may take a result. Where four words are a
   vector (MVE), four channels go together, and their ring holds bytes.

   GT_SIGNED      1: the image holds int8_t; 0: uint8_t
   GT_ZERO        the image's zero point (a literal)
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_IH GT_IW    rows and columns of the image
   GT_C           channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size (literals), strides, dilations
   GT_PT GT_PL    rows of padding above the image, columns left of it
   GT_BAND        output rows that are computed of one channel before the next channel's
   GT_TOGETHER    1: channels go in fours; 0: one by one
   GT_X           the image
   GT_XN GT_XH GT_XW GT_XC  its strides in elements: image, row, pixel, channel
   GT_W           const int8_t *, the weights [C][KH][KW]
   GT_WORK        int16_t *, the ring: (KH - 1)·DH + 1 rows of (OW - 1)·SW + (KW - 1)·DW + 2
                  numbers, rounded up to an even number; of fours of bytes that are not rounded
                  up, and 3·SW more
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t c, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from c on; count is the literal 1, or 4 but for the last ones

   One thread does it all. */
#include "int16_pairs.h"
#ifdef __ARM_FEATURE_MVE
#include <arm_mve.h>
#endif
#include "template_begin.h"

#if GT_SIGNED
#define GT_BYTE int8_t
#define GT_WORDS(p) vldrbq_s32(p)
#else
#define GT_BYTE uint8_t
#define GT_WORDS(p) (int32x4_t) vldrbq_u32(p)
#endif
#define GT_TAPS ((GT_KH) * (GT_KW))
#define GT_RING (((GT_KH)-1) * (GT_DH) + 1)
#define GT_WIDE (((GT_OW)-1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 1) /* columns of the ring */
/* columns of the image that windows see */
#define GT_SEEN gt_min(GT_IW, (GT_WIDE) - (GT_PL))
/* a row of the ring, whose first one comes after the last one */
#define GT_RING_ROW(i) ((GT_CELL *)(GT_WORK) + ((i) < GT_RING ? (i) : (i) - GT_RING) * GT_LINE)

#if GT_TOGETHER
#define GT_CELL GT_BYTE
#define GT_PACE 4
#define GT_LINE (4 * (GT_WIDE))
/* neighbours of a row whose sums are held: as many as registers, or fewer if so fewer are computed
   in vain */
#define GT_MOST 6
#define GT_BLOCK gt_ceil_div(GT_OW, gt_ceil_div(GT_OW, GT_MOST))
#define GT_HELD (4 + GT_TAPS)
#include "depthwise_bytes_fours.h"
#else
#define GT_CELL int16_t
#define GT_PACE 1
#define GT_LINE ((GT_WIDE) + 1 + ((GT_WIDE) + 1) % 2)
#define GT_HELD GT_TAPS
/* two neighbours of a row are multiplied at once */
#ifdef GT_HALVES
#define GT_PAIRWISE ((GT_DW) == 1 && (GT_KW) > 1)
#define GT_BLOCK 16 /* sums that are held, an even number */
#else
#define GT_PAIRWISE 0
#endif

/* The weights of channel c: words, or pairs of neighbours; pairs[r·(KW - 1) + s] has the weights s
   and s + 1 of row r. */
GT_INLINE void GT_JOIN(GT_NAME, _hold)(int32_t *held, int64_t c GT_PARAMS)
{
    const int8_t *w = GT_W + c * GT_TAPS;
#ifdef GT_HALVES
    GT_UNROLL for (int r = 0; GT_PAIRWISE && r < (GT_KH); r++)
        GT_UNROLL for (int i = 0; i + 1 < (GT_KW); i++)
            held[r * ((GT_KW)-1) + i] = gt_pair_of(w[r * (GT_KW) + i], w[r * (GT_KW) + i + 1]);
#endif
    GT_UNROLL for (int i = 0; !GT_PAIRWISE && i < GT_TAPS; i++) held[i] = w[i];
}

/* Row y of the image, of one channel, into a row of the ring. */
GT_INLINE void GT_JOIN(GT_NAME, _load)(int16_t *line, const GT_BYTE *x, int64_t y, int64_t c)
{
    (void)c;
    line += (GT_PL);
    x += y * (GT_XH);
    int16_t *const end = line + GT_SEEN;
    if (y < 0 || y >= (GT_IH))
        while (line < end) *line++ = 0;
    else
        for (; line < end; x += (GT_XW)) *line++ = (int16_t)(*x - GT_ZERO);
}

#ifdef GT_HALVES
/* The sum of a window whose rows begin at x words from `rows`, with the first half of a word or
   with the second. */
GT_INLINE int32_t GT_JOIN(GT_NAME, _sum)(const gt_halves *const *rows, int64_t x, const int second,
                                         const int32_t *pairs)
{
    int32_t sum = 0;
    GT_UNROLL for (int r = 0; r < (GT_KH); r++, pairs += (GT_KW) - 1) {
        const gt_halves *word = rows[r] + x;
        if (second) sum = gt_second_first(*word++, pairs[0], sum);
        int s = second;
        GT_UNROLL for (; s + 2 <= (GT_KW); s += 2) sum = gt_pair(*word++, pairs[s], sum);
        if (s < (GT_KW)) sum = gt_first_second(*word, pairs[s - 1], sum);
    }
    return sum;
}

/* The sums of `count` neighbours, and of one more if that is odd: a loop of its own, so that the
   weights stay in registers. Where the stride is 1, two neighbours see the same words. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sums)(const int16_t *const *begin, const int32_t *held,
                                         int32_t *sums, int64_t count)
{
    const gt_halves *rows[GT_KH];
    int32_t pairs[(GT_KH) * (GT_KW)];
    GT_UNROLL for (int r = 0; r < (GT_KH); r++) rows[r] = (const gt_halves *)begin[r];
    GT_UNROLL for (int i = 0; i < (GT_KH) * ((GT_KW) - 1); i++) pairs[i] = held[i];
    for (int32_t *const end = sums + count; sums < end; sums += 2) {
        sums[0] = GT_JOIN(GT_NAME, _sum)(rows, 0, 0, pairs);
        if ((GT_SW) == 1 || sums + 1 < end)
            sums[1] = GT_JOIN(GT_NAME, _sum)(rows, (GT_SW) / 2, (GT_SW) % 2, pairs);
        GT_UNROLL for (int r = 0; r < (GT_KH); r++) rows[r] += (GT_SW);
    }
}
#endif

/* An output row of one channel, whose windows begin in row `slot` of the ring. */
GT_INLINE void GT_JOIN(GT_NAME, _row)(int64_t slot, const int32_t *held, int64_t n, int64_t oh,
                                      int64_t c GT_PARAMS)
{
    const int16_t *rows[GT_KH];
    GT_UNROLL for (int r = 0; r < (GT_KH); r++) rows[r] = GT_RING_ROW(slot + r * (GT_DH));
#ifdef GT_HALVES
    for (int64_t ow = 0; GT_PAIRWISE && ow < (GT_OW); ow += GT_BLOCK) {
        int32_t sums[GT_BLOCK];
        const int64_t count = gt_min(GT_BLOCK, (GT_OW) - ow);
        GT_JOIN(GT_NAME, _sums)(rows, held, sums, count);
        GT_UNROLL for (int r = 0; r < (GT_KH); r++) rows[r] += GT_BLOCK * (GT_SW);
        for (int64_t i = 0; i < count; i++) GT_EPILOGUE(sums + i, n, oh, ow + i, c, 1 GT_ARGS);
    }
#endif
    for (int64_t ow = 0; !GT_PAIRWISE && ow < (GT_OW); ow++) {
        int32_t sum = 0;
        GT_UNROLL for (int r = 0; r < (GT_KH); r++)
            GT_UNROLL for (int s = 0; s < (GT_KW); s++)
                sum += rows[r][ow * (GT_SW) + s * (GT_DW)] * held[r * (GT_KW) + s];
        GT_EPILOGUE(&sum, n, oh, ow, c, 1 GT_ARGS);
    }
}

#endif

/* Output rows top to past of an image, of the channels that go together from c on. */
GT_INLINE void GT_JOIN(GT_NAME, _channel)(int64_t n, int64_t top, int64_t past, int64_t c GT_PARAMS)
{
    const GT_BYTE *x = GT_X + n * (GT_XN) + c * (GT_XC);
    int32_t weights[GT_HELD];
    GT_JOIN(GT_NAME, _hold)(weights, c GT_ARGS);
    int64_t y = top * (GT_SH) - (GT_PT), slot = 0, held = 0;
    for (int64_t oh = top; oh < past; oh++, y += (GT_SH)) {
        /* the ring holds the rows y to y + held from `slot` on */
        for (; held < GT_RING; held++)
            GT_JOIN(GT_NAME, _load)(GT_RING_ROW(slot + held), x, y + held, c);
        GT_JOIN(GT_NAME, _row)(slot, weights, n, oh, c GT_ARGS);
        held = gt_max(0, GT_RING - (GT_SH));
        slot = held > 0 ? slot + (GT_SH) : 0;
        if (slot >= GT_RING) slot -= GT_RING;
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    (void)threads;
    if (t != 0 || (GT_OW) == 0) return;
    /* the columns of padding stay as they are */
    memset((GT_WORK), GT_TOGETHER ? (GT_ZERO)&255 : 0,
           sizeof(GT_CELL) * (size_t)(GT_RING * GT_LINE));
    for (int64_t n = 0; n < (GT_BATCH); n++)
        for (int64_t top = 0; top < (GT_OH); top += (GT_BAND))
            for (int64_t c = 0; c < (GT_C); c += GT_PACE)
                GT_JOIN(GT_NAME, _channel)(n, top, gt_min(GT_OH, top + (GT_BAND)), c GT_ARGS);
}

#include "template_end.h"
