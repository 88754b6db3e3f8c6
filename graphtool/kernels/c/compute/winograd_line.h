/* Convolution of stride 1 by Winograd's F(m, 3) along one axis, channels last, a template: three
   taps of a line cost (m + 2)/m products an output. A line of more taps is cut into threes, whose
   products are summed before they are transformed back, as are those of the lines and channels.
   Define the macros, include this file, repeat; it undefines them at its end.

   GT_NAME        the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_TILE        m, 2 or 4; n = m + 2
   GT_MR, GT_NV   the register tile: up to MR tiles (a literal), NV vectors of channels;
                  NR = NV·GT_LANES
   GT_GROUP       tiles that are transformed, multiplied and transformed back together
   GT_UPRIGHT     0 where taps of a line run along the columns, 1 along the rows of the image
   GT_BATCH GT_ACROSS GT_ALONG  images, lines of outputs, outputs of a line
   GT_C GT_O      input and output channels
   GT_KA GT_KL    lines of the window, and taps of each
   GT_DA GT_DL    dilation across and along the lines
   GT_X           const float *, the input with its padding; nothing beyond it is read
   GT_XN GT_XA GT_XL   strides of the input in floats: image, line, element of a line; channels are
                  adjacent
   GT_W           const float *, the transformed threes of taps, G·g, as winograd.h has G,
                  [n][ceil(O/NR)][KA·ceil(KL/3)·C][NR], zero padded, 64-byte aligned
   GT_WORK(t)     float *, workspace of thread t, 64-byte aligned, of
                    n·(GROUP·(DP + 16) + 16) + n·(GROUP·(OP + 16) + 16) floats,
                  DP = KA·ceil(KL/3)·C rounded up to GT_LANES, OP = O rounded up to NR
   GT_PIECES      pieces of a thread's share (default 1); t and threads count pieces
   GT_PARAMS      more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from o
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Names in GT_PARAMS must hold a digit or an underscore (buf1, d_B): the template's own do not.
   Shares need no barrier among themselves. */
#include "tile.h"
#include "winograd_points.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifndef GT_PIECES
#define GT_PIECES 1
#endif
#define GT_NR (GT_NV * GT_LANES)
#define GT_N (GT_TILE + 2)
#define GT_THREES gt_ceil_div(GT_KL, 3)
#define GT_DEPTH ((GT_KA) * GT_THREES * (GT_C))
/* With a dilation of d, m·d outputs of a line are d tiles, of outputs that are d apart. */
#define GT_TILES_L (gt_ceil_div(GT_ALONG, GT_TILE * (GT_DL)) * (GT_DL))
#define GT_TILES ((GT_BATCH) * (GT_ACROSS) * GT_TILES_L)
/* strides of the transformed input V [n][GROUP][DEPTH] and of the products M [n][GROUP][O]; the odd
   16 floats keep the planes from falling on the same cache sets. The last channels of V are stored
   as a whole vector. */
#define GT_V_ROW (gt_ceil_div(GT_DEPTH, GT_LANES) * GT_LANES + 16)
#define GT_M_ROW (gt_ceil_div(GT_O, GT_NR) * GT_NR + 16)
#define GT_V_PLANE ((int64_t)(GT_GROUP) * GT_V_ROW + 16)
#define GT_M_PLANE ((int64_t)(GT_GROUP) * GT_M_ROW + 16)

/* One vector of channels of one three of taps; of its n elements of the line `exist` are there. */
GT_INLINE void GT_JOIN(GT_NAME, _transform)(const float *x, float *v, int64_t exist,
                                            int64_t channels GT_PARAMS)
{
    gt_vf d[GT_N], u[GT_N];
    GT_UNROLL for (int i = 0; i < GT_N; i++)
    {
        const float *p = x + i * (int64_t)(GT_DL) * (GT_XL);
        if (i >= exist)
            d[i] = gt_splat(0.0f);
        else
            d[i] = channels < GT_LANES ? gt_load_first(p, channels) : gt_load(p);
    }
    gt_winograd_input(GT_TILE, d, u, 1);
    GT_UNROLL for (int i = 0; i < GT_N; i++) gt_store(v + i * GT_V_PLANE, u[i]);
}

