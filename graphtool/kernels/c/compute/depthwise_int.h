/* Depthwise 2-d convolution of small integers, channels last, a template: GROUP rows of a column of
   the input are in one lane a channel, which a dot product takes at once.

   GT_PAIRS       1: input and weights hold int16_t, and GROUP is 2; 0: the input uint8_t, the
                  weights int8_t, and GROUP is 4
   GT_BH, GT_BW   the register block: BH rows of up to BW pixels (literals)
   GT_BATCH GT_OH GT_OW GT_C            images, output rows, output columns, channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size (constants), strides, dilations; DH is 1 where
                  BH is more
   GT_X           the input, its padding included
   GT_XN GT_XH GT_XW  strides of the input: image, row, pixel; channels are adjacent
   GT_W           the weights [Q][BH][KW][C][GROUP]: of GROUP rows from the block's row GROUP·q
                  on, what they count for row h of the block; zeros where they do not
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t c, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from c on; acc is vector-aligned, count the literal GT_LANES but for the
                  last channels

   Shares need no barrier among themselves. */
#include "int8.h"
#include "template_begin.h"

#ifndef GT_DEPTHWISE_INT_H
#define GT_DEPTHWISE_INT_H
/* Lane i: byte i of the four rows, the first lowest; `count` <= GT_LANES bytes are there. */
GT_INLINE gt_vi gt_quads(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d,
                         int64_t count)
{
#if defined __AVX512BW__ && GT_LANES == 16
    const __mmask16 there = (__mmask16)((1u << count) - 1);
    if (count == 16) {
#ifdef __AVX512VBMI__
        const __m512i order = _mm512_set_epi8(
            63, 47, 31, 15, 62, 46, 30, 14, 61, 45, 29, 13, 60, 44, 28, 12, 59, 43, 27, 11, 58, 42,
            26, 10, 57, 41, 25, 9, 56, 40, 24, 8, 55, 39, 23, 7, 54, 38, 22, 6, 53, 37, 21, 5, 52,
            36, 20, 4, 51, 35, 19, 3, 50, 34, 18, 2, 49, 33, 17, 1, 48, 32, 16, 0);
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)b), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)c), 2);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)d), 3);
        return (gt_vi)_mm512_permutexvar_epi8(order, v);
#endif
    }
#define GT_WIDE(p) (gt_vi) _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(there, p))
    return GT_WIDE(a) | GT_WIDE(b) << 8 | GT_WIDE(c) << 16 | GT_WIDE(d) << 24;
#undef GT_WIDE
#else
    uint32_t lanes[GT_LANES] = {0};
    gt_vi v;
    for (int64_t i = 0; i < count; i++)
        lanes[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
    memcpy(&v, lanes, sizeof v);
    return v;
#endif
}

/* Lane i: number i of both rows, the first lowest; `count` <= GT_LANES numbers are there. */
GT_INLINE gt_vi gt_twos(const int16_t *a, const int16_t *b, int64_t count)
{
#ifdef __wasm_simd128__
    if (count == 4)
        return (gt_vi)wasm_i16x8_shuffle(wasm_v128_load64_zero(a), wasm_v128_load64_zero(b), 0, 8,
                                         1, 9, 2, 10, 3, 11);
#endif
    uint32_t lanes[GT_LANES] = {0};
    gt_vi v;
    for (int64_t i = 0; i < count; i++)
        lanes[i] = (uint16_t)a[i] | (uint32_t)(uint16_t)b[i] << 16;
    memcpy(&v, lanes, sizeof v);
    return v;
}
#endif

#if GT_PAIRS
#define GT_GROUP 2
#define GT_ELEMENT int16_t
#define GT_TAP int16_t
#define GT_TOGETHER(row, at, count) gt_twos((row)[0] + (at), (row)[1] + (at), count)
#define GT_DOT gt_dot_pair
#else
#define GT_GROUP 4
#define GT_ELEMENT uint8_t
#define GT_TAP int8_t
#define GT_TOGETHER(row, at, count)                                                               \
    gt_quads((row)[0] + (at), (row)[1] + (at), (row)[2] + (at), (row)[3] + (at), count)
#define GT_DOT gt_dot_quad
#endif
#define GT_SUM int32_t
#define GT_CB gt_max(1, gt_ceil_div(GT_C, GT_LANES)) /* all channels */

/* height × width pixels, one vector of channels from c on. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int height, const int width, int64_t n, int64_t oh,
                                        int64_t ow, int64_t c, int32_t *tile GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES, rows = (height - 1) * (GT_SH) + (GT_KH);
    const int columns = (width - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) + 1;
    const int64_t lanes = narrow ? (GT_C) : GT_LANES;
    const GT_ELEMENT *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW) + c;
    gt_vi acc[GT_BH * GT_BW];
    gt_ints_zero(acc, height * width);
    GT_UNROLL for (int q = 0; GT_GROUP * q < rows; q++) {
        const GT_ELEMENT *row[GT_GROUP];
        gt_vi w[GT_BH * (GT_KW)];
        GT_UNROLL for (int i = 0; i < GT_GROUP; i++)
            row[i] = x + gt_min(GT_GROUP * q + i, rows - 1) * (GT_DH) * (GT_XH);
        GT_UNROLL for (int i = 0; i < height * (GT_KW); i++)
        {
            const GT_TAP *p = GT_W + ((int64_t)(q * GT_BH * (GT_KW) + i) * (GT_C) + c) * GT_GROUP;
            w[i] = (gt_vi){0};
            memcpy(&w[i], p, (size_t)(narrow ? lanes * 4 : GT_LANES * 4));
        }
        GT_UNROLL for (int j = 0; j < columns; j++)
        {
            const int64_t at = (int64_t)j * (GT_XW);
            const gt_vi v = GT_TOGETHER(row, at, lanes);
            GT_UNROLL for (int h = 0; h < height; h++)
                GT_UNROLL for (int i = 0; i < width; i++)
                {
                    const int offset = j - i * (GT_SW), s = offset / (GT_DW);
                    const int met = GT_GROUP * (q + 1) > h * (GT_SH)
                                    && GT_GROUP * q < h * (GT_SH) + (GT_KH);
                    if (met && offset >= 0 && offset % (GT_DW) == 0 && s < (GT_KW))
                        acc[h * width + i] =
                            GT_DOT(acc[h * width + i], v, w[h * (GT_KW) + s]);
                }
        }
    }
    gt_ints_store(acc, height * width, tile);
}

#include "depthwise_loop.h"

#include "template_end.h"
