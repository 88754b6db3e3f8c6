/* The transforms of Winograd's tiles F(m×m, 3×3), one column or row at a time: points 0, ±1 (m = 2)
   and ±2 (m = 4), and infinity; Lavin and Gray, arXiv:1509.09308. Of integers they are exact
   modulo 2³². */
#ifndef GT_WINOGRAD_POINTS_H
#define GT_WINOGRAD_POINTS_H

#include "prelude.h"

#if (defined __AVX512BW__ && GT_LANES == 16) || (defined __AVX2__ && GT_LANES == 8)
#include <immintrin.h>
#endif

/* Vectors as wide as one of floats: of integers of 16 bits, and of sums that wrap around. */
#if GT_LANES == 1
#define GT_SHORTS 1
typedef uint16_t gt_vs;
typedef uint16_t gt_vsu;
typedef uint32_t gt_vw;
#else
#define GT_SHORTS (2 * GT_LANES)
typedef uint16_t gt_vs __attribute__((vector_size(GT_LANES * 4), may_alias));
typedef uint16_t gt_vsu __attribute__((vector_size(GT_LANES * 4), may_alias, aligned(2)));
typedef uint32_t gt_vw __attribute__((vector_size(GT_LANES * 4), may_alias));
#endif

GT_INLINE gt_vs gt_load_shorts(const int16_t *p) { return *(const gt_vsu *)p; }

/* GT_SHORTS bytes as numbers of 16 bits. */
GT_INLINE gt_vs gt_load_bytes(const uint8_t *p)
{
#if defined __AVX512BW__ && GT_LANES == 16
    return (gt_vs)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p));
#elif defined __AVX2__ && GT_LANES == 8
    return (gt_vs)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
#else
    uint16_t lanes[GT_SHORTS];
    gt_vs v;
    for (int i = 0; i < GT_SHORTS; i++) lanes[i] = p[i];
    memcpy(&v, lanes, sizeof v);
    return v;
#endif
}

/* The first `count` < GT_SHORTS numbers and zeros after them; nothing beyond is read. */
GT_INLINE gt_vs gt_load_shorts_first(const int16_t *p, int64_t count)
{
    int16_t lanes[GT_SHORTS] = {0};
    memcpy(lanes, p, (size_t)count * sizeof(int16_t));
    return gt_load_shorts(lanes);
}

GT_INLINE gt_vs gt_load_bytes_first(const uint8_t *p, int64_t count)
{
    uint8_t lanes[GT_SHORTS] = {0};
    memcpy(lanes, p, (size_t)count);
    return gt_load_bytes(lanes);
}

/* u = Bᵀ·d, elements of u `stride` vectors apart; E is the type of a lane */
#define GT_WINOGRAD_INPUT(name, V, E)                                                             \
    GT_INLINE void name(const int m, const V *d, V *u, const int stride)                          \
    {                                                                                             \
        if (m == 2) {                                                                             \
            u[0] = d[0] - d[2];                                                                   \
            u[1 * stride] = d[1] + d[2];                                                          \
            u[2 * stride] = d[2] - d[1];                                                          \
            u[3 * stride] = d[1] - d[3];                                                          \
            return;                                                                               \
        }                                                                                         \
        /* the points p and -p share their even and odd parts */                                  \
        const V even1 = d[4] - (E)4 * d[2], odd1 = d[3] - (E)4 * d[1];                            \
        const V even2 = d[4] - d[2], odd2 = (E)2 * (d[3] - d[1]);                                 \
        u[0] = (E)4 * d[0] - (E)5 * d[2] + d[4];                                                  \
        u[1 * stride] = even1 + odd1;                                                             \
        u[2 * stride] = even1 - odd1;                                                             \
        u[3 * stride] = even2 + odd2;                                                             \
        u[4 * stride] = even2 - odd2;                                                             \
        u[5 * stride] = (E)4 * d[1] - (E)5 * d[3] + d[5];                                         \
    }
GT_WINOGRAD_INPUT(gt_winograd_input, gt_vf, float)
GT_WINOGRAD_INPUT(gt_winograd_input_int, gt_vs, uint16_t)
#undef GT_WINOGRAD_INPUT

/* y = Aᵀ·d */
GT_INLINE void gt_winograd_output(const int m, const gt_vf *d, gt_vf *y, const int stride)
{
    const gt_vf even1 = d[1] + d[2], odd1 = d[1] - d[2];
    if (m == 2) {
        y[0] = d[0] + even1;
        y[stride] = odd1 - d[3];
        return;
    }
    const gt_vf even2 = d[3] + d[4], odd2 = d[3] - d[4];
    y[0] = d[0] + even1 + even2;
    y[1 * stride] = odd1 + gt_splat(2.0f) * odd2;
    y[2 * stride] = even1 + gt_splat(4.0f) * even2;
    y[3 * stride] = odd1 + gt_splat(8.0f) * odd2 + d[5];
}

/* The same of weights whose fractions were left out: y is 2 (m = 2) or 24, 12, 6, 6 times as large.
   What is odd in these factors has an inverse modulo 2³², and the rest is shifted out at the end:
   m = 2 takes |y| < 2²⁹, m = 4 |y| < 2²⁵. */
GT_INLINE void gt_winograd_output_int(const int m, const gt_vw *d, gt_vw *y, const int stride)
{
    const gt_vw even1 = d[1] + d[2], odd1 = d[1] - d[2];
    if (m == 2) {
        y[0] = 2u * d[0] + even1;
        y[stride] = odd1 - 2u * d[3];
        return;
    }
    const gt_vw even2 = d[3] + d[4], odd2 = d[3] - d[4];
    y[0] = 6u * d[0] - 4u * even1 + even2;
    y[1 * stride] = odd2 - 2u * odd1;
    y[2 * stride] = even2 - even1;
    y[3 * stride] = 2u * odd2 - odd1 + 6u * d[5];
}

/* Element (i, j) of a tile without the factors that both transforms brought. */
GT_INLINE gt_vi gt_winograd_exact(const int m, const int i, const int j, gt_vw y)
{
    const int twos[2][4] = {{1, 1, 0, 0}, {3, 2, 1, 1}};
    if (m == 4) y *= 954437177u; /* 9 · 954437177 = 2·2³² + 1 */
    return (gt_vi)y >> (twos[m == 4][i] + twos[m == 4][j]);
}

#endif
