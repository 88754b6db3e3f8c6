/* Winograd convolution F(m×m, 3×3), stride 1, channels last, a template: a sum of 9 products a
   pixel becomes (m+2)²/m² products. The transforms are those of winograd_points.h.

   GT_TILE        m, 2 or 4; n = m + 2
   GT_MR, GT_NV   the register tile: up to MR tiles (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_GROUP       tiles that are transformed, multiplied and transformed back together
   GT_BATCH GT_OH GT_OW GT_C GT_O   images, output rows and columns, input and output channels
   GT_GROUPS      of channels (default 1), not of integers: C is a multiple, and O of GROUPS·NR
   GT_X           const float *, the input [OH + 2][OW + 2] of each image; nothing beyond it is read
   GT_XN GT_XH GT_XW  strides of the input in floats: image, row, pixel; channels are adjacent
   GT_W           const float *, transformed weights U = G·g·Gᵀ, [n·n][ceil(O/NR)][C/GROUPS][NR],
                  zero padded, 64-byte aligned, where the rows of G are
                    m = 2:  1 0 0 | ½ ½ ½ | ½ -½ ½ | 0 0 1
                    m = 4:  ¼ 0 0 | -⅙ -⅙ -⅙ | -⅙ ⅙ -⅙ | 1/24 1/12 ⅙ | 1/24 -1/12 ⅙ | 0 0 1
   GT_HALF        if defined, the input holds numbers of 16 bits in uint16_t, and this is their
                  type, as half.h calls it; weights and sums are float
   GT_INTEGERS    if defined, all is of integers: 1 for an input of uint8_t, 2 for int16_t within
                  ±255. Weights are int16_t in pairs, [n·n][ceil(O/NR)][ceil(C/2)][NR][2], of a G
                  without its fractions (row by row ¼, -⅙, -⅙, 1/24, 1/24, or ½, ½), sums int32_t
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of
                    n·n·(GROUP·(CP + 16) + 16) + n·n·(GROUP·(OP + 16) + 16) words of 4 bytes,
                  CP = C rounded up to GT_LANES, of integers C/2 likewise, OP = O rounded up to NR
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from o
                  on; acc is vector-aligned, of int32_t where all is integers, count the literal
                  GT_LANES but for the last channels

   With GT_SHARED defined, GROUP must be the number of all tiles, BATCH·ceil(OH/m)·ceil(OW/m), and
   all threads work in GT_COMMON, in three phases: each weight is then read by one thread only,
   which is faster if the weights are larger than the image. */
#include "tile.h"
#include "winograd_points.h"
#include "template_begin.h"

#ifndef GT_GROUPS
#define GT_GROUPS 1
#endif
#define GT_N (GT_TILE + 2)
#define GT_POINTS (GT_N * GT_N)
#define GT_DEPTH (GT_C)
#ifdef GT_INTEGERS
#define GT_STEPS gt_ceil_div(GT_C, 2)
#else
#define GT_STEPS ((GT_C) / (GT_GROUPS))
#endif
#include "winograd_products.h"

/* GT_NUMBER is what the input holds, GT_VECTOR a vector of it, GT_TOTAL one of outputs */
#ifdef GT_INTEGERS
#define GT_VECTOR gt_vs
#define GT_INPUT gt_winograd_input_int
#define GT_TOTAL gt_vw
#define GT_OUTPUT gt_winograd_output_int
#define GT_FINISHED                                                                               \
    GT_UNROLL for (int i = 0; i < GT_TILE; i++)                                                   \
        GT_UNROLL for (int j = 0; j < GT_TILE; j++)                                               \
            ((gt_vi *)out)[i * GT_TILE + j] = gt_winograd_exact(GT_TILE, i, j, y[i * GT_TILE + j]);
