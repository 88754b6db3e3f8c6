/* Rows of floats rounded to 8 bits, with a scale for each block of columns: the greatest magnitude
   of a block becomes ±127. A block with a NaN or an infinity gets the scale NaN; one of magnitudes
   up to 1e-30 is divided by that. */
#ifndef GT_Q8_H
#define GT_Q8_H

#include "int8.h"

/* The nearest integers, ties to even. */
GT_INLINE gt_vi gt_nearest(gt_vf v)
{
#if GT_LANES == 1
    return (gt_vi)rintf(v);
#elif GT_LANES == 16 && defined __AVX512F__
    return (gt_vi)_mm512_cvtps_epi32((__m512)v);
#elif GT_LANES == 8 && defined __AVX__
    return (gt_vi)_mm256_cvtps_epi32((__m256)v);
#elif GT_LANES == 4 && defined __SSE2__
    return (gt_vi)_mm_cvtps_epi32((__m128)v);
#elif GT_LANES == 4 && defined __aarch64__
    return (gt_vi)vcvtnq_s32_f32((float32x4_t)v);
#else
    gt_vi n;
    for (int i = 0; i < GT_LANES; i++) n[i] = (int32_t)rintf(v[i]);
    return n;
#endif
}

GT_INLINE gt_vf gt_floats(gt_vi v)
{
#if GT_LANES == 1
    return (float)v;
#else
    return __builtin_convertvector(v, gt_vf);
#endif
}

GT_INLINE gt_vi gt_splat_int(int32_t x)
{
#if GT_LANES == 1
    return x;
#else
    return x - (gt_vi){0};
#endif
}

GT_INLINE gt_vi gt_greater(gt_vi a, gt_vi b)
{
#if GT_LANES == 1
    return a > b ? a : b;
#elif GT_LANES == 16 && defined __AVX512F__
    return (gt_vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
#else
    const gt_vi more = a > b;
    return (a & more) | (b & ~more);
#endif
}

GT_INLINE int32_t gt_greatest(gt_vi v)
{
#if GT_LANES == 16 && defined __AVX512F__
    return _mm512_reduce_max_epi32((__m512i)v);
#else
    int32_t lane[GT_LANES], most = 0;
    memcpy(lane, &v, sizeof lane);
    for (int i = 0; i < GT_LANES; i++) most = lane[i] > most ? lane[i] : most;
    return most;
#endif
}

GT_INLINE int32_t gt_lanes_sum(gt_vi v)
{
#if GT_LANES == 16 && defined __AVX512F__
    return _mm512_reduce_add_epi32((__m512i)v);
#else
    int32_t lane[GT_LANES], sum = 0;
    memcpy(lane, &v, sizeof lane);
    for (int i = 0; i < GT_LANES; i++) sum += lane[i];
    return sum;
#endif
}

/* Integers of -128 … 127 as bytes. */
GT_INLINE void gt_store_bytes(int8_t *to, gt_vi v)
{
#if GT_LANES == 16 && defined __AVX512F__
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)v));
#else
    int32_t lane[GT_LANES];
    memcpy(lane, &v, sizeof lane);
    for (int i = 0; i < GT_LANES; i++) to[i] = (int8_t)lane[i];
#endif
}

/* One block of `block` columns, of which `count` exist; the others are zeros. `sum` is that of the
   integers. */
GT_INLINE void gt_q8_block(const float *x, int64_t count, int64_t block, int8_t *to, float *scale,
                           int32_t *sum)
{
    const int32_t rest = 0x7fffffff;
    int32_t most = 0, total = 0;
    int64_t i = 0;
    gt_vi top = gt_splat_int(0), sums = gt_splat_int(0);
    for (; i + GT_LANES <= count; i += GT_LANES) {
        const gt_vf v = gt_load(x + i);
        gt_vi bits;
        memcpy(&bits, &v, sizeof bits);
        top = gt_greater(top, bits & rest);
    }
    most = gt_greatest(top);
    for (; i < count; i++) {
        const int32_t bits = (int32_t)(gt_bits_of_float(x[i]) & 0x7fffffff);
        most = bits > most ? bits : most;
    }
    const int finite = most < 0x7f800000;
    const float found = gt_float_of_bits((uint32_t)most);
    const float magnitude = found > 1e-30f ? found : 1e-30f;
    const float by = finite ? 127.0f / magnitude : 0.0f;
    *scale = finite ? magnitude / 127.0f : __builtin_nanf("");
    for (i = 0; i + GT_LANES <= count; i += GT_LANES) {
        const gt_vi n = finite ? gt_nearest(gt_load(x + i) * gt_splat(by)) : gt_splat_int(0);
        sums += n;
        gt_store_bytes(to + i, n);
    }
    total = gt_lanes_sum(sums);
    for (; i < count; i++) {
        to[i] = (int8_t)(finite ? (int32_t)rintf(x[i] * by) : 0);
        total += to[i];
    }
    for (; i < block; i++) to[i] = 0;
    *sum = total;
}

/* A row of k columns in `parts` blocks. */
GT_INLINE void gt_q8_row(const float *x, int64_t k, int64_t block, int64_t parts, int8_t *to,
                         float *scales, int32_t *sums)
{
    for (int64_t p = 0; p < parts; p++) {
        const int64_t count = gt_max(0, gt_min(block, k - p * block));
        gt_q8_block(x + gt_min(p * block, k), count, block, to + p * block, scales + p, sums + p);
    }
}

#endif
