/* A row of exponentials of differences to its greatest element, as a softmax needs them, and their
   sum. No difference is above 0, and none is NaN if the greatest element is finite. */
#ifndef GT_EXPONENTIALS_H
#define GT_EXPONENTIALS_H

#include "nest.h"

#if GT_LANES > 1
/* As gt_exp_f32, whatever x is. */
GT_NOINLINE float gt_exponentials_of_any(float *row, const float *x, float top, int64_t n)
{
    float sum = 0.0f;
    GT_SIMD_REDUCE(+, sum)
    for (int64_t i = 0; i < n; i++) {
        const float e = gt_exp_f32(x[i] - top);
        row[i] = e;
        sum += e;
    }
    return sum;
}

GT_INLINE gt_vf gt_exp_below_0(gt_vf x)
{
    const gt_vf z = x * 1.44269504f + GT_ROUNDER, n = z - GT_ROUNDER;
    const gt_vf r = x - n * GT_LN2_HIGH - n * GT_LN2_LOW;
    const gt_vi bits = (gt_vi)GT_EXP_NEAR_0(r) + ((gt_vi)z << 23);
    return (gt_vf)(bits & (x >= GT_EXP_LEAST));
}

/* `row` may be x. The last vector may have elements of the one before once more, which count once:
   it is read first, and those of its lanes are added that others do not have. */
GT_INLINE float gt_exponentials_f32(float *row, const float *x, float top, int64_t n)
{
    static const int32_t added[2 * GT_LANES] = {[GT_LANES ... 2 * GT_LANES - 1] = -1};
    if (n < GT_LANES || !(fabsf(top) < INFINITY)) return gt_exponentials_of_any(row, x, top, n);
    const gt_vf last = gt_exp_below_0(gt_load(x + n - GT_LANES) - top);
    gt_vf sum = gt_splat(0.0f);
    int64_t i = 0;
    for (; i + GT_LANES <= n; i += GT_LANES) {
        const gt_vf e = gt_exp_below_0(gt_load(x + i) - top);
        gt_store(row + i, e);
        sum += e;
    }
    if (i < n) {
        gt_vf lanes;
        memcpy(&lanes, added + (n - i), sizeof lanes);
        gt_store(row + n - GT_LANES, last);
        sum += (gt_vf)((gt_vi)last & (gt_vi)lanes);
    }
    return gt_across_add(sum);
}
#endif

#endif
