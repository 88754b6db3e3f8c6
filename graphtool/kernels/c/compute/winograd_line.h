/* Convolution of stride 1 by Winograd's F(m, 3) along one axis, channels last, a template: three
   taps of a line cost (m + 2)/m products an output. A line of more taps is cut into threes, whose
   products are summed before they are transformed back, as are those of the lines and channels.

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
   GT_EPILOGUE    static inline void f(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                  int64_t o, int64_t count GT_PARAMS): takes `count` channels of one pixel from o
                  on; acc is vector-aligned, count the literal GT_LANES but for the last channels

   Shares need no barrier among themselves. */
#include "tile.h"
#include "winograd_points.h"
#include "template_begin.h"

#define GT_N (GT_TILE + 2)
#define GT_POINTS GT_N
#define GT_THREES gt_ceil_div(GT_KL, 3)
#define GT_DEPTH ((GT_KA) * GT_THREES * (GT_C))
#define GT_STEPS GT_DEPTH
#define GT_GROUPS 1
#include "winograd_products.h"

/* With a dilation of d, m·d outputs of a line are d tiles, of outputs that are d apart. */
#define GT_TILES_L (gt_ceil_div(GT_ALONG, GT_TILE * (GT_DL)) * (GT_DL))
#define GT_TILES ((GT_BATCH) * (GT_ACROSS) * GT_TILES_L)

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
    for (; first < end; first += (GT_GROUP)) {
        const int64_t last = gt_min(end, first + (GT_GROUP));
        GT_JOIN(GT_NAME, _gather)(first, last, GT_V_OF(t) GT_ARGS);
        GT_JOIN(GT_NAME, _products)(0, GT_UNITS, last - first, t GT_ARGS);
        GT_JOIN(GT_NAME, _scatter)(first, last, GT_M_OF(t) GT_ARGS);
    }
}

#include "template_end.h"
