/* 2-d convolution of bytes by s8, channels last, for processors without vectors, a template. The
   image has no padding in memory: for two output pixels at a time the bytes that their windows see
   are gathered as 16-bit differences to the zero point, and what is outside of the image as 0. So
   what the kernel has read of the image may be overwritten by its results. Where vectors of bytes
   are multiplied (MVE), bytes stay bytes, and the zero point meets the sum of the weights.

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
   GT_WORK        int32_t *, the windows of two pixels: ceil(KH·KW·C/4)·4 words, and a quarter
                  more for the bytes of one if C % 4 != 0 or XC != 1
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t o, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from o on; count is the literal 2, or 4 with MVE, but for the last ones

   One thread does it all. */
#include "int16_pairs.h"
#ifdef __ARM_FEATURE_MVE
#include <arm_mve.h>
#endif
#include "template_begin.h"

#if GT_SIGNED
#define GT_BYTE int8_t
#else
#define GT_BYTE uint8_t
#endif
#define GT_QUADS gt_ceil_div((GT_KH) * (GT_KW) * (GT_C), 4)
#define GT_NEAR ((GT_XC) == 1 && (GT_DW) == 1 && (GT_XW) == (GT_C)) /* rows of windows are runs */
#define GT_FOURS ((GT_C) % 4 == 0 && (GT_XC) == 1) /* and four of a window are neighbours */
#ifdef __ARM_FEATURE_MVE
#define GT_WIDENED 0
#define GT_TURNED(x) (GT_BYTE)((x) ^ (GT_SIGNED ? 0 : 128)) /* u8 as s8 that are less by 128 */
#define GT_BYTES(p) ((GT_BYTE *)(GT_WORK) + (p) * GT_QUADS * 4)
#define GT_FILTERS 4 /* whose sums are a vector of the epilogue */
#else
#define GT_WIDENED 1
#define GT_TURNED(x) (x)
/* the bytes of a window that does not come in fours, before they are widened */
#define GT_BYTES(p) ((GT_BYTE *)((GT_WORK) + GT_QUADS * 4))
#define GT_FILTERS 2
#endif

/* `count` bytes, a multiple of four, as differences to the zero point: elements k, k + 1, … of
   pixel p. The pixels alternate; with GT_HALVES, pairs of even and of odd elements do too. */
GT_INLINE void GT_JOIN(GT_NAME, _widen)(int64_t k, int64_t p, const GT_BYTE *x,
                                        int64_t count GT_PARAMS)
{
    const GT_BYTE *const end = x + count;
#ifdef GT_HALVES
    const int32_t zeros = gt_pair_of(GT_ZERO, GT_ZERO);
    for (gt_halves *pair = (gt_halves *)(GT_WORK) + k + p; x < end; x += 4, pair += 4) {
        int32_t word;
        memcpy(&word, x, 4);
        const int32_t even = gt_even(word, GT_SIGNED), odd = gt_odd(word, GT_SIGNED);
        pair[0] = (GT_ZERO) ? __ssub16(even, zeros) : even;
        pair[2] = (GT_ZERO) ? __ssub16(odd, zeros) : odd;
    }
#else
    for (int16_t *half = (int16_t *)(GT_WORK) + 2 * k + p; x < end; half += 2)
        *half = (int16_t)(*x++ - (GT_ZERO));
#endif
}

/* `count` bytes of the image from x on, as elements k, k + 1, … of pixel p. */
GT_INLINE void GT_JOIN(GT_NAME, _bytes)(int64_t k, int64_t p, const GT_BYTE *x, int64_t count,
                                        int64_t step GT_PARAMS)
{
    if (GT_FOURS && GT_WIDENED) {
        GT_JOIN(GT_NAME, _widen)(k, p, x, count GT_ARGS);
        return;
    }
    GT_BYTE *out = GT_BYTES(p) + k;
#ifdef __ARM_FEATURE_MVE
    for (int64_t i = 0; step == 1 && i < count; i += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)(count - i));
        const int8x16_t v = vldrbq_z_s8((const int8_t *)x + i, some);
        vstrbq_p_s8((int8_t *)out + i, veorq_s8(v, vdupq_n_s8(GT_SIGNED ? 0 : -128)), some);
    }
    if (step == 1) return;
