/* Winograd convolution F(m×m, 3×3), stride 1, channels last, a template: a sum of 9 products a
   pixel becomes (m+2)²/m² products. Define the macros, include this file, repeat; it undefines them
   at its end. Points 0, ±1 (m = 2) and ±2 (m = 4), and infinity; Lavin and Gray, arXiv:1509.09308.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_TILE        m, 2 or 4; n = m + 2
   GT_MR, GT_NV   the register tile: up to MR tiles (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_GROUP       tiles that are transformed, multiplied and transformed back together
   GT_BATCH GT_OH GT_OW GT_C GT_O   images, output rows and columns, input and output channels
   GT_X           const float *, the input [OH + 2][OW + 2] of each image; nothing beyond it is read
   GT_XN GT_XH GT_XW  strides of the input in floats: image, row, pixel; channels are adjacent
   GT_W           const float *, transformed weights U = G·g·Gᵀ, [n·n][ceil(O/NR)][C][NR], zero
                  padded, 64-byte aligned, where the rows of G are
                    m = 2:  1 0 0 | ½ ½ ½ | ½ -½ ½ | 0 0 1
                    m = 4:  ¼ 0 0 | -⅙ -⅙ -⅙ | -⅙ ⅙ -⅙ | 1/24 1/12 ⅙ | 1/24 -1/12 ⅙ | 0 0 1
   GT_HALF        if defined, the input holds numbers of 16 bits in uint16_t, and this is their
                  type, as half.h calls it; weights and sums are float
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of
                    n·n·(GROUP·(CP + 16) + 16) + n·n·(GROUP·(OP + 16) + 16) floats,
                  CP = C rounded up to GT_LANES, OP = O rounded up to NR
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from o
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   With GT_SHARED defined, GROUP must be the number of all tiles, BATCH·ceil(OH/m)·ceil(OW/m), and
   all threads work in GT_WORK(0), with barriers inside: each weight is then read by one thread
   only, which pays where the weights outweigh the image. */
#include "tile.h"
#ifdef GT_SHARED
#include "runtime.h"
#endif

#ifndef GT_WINOGRAD_H
#define GT_WINOGRAD_H

/* u = Bᵀ·d: one column or row of the input transform, elements `stride` vectors apart */
GT_INLINE void gt_winograd_input(const int m, const gt_vf *d, gt_vf *u, const int stride)
{
    if (m == 2) {
        u[0] = d[0] - d[2];
        u[1 * stride] = d[1] + d[2];
        u[2 * stride] = d[2] - d[1];
        u[3 * stride] = d[1] - d[3];
    } else {
        /* the points p and -p share their even and odd parts */
        const gt_vf even1 = d[4] - gt_splat(4.0f) * d[2], odd1 = d[3] - gt_splat(4.0f) * d[1];
        const gt_vf even2 = d[4] - d[2], odd2 = gt_splat(2.0f) * (d[3] - d[1]);
        u[0] = gt_splat(4.0f) * d[0] - gt_splat(5.0f) * d[2] + d[4];
        u[1 * stride] = even1 + odd1;
        u[2 * stride] = even1 - odd1;
        u[3 * stride] = even2 + odd2;
        u[4 * stride] = even2 - odd2;
        u[5 * stride] = gt_splat(4.0f) * d[1] - gt_splat(5.0f) * d[3] + d[5];
    }
}

/* y = Aᵀ·d: one column or row of the output transform */
GT_INLINE void gt_winograd_output(const int m, const gt_vf *d, gt_vf *y, const int stride)
{
    const gt_vf even1 = d[1] + d[2], odd1 = d[1] - d[2];
    if (m == 2) {
        y[0] = d[0] + even1;
        y[stride] = odd1 - d[3];
    } else {
        const gt_vf even2 = d[3] + d[4], odd2 = d[3] - d[4];
        y[0] = d[0] + even1 + even2;
        y[1 * stride] = odd1 + gt_splat(2.0f) * odd2;
        y[2 * stride] = even1 + gt_splat(4.0f) * even2;
        y[3 * stride] = odd1 + gt_splat(8.0f) * odd2 + d[5];
    }
}

#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifdef GT_HALF
#include "half.h"
#define GT_NUMBER uint16_t
#define GT_READ(p) gt_load_half(GT_HALF, p)
#define GT_READ_FIRST(p, count) gt_load_half_first(GT_HALF, p, count)
#else
#define GT_NUMBER float
#define GT_READ(p) gt_load(p)
#define GT_READ_FIRST(p, count) gt_load_first(p, count)
#endif
#define GT_NR (GT_NV * GT_LANES)
#define GT_N (GT_TILE + 2)
#define GT_TILES_H gt_ceil_div(GT_OH, GT_TILE)
#define GT_TILES_W gt_ceil_div(GT_OW, GT_TILE)
#define GT_TILES ((GT_BATCH) * GT_TILES_H * GT_TILES_W)
/* strides of the transformed input V [n·n][GROUP][C] and of the products M [n·n][GROUP][O]; the odd
   16 floats keep the n·n planes from falling on the same cache sets */
