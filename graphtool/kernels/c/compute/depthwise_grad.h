/* The gradient of a depthwise convolution's filters, channels last, a template: each channel of an
   image is convolved with the same channel of another one, a window as large as that image. The
   results of an image are its part of the gradient, a tap each.

   GT_BH GT_BW    taps whose sums are in registers: rows and columns of them (literals)
   GT_NV          vectors of channels that are summed together (a literal); BH·BW·NV + NV + 1
                  registers are in use
   GT_BAND        rows of the window that are summed in registers, before their sums join those of
                  the rows above
   GT_BATCH GT_OH GT_OW GT_C            images, rows and columns of taps (constants), channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  size of the window, its steps from tap to tap, dilations
   GT_X           const float *, the image, its padding included
   GT_XN GT_XH GT_XW  strides of it in elements: image, row, pixel; channels are adjacent
   GT_W           const float *, the windows: for each image one
   GT_WN GT_WH GT_WW  strides of them: image, row, pixel; channels are adjacent
   GT_HALF        if defined, both hold numbers of 16 bits in uint16_t, and this is their type, as
                  half.h calls it
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t c, int64_t count GT_PARAMS): takes `count` channels of one tap from c on;
                  acc is vector-aligned, count the literal GT_LANES but for the last channels

   Shares need no barrier among themselves. The order of each sum is the same for any number of
   threads and of lanes. */
#include "tile.h"
#include "template_begin.h"
#include "operand.h"

/* Adds the products of the window's rows top to end to the sums [OH][OW][NV·LANES] of height ×
   width taps from (oh, ow) on, of nv vectors of channels from c on. */
GT_INLINE void GT_JOIN(GT_NAME, _taps)(const int height, const int width, const int nv, int64_t n,
                                       int64_t oh, int64_t ow, int64_t top, int64_t end, int64_t c,
                                       float *sums GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES;
    gt_vf acc[GT_BH * GT_BW * GT_NV];
    gt_tile_zero(acc, height * width, nv);
    for (int64_t r = top; r < end; r++) {
        const GT_NUMBER *x = GT_X + n * (GT_XN) + (oh * (GT_SH) + r * (GT_DH)) * (GT_XH)
                             + ow * (GT_SW) * (GT_XW) + c;
        const GT_NUMBER *w = GT_W + n * (GT_WN) + r * (GT_WH) + c;
        for (int64_t s = 0; s < (GT_KW); s++, x += (GT_DW) * (GT_XW), w += GT_WW) {
            gt_vf g[GT_NV];
            GT_UNROLL for (int v = 0; v < nv; v++)
                g[v] = narrow ? GT_READ_FIRST(w, GT_C) : GT_READ(w + v * GT_LANES);
            GT_UNROLL for (int i = 0; i < height * width; i++)
            {
                const GT_NUMBER *p = x + i / width * (GT_SH) * (int64_t)(GT_XH)
                                     + i % width * (GT_SW) * (int64_t)(GT_XW);
                GT_UNROLL for (int v = 0; v < nv; v++)
                    acc[i * nv + v] += g[v] * (narrow ? GT_READ_FIRST(p, GT_C)
                                                      : GT_READ(p + v * GT_LANES));
            }
        }
    }
    GT_UNROLL for (int i = 0; i < height * width; i++)
    {
        gt_vf *out = (gt_vf *)sums + ((oh + i / width) * (GT_OW) + ow + i % width) * GT_NV;
        GT_UNROLL for (int v = 0; v < nv; v++) out[v] += acc[i * nv + v];
    }
}

/* The same for all columns of `height` rows of taps. */
GT_INLINE void GT_JOIN(GT_NAME, _columns)(const int height, const int nv, int64_t n, int64_t oh,
                                          int64_t top, int64_t end, int64_t c,
                                          float *sums GT_PARAMS)
{
    for (int64_t ow = 0; ow + GT_BW <= (GT_OW); ow += GT_BW)
        GT_JOIN(GT_NAME, _taps)(height, GT_BW, nv, n, oh, ow, top, end, c, sums GT_ARGS);
    if ((GT_OW) % GT_BW)
        GT_JOIN(GT_NAME, _taps)
        (height, (GT_OW) % GT_BW, nv, n, oh, (GT_OW) / GT_BW * GT_BW, top, end, c, sums GT_ARGS);
}

/* All taps of nv vectors of channels from c on. The first `done` lanes were finished by the vector
   before: the last vector overlaps it where C is not a multiple of GT_LANES. */
GT_INLINE void GT_JOIN(GT_NAME, _vectors)(const int nv, int64_t n, int64_t c,
                                          int64_t done GT_PARAMS)
{
    float sums[(GT_OH) * (GT_OW) * GT_NV * GT_LANES] GT_ALIGNED;
    memset(sums, 0, sizeof sums);
    for (int64_t top = 0; top < (GT_KH); top += GT_BAND) {
        const int64_t end = gt_min(GT_KH, top + GT_BAND);
        for (int64_t oh = 0; oh + GT_BH <= (GT_OH); oh += GT_BH)
            GT_JOIN(GT_NAME, _columns)(GT_BH, nv, n, oh, top, end, c, sums GT_ARGS);
        if ((GT_OH) % GT_BH)
            GT_JOIN(GT_NAME, _columns)
            ((GT_OH) % GT_BH, nv, n, (GT_OH) / GT_BH * GT_BH, top, end, c, sums GT_ARGS);
    }
    const int64_t count = (GT_C) < GT_LANES ? (GT_C) : GT_LANES - done;
    for (int64_t i = 0; i < (GT_OH) * (GT_OW); i++)
        for (int v = 0; v < nv; v++) {
            float *out = sums + (i * GT_NV + v) * GT_LANES;
            if (done) memmove(out, out + done, (size_t)count * sizeof(float));
            GT_EPILOGUE(out, n, i / (GT_OW), i % (GT_OW), c + v * GT_LANES + done, count GT_ARGS);
        }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t blocks = gt_ceil_div(GT_C, GT_NV * GT_LANES), units = (GT_BATCH) * blocks;
    for (int64_t u = gt_part(units, t, threads); u < gt_part(units, t + 1, threads); u++) {
        const int64_t n = u / blocks, first = u % blocks * GT_NV * GT_LANES;
        const int64_t last = gt_min(GT_C, first + GT_NV * GT_LANES);
        int64_t c = first;
        for (; c + GT_NV * GT_LANES <= last; c += GT_NV * GT_LANES)
            GT_JOIN(GT_NAME, _vectors)(GT_NV, n, c, 0 GT_ARGS);
        for (; c < last; c += GT_LANES)
            if (c + GT_LANES <= (GT_C) || (GT_C) < GT_LANES)
                GT_JOIN(GT_NAME, _vectors)(1, n, c, 0 GT_ARGS);
            else
                GT_JOIN(GT_NAME, _vectors)
                (1, n, (GT_C)-GT_LANES, c + GT_LANES - (GT_C)GT_ARGS);
    }
}

#include "template_end.h"