/* Where tile `tile` of a line begins. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _begin)(int64_t tile)
{
    return tile / (GT_DL) * (GT_TILE * (GT_DL)) + tile % (GT_DL);
}

/* Tiles first to last of the image; the first one goes to row 0 of the planes. */
GT_NOINLINE void GT_JOIN(GT_NAME, _gather)(int64_t first, int64_t last, float *work GT_PARAMS)
{
    const int64_t length = (GT_ALONG) + ((GT_KL)-1) * (GT_DL);
    for (int64_t tile = first; tile < last; tile++, work += GT_V_ROW) {
        const int64_t line = tile / GT_TILES_L, n = line / (GT_ACROSS), across = line % (GT_ACROSS);
        const int64_t begin = GT_JOIN(GT_NAME, _begin)(tile % GT_TILES_L);
        float *v = work;
        for (int64_t r = 0; r < (GT_KA); r++)
            for (int64_t j = 0; j < GT_THREES; j++, v += (GT_C)) {
                const int64_t at = begin + 3 * j * (GT_DL);
                const int64_t exist = gt_ceil_div(gt_max(0, length - at), GT_DL);
                const float *x = GT_X + n * (GT_XN) + (across + r * (GT_DA)) * (GT_XA)
                                 + at * (GT_XL);
                /* whole vectors in order: what the last one writes too much is overwritten */
                const int64_t full = exist >= GT_N ? (GT_C) / GT_LANES * GT_LANES : 0;
                for (int64_t c = 0; c < full; c += GT_LANES)
                    GT_JOIN(GT_NAME, _transform)(x + c, v + c, GT_N, GT_LANES GT_ARGS);
                for (int64_t c = full; c < (GT_C); c += GT_LANES)
                    GT_JOIN(GT_NAME, _transform)
                    (x + c, v + c, exist, gt_min(GT_LANES, (GT_C)-c) GT_ARGS);
            }
    }
}

#define GT_INSTANCE(rows)                                                                         \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(const float *v, const float *w, float *out,    \
                                                   const char *ahead, int64_t step GT_PARAMS)     \
    {                                                                                             \
        gt_vf acc[GT_MR * GT_NV];                                                                 \
        gt_tile_zero(acc, rows, GT_NV);                                                           \
        gt_tile_fma(acc, rows, GT_NV, v, GT_V_ROW, w, GT_DEPTH, ahead, step, 0);                  \
        GT_UNROLL for (int i = 0; i < rows; i++)                                                  \
            gt_tile_store(acc + i * GT_NV, 1, GT_NV, out + i * GT_M_ROW);                         \
    }
GT_UPTO(GT_MR, GT_INSTANCE)
#undef GT_INSTANCE