#define GT_V_ROW (gt_ceil_div(GT_C, GT_LANES) * GT_LANES + 16)
#define GT_M_ROW (gt_ceil_div(GT_O, GT_NR) * GT_NR + 16)
#define GT_V_PLANE ((int64_t)(GT_GROUP) * GT_V_ROW + 16)
#define GT_M_PLANE ((int64_t)(GT_GROUP) * GT_M_ROW + 16)

/* V = Bᵀ·d·B of one vector of channels of one tile; of the tile's pixels rows × columns exist. */
GT_INLINE void GT_JOIN(GT_NAME, _transform)(const GT_NUMBER *x, float *v, int64_t rows,
                                            int64_t columns, int64_t channels GT_PARAMS)
{
    gt_vf half[GT_N * GT_N];
    GT_UNROLL for (int j = 0; j < GT_N; j++)
    {
        gt_vf d[GT_N];
        GT_UNROLL for (int i = 0; i < GT_N; i++)
        {
            const GT_NUMBER *p = x + i * (int64_t)(GT_XH) + j * (int64_t)(GT_XW);
            if (i >= rows || j >= columns)
                d[i] = gt_splat(0.0f);
            else
                d[i] = channels < GT_LANES ? GT_READ_FIRST(p, channels) : GT_READ(p);
        }
        gt_winograd_input(GT_TILE, d, half + j, GT_N);
    }
    GT_UNROLL for (int i = 0; i < GT_N; i++)
    {
        gt_vf u[GT_N];
        gt_winograd_input(GT_TILE, half + i * GT_N, u, 1);
        GT_UNROLL for (int j = 0; j < GT_N; j++) gt_store(v + (i * GT_N + j) * GT_V_PLANE, u[j]);
    }
}

/* Tiles first to last of the image; the first one goes to row `slot` of the planes. */
GT_NOINLINE void GT_JOIN(GT_NAME, _gather)(int64_t first, int64_t last, int64_t slot,
                                           int owner GT_PARAMS)
{
    float *const work = GT_WORK(owner);
    for (int64_t tile = first; tile < last; tile++, slot++) {
        const int64_t n = tile / (GT_TILES_H * GT_TILES_W);
        const int64_t oh = tile / GT_TILES_W % GT_TILES_H * GT_TILE;
        const int64_t ow = tile % GT_TILES_W * GT_TILE;
        const int64_t rows = gt_min(GT_N, (GT_OH) + 2 - oh);
        const int64_t columns = gt_min(GT_N, (GT_OW) + 2 - ow);
        const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_XH) + ow * (GT_XW);
        float *v = work + slot * GT_V_ROW;
        const int64_t full = rows == GT_N && columns == GT_N ? (GT_C) / GT_LANES * GT_LANES : 0;
        for (int64_t c = 0; c < full; c += GT_LANES)
            GT_JOIN(GT_NAME, _transform)(x + c, v + c, GT_N, GT_N, GT_LANES GT_ARGS);
        for (int64_t c = full; c < (GT_C); c += GT_LANES)
            GT_JOIN(GT_NAME, _transform)
            (x + c, v + c, rows, columns, gt_min(GT_LANES, (GT_C)-c) GT_ARGS);
    }
}

#define GT_INSTANCE(rows)                                                                         \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(const float *v, const float *w, float *out,    \
                                                   const char *ahead, int64_t step GT_PARAMS)     \
    {                                                                                             \
        gt_vf acc[GT_MR * GT_NV];                                                                 \
        gt_tile_zero(acc, rows, GT_NV);                                                           \
        gt_tile_fma(acc, rows, GT_NV, v, GT_V_ROW, w, GT_C, ahead, step, 0);                      \
        GT_UNROLL for (int i = 0; i < rows; i++)                                                  \
            gt_tile_store(acc + i * GT_NV, 1, GT_NV, out + i * GT_M_ROW);                         \
    }
GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE

