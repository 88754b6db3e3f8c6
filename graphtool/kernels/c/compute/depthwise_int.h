/* Depthwise 2-d convolution of u8 by s8, channels last, a template: four rows of a column of the
   input are one quad a channel, which a dot product takes at once. Define the macros, include this
   file, repeat; it undefines them at its end.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_BH, GT_BW   the register block: BH rows of up to BW pixels (literals)
   GT_BATCH GT_OH GT_OW GT_C            images, output rows, output columns, channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size (constants), strides, dilations; DH is 1 where
                  BH is more
   GT_X           const uint8_t *, the input, its padding included
   GT_XN GT_XH GT_XW  strides of the input: image, row, pixel; channels are adjacent
   GT_W           const int8_t *, the weights [Q][BH][KW][C][4]: of the rows 4q to 4q + 3 below the
                  block's first one, what they count for row h of the block; zeros where they do not
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t c, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from c on; acc is vector-aligned, count the literal GT_LANES but for the
                  last channels

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. */
#include "int8.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

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
#endif

/* height × width pixels, one vector of channels from c on. The first `done` lanes were finished by
   the vector before: the last vector overlaps it where C is not a multiple of GT_LANES. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int height, const int width, int64_t n, int64_t oh,
                                        int64_t ow, int64_t c, int64_t done GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES, rows = (height - 1) * (GT_SH) + (GT_KH);
    const int columns = (width - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) + 1;
    const int64_t lanes = narrow ? (GT_C) : GT_LANES;
    const uint8_t *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW) + c;
    gt_vi acc[GT_BH * GT_BW];
    gt_ints_zero(acc, height * width);
    GT_UNROLL for (int q = 0; 4 * q < rows; q++) {
        const uint8_t *row[4];
        gt_vi w[GT_BH * (GT_KW)];
        GT_UNROLL for (int i = 0; i < 4; i++)
            row[i] = x + (4 * q + i < rows ? 4 * q + i : rows - 1) * (GT_DH) * (GT_XH);
        GT_UNROLL for (int i = 0; i < height * (GT_KW); i++)
        {
            const int8_t *p = GT_W + ((int64_t)(q * GT_BH * (GT_KW) + i) * (GT_C) + c) * 4;
            w[i] = (gt_vi){0};
            memcpy(&w[i], p, (size_t)(narrow ? lanes * 4 : GT_LANES * 4));
        }
        GT_UNROLL for (int j = 0; j < columns; j++)
        {
            const int64_t at = (int64_t)j * (GT_XW);
            const gt_vi v = gt_quads(row[0] + at, row[1] + at, row[2] + at, row[3] + at, lanes);
            GT_UNROLL for (int h = 0; h < height; h++)
                GT_UNROLL for (int i = 0; i < width; i++)
                {
                    const int offset = j - i * (GT_SW), s = offset / (GT_DW);
                    const int met = 4 * q + 3 >= h * (GT_SH) && 4 * q < h * (GT_SH) + (GT_KH);
                    if (met && offset >= 0 && offset % (GT_DW) == 0 && s < (GT_KW))
                        acc[h * width + i] =
                            gt_dot_quad(acc[h * width + i], v, w[h * (GT_KW) + s]);
                }
        }
    }
    int32_t tile[GT_BH * GT_BW * GT_LANES] GT_ALIGNED;
    gt_ints_store(acc, height * width, tile);
    const int64_t count = narrow ? (GT_C) : GT_LANES - done;
    for (int h = 0; h < height; h++)
        for (int i = 0; i < width; i++) {
            int32_t *out = tile + (h * width + i) * GT_LANES;
            if (done) memmove(out, out + done, (size_t)count * sizeof(int32_t));
            GT_EPILOGUE(out, n, oh + h, ow + i, c + done, count GT_ARGS);
        }
}

#define GT_INSTANCE(width)                                                                        \
    GT_NOINLINE void GT_JOIN(GT_NAME, _pixels##width)(int64_t height, int64_t n, int64_t oh,      \
                                                      int64_t ow, int64_t c,                      \
                                                      int64_t done GT_PARAMS)                     \
    {                                                                                             \
        if (!GT_OCCURS(width, GT_OW, GT_BW)) return;                                              \
        if (height == GT_BH && done == 0)                                                         \
            GT_JOIN(GT_NAME, _block)(GT_BH, width, n, oh, ow, c, 0 GT_ARGS);                      \
        else if (height == GT_BH)                                                                 \
            GT_JOIN(GT_NAME, _block)(GT_BH, width, n, oh, ow, c, done GT_ARGS);                   \
        else                                                                                      \
            GT_JOIN(GT_NAME, _block)(1, width, n, oh, ow, c, done GT_ARGS);                       \
    }
GT_UPTO(GT_BW, GT_INSTANCE)
#undef GT_INSTANCE

/* A band of `height` rows, all channels: those of one block of pixels are done before the next. */
GT_INLINE void GT_JOIN(GT_NAME, _band)(int64_t height, int64_t n, int64_t oh GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_OW, GT_BW);
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    for (int64_t block = 0, ow = 0; block < blocks; block++) {
        const int64_t width = shorter + (block < longer);
        for (int64_t c = 0; c < (GT_C); c += GT_LANES) {
            const int64_t over = (GT_C) < GT_LANES ? 0 : gt_max(0, c + GT_LANES - (GT_C));
            switch (width) {
#define GT_INSTANCE(wide)                                                                         \
    case wide:                                                                                    \
        GT_JOIN(GT_NAME, _pixels##wide)(height, n, oh, ow, c - over, over GT_ARGS);               \
        break;
                GT_UPTO(GT_BW, GT_INSTANCE)
#undef GT_INSTANCE
            }
        }
        ow += width;
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* Threads take rows, as the kernels before and after do; those that make no whole block go one
       by one. */
    const int64_t rows = (GT_BATCH) * (GT_OH), end = gt_part(rows, t + 1, threads);
    if ((GT_OW) == 0) return;
    for (int64_t row = gt_part(rows, t, threads); row < end;) {
        const int64_t n = row / (GT_OH), oh = row % (GT_OH);
        const int64_t height = gt_min(end - row, (GT_OH)-oh) >= GT_BH ? GT_BH : 1;
        GT_JOIN(GT_NAME, _band)(height, n, oh GT_ARGS);
        row += height;
    }
}

#pragma GCC diagnostic pop
#undef GT_NAME
#undef GT_BH
#undef GT_BW
#undef GT_BATCH
#undef GT_OH
#undef GT_OW
#undef GT_C
#undef GT_KH
#undef GT_KW
#undef GT_SH
#undef GT_SW
#undef GT_DH
#undef GT_DW
#undef GT_X
#undef GT_XN
#undef GT_XH
#undef GT_XW
#undef GT_W
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
