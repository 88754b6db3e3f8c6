/* What templates of attention do, whatever their macros: the softmax of a row, and the heads of a
   thread. */
#ifndef GT_SCORES_H
#define GT_SCORES_H

#include "nest.h"

/* Where threads do not divide the heads evenly, a piece would pack keys and values that another one
   packs too. Then threads take whole shares, not pieces of them: t and threads count these, and the
   result is 0 for a thread that has none. */
GT_INLINE int gt_whole_heads(int64_t heads, int64_t pieces, int *t, int *threads)
{
    const int64_t each = gt_each(*threads, pieces);
    if (heads % *threads == 0) return 1;
    if (*t % each) return 0;
    *t = (int)(*t / each), *threads = (int)(*threads / each);
    return 1;
}

/* The larger one; y if either is NaN: one instruction on x86, unlike gt_max_f32. */
GT_INLINE float gt_above(float x, float y) { return x > y ? x : y; }

/* 2ˣ of an argument that is not positive, or NaN: 2 ULP, and 0 below -127. The polynomial is a
   minimax fit whose first coefficient is 1. */
GT_INLINE float gt_exp2_negative(float x)
{
    x = gt_above(-127.0f, x);
    const float z = x + GT_ROUNDER, r = x - (z - GT_ROUNDER);
    float p = 1.326472731e-3f;
    p = p * r + 9.671512991e-3f;
    p = p * r + 5.550733581e-2f;
    p = p * r + 2.402224243e-1f;
    p = p * r + 6.931470037e-1f;
    p = p * r + 1.0f;
    return gt_float_of_bits(gt_bits_of_float(p) + (gt_bits_of_float(z) << 23));
}

/* The largest of x and `top`; NaN are ignored. */
GT_INLINE float gt_highest(const float *x, int64_t n, float top)
{
    GT_SIMD_REDUCE(max, top)
    for (int64_t i = 0; i < n; i++) top = gt_above(x[i], top);
    return top;
}

/* Turns scores, times a positive scale, into weights that must still be divided by their sum, which
   is returned; 0 for a row that sees nothing. `top` is the largest score. Its constants would take
   registers from the tiles beside it, as loops over rows that are unrolled do. */
GT_NOINLINE float gt_softmax_row(float *restrict x, int64_t n, float scale, float top)
{
    float sum = 0.0f;
    if (top == -INFINITY) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = x[i] == x[i] ? 0.0f : x[i];
            sum += x[i];
        }
        return sum;
    }
    const float factor = scale * 1.44269504f; /* the difference first: it is exact near the top */
    GT_SIMD_REDUCE(+, sum)
    for (int64_t i = 0; i < n; i++) {
        const float e = gt_exp2_negative((x[i] - top) * factor);
        x[i] = e;
        sum += e;
    }
    return sum;
}

#endif
