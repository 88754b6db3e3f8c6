/* Direct 2-d convolution of small integers, channels last, a template: every output pixel's int32
   sums are handed to an epilogue.

   GT_PAIRS       1: input and weights hold int16_t; 0: the input uint8_t, the weights int8_t
   GT_MR, GT_NV   the register tile: up to MR pixels of a row (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_TALL        a tile covers up to so many whole output rows (a literal): for maps so narrow
                  that TALL·OW <= MR; OW is then a constant
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_GROUPS GT_O  groups, and output channels of one group
   GT_GROUP_STEP  elements from one group's input channels to the next one's
   GT_KH GT_SH GT_SW GT_DH  rows of the kernel, strides, dilation of rows
   GT_RUNS GT_RUN GT_HOP  a kernel row is RUNS runs of RUN adjacent elements, HOP apart
   GT_X           the input, its padding included
   GT_XN GT_XH GT_XW     strides of the input in elements: image, row, pixel
   GT_W           the weights [groups][ceil(O/NR)][KH][RUNS][ceil(RUN/G)][NR][G], zero padded,
                  64-byte aligned; G is 2 for pairs, else 4
   GT_EPILOGUE    static inline void f(const int32_t *restrict acc, int64_t n, int64_t oh,
                  int64_t ow, int64_t o, int64_t count GT_PARAMS): takes `count` channels of one
                  pixel from the absolute channel o on; acc is vector-aligned, count is the literal
                  NR but in a last, partial panel

   Shares need no barrier among themselves. */
#include "int8.h"
#include "template_begin.h"

#define GT_SUM int32_t
#define GT_SIZE (GT_PAIRS ? 2 : 1) /* bytes of an element */
#define GT_HELD GT_SIZE
#define GT_QUADS gt_ceil_div((GT_RUN) * GT_SIZE, 4) /* of a run */
#define GT_STEPS ((GT_KH) * (GT_RUNS) * GT_QUADS)
#define GT_PANEL (GT_STEPS * GT_NR * 4)
#define GT_LINE ((int64_t)(GT_SH) * (GT_XH))

/* The sums of the pixels from (oh, ow) on, by one panel of channels. */
GT_INLINE void GT_JOIN(GT_NAME, _sums)(const int pixels, int64_t n, int64_t oh, int64_t ow,
                                       int64_t group, const char *w, const char *ahead,
                                       int64_t step, int32_t *tile GT_PARAMS)
{
    gt_vi acc[GT_MR * GT_NV];
    const char *x = (const char *)(GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH)
                                   + ow * (GT_SW) * (GT_XW) + group * (GT_GROUP_STEP));
    gt_ints_zero(acc, pixels * GT_NV);
    for (int64_t r = 0; r < (GT_KH); r++)
        for (int64_t s = 0; s < (GT_RUNS); s++) {
            gt_ints_tile(acc, pixels, GT_NV, x + (r * (GT_DH) * (GT_XH) + s * (GT_HOP)) * GT_SIZE,
                         (GT_SW) * (GT_XW) * GT_SIZE, GT_TALL > 1 ? (GT_OW) : 0,
                         (GT_SH) * (GT_XH) * GT_SIZE, w, (GT_RUN) * GT_SIZE, GT_PAIRS, ahead, step,
                         0);
            w += GT_QUADS * GT_NR * 4;
            ahead += GT_QUADS * step;
        }
    gt_ints_store(acc, pixels * GT_NV, tile);
}

#include "conv_loop.h"

#include "template_end.h"
