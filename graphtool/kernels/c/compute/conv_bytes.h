/* 2-d convolution of bytes by s8, channels last, for processors without vectors, a template. The
   image has no padding in memory: for two output pixels at a time the bytes that their windows see
   are gathered as 16-bit differences to the zero point, and what is outside of the image as 0. So
   what the kernel has read of the image may be overwritten by its results.

   GT_SIGNED      1: the image holds int8_t; 0: uint8_t
   GT_ZERO        the image's zero point (a literal)
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_IH GT_IW    rows and columns of the image
   GT_C GT_O      input channels, output channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size, strides, dilations
   GT_PT GT_PL    rows of padding above the image, columns left of it
   GT_X           the image
   GT_XN GT_XH GT_XW GT_XC  its strides in elements: image, row, pixel, channel
   GT_W           const int8_t *, the weights [ceil(O/2)][ceil(KH·KW·C/4)][2][4], zero
                  padded, at a multiple of 4 bytes
   GT_WORK        int32_t *, the windows of two pixels: ceil(KH·KW·C/4)·4 words
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t o, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from o on; count is the literal 2 but for a last channel

   One thread does it all. */
#include "int16_pairs.h"
#include "template_begin.h"

#if GT_SIGNED
#define GT_BYTE int8_t
#else
#define GT_BYTE uint8_t
#endif
#define GT_QUADS gt_ceil_div((GT_KH) * (GT_KW) * (GT_C), 4)
/* where element k of the window of pixel p is, in numbers of 16 bits: pairs are those that
   gt_even and gt_odd make of the weights, and the pixels alternate */
#ifdef GT_HALVES
#define GT_AT(k, p) ((k) / 4 * 8 + (k) % 2 * 4 + (p) * 2 + (k) % 4 / 2)
#else
#define GT_AT(k, p) (2 * (k) + (p))
#endif
/* whether four bytes of a window are four neighbours of the image */
#define GT_FOURS ((GT_C) % 4 == 0 && (GT_XC) == 1)

/* `count` neighbouring bytes of the image from x on, as elements k, k + 1, … of pixel p. */
GT_INLINE void GT_JOIN(GT_NAME, _bytes)(int64_t k, int64_t p, const GT_BYTE *x, int64_t count,
                                        int64_t step GT_PARAMS)
{
    int16_t *work = (int16_t *)(GT_WORK);
#ifdef GT_HALVES
    if (GT_FOURS) {
        gt_halves *pair = (gt_halves *)(GT_WORK) + k + p;
        const int32_t zeros = gt_pair_of(GT_ZERO, GT_ZERO);
        for (const GT_BYTE *end = x + count; x < end; x += 4, pair += 4) {
            int32_t word;
            memcpy(&word, x, 4);
            pair[0] = gt_even_less(word, GT_SIGNED, zeros);
            pair[2] = gt_odd_less(word, GT_SIGNED, zeros);
        }
        return;
    }
#endif
    for (int64_t i = 0; i < count; i++, k++, x += step) work[GT_AT(k, p)] = (int16_t)(*x - GT_ZERO);
}

GT_INLINE void GT_JOIN(GT_NAME, _zeros)(int64_t k, int64_t p, int64_t count GT_PARAMS)
{
    int16_t *work = (int16_t *)(GT_WORK);
    for (int64_t i = 0; i < count; i++, k++) work[GT_AT(k, p)] = 0;
}

/* The window of an output pixel, as pixel p. */
GT_NOINLINE void GT_JOIN(GT_NAME, _window)(int64_t p, int64_t n, int64_t oh, int64_t ow GT_PARAMS)
{
    const int64_t top = oh * (GT_SH) - (GT_PT), left = ow * (GT_SW) - (GT_PL);
    const GT_BYTE *x = GT_X + n * (GT_XN) + top * (GT_XH) + left * (GT_XW);
    int64_t k = 0;
    if (top >= 0 && top + ((GT_KH) - 1) * (GT_DH) < (GT_IH) && left >= 0
        && left + ((GT_KW) - 1) * (GT_DW) < (GT_IW)) {
        for (int64_t r = 0; r < (GT_KH); r++, x += (GT_DH) * (GT_XH)) {
            if (GT_FOURS && (GT_DW) == 1 && (GT_XW) == (GT_C)) { /* a row of it is one run */
                GT_JOIN(GT_NAME, _bytes)(k, p, x, (GT_KW) * (GT_C), 1 GT_ARGS);
                k += (GT_KW) * (GT_C);
                continue;
            }
            for (int64_t s = 0; s < (GT_KW); s++, k += (GT_C))
                GT_JOIN(GT_NAME, _bytes)(k, p, x + s * (GT_DW) * (GT_XW), GT_C, GT_XC GT_ARGS);
        }
        return;
    }
    for (int64_t r = 0; r < (GT_KH); r++, x += (GT_DH) * (GT_XH)) {
        const int64_t row = top + r * (GT_DH);
        for (int64_t s = 0; s < (GT_KW); s++, k += (GT_C)) {
            const int64_t column = left + s * (GT_DW);
            if (row >= 0 && row < (GT_IH) && column >= 0 && column < (GT_IW))
                GT_JOIN(GT_NAME, _bytes)(k, p, x + s * (GT_DW) * (GT_XW), GT_C, GT_XC GT_ARGS);
            else
                GT_JOIN(GT_NAME, _zeros)(k, p, GT_C GT_ARGS);
        }
    }
}

