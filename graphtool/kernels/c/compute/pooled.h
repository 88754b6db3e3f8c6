/* Pooling over the rows and columns of images, channels last, a template: the largest, the smallest
   or the sum of each window is handed to an epilogue. A window is joined column by column, and
   neighbours of a row share the columns they have in common. Define the macros, include this file,
   repeat; it undefines them at its end.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_KIND        0 sum, 1 largest, 2 smallest; a NaN in a window is its largest and its smallest
   GT_BW          up to so many pixels of a row at a time (a literal)
   GT_BATCH GT_OH GT_OW GT_C            images, output rows, output columns, channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  window (KW a constant), strides, dilations
   GT_X           const float *, the input, its padding included
   GT_XN GT_XH GT_XW  strides of the input in floats: image, row, pixel; channels are adjacent
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t c, int64_t count GT_PARAMS): takes `count` channels of one pixel from c
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. */
#include "tile.h"

#ifndef GT_POOLED_H
#define GT_POOLED_H

#if (defined __AVX512F__ && GT_LANES == 16) || (defined __AVX__ && GT_LANES == 8)                 \
    || (defined __SSE__ && GT_LANES == 4)
#include <immintrin.h>
#endif

/* The larger (smaller) one in each lane; NaN if either is. The instruction hands on its second
   operand if one is NaN, so of both orders one has it, and NaN remain NaN when bits are added. */
#if defined __AVX512F__ && GT_LANES == 16
#define GT_POOL_BOTH(f, a, b) ((gt_vf)((gt_vi)_mm512_##f##_ps(a, b) | (gt_vi)_mm512_##f##_ps(b, a)))
#elif defined __AVX__ && GT_LANES == 8
#define GT_POOL_BOTH(f, a, b) ((gt_vf)((gt_vi)_mm256_##f##_ps(a, b) | (gt_vi)_mm256_##f##_ps(b, a)))
#elif defined __SSE__ && GT_LANES == 4
#define GT_POOL_BOTH(f, a, b) ((gt_vf)((gt_vi)_mm_##f##_ps(a, b) | (gt_vi)_mm_##f##_ps(b, a)))
#endif

GT_INLINE gt_vf gt_pool_join(const int kind, gt_vf a, gt_vf b)
{
    if (kind == 0) return a + b;
#if defined GT_POOL_BOTH
    return kind == 1 ? GT_POOL_BOTH(max, a, b) : GT_POOL_BOTH(min, a, b);
#elif GT_LANES == 1
    return (kind == 1 ? a > b : a < b) || a != a ? a : b;
#else
    const gt_vi first = (kind == 1 ? a > b : a < b) | (a != a);
    return (gt_vf)((first & (gt_vi)a) | (~first & (gt_vi)b));
#endif
}

#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif

/* `width` pixels of a row, one vector of channels from c on. The first `done` lanes were finished
   by the vector before: the last vector overlaps it where C is not a multiple of GT_LANES. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(const int width, int64_t n, int64_t oh, int64_t ow,
                                        int64_t c, int64_t done GT_PARAMS)
{
    const int narrow = (GT_C) < GT_LANES;
    const float *x = GT_X + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW) + c;
    gt_vf acc[GT_BW];
    const int columns = (width - 1) * (GT_SW) + ((GT_KW)-1) * (GT_DW) + 1;
    GT_UNROLL for (int j = 0; j < columns; j++)
    {
        const float *p = x + (int64_t)j * (GT_XW);
        gt_vf v = narrow ? gt_load_first(p, GT_C) : gt_load(p);
        for (int r = 1; r < (GT_KH); r++) {
            p += (GT_DH) * (GT_XH);
            v = gt_pool_join(GT_KIND, v, narrow ? gt_load_first(p, GT_C) : gt_load(p));
        }
        GT_UNROLL for (int i = 0; i < width; i++)
        {
            const int offset = j - i * (GT_SW), s = offset / (GT_DW);
            if (offset >= 0 && offset % (GT_DW) == 0 && s < (GT_KW))
                acc[i] = s == 0 ? v : gt_pool_join(GT_KIND, acc[i], v);
        }
    }
    float tile[GT_BW * GT_LANES] GT_ALIGNED;
    gt_tile_store(acc, width, 1, tile);
    const int64_t count = narrow ? (GT_C) : GT_LANES - done;
    for (int i = 0; i < width; i++) {
        float *out = tile + i * GT_LANES;
        if (done) memmove(out, out + done, (size_t)count * sizeof(float));
        GT_EPILOGUE(out, n, oh, ow + i, c + done, count GT_ARGS);
    }
}

/* All channels of so many pixels. */
#define GT_INSTANCE(width)                                                                        \
    GT_NOINLINE void GT_JOIN(GT_NAME, _pixels##width)(int64_t n, int64_t oh, int64_t ow GT_PARAMS)\
    {                                                                                             \
        if (!GT_OCCURS(width, GT_OW, GT_BW)) return;                                              \
        int64_t c = 0;                                                                            \
        for (; c + GT_LANES <= (GT_C); c += GT_LANES)                                             \
            GT_JOIN(GT_NAME, _block)(width, n, oh, ow, c, 0 GT_ARGS);                             \
        if (c < (GT_C) && (GT_C) < GT_LANES)                                                      \
            GT_JOIN(GT_NAME, _block)(width, n, oh, ow, 0, 0 GT_ARGS);                             \
        else if (c < (GT_C))                                                                      \
            GT_JOIN(GT_NAME, _block)(width, n, oh, ow, (GT_C)-GT_LANES,                           \
                                     c + GT_LANES - (GT_C)GT_ARGS);                               \
    }
GT_UPTO(GT_BW, GT_INSTANCE)
#undef GT_INSTANCE

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* The threads take balanced blocks of pixels, row by row: memory is walked in order. */
    const int64_t blocks = gt_ceil_div(GT_OW, GT_BW), units = (GT_BATCH) * (GT_OH)*blocks;
    if (units == 0) return;
    const int64_t shorter = (GT_OW) / blocks, longer = (GT_OW) % blocks;
    for (int64_t u = gt_part(units, t, threads); u < gt_part(units, t + 1, threads); u++) {
        const int64_t row = u / blocks, block = u % blocks;
        const int64_t n = row / (GT_OH), oh = row % (GT_OH);
        const int64_t ow = block * shorter + gt_min(block, longer);
        switch (shorter + (block < longer)) {
#define GT_INSTANCE(width)                                                                        \
    case width: GT_JOIN(GT_NAME, _pixels##width)(n, oh, ow GT_ARGS); break;
            GT_UPTO(GT_BW, GT_INSTANCE)
#undef GT_INSTANCE
        }
    }
}

#pragma GCC diagnostic pop
#undef GT_NAME
#undef GT_KIND
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
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