/* M = V·U for `count` tiles: units first to last of the n·n·panels panels of the weights. */
GT_NOINLINE void GT_JOIN(GT_NAME, _products)(int64_t first, int64_t last, int64_t count,
                                             int owner GT_PARAMS)
{
    float *const work = GT_WORK(owner);
    const int64_t panels = gt_ceil_div(GT_O, GT_NR), blocks = gt_ceil_div(count, GT_MR);
    const int64_t shorter = count / blocks, longer = count % blocks;
    const int64_t step = gt_ceil_div(GT_NR * 4, blocks);
    for (int64_t u = first; u < last; u++) {
        const float *w = GT_W + u * (GT_C) * GT_NR;
        const char *ahead = (const char *)(u + 1 < last ? w + (GT_C) * GT_NR : w);
        const float *v = work + u / panels * GT_V_PLANE;
        float *out = work + GT_N * GT_N * GT_V_PLANE + u / panels * GT_M_PLANE + u % panels * GT_NR;
        for (int64_t block = 0; block < blocks; block++, ahead += (GT_C) * step) {
            const int64_t rows = shorter + (block < longer);
            switch (rows) {
#define GT_INSTANCE(rows)                                                                         \
    case rows: GT_JOIN(GT_NAME, _tile##rows)(v, w, out, ahead, step GT_ARGS); break;
                GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE
            }
            v += rows * GT_V_ROW;
            out += rows * GT_M_ROW;
        }
    }
}

/* Y = Aᵀ·M·A of `count` channels of one tile; of its pixels rows × columns exist. */
GT_INLINE void GT_JOIN(GT_NAME, _finish)(const float *p, int64_t n, int64_t oh, int64_t ow,
                                         int64_t o, int64_t rows, int64_t columns,
                                         int64_t count GT_PARAMS)
{
    gt_vf half[GT_TILE * GT_N], y[GT_TILE * GT_TILE];
    float out[GT_TILE * GT_TILE * GT_LANES] GT_ALIGNED;
    GT_UNROLL for (int j = 0; j < GT_N; j++)
    {
        gt_vf d[GT_N];
        GT_UNROLL for (int i = 0; i < GT_N; i++) d[i] = gt_load(p + (i * GT_N + j) * GT_M_PLANE);
        gt_winograd_output(GT_TILE, d, half + j, GT_N);
    }
    GT_UNROLL for (int i = 0; i < GT_TILE; i++)
        gt_winograd_output(GT_TILE, half + i * GT_N, y + i * GT_TILE, 1);
    gt_tile_store(y, GT_TILE * GT_TILE, 1, out);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            GT_EPILOGUE(out + (i * GT_TILE + j) * GT_LANES, n, oh + i, ow + j, o, count GT_ARGS);
}

/* The output of tiles first to last to the epilogue. */
GT_NOINLINE void GT_JOIN(GT_NAME, _scatter)(int64_t first, int64_t last, int64_t slot,
                                            int owner GT_PARAMS)
{
    const float *const products = GT_WORK(owner) + GT_N * GT_N * GT_V_PLANE;
    for (int64_t tile = first; tile < last; tile++, slot++) {
        const int64_t n = tile / (GT_TILES_H * GT_TILES_W);
        const int64_t oh = tile / GT_TILES_W % GT_TILES_H * GT_TILE;
        const int64_t ow = tile % GT_TILES_W * GT_TILE;
        const int64_t rows = gt_min(GT_TILE, (GT_OH)-oh), columns = gt_min(GT_TILE, (GT_OW)-ow);
        const float *p = products + slot * GT_M_ROW;
        int64_t o = 0;
        for (; o + GT_LANES <= (GT_O); o += GT_LANES)
            GT_JOIN(GT_NAME, _finish)(p + o, n, oh, ow, o, rows, columns, GT_LANES GT_ARGS);
        if (o < (GT_O))
            GT_JOIN(GT_NAME, _finish)(p + o, n, oh, ow, o, rows, columns, (GT_O)-o GT_ARGS);
    }
}

#define GT_UNITS (GT_N * GT_N * gt_ceil_div(GT_O, GT_NR))
#ifdef GT_SHARED
static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t first = gt_part(GT_TILES, t, threads), last = gt_part(GT_TILES, t + 1, threads);
    if (GT_TILES == 0) return;
    GT_JOIN(GT_NAME, _gather)(first, last, first, 0 GT_ARGS);
    gt_barrier(threads);
    GT_JOIN(GT_NAME, _products)
    (gt_part(GT_UNITS, t, threads), gt_part(GT_UNITS, t + 1, threads), GT_TILES, 0 GT_ARGS);
    gt_barrier(threads);
    GT_JOIN(GT_NAME, _scatter)(first, last, first, 0 GT_ARGS);
}
#else
static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t end = gt_part(GT_TILES, t + 1, threads);
    for (int64_t first = gt_part(GT_TILES, t, threads); first < end; first += (GT_GROUP)) {
        const int64_t last = gt_min(end, first + (GT_GROUP));
        GT_JOIN(GT_NAME, _gather)(first, last, 0, t GT_ARGS);
        GT_JOIN(GT_NAME, _products)(0, GT_UNITS, last - first, t GT_ARGS);
        GT_JOIN(GT_NAME, _scatter)(first, last, 0, t GT_ARGS);
    }
}
#endif

#pragma GCC diagnostic pop
#undef GT_UNITS
#undef GT_V_ROW
#undef GT_V_PLANE
#undef GT_M_ROW
#undef GT_M_PLANE
#undef GT_TILES
#undef GT_TILES_H
#undef GT_TILES_W
#undef GT_NUMBER
#undef GT_READ
#undef GT_READ_FIRST
#undef GT_HALF
#undef GT_N
#undef GT_NR
#undef GT_NAME
#undef GT_TILE
#undef GT_MR
#undef GT_NV
#undef GT_GROUP
#undef GT_SHARED
#undef GT_BATCH
#undef GT_OH
#undef GT_OW
#undef GT_C
#undef GT_O
#undef GT_X
#undef GT_XN
#undef GT_XH
#undef GT_XW
#undef GT_W
#undef GT_WORK
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