#if GT_INTEGERS == 1
#define GT_NUMBER uint8_t
#define GT_READ(p) gt_load_bytes(p)
#define GT_READ_FIRST(p, count) gt_load_bytes_first(p, count)
#else
#define GT_NUMBER int16_t
#define GT_READ(p) gt_load_shorts(p)
#define GT_READ_FIRST(p, count) gt_load_shorts_first(p, count)
#endif
#else
#define GT_VECTOR gt_vf
#define GT_INPUT gt_winograd_input
#define GT_TOTAL gt_vf
#define GT_OUTPUT gt_winograd_output
#define GT_FINISHED gt_tile_store(y, GT_TILE * GT_TILE, 1, out);
#include "operand.h"
#endif
#define GT_TILES_H gt_ceil_div(GT_OH, GT_TILE)
#define GT_TILES_W gt_ceil_div(GT_OW, GT_TILE)
#define GT_TILES ((GT_BATCH) * GT_TILES_H * GT_TILES_W)

/* V = Bᵀ·d·B of one vector of channels of one tile; of the tile's pixels rows × columns exist. */
GT_INLINE void GT_JOIN(GT_NAME, _transform)(const GT_NUMBER *x, GT_PLACED *v, int64_t rows,
                                            int64_t columns, int64_t channels GT_PARAMS)
{
    GT_VECTOR half[GT_N * GT_N];
    GT_UNROLL for (int j = 0; j < GT_N; j++)
    {
        GT_VECTOR d[GT_N];
        GT_UNROLL for (int i = 0; i < GT_N; i++)
        {
            const GT_NUMBER *p = x + i * (int64_t)(GT_XH) + j * (int64_t)(GT_XW);
            if (i >= rows || j >= columns)
                d[i] = (GT_VECTOR){0};
            else
                d[i] = channels < GT_WIDE ? GT_READ_FIRST(p, channels) : GT_READ(p);
        }
        GT_INPUT(GT_TILE, d, half + j, GT_N);
    }
    GT_UNROLL for (int i = 0; i < GT_N; i++)
    {
        GT_VECTOR u[GT_N];
        GT_INPUT(GT_TILE, half + i * GT_N, u, 1);
        GT_UNROLL for (int j = 0; j < GT_N; j++)
            memcpy(v + (i * GT_N + j) * GT_V_PLANE, &u[j], sizeof u[j]);
    }
}

/* Tiles first to last of the image; the first one goes to row `slot` of the planes. */
GT_NOINLINE void GT_JOIN(GT_NAME, _gather)(int64_t first, int64_t last, int64_t slot,
                                           int owner GT_PARAMS)
{
    GT_PLACED *const planes = GT_V_OF(owner);
    for (int64_t tile = first; tile < last; tile++, slot++) {
        const int64_t n = tile / (GT_TILES_H * GT_TILES_W);
        const int64_t oh = tile / GT_TILES_W % GT_TILES_H * GT_TILE;
        const int64_t ow = tile % GT_TILES_W * GT_TILE;
        const int64_t rows = gt_min(GT_N, (GT_OH) + 2 - oh);
        const int64_t columns = gt_min(GT_N, (GT_OW) + 2 - ow);
        const GT_NUMBER *x = GT_X + n * (GT_XN) + oh * (GT_XH) + ow * (GT_XW);
        GT_PLACED *v = planes + slot * GT_V_ROW;
        const int64_t full = rows == GT_N && columns == GT_N ? (GT_C) / GT_WIDE * GT_WIDE : 0;
        for (int64_t c = 0; c < full; c += GT_WIDE)
            GT_JOIN(GT_NAME, _transform)(x + c, v + c, GT_N, GT_N, GT_WIDE GT_ARGS);
        for (int64_t c = full; c < (GT_C); c += GT_WIDE)
            GT_JOIN(GT_NAME, _transform)
            (x + c, v + c, rows, columns, gt_min(GT_WIDE, (GT_C)-c) GT_ARGS);
    }
}