#endif
    for (GT_BYTE *const end = out + count; out < end; x += step) *out++ = GT_TURNED(*x);
}

/* The same for padding. */
GT_INLINE void GT_JOIN(GT_NAME, _padding)(int64_t k, int64_t p, int64_t count GT_PARAMS)
{
    if (GT_FOURS && GT_WIDENED)
#ifdef GT_HALVES
        for (int64_t i = 0; i < count; i += 2) ((gt_halves *)(GT_WORK))[k + i + p] = 0;
#else
        for (int64_t i = 0; i < count; i++) ((int16_t *)(GT_WORK))[2 * (k + i) + p] = 0;
#endif
    else
        for (int64_t i = 0; i < count; i++) GT_BYTES(p)[k + i] = GT_TURNED(GT_ZERO);
}

/* The window of an output pixel, as pixel p. */
GT_NOINLINE void GT_JOIN(GT_NAME, _window)(int64_t p, int64_t n, int64_t oh, int64_t ow GT_PARAMS)
{
    const int64_t top = oh * (GT_SH) - (GT_PT), left = ow * (GT_SW) - (GT_PL);
    const int inside = top >= 0 && top + ((GT_KH) - 1) * (GT_DH) < (GT_IH) && left >= 0
                       && left + ((GT_KW) - 1) * (GT_DW) < (GT_IW);
    const GT_BYTE *x = GT_X + n * (GT_XN) + top * (GT_XH) + left * (GT_XW);
    int64_t k = 0;
    for (int64_t r = 0; r < (GT_KH); r++, x += (GT_DH) * (GT_XH)) {
        const int64_t row = top + r * (GT_DH);
        if (GT_NEAR && inside) {
            GT_JOIN(GT_NAME, _bytes)(k, p, x, (GT_KW) * (GT_C), 1 GT_ARGS);
            k += (GT_KW) * (GT_C);
            continue;
        }
        for (int64_t s = 0; s < (GT_KW); s++, k += (GT_C)) {
            const int64_t column = left + s * (GT_DW);
            if (inside || (row >= 0 && row < (GT_IH) && column >= 0 && column < (GT_IW)))
                GT_JOIN(GT_NAME, _bytes)(k, p, x + s * (GT_DW) * (GT_XW), GT_C, GT_XC GT_ARGS);
            else
                GT_JOIN(GT_NAME, _padding)(k, p, GT_C GT_ARGS);
        }
    }
    if (GT_FOURS || !GT_WIDENED) return;
    /* what fills up the last four meets weights of 0 */
    GT_JOIN(GT_NAME, _widen)(0, p, GT_BYTES(p), GT_QUADS * 4 GT_ARGS);
}

#ifdef __ARM_FEATURE_MVE
/* The sums of both pixels by two filters, whose weights are at w: [pixel][filter]. */
GT_INLINE void GT_JOIN(GT_NAME, _two)(const int8_t *w, const int8_t *x, int32_t *sums)
{
    int32_t first_a = 0, first_b = 0, second_a = 0, second_b = 0, all_a = 0, all_b = 0;
    mve_pred16_t some = vctp32q(4);
    for (int64_t q = GT_QUADS; q > 0; q -= 4, x += 16, w += 32) {
        int8x16_t a, b;
        if (q >= 4) { /* the filters alternate in fours */
            const int32x4x2_t v = vld2q_s32((const int32_t *)w);
            a = (int8x16_t)v.val[0], b = (int8x16_t)v.val[1];
        } else {
            const uint32x4_t at = vidupq_n_u32(0, 2);
            some = vctp32q((uint32_t)q);
            a = (int8x16_t)vldrwq_gather_shifted_offset_z_s32((const int32_t *)w, at, some);
            b = (int8x16_t)vldrwq_gather_shifted_offset_z_s32((const int32_t *)w + 1, at, some);
        }
        const int8x16_t one = q >= 4 ? vld1q_s8(x) : vldrbq_z_s8(x, some);
        const int8x16_t two = q >= 4 ? vld1q_s8(x + GT_QUADS * 4)
                                     : vldrbq_z_s8(x + GT_QUADS * 4, some);
        first_a = vmladavaq_s8(first_a, one, a), first_b = vmladavaq_s8(first_b, one, b);
        second_a = vmladavaq_s8(second_a, two, a), second_b = vmladavaq_s8(second_b, two, b);
        all_a = vaddvaq_s8(all_a, a), all_b = vaddvaq_s8(all_b, b);
    }
    const int32_t zero = GT_SIGNED ? -(GT_ZERO) : 128 - (GT_ZERO);
    sums[0] = first_a + zero * all_a, sums[1] = first_b + zero * all_b;
    sums[GT_FILTERS] = second_a + zero * all_a, sums[GT_FILTERS + 1] = second_b + zero * all_b;
}

