/* What the templates by Winograd's algorithm share: where transformed tiles V and products M are in
   the workspace, and M = V·U. They define, before they include this:

   GT_POINTS  points of the transform, each with its own matrices V, U and M
   GT_DEPTH   numbers of a transformed tile at a point
   GT_STEPS   steps along its depth that a product takes, of one group of GT_GROUPS

   V is [POINTS][GROUP][DEPTH], M [POINTS][GROUP][O]; without GT_INTEGERS all are floats. */
#ifdef GT_INTEGERS
#include "int8.h"
#define GT_PLACED int16_t
#define GT_SUM int32_t
#define GT_WIDE GT_SHORTS /* numbers of a vector of V */
#else
#define GT_PLACED float
#define GT_SUM float
#define GT_WIDE GT_LANES
#endif
/* Strides: the odd 64 bytes keep the planes from falling on the same cache sets. The last channels
   of V are stored as a whole vector. */
#define GT_ODD (64 / (int64_t)sizeof(GT_PLACED))
#define GT_V_ROW (gt_ceil_div(GT_DEPTH, GT_WIDE) * GT_WIDE + GT_ODD)
#define GT_M_ROW (gt_ceil_div(GT_O, GT_NR) * GT_NR + 16)
#define GT_V_PLANE ((int64_t)(GT_GROUP) * GT_V_ROW + GT_ODD)
#define GT_M_PLANE ((int64_t)(GT_GROUP) * GT_M_ROW + 16)
#ifdef GT_SHARED
#define GT_V_OF(owner) ((void)(owner), (GT_PLACED *)GT_COMMON)
#else
#define GT_V_OF(owner) ((GT_PLACED *)GT_WORK(owner))
#endif
#define GT_M_OF(owner) ((GT_SUM *)(GT_V_OF(owner) + GT_POINTS * GT_V_PLANE))
#define GT_PANEL (GT_STEPS * GT_NR * (int64_t)(4 / sizeof(GT_PLACED))) /* of the weights */
#define GT_UNITS (GT_POINTS * gt_ceil_div(GT_O, GT_NR))                /* panels of all points */

/* `rows` rows of V by one panel of weights. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, const GT_PLACED *v, const GT_PLACED *w,
                                       GT_SUM *out, const char *ahead, int64_t step GT_PARAMS)
{
#ifdef GT_INTEGERS
    gt_vi acc[GT_MR * GT_NV];
    gt_ints_zero(acc, rows * GT_NV);
    gt_ints_tile(acc, rows, GT_NV, (const char *)v, GT_V_ROW * 2, 0, 0, (const char *)w,
                 GT_STEPS * 4, 1, ahead, step, 0);
    GT_UNROLL for (int i = 0; i < rows; i++)
        gt_ints_store(acc + i * GT_NV, GT_NV, out + i * GT_M_ROW);
#else
    gt_vf acc[GT_MR * GT_NV];
    gt_tile_zero(acc, rows, GT_NV);
    gt_tile_fma(acc, rows, GT_NV, v, GT_V_ROW, w, GT_STEPS, ahead, step, 0);
    GT_UNROLL for (int i = 0; i < rows; i++)
        gt_tile_store(acc + i * GT_NV, 1, GT_NV, out + i * GT_M_ROW);
#endif
}

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(const GT_PLACED *v, const GT_PLACED *w,        \
                                                   GT_SUM *out, const char *ahead,                \
                                                   int64_t step GT_PARAMS)                        \
    {                                                                                             \
        GT_JOIN(GT_NAME, _tile)(rows, v, w, out, ahead, step GT_ARGS);                            \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* M = V·U for `count` tiles: units first to last of the panels of the weights. */
GT_NOINLINE void GT_JOIN(GT_NAME, _products)(int64_t first, int64_t last, int64_t count,
                                             int owner GT_PARAMS)
{
    const int64_t panels = gt_ceil_div(GT_O, GT_NR), blocks = gt_ceil_div(count, GT_MR);
    const int64_t shorter = count / blocks, longer = count % blocks;
    const int64_t step = gt_ceil_div(GT_NR * 4, blocks);
    for (int64_t u = first; u < last; u++) {
        const GT_PLACED *w = GT_W + u * GT_PANEL;
        const char *ahead = (const char *)(GT_W + (u + 1 < last ? u + 1 : first) * GT_PANEL);
        const GT_PLACED *v = GT_V_OF(owner) + u / panels * GT_V_PLANE
                             + ((GT_GROUPS) > 1 ? u % panels * (GT_GROUPS) / panels * GT_STEPS : 0);
        GT_SUM *out = GT_M_OF(owner) + u / panels * GT_M_PLANE + u % panels * GT_NR;
        for (int64_t block = 0; block < blocks; block++, ahead += GT_STEPS * step) {
            const int64_t rows = shorter + (block < longer);
            GT_CALL(_tile, rows, GT_MR, v, w, out, ahead, step GT_ARGS);
            v += rows * GT_V_ROW;
            out += rows * GT_M_ROW;
        }
    }
}