/* Y = Aᵀ·M·A of `count` channels of one tile; of its pixels rows × columns exist. */
GT_INLINE void GT_JOIN(GT_NAME, _finish)(const GT_SUM *p, int64_t n, int64_t oh, int64_t ow,
                                         int64_t o, int64_t rows, int64_t columns,
                                         int64_t count GT_PARAMS)
{
    GT_TOTAL half[GT_TILE * GT_N], y[GT_TILE * GT_TILE];
    GT_SUM out[GT_TILE * GT_TILE * GT_LANES] GT_ALIGNED;
    GT_UNROLL for (int j = 0; j < GT_N; j++)
    {
        GT_TOTAL d[GT_N];
        GT_UNROLL for (int i = 0; i < GT_N; i++)
            memcpy(&d[i], p + (i * GT_N + j) * GT_M_PLANE, sizeof d[i]);
        GT_OUTPUT(GT_TILE, d, half + j, GT_N);
    }
    GT_UNROLL for (int i = 0; i < GT_TILE; i++)
        GT_OUTPUT(GT_TILE, half + i * GT_N, y + i * GT_TILE, 1);
    GT_FINISHED
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            GT_EPILOGUE(out + (i * GT_TILE + j) * GT_LANES, n, oh + i, ow + j, o, count GT_ARGS);
}

/* The output of tiles first to last to the epilogue. */
GT_NOINLINE void GT_JOIN(GT_NAME, _scatter)(int64_t first, int64_t last, int64_t slot,
                                            int owner GT_PARAMS)
{
    const GT_SUM *const products = GT_M_OF(owner);
    for (int64_t tile = first; tile < last; tile++, slot++) {
        const int64_t n = tile / (GT_TILES_H * GT_TILES_W);
        const int64_t oh = tile / GT_TILES_W % GT_TILES_H * GT_TILE;
        const int64_t ow = tile % GT_TILES_W * GT_TILE;
        const int64_t rows = gt_min(GT_TILE, (GT_OH)-oh), columns = gt_min(GT_TILE, (GT_OW)-ow);
        const GT_SUM *p = products + slot * GT_M_ROW;
        int64_t o = 0;
        for (; o + GT_LANES <= (GT_O); o += GT_LANES)
            GT_JOIN(GT_NAME, _finish)(p + o, n, oh, ow, o, rows, columns, GT_LANES GT_ARGS);
        if (o < (GT_O))
            GT_JOIN(GT_NAME, _finish)(p + o, n, oh, ow, o, rows, columns, (GT_O)-o GT_ARGS);
    }
}

#ifdef GT_SHARED
static void GT_NAME(int t, int threads GT_PARAMS)
{
    if (GT_TILES == 0) return;
    GT_PHASE(t)
    {
        const int64_t first = gt_part(GT_TILES, t, threads);
        GT_JOIN(GT_NAME, _gather)(first, gt_part(GT_TILES, t + 1, threads), first, 0 GT_ARGS);
    }
    GT_WAIT;
    GT_PHASE(t)
    {
        const int64_t first = gt_part(GT_UNITS, t, threads);
        GT_JOIN(GT_NAME, _products)
        (first, gt_part(GT_UNITS, t + 1, threads), GT_TILES, 0 GT_ARGS);
    }
    GT_WAIT;
    GT_PHASE(t)
    {
        const int64_t first = gt_part(GT_TILES, t, threads);
        GT_JOIN(GT_NAME, _scatter)(first, gt_part(GT_TILES, t + 1, threads), first, 0 GT_ARGS);
    }
}
#else
static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* the tiles of a share, then the groups of a piece of it */
    const int64_t each = gt_each(threads, GT_PIECES), share = t / each, shares = threads / each;
    const int64_t low = gt_part(GT_TILES, share, shares);
    const int64_t high = gt_part(GT_TILES, share + 1, shares);
    const int64_t groups = gt_ceil_div(high - low, GT_GROUP);
    const int64_t end = gt_min(high, low + gt_part(groups, t % each + 1, each) * (GT_GROUP));
    int64_t first = low + gt_part(groups, t % each, each) * (GT_GROUP);
    for (; first < end; first += (GT_GROUP)) {
        const int64_t last = gt_min(end, first + (GT_GROUP));
        GT_JOIN(GT_NAME, _gather)(first, last, 0, t GT_ARGS);
        GT_JOIN(GT_NAME, _products)(0, GT_UNITS, last - first, t GT_ARGS);
        GT_JOIN(GT_NAME, _scatter)(first, last, 0, t GT_ARGS);
    }
}
#endif

#include "template_end.h"
