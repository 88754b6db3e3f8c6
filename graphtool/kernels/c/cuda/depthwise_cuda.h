/* Depthwise 2-d convolution, channels last, in CUDA: the macros of depthwise.h. A thread has one
   channel of GT_BW pixels of a row, so that threads side by side read adjacent channels; an element
   of the image is read once for all these pixels. With GT_SUMS it has the whole row, which it sums.

   GT_IH GT_IW  rows and columns of the image, if the padding around it is not in memory; then
   GT_PT GT_PL  are the rows of padding above it, and the columns left of it */
#include "cuda_unit.h"
#include "template_begin.h"
#include "number_cuda.h"

#ifdef GT_XT /* taps lie within a pixel: no two pixels share an element */
#define GT_TAP (GT_XT)
#define GT_SHARED_TAPS 0
#else
#define GT_TAP ((GT_DW) * (GT_XW))
#define GT_SHARED_TAPS (((GT_BW) - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) < (GT_BW) * (GT_KW) - 1)
#endif
/* Columns of the image that the pixels share. */
#define GT_COLUMNS_READ (((GT_BW) - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) + 1)
#ifdef GT_PT
#define GT_HIGH (GT_IH)
#define GT_WIDE (GT_IW)
#else /* windows of pixels that there are reach no further */
#define GT_PT 0
#define GT_PL 0
#define GT_HIGH (((GT_OH) - 1) * (GT_SH) + ((GT_KH) - 1) * (GT_DH) + 1)
#define GT_WIDE (((GT_OW) - 1) * (GT_SW) + ((GT_KW) - 1) * (GT_DW) + 1)
#endif
#ifdef GT_SUMS
#define GT_STRIPS 1
#else
#define GT_STRIPS (((GT_OW) + (GT_BW) - 1) / (GT_BW))
#endif

/* Adds a row of the window to the sums: `x` is the row of the image, `w` the filter's row. */
GT_INLINE void GT_JOIN(GT_NAME, _row)(float *acc, const GT_NUMBER *x, const GT_NUMBER *w,
                                      int64_t left GT_PARAMS)
{
    float taps[GT_KW];
    GT_UNROLL
    for (int s = 0; s < (GT_KW); s++) taps[s] = GT_AS_FLOAT(w[s * (GT_C)]);
    if (GT_SHARED_TAPS) {
        GT_UNROLL
        for (int j = 0; j < GT_COLUMNS_READ; j++) {
            const int inside = left + j >= 0 && left + j < GT_WIDE;
            const float v = inside ? GT_AS_FLOAT(x[(left + j) * (GT_XW)]) : 0;
            GT_UNROLL
            for (int i = 0; i < (GT_BW); i++) {
                const int offset = j - i * (GT_SW);
                if (offset >= 0 && offset % (GT_DW) == 0 && offset / (GT_DW) < (GT_KW))
                    acc[i] += v * taps[offset / (GT_DW)];
            }
        }
        return;
    }
    GT_UNROLL
    for (int i = 0; i < (GT_BW); i++)
        GT_UNROLL
        for (int s = 0; s < (GT_KW); s++) {
            const int64_t pixel = left + i * (GT_SW), column = pixel + s * (GT_DW);
            const int inside = column >= 0 && column < GT_WIDE;
            acc[i] += inside ? GT_AS_FLOAT(x[pixel * (GT_XW) + s * GT_TAP]) * taps[s] : 0;
        }
}

/* Computes a channel of the pixels from `ow` on, and hands each of them on. */
GT_INLINE void GT_JOIN(GT_NAME, _pixels)(int64_t n, int64_t oh, int64_t ow, int64_t c GT_PARAMS)
{
    float acc[GT_BW] = {0};
    const int64_t top = oh * (GT_SH) - (GT_PT);
    for (int r = 0; r < (GT_KH); r++) {
        const int64_t line = top + r * (GT_DH);
        if (line >= 0 && line < GT_HIGH)
            GT_JOIN(GT_NAME, _row)(acc, GT_X + n * (GT_XN) + line * (GT_XH) + c,
                                   GT_W + (int64_t)r * (GT_KW) * (GT_C) + c,
                                   ow * (GT_SW) - (GT_PL) GT_ARGS);
    }
    GT_UNROLL
    for (int i = 0; i < (GT_BW); i++)
        if (ow + i < (GT_OW)) GT_EPILOGUE(acc + i, n, oh, ow + i, c, 1 GT_ARGS);
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    const int64_t count = (int64_t)(GT_BATCH) * (GT_OH) * GT_STRIPS * (GT_C);
    for (int64_t i = team * GT_TEAM + threadIdx.x; i < count; i += teams * GT_TEAM) {
        const int64_t c = i % (GT_C), strip = i / (GT_C) % GT_STRIPS;
        const int64_t oh = i / ((GT_C) * GT_STRIPS) % (GT_OH);
        const int64_t n = i / ((GT_C) * GT_STRIPS) / (GT_OH);
#ifdef GT_SUMS
        float sum = 0;
        for (int64_t ow = 0; ow < (GT_OW); ow += (GT_BW))
            GT_JOIN(GT_NAME, _pixels)(n, oh, ow, c GT_ARGS);
        for (int64_t ow = 0; ow < (GT_OW); ow++) sum += GT_Y(n, oh)[ow * (GT_YW) + c * (GT_YC)];
        GT_SUMS(n, oh)[c * (GT_SUMC)] = sum;
#else
        GT_JOIN(GT_NAME, _pixels)(n, oh, strip * (GT_BW), c GT_ARGS);
#endif
    }
}

#include "template_end.h"