/* The sums of both pixels by two filters, whose weights are at w: [pixel][filter]. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sums)(const int8_t *w, const int32_t *work, int32_t *sums)
{
    int32_t first_a = 0, first_b = 0, second_a = 0, second_b = 0;
#ifdef GT_HALVES
    const gt_halves *x = (const gt_halves *)work, *v = (const gt_halves *)w;
    const gt_halves *const end = x + GT_QUADS * 4;
    for (; x < end; x += 4, v += 2) {
        const int32_t xa = x[0], xb = x[1], xc = x[2], xd = x[3], va = v[0], vb = v[1];
        const int32_t even_a = gt_even(va), odd_a = gt_odd(va);
        const int32_t even_b = gt_even(vb), odd_b = gt_odd(vb);
        first_a = gt_pair(xc, odd_a, gt_pair(xa, even_a, first_a));
        second_a = gt_pair(xd, odd_a, gt_pair(xb, even_a, second_a));
        first_b = gt_pair(xc, odd_b, gt_pair(xa, even_b, first_b));
        second_b = gt_pair(xd, odd_b, gt_pair(xb, even_b, second_b));
    }
#else
    const int16_t *x = (const int16_t *)work;
    for (int64_t q = 0; q < GT_QUADS; q++, x += 8, w += 8)
        GT_UNROLL for (int i = 0; i < 4; i++) {
            first_a += x[2 * i] * w[i], first_b += x[2 * i] * w[4 + i];
            second_a += x[2 * i + 1] * w[i], second_b += x[2 * i + 1] * w[4 + i];
        }
#endif
    sums[0] = first_a, sums[1] = first_b, sums[2] = second_a, sums[3] = second_b;
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    (void)threads;
    const int64_t pixels = (GT_BATCH) * (GT_OH) * (GT_OW);
    if (t != 0 || pixels == 0) return;
    const int64_t seen = (GT_KH) * (GT_KW) * (GT_C); /* what fills up the last four is 0 */
    GT_JOIN(GT_NAME, _zeros)(seen, 0, GT_QUADS * 4 - seen GT_ARGS);
    GT_JOIN(GT_NAME, _zeros)(seen, 1, GT_QUADS * 4 - seen GT_ARGS);
    int64_t n[2] = {0}, oh[2] = {0}, ow[2] = {0};
    for (int64_t u = 0; u < pixels; u += 2) {
        const int64_t count = u + 1 < pixels ? 2 : 1; /* the last pixel may be alone */
        for (int64_t p = 0; p < count; p++) {
            if (u + p > 0) { /* the pixel after the other one */
                n[p] = n[1 - p], oh[p] = oh[1 - p], ow[p] = ow[1 - p] + 1;
                if (ow[p] == (GT_OW)) ow[p] = 0, oh[p]++;
                if (oh[p] == (GT_OH)) oh[p] = 0, n[p]++;
            }
            GT_JOIN(GT_NAME, _window)(p, n[p], oh[p], ow[p] GT_ARGS);
        }
        const int8_t *w = GT_W;
        int64_t o = 0;
        for (; o + 2 <= (GT_O); o += 2, w += GT_QUADS * 8) {
            int32_t sums[4];
            GT_JOIN(GT_NAME, _sums)(w, GT_WORK, sums);
            for (int64_t p = 0; p < count; p++)
                GT_EPILOGUE(sums + 2 * p, n[p], oh[p], ow[p], o, 2 GT_ARGS);
        }
        if ((GT_O) % 2 != 0) {
            int32_t sums[4];
            GT_JOIN(GT_NAME, _sums)(w, GT_WORK, sums);
            for (int64_t p = 0; p < count; p++)
                GT_EPILOGUE(sums + 2 * p, n[p], oh[p], ow[p], o, 1 GT_ARGS);
        }
    }
}

#include "template_end.h"
