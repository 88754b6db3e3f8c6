/* Direct 2-d convolution, channels last, a template: every output pixel's channels are handed to an
   epilogue.

   GT_MR, GT_NV   the register tile: up to MR pixels of a row (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_TALL        a tile covers up to so many whole output rows (a literal, default 1): for maps so
                  narrow that TALL·OW <= MR; OW is then a constant
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_GROUPS GT_C GT_O   groups, and input and output channels of one group
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  kernel size, strides, dilations
   GT_X           const float *, the input, its zero halo included
   GT_XN GT_XH GT_XW     strides of the input in floats: image, row, pixel; channels are adjacent
   GT_W           const float *, the weights [groups][ceil(O/NR)][KH][KW·C][NR], zero padded,
                  64-byte aligned
   GT_HALF        if defined, input and weights hold numbers of 16 bits in uint16_t, and this is
                  their type, as half.h calls it
   GT_PAIRS       if defined too, they are bfloat16 and the weights come in pairs: with one group
                  and DW = 1 of a kernel row, [KH][ceil(KW·C/2)][NR][2], and XW = C if C is odd;
                  else of a tap, [KH][KW][ceil(C/2)][NR][2]
   GT_TOP GT_BOTTOM GT_LEFT GT_RIGHT  if defined, only the rows of the input from TOP to before
                  BOTTOM are read, and of its columns those from LEFT to before RIGHT; the others
                  count as zeros. TALL is 1, and DW > 1 if columns are left out
   GT_ROWS_FIRST  whether a row goes through all panels before the next one (1), or a panel through
                  as many rows as stay in the cache (0); left out: rows if the weights stay in it
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from the
                  absolute channel o on; acc is vector-aligned, count is the literal NR but in a
                  last, partial panel

   Shares need no barrier among themselves. A 1×1 convolution of stride 1 is better called gemm. */
#include "tile.h"
#include "template_begin.h"
#include "operand.h"
#ifdef GT_PAIRS
#include "bf16.h"
#define GT_EVEN(n) (((n) + 1) / 2 * 2)
#else
#define GT_EVEN(n) (n)
#endif
#ifndef GT_TALL
#define GT_TALL 1
#endif
#ifdef GT_TOP
/* Where the pixels from ow on of a row stop to see the same columns of the window: no tile has
   pixels of which one sees a tap and another does not. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _alike)(int64_t ow)
{
    int64_t end = (GT_OW);
    for (int64_t s = 0; s < (GT_KW); s++) {
        const int64_t left = gt_ceil_div(gt_max(0, (GT_LEFT) - s * (GT_DW)), (GT_SW));
        const int64_t right = gt_ceil_div(gt_max(0, (GT_RIGHT) - s * (GT_DW)), (GT_SW));
        if (left > ow) end = gt_min(end, left);
        if (right > ow) end = gt_min(end, right);
    }
    return end;
}
#define GT_ALIKE GT_JOIN(GT_NAME, _alike)
#endif
#define GT_SUM float
#define GT_STEPS                                                                                  \
    ((int64_t)(GT_KH) * ((GT_DW) == 1 && (GT_GROUPS) == 1 ? GT_EVEN((GT_KW) * (GT_C))             \
                                                          : (GT_KW) * GT_EVEN(GT_C)))
#define GT_SIZE (int64_t)sizeof(GT_NUMBER)
#define GT_HELD 4 /* of 16 bits too: fewer rows at a time are faster there */
#define GT_PANEL (GT_STEPS * GT_NR * GT_SIZE)
#define GT_LINE ((int64_t)(GT_SH) * (GT_SW) * (GT_OW) * (GT_C))

/* The sums of the pixels from (oh, ow) on, by one panel of channels. */
GT_INLINE void GT_JOIN(GT_NAME, _sums)(const int pixels, int64_t n, int64_t oh, int64_t ow,
                                       int64_t group, const char *panel, const char *ahead,
                                       int64_t step, float *tile GT_PARAMS)
{
    gt_vf acc[GT_MR * GT_NV];
    const GT_NUMBER *w = (const GT_NUMBER *)panel;
    const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW)
                     + group * (GT_C);
    /* if a kernel row reads adjacent floats, its columns and channels are one loop */
    const int merged = (GT_DW) == 1 && (GT_XW) == (GT_C);
    const int64_t runs = merged ? 1 : (GT_KW), run = merged ? (GT_KW) * (GT_C) : (GT_C);
    gt_tile_zero(acc, pixels, GT_NV);
    for (int64_t r = 0; r < (GT_KH); r++) {
#ifdef GT_TOP
        const int64_t row = oh * (GT_SH) + r * (GT_DH);
        if (row < (GT_TOP) || row >= (GT_BOTTOM)) {
            w += runs * GT_EVEN(run) * GT_NR;
            ahead += runs * run * step;
            continue;
        }
#endif
        for (int64_t s = 0; s < runs; s++) {
#ifdef GT_TOP
            const int64_t column = ow * (GT_SW) + s * (GT_DW);
            if (!merged && (column < (GT_LEFT) || column >= (GT_RIGHT))) {
                w += GT_EVEN(run) * GT_NR;
                ahead += run * step;
                continue;
            }
#endif
            const GT_NUMBER *at = x + r * (GT_DH) * (GT_XH) + s * (GT_DW) * (GT_XW);
            const int64_t next = (GT_SW) * (GT_XW), line = GT_TALL > 1 ? (GT_OW) : 0;
#if defined GT_PAIRS
            gt_tile_bf16_lines(acc, pixels, GT_NV, at, next, line, (GT_SH) * (GT_XH), w, run,
                               ahead, step, 0);
#elif defined GT_HALF
            gt_tile_half_lines(acc, pixels, GT_NV, GT_HALF, at, next, line, (GT_SH) * (GT_XH), w,
                               run, ahead, step, 0);
#else
            gt_tile_fma_lines(acc, pixels, GT_NV, at, next, line, (GT_SH) * (GT_XH), w, run, ahead,
                              step, 0);
#endif
            w += GT_EVEN(run) * GT_NR;
            ahead += run * step;
        }
    }
    gt_tile_store(acc, pixels, GT_NV, tile);
}

#include "conv_loop.h"

#include "template_end.h"