/* The same by `filters` filters, four at most. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sums)(const int8_t *w, const int32_t *work, int32_t *sums,
                                         int64_t filters)
{
    GT_ROLLED for (int64_t o = 0; o < filters; o += 2, w += GT_QUADS * 8)
        GT_JOIN(GT_NAME, _two)(w, (const int8_t *)work, sums + o);
}
#else
/* The sums of both pixels by two filters, whose weights are at w: [pixel][filter]. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sums)(const int8_t *w, const int32_t *work, int32_t *sums,
                                         int64_t filters)
{
    (void)filters;
    int32_t first_a = 0, first_b = 0, second_a = 0, second_b = 0;
#ifdef GT_HALVES
    const gt_halves *x = (const gt_halves *)work;
    GT_UNROLL_4 for (int64_t q = 0; q < GT_QUADS; q++)
        gt_two_by_two(&x, &w, &first_a, &first_b, &second_a, &second_b);
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

#endif

/* `filters` channels from o on of `pixels` pixels. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int8_t *w, const int64_t *n, const int64_t *oh,
                                        const int64_t *ow, int64_t pixels, int64_t o,
                                        const int64_t filters GT_PARAMS)
{
    int32_t sums[2 * GT_FILTERS];
    GT_JOIN(GT_NAME, _sums)(w, GT_WORK, sums, filters);
    GT_EPILOGUE(sums, n[0], oh[0], ow[0], o, filters GT_ARGS);
    if (pixels == 2) GT_EPILOGUE(sums + GT_FILTERS, n[1], oh[1], ow[1], o, filters GT_ARGS);
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    (void)threads;
    const int64_t all = (GT_BATCH) * (GT_OH) * (GT_OW);
    if (t != 0) return;
    int64_t n[2] = {0}, oh[2] = {0}, ow[2] = {0};
    for (int64_t u = 0; u < all; u += 2) {
        const int64_t pixels = u + 1 < all ? 2 : 1; /* the last pixel may be alone */
        for (int64_t p = 0; p < pixels; p++) {
            if (u + p > 0) { /* the pixel after the other one */
                n[p] = n[1 - p], oh[p] = oh[1 - p], ow[p] = ow[1 - p] + 1;
                if (ow[p] == (GT_OW)) ow[p] = 0, oh[p]++;
                if (oh[p] == (GT_OH)) oh[p] = 0, n[p]++;
            }
            GT_JOIN(GT_NAME, _window)(p, n[p], oh[p], ow[p] GT_ARGS);
        }
        const int8_t *w = GT_W;
        int64_t o = 0;
        for (; o + GT_FILTERS <= (GT_O); o += GT_FILTERS, w += GT_QUADS * GT_FILTERS * 4)
            GT_JOIN(GT_NAME, _block)(w, n, oh, ow, pixels, o, GT_FILTERS GT_ARGS);
        if (o < (GT_O))
            GT_JOIN(GT_NAME, _block)(w, n, oh, ow, pixels, o, (GT_O) % GT_FILTERS GT_ARGS);
    }
}

#include "template_end.h"
