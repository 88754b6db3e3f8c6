/* The largest and the smallest of floats; a NaN among them is both. Kind 1 is the largest, kind 2
   the smallest. */
#ifndef GT_EXTREMES_H
#define GT_EXTREMES_H

#include "prelude.h"

#if defined __SSE__ && GT_LANES > 1
#include <immintrin.h>
#endif

#if defined __SSE__ && GT_LANES > 1
/* The instruction hands on its second operand if one is NaN, so of both orders one has it, and NaN
   remain NaN when bits are added. */
GT_INLINE __m128 gt_extreme_4(const int kind, __m128 a, __m128 b)
{
    return kind == 1 ? _mm_or_ps(_mm_max_ps(a, b), _mm_max_ps(b, a))
                     : _mm_or_ps(_mm_min_ps(a, b), _mm_min_ps(b, a));
}
#endif

/* Of two vectors, in each lane. */
GT_INLINE gt_vf gt_extreme(const int kind, gt_vf a, gt_vf b)
{
#if defined __AVX512F__ && GT_LANES == 16
    return kind == 1 ? (gt_vf)((gt_vi)_mm512_max_ps(a, b) | (gt_vi)_mm512_max_ps(b, a))
                     : (gt_vf)((gt_vi)_mm512_min_ps(a, b) | (gt_vi)_mm512_min_ps(b, a));
#elif defined __AVX__ && GT_LANES == 8
    return kind == 1 ? (gt_vf)_mm256_or_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a))
                     : (gt_vf)_mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
#elif defined __SSE__ && GT_LANES == 4
    return (gt_vf)gt_extreme_4(kind, a, b);
#elif GT_LANES == 1
    return (kind == 1 ? a > b : a < b) || a != a ? a : b;
#else
    const gt_vi first = (kind == 1 ? a > b : a < b) | (a != a);
    return (gt_vf)((first & (gt_vi)a) | (~first & (gt_vi)b));
#endif
}

GT_INLINE float gt_extreme_1(const int kind, float a, float b)
{
    return (kind == 1 ? a > b : a < b) || a != a ? a : b;
}

/* Of all lanes. */
GT_INLINE float gt_extreme_across(const int kind, gt_vf v)
{
    float lanes[GT_LANES] GT_ALIGNED;
    gt_store(lanes, v);
#if defined __SSE__ && GT_LANES > 1
    __m128 y = _mm_load_ps(lanes);
    GT_UNROLL for (int i = 4; i < GT_LANES; i += 4)
        y = gt_extreme_4(kind, y, _mm_load_ps(lanes + i));
    y = gt_extreme_4(kind, y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(gt_extreme_4(kind, y, _mm_shuffle_ps(y, y, 1)));
#else
    for (int i = 1; i < GT_LANES; i++) lanes[0] = gt_extreme_1(kind, lanes[0], lanes[i]);
    return lanes[0];
#endif
}

/* Of y and the n floats at x. A step waits for the one before, so there are four results at a time;
   the last vector may have elements of the one before once more. */
GT_INLINE float gt_extreme_of(const int kind, float y, const float *x, int64_t n)
{
    if (n < GT_LANES) {
        for (int64_t i = 0; i < n; i++) y = gt_extreme_1(kind, y, x[i]);
        return y;
    }
    gt_vf all = gt_load(x + n - GT_LANES);
    int64_t i = 0;
    if (n >= 4 * GT_LANES) {
        gt_vf a = gt_load(x), b = gt_load(x + GT_LANES);
        gt_vf c = gt_load(x + 2 * GT_LANES), d = gt_load(x + 3 * GT_LANES);
        for (i = 4 * GT_LANES; i + 4 * GT_LANES <= n; i += 4 * GT_LANES) {
            a = gt_extreme(kind, a, gt_load(x + i));
            b = gt_extreme(kind, b, gt_load(x + i + GT_LANES));
            c = gt_extreme(kind, c, gt_load(x + i + 2 * GT_LANES));
            d = gt_extreme(kind, d, gt_load(x + i + 3 * GT_LANES));
        }
        a = gt_extreme(kind, gt_extreme(kind, a, b), gt_extreme(kind, c, d));
        all = gt_extreme(kind, all, a);
    }
    for (; i + GT_LANES <= n; i += GT_LANES) all = gt_extreme(kind, all, gt_load(x + i));
    return gt_extreme_1(kind, y, gt_extreme_across(kind, all));
}

GT_INLINE float gt_extreme_max_f32(float y, const float *x, int64_t n)
{
    return gt_extreme_of(1, y, x, n);
}

GT_INLINE float gt_extreme_min_f32(float y, const float *x, int64_t n)
{
    return gt_extreme_of(2, y, x, n);
}

#endif