/* M = V·U for `count` tiles, all panels of the weights. */
GT_NOINLINE void GT_JOIN(GT_NAME, _products)(int64_t count, float *work GT_PARAMS)
{
    const int64_t panels = gt_ceil_div(GT_O, GT_NR), blocks = gt_ceil_div(count, GT_MR);
    const int64_t shorter = count / blocks, longer = count % blocks, units = GT_N * panels;
    const int64_t step = gt_ceil_div(GT_NR * 4, blocks);
    for (int64_t u = 0; u < units; u++) {
        const float *w = GT_W + u * GT_DEPTH * GT_NR;
        const char *ahead = (const char *)(u + 1 < units ? w + GT_DEPTH * GT_NR : GT_W);
        const float *v = work + u / panels * GT_V_PLANE;
        float *out = work + GT_N * GT_V_PLANE + u / panels * GT_M_PLANE + u % panels * GT_NR;
        for (int64_t block = 0; block < blocks; block++, ahead += GT_DEPTH * step) {
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

/* `count` channels of the outputs of one tile, of which `exist` are there. */
GT_INLINE void GT_JOIN(GT_NAME, _finish)(const float *p, int64_t n, int64_t across, int64_t begin,
                                         int64_t o, int64_t exist, int64_t count GT_PARAMS)
{
    gt_vf d[GT_N], y[GT_TILE];
    float out[GT_TILE * GT_LANES] GT_ALIGNED;
    GT_UNROLL for (int i = 0; i < GT_N; i++) d[i] = gt_load(p + i * GT_M_PLANE);
    gt_winograd_output(GT_TILE, d, y, 1);
    gt_tile_store(y, GT_TILE, 1, out);
    for (int i = 0; i < exist; i++) {
        const int64_t along = begin + i * (GT_DL);
        GT_EPILOGUE(out + i * GT_LANES, n, GT_UPRIGHT ? along : across,
                    GT_UPRIGHT ? across : along, o, count GT_ARGS);
    }
}

/* The output of tiles first to last to the epilogue. */
GT_NOINLINE void GT_JOIN(GT_NAME, _scatter)(int64_t first, int64_t last,
                                            const float *products GT_PARAMS)
{
    for (int64_t tile = first; tile < last; tile++, products += GT_M_ROW) {
        const int64_t line = tile / GT_TILES_L, n = line / (GT_ACROSS), across = line % (GT_ACROSS);
        const int64_t begin = GT_JOIN(GT_NAME, _begin)(tile % GT_TILES_L);
        const int64_t exist =
            gt_min(GT_TILE, gt_ceil_div(gt_max(0, (GT_ALONG)-begin), GT_DL));
        int64_t o = 0;
        for (; o + GT_LANES <= (GT_O); o += GT_LANES)
            GT_JOIN(GT_NAME, _finish)
            (products + o, n, across, begin, o, exist, GT_LANES GT_ARGS);
        if (o < (GT_O))
            GT_JOIN(GT_NAME, _finish)
            (products + o, n, across, begin, o, exist, (GT_O)-o GT_ARGS);
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* threads take whole lines, where there are enough, as the kernels before and after do */
    const int64_t lines = (GT_BATCH) * (GT_ACROSS);
    const int64_t each = gt_each(threads, GT_PIECES), share = t / each, shares = threads / each;
    const int64_t unit = gt_by_rows(lines, shares) ? GT_TILES_L : 1;
    const int64_t units = unit ? GT_TILES / unit : 0;
    const int64_t low = gt_part(units, share, shares) * unit;
    const int64_t high = gt_part(units, share + 1, shares) * unit;
    const int64_t groups = gt_ceil_div(high - low, GT_GROUP);
    const int64_t end = gt_min(high, low + gt_part(groups, t % each + 1, each) * (GT_GROUP));
    int64_t first = low + gt_part(groups, t % each, each) * (GT_GROUP);
    float *const work = GT_WORK(t);
    for (; first < end; first += (GT_GROUP)) {
        const int64_t last = gt_min(end, first + (GT_GROUP));
        GT_JOIN(GT_NAME, _gather)(first, last, work GT_ARGS);
        GT_JOIN(GT_NAME, _products)(last - first, work GT_ARGS);
        GT_JOIN(GT_NAME, _scatter)(first, last, work + GT_N * GT_V_PLANE GT_ARGS);
    }
}

#pragma GCC diagnostic pop
#undef GT_V_ROW
#undef GT_V_PLANE
#undef GT_M_ROW
#undef GT_M_PLANE
#undef GT_TILES
#undef GT_TILES_L
#undef GT_THREES
#undef GT_DEPTH
#undef GT_N
#undef GT_NR
#undef GT_NAME
#undef GT_TILE
#undef GT_MR
#undef GT_NV
#undef GT_GROUP
#undef GT_UPRIGHT
#undef GT_BATCH
#undef GT_ACROSS
#undef GT_ALONG
#undef GT_C
#undef GT_O
#undef GT_KA
#undef GT_KL
#undef GT_DA
#undef GT_DL
#undef GT_X
#undef GT_XN
#undef GT_XA
#undef GT_XL
#undef GT_W
#undef GT_WORK
#undef GT_PIECES
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
