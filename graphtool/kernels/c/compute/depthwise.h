/* Depthwise 2-d convolution (one filter a channel), channels last, a template.

   GT_BH, GT_BW   the register block: BH rows of up to BW pixels (literals); BH·BW + KW + 1
                  registers are in use, 2×7 suits 32 of them and 3×3, 1×7 larger kernels and strides
   GT_CB          vectors of channels that one sweep over the image takes: 1 for large maps, 2 small
   GT_BATCH GT_OH GT_OW GT_C            images, output rows, output columns, channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size (KW a constant), strides, dilations
   GT_X           const float *, the input, its zero halo included
   GT_XN GT_XH GT_XW  strides of the input in floats: image, row, pixel; channels are adjacent
   GT_XT          floats from one tap of a row to the next, DW pixels if left out: neighbours of few
                  channels that are taken for one pixel lie closer than pixels; SW is 1 then
   GT_W           const float *, the weights [KH][KW][C]
   GT_HALF        if defined, both hold numbers of 16 bits in uint16_t, and this is their type, as
                  half.h calls it
   GT_Y(n, oh)    if there is GT_SUMS, const float *, where the epilogue stores row oh of image n
   GT_YW GT_YC    the steps there from pixel to pixel, and from channel to channel
   GT_SUMS(n, oh) if defined, float *, where the sums over that row's pixels go
   GT_SUMC        the step there from channel to channel
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t c, int64_t count GT_PARAMS): takes `count` channels of one pixel from c
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Shares need no barrier among themselves. */
#include "tile.h"
#ifdef GT_SUMS
#include "row_sums.h"
#endif
#include "template_begin.h"
#include "operand.h"
#ifdef GT_XT
#define GT_APART 1
#else
#define GT_APART 0
#define GT_XT ((GT_DW) * (GT_XW))
#endif
#define GT_SUM float

/* height × width pixels, one vector of channels from c on. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int height, const int width, int64_t n, int64_t oh,
                                        int64_t ow, int64_t c, float *tile GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES;
    const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW) + c;
    gt_vf acc[GT_BH * GT_BW];
    gt_tile_zero(acc, height * width, 1);
    for (int r = 0; r < (GT_KH); r++) {
        gt_vf w[GT_KW];
        GT_UNROLL for (int s = 0; s < (GT_KW); s++)
        {
            const GT_NUMBER *p = GT_W + ((int64_t)r * (GT_KW) + s) * (GT_C) + c;
            w[s] = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
        }
        GT_UNROLL for (int h = 0; h < height; h++)
        {
            /* an input pixel is loaded once and used for every output of the row that reads it; if
               taps are so far apart that outputs share none, each loads its own */
            const int columns = (width - 1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 1;
            if (GT_APART || columns >= width * (GT_KW)) {
                GT_UNROLL for (int i = 0; i < width * (GT_KW); i++)
                {
                    const GT_NUMBER *p = x + ((int64_t)h * (GT_SH) + r * (GT_DH)) * (GT_XH)
                                         + i / (GT_KW) * (GT_SW) * (int64_t)(GT_XW)
                                         + i % (GT_KW) * (int64_t)(GT_XT);
                    const gt_vf v = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
                    acc[h * width + i / (GT_KW)] += v * w[i % (GT_KW)];
                }
            } else {
                GT_UNROLL for (int j = 0; j < columns; j++)
                {
                    const GT_NUMBER *p = x + ((int64_t)h * (GT_SH) + r * (GT_DH)) * (GT_XH)
                                         + (int64_t)j * (GT_XW);
                    const gt_vf v = narrow ? GT_READ_FIRST(p, GT_C) : GT_READ(p);
                    GT_UNROLL for (int i = 0; i < width; i++)
                    {
                        const int offset = j - i * (GT_SW), s = offset / (GT_DW);
                        if (offset >= 0 && offset % (GT_DW) == 0 && s < (GT_KW))
                            acc[h * width + i] += v * w[s];
                    }
                }
            }
        }
    }
    gt_tile_store(acc, height * width, 1, tile);
}

#include "depthwise_loop.h"

#include "template_end.h"
