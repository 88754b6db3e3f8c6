/* A part of attend.h: keys and values in the panels of its products, as floats. It needs operand.h,
   and for int8 the scales GT_KEY_SCALES and GT_V_SCALES with their steps. */
#include "square.h"

/* A vector of elements of row r from x on, times the row's scale. */
#ifdef GT_BYTES
#define GT_SCALED(p, scales, step, r) (GT_READ(p) * gt_splat((scales)[(r) * (step)]))
#define GT_SCALED_ONE(p, scales, step, r) (GT_READ_ONE(p) * (scales)[(r) * (step)])
#else
#define GT_SCALED(p, scales, step, r) GT_READ(p)
#define GT_SCALED_ONE(p, scales, step, r) GT_READ_ONE(p)
#endif

/* A square of keys from row r and column d on, transposed to rows GT_NR apart. */
GT_INLINE void GT_JOIN(GT_NAME, _square)(const GT_NUMBER *x, const float *scales, int64_t r,
                                         int64_t d, float *panel GT_PARAMS)
{
    (void)scales;
#if defined GT_HALF || defined GT_BYTES
    float square[GT_LANES * GT_LANES] GT_ALIGNED;
    GT_UNROLL for (int i = 0; i < GT_LANES; i++)
        gt_store(square + i * GT_LANES,
                 GT_SCALED(x + (r + i) * (GT_LDK) + d, scales, GT_KEY_STEP, r + i));
    gt_transpose_square(square, GT_LANES, panel, GT_NR);
#else
    gt_transpose_square(x + r * (GT_LDK) + d, GT_LDK, panel, GT_NR);
#endif
}

/* x[T][D] as panels [⌈T/NR⌉][D][NR] of its transpose, zero padded */
GT_INLINE void GT_JOIN(GT_NAME, _pack_keys)(const GT_NUMBER *x, const float *scales,
                                            float *out GT_PARAMS)
{
    const int64_t rows = GT_T, depth = GT_D;
    for (int64_t r = 0; r < rows; r += GT_LANES) {
        float *panel = out + r / GT_NR * GT_NR * depth + r % GT_NR;
        const int64_t some = gt_min(GT_LANES, rows - r);
        int64_t d = 0;
        for (; some == GT_LANES && d + GT_LANES <= depth; d += GT_LANES)
            GT_JOIN(GT_NAME, _square)(x, scales, r, d, panel + d * GT_NR GT_ARGS);
        for (; d < depth; d++) {
            for (int64_t i = 0; i < some; i++)
                panel[d * GT_NR + i] =
                    GT_SCALED_ONE(x + (r + i) * (GT_LDK) + d, scales, GT_KEY_STEP, r + i);
            for (int64_t i = some; i < GT_LANES; i++) panel[d * GT_NR + i] = 0.0f;
        }
    }
    for (int64_t r = gt_ceil_div(rows, GT_LANES) * GT_LANES; r % GT_NR != 0; r++)
        for (int64_t d = 0; d < depth; d++)
            out[r / GT_NR * GT_NR * depth + d * GT_NR + r % GT_NR] = 0.0f;
}

/* x[T][DV] as panels [⌈DV/NR⌉][T][NR], zero padded */
GT_INLINE void GT_JOIN(GT_NAME, _pack_values)(const GT_NUMBER *x, const float *scales,
                                              float *out GT_PARAMS)
{
    (void)scales;
    for (int64_t d = 0; d < (GT_DV); d += GT_NR) {
        const int64_t width = gt_min(GT_NR, (GT_DV) - d);
        for (int64_t r = 0; r < (GT_T); r++, out += GT_NR) {
            const GT_NUMBER *row = x + r * (GT_LDV) + d;
            if (width == GT_NR) {
                for (int j = 0; j < GT_NR; j += GT_LANES)
                    gt_store(out + j, GT_SCALED(row + j, scales, GT_V_STEP, r));
                continue;
            }
            for (int64_t j = 0; j < width; j++)
                out[j] = GT_SCALED_ONE(row + j, scales, GT_V_STEP, r);
            for (int64_t j = width; j < GT_NR; j++) out[j] = 0.0f;
        }
    }
}
