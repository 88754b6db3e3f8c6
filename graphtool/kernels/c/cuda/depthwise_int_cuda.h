/* Depthwise 2-d convolution of u8 by s8, channels last, in CUDA: the macros of depthwise_int.h,
   where GT_BH is 1. A thread has four adjacent channels of GT_BW pixels of a row: their bytes are
   one word, which is read once for all these pixels. */
#include "cuda_unit.h"
#include "cuda_pieces.h"
#include "template_begin.h"

#define GT_BESIDE 4 /* channels */
/* Columns of the image that the pixels share, and columns that there are. */
#define GT_COLUMNS_READ (((GT_BW) - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) + 1)
#define GT_WIDE (((GT_OW) - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) + 1)
#define GT_STRIPS (((GT_OW) + (GT_BW) - 1) / (GT_BW))
#define GT_PIECES_OF_PIXEL (((GT_C) + GT_BESIDE - 1) / GT_BESIDE)
#define GT_WORDS                                                                                  \
    ((((GT_C) | (GT_XN) | (GT_XH) | (GT_XW) | (int64_t)(uintptr_t)(GT_X)) & (GT_BESIDE - 1)) == 0)

/* The bytes of `left` channels, of four if they are a word. */
GT_INLINE void GT_JOIN(GT_NAME, _bytes)(int32_t *v, const uint8_t *x, int words, int left)
{
    uint32_t bits = 0;
    if (words) bits = *(const uint32_t *)x;
    GT_UNROLL
    for (int c = 0; c < GT_BESIDE; c++)
        v[c] = words ? (int32_t)(bits >> 8 * c & 255) : c < left ? x[c] : 0;
}

/* Adds to the sums what four rows of the window count, from row `top` on: their filters are the
   bytes of a word for each channel. */
GT_INLINE void GT_JOIN(GT_NAME, _rows)(int32_t (*acc)[GT_BESIDE], const uint8_t *x,
                                       const uint32_t *w, int top, int64_t ow, int left GT_PARAMS)
{
    GT_PIECE uint32_t taps[GT_KW][GT_BESIDE];
    const int words = GT_WORDS;
    GT_UNROLL
    for (int s = 0; s < (GT_KW); s++) {
        if (words) gt_read_16(taps[s], w + s * (GT_C));
        else
            GT_UNROLL
            for (int c = 0; c < GT_BESIDE; c++) taps[s][c] = c < left ? w[s * (GT_C) + c] : 0;
    }
    GT_UNROLL
    for (int r = 0; r < 4; r++)
        GT_UNROLL
        for (int j = 0; j < GT_COLUMNS_READ; j++) {
            int32_t v[GT_BESIDE];
            if (top + r >= (GT_KH) || ow * (GT_SW) + j >= GT_WIDE) continue;
            GT_JOIN(GT_NAME, _bytes)(v, x + r * (GT_DH) * (GT_XH) + j * (GT_XW), words, left);
            GT_UNROLL
            for (int i = 0; i < (GT_BW); i++) {
                const int offset = j - i * (GT_SW);
                if (offset < 0 || offset % (GT_DW) != 0 || offset / (GT_DW) >= (GT_KW)) continue;
                GT_UNROLL
                for (int c = 0; c < GT_BESIDE; c++)
                    acc[i][c] += v[c] * (int8_t)(taps[offset / (GT_DW)][c] >> 8 * r);
            }
        }
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    const int64_t count = (int64_t)(GT_BATCH) * (GT_OH) * GT_STRIPS * GT_PIECES_OF_PIXEL;
    for (int64_t at = team * GT_TEAM + threadIdx.x; at < count; at += teams * GT_TEAM) {
        const int64_t c = at % GT_PIECES_OF_PIXEL * GT_BESIDE;
        const int64_t ow = at / GT_PIECES_OF_PIXEL % GT_STRIPS * (GT_BW);
        const int64_t oh = at / (GT_PIECES_OF_PIXEL * GT_STRIPS) % (GT_OH);
        const int64_t n = at / (GT_PIECES_OF_PIXEL * GT_STRIPS) / (GT_OH);
        const int left = (GT_C)-c < GT_BESIDE ? (int)((GT_C)-c) : GT_BESIDE;
        int32_t acc[GT_BW][GT_BESIDE] = {{0}};
        for (int top = 0; top < (GT_KH); top += 4)
            GT_JOIN(GT_NAME, _rows)
            (acc, GT_X + n * (GT_XN) + (oh * (GT_SH) + top * (GT_DH)) * (GT_XH) +
                      ow * (GT_SW) * (GT_XW) + c,
             (const uint32_t *)(GT_W) + (int64_t)(top / 4) * (GT_KW) * (GT_C) + c, top, ow,
             left GT_ARGS);
        GT_UNROLL
        for (int i = 0; i < (GT_BW); i++)
            GT_UNROLL
            for (int b = 0; b < GT_BESIDE; b++)
                if (ow + i < (GT_OW) && b < left)
                    GT_EPILOGUE(acc[i] + b, n, oh, ow + i, c + b, 1 GT_ARGS);
    }
}

#include "template_end.h"
