/* Depthwise 2-d convolution of bytes by s8, channels last, for processors without vectors, a
   template. The image has no padding in memory. Of one channel after the other, the rows that a
   window sees are held as 16-bit differences to the zero point in a ring, where padding is 0: each
   byte of a band of rows is read once, and then its place may take a result.

   GT_SIGNED      1: the image holds int8_t; 0: uint8_t
   GT_ZERO        the image's zero point (a literal)
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_IH GT_IW    rows and columns of the image
   GT_C           channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size (literals), strides, dilations
   GT_PT GT_PL    rows of padding above the image, columns left of it
   GT_BAND        output rows that are computed of one channel before the next channel's
   GT_X           the image
   GT_XN GT_XH GT_XW GT_XC  its strides in elements: image, row, pixel, channel
   GT_W           const int8_t *, the weights [C][KH][KW]
   GT_WORK        int16_t *, the ring: (KH - 1)·DH + 1 rows of (OW - 1)·SW + (KW - 1)·DW + 2
                  numbers, rounded up to an even number
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t c, int64_t count GT_PARAMS): takes channel c of one pixel;
                  count is 1

   One thread does it all. */
#include "int16_pairs.h"
#include "template_begin.h"

#if GT_SIGNED
#define GT_BYTE int8_t
#else
#define GT_BYTE uint8_t
#endif
#define GT_RING (((GT_KH)-1) * (GT_DH) + 1)
#define GT_WIDE (((GT_OW)-1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 2)
#define GT_LINE ((GT_WIDE) + (GT_WIDE) % 2)
/* columns of the image that windows see */
#define GT_SEEN gt_min(GT_IW, ((GT_OW)-1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 1 - (GT_PL))
#define GT_WORDS (((GT_KW) + 2) / 2) /* pairs that hold a row of a window, wherever it begins */
#ifdef GT_HALVES
#define GT_PAIRWISE ((GT_DW) == 1)
#else
#define GT_PAIRWISE 0
#endif

/* Row y of the image, of one channel, into a row of the ring. */
GT_INLINE void GT_JOIN(GT_NAME, _load)(int16_t *line, const GT_BYTE *x, int64_t y)
{
    line += (GT_PL);
    x += y * (GT_XH);
    int16_t *const end = line + GT_SEEN;
    if (y < 0 || y >= (GT_IH))
        while (line < end) *line++ = 0;
    else
        for (; line < end; x += (GT_XW)) *line++ = (int16_t)(*x - GT_ZERO);
}

/* The weights of a channel as pairs: of each row those for a window that begins with the first half
   of a word, then those for one that begins with the second. */
GT_INLINE void GT_JOIN(GT_NAME, _pairs)(const int8_t *w, int32_t *first, int32_t *second)
{
#ifdef GT_HALVES
    GT_UNROLL for (int r = 0; r < (GT_KH); r++)
        GT_UNROLL for (int i = 0; i < GT_WORDS; i++, first++, second++) {
            const int8_t *v = w + r * (GT_KW) + 2 * i;
            const int32_t before = i > 0 && 2 * i <= (GT_KW) ? v[-1] : 0;
            const int32_t at = 2 * i < (GT_KW) ? v[0] : 0, after = 2 * i + 1 < (GT_KW) ? v[1] : 0;
            *first = gt_pair_of(at, after);
            *second = gt_pair_of(before, at);
        }
#endif
}

/* An output row of one channel, whose windows begin in row `slot` of the ring. */
GT_INLINE void GT_JOIN(GT_NAME, _row)(int64_t slot, const int8_t *w, const int32_t *first,
                                      const int32_t *second, int64_t n, int64_t oh,
                                      int64_t c GT_PARAMS)
{
    const int16_t *rows[GT_KH];
    GT_UNROLL for (int r = 0; r < (GT_KH); r++) {
        const int64_t at = slot + r * (GT_DH);
        rows[r] = (const int16_t *)(GT_WORK) + (at < GT_RING ? at : at - GT_RING) * GT_LINE;
    }
#ifdef GT_HALVES
    for (int64_t ow = 0; GT_PAIRWISE && ow < (GT_OW); ow += 2) {
        /* two pixels that are neighbours see the same words */
        int32_t one = 0, two = 0;
        const int64_t at = ow * (GT_SW) / 2, next = (ow + 1) * (GT_SW) / 2;
        GT_UNROLL for (int r = 0; r < (GT_KH); r++)
            GT_UNROLL for (int i = 0; i < GT_WORDS; i++) {
                const int32_t pair = ((const gt_halves *)rows[r])[at + i];
                one = gt_pair(pair, first[r * GT_WORDS + i], one);
                if ((GT_SW) == 1) two = gt_pair(pair, second[r * GT_WORDS + i], two);
            }
        GT_EPILOGUE(&one, n, oh, ow, c, 1 GT_ARGS);
        if (ow + 1 == (GT_OW)) break;
        if ((GT_SW) > 1)
            GT_UNROLL for (int r = 0; r < (GT_KH); r++)
                GT_UNROLL for (int i = 0; i < GT_WORDS; i++)
                    two = gt_pair(((const gt_halves *)rows[r])[next + i],
                                  ((GT_SW) % 2 ? second : first)[r * GT_WORDS + i], two);
        GT_EPILOGUE(&two, n, oh, ow + 1, c, 1 GT_ARGS);
    }
#endif
    for (int64_t ow = 0; !GT_PAIRWISE && ow < (GT_OW); ow++) {
        int32_t sum = 0;
        GT_UNROLL for (int r = 0; r < (GT_KH); r++)
            GT_UNROLL for (int s = 0; s < (GT_KW); s++)
                sum += rows[r][ow * (GT_SW) + s * (GT_DW)] * w[r * (GT_KW) + s];
        GT_EPILOGUE(&sum, n, oh, ow, c, 1 GT_ARGS);
    }
}

/* Output rows top to past of one channel of an image. */
GT_INLINE void GT_JOIN(GT_NAME, _channel)(int64_t n, int64_t top, int64_t past, int64_t c GT_PARAMS)
{
    int16_t *const ring = (int16_t *)(GT_WORK);
    const GT_BYTE *x = GT_X + n * (GT_XN) + c * (GT_XC);
    const int8_t *w = GT_W + c * (GT_KH) * (GT_KW);
    int32_t first[(GT_KH) * GT_WORDS], second[(GT_KH) * GT_WORDS];
    if (GT_PAIRWISE) GT_JOIN(GT_NAME, _pairs)(w, first, second);
    int64_t y = top * (GT_SH) - (GT_PT), slot = 0, held = 0;
    for (int64_t oh = top; oh < past; oh++, y += (GT_SH)) {
        /* the ring holds the rows y to y + held from `slot` on */
        for (; held < GT_RING; held++) {
            const int64_t at = slot + held;
            GT_JOIN(GT_NAME, _load)(ring + (at < GT_RING ? at : at - GT_RING) * GT_LINE, x,
                                    y + held);
        }
        GT_JOIN(GT_NAME, _row)(slot, w, first, second, n, oh, c GT_ARGS);
        held = gt_max(0, GT_RING - (GT_SH));
        slot = held > 0 ? slot + (GT_SH) : 0;
        if (slot >= GT_RING) slot -= GT_RING;
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    (void)threads;
    if (t != 0 || (GT_OW) == 0) return;
    memset((GT_WORK), 0, (size_t)(GT_RING * GT_LINE) * 2); /* the columns of padding stay 0 */
    for (int64_t n = 0; n < (GT_BATCH); n++)
        for (int64_t top = 0; top < (GT_OH); top += (GT_BAND))
            for (int64_t c = 0; c < (GT_C); c++)
                GT_JOIN(GT_NAME, _channel)(n, top, gt_min(GT_OH, top + (GT_BAND)), c GT_ARGS);
}

#include "template_end.h"
