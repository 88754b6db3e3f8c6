/* The register tile of products of small integers summed in int32: rows of A read in place, four
   bytes at a time, and a panel of B in groups of four bytes, [ceil(depth/4)][NR][4 bytes]. The four
   bytes are four u8 of A by four s8 of B, or one pair of s16 each (`pairs`). All sums are exact and
   wrap around; none saturates. */
#ifndef GT_INT8_H
#define GT_INT8_H

#include "int16_pairs.h"
#include "tile.h"

#if defined __AVX512VNNI__ || defined __AVX512BW__ || defined __AVX2__ || defined __SSE2__
#include <immintrin.h>
#elif defined __ARM_NEON
#include <arm_neon.h>
#elif defined __wasm_simd128__
#include <wasm_simd128.h>
#endif

#if GT_LANES > 1
typedef int16_t gt_vq __attribute__((vector_size(GT_LANES * 4), may_alias));
typedef uint16_t gt_vuq __attribute__((vector_size(GT_LANES * 4), may_alias));
#endif

/* sum + a[0]·b[0] + a[1]·b[1] in each lane, of signed halves. */
GT_INLINE gt_vi gt_dot_pair(gt_vi sum, gt_vi a, gt_vi b)
{
#if defined __AVX512VNNI__ && GT_LANES == 16
    return (gt_vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined __AVXVNNI__ && GT_LANES == 8
    return (gt_vi)_mm256_dpwssd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
#elif defined __AVX512BW__ && GT_LANES == 16
    return sum + (gt_vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined __AVX2__ && GT_LANES == 8
    return sum + (gt_vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined __SSE2__ && GT_LANES == 4
    return sum + (gt_vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined __wasm_simd128__ && GT_LANES == 4
    return sum + (gt_vi)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b);
#elif defined GT_HALVES && GT_LANES == 1
    return gt_pair(a, b, sum);
#else
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* sum + a[0]·b[0] + … + a[3]·b[3] in each lane: a holds unsigned bytes, b signed ones. */
GT_INLINE gt_vi gt_dot_quad(gt_vi sum, gt_vi a, gt_vi b)
{
#if defined __AVX512VNNI__ && GT_LANES == 16
    return (gt_vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined __AVXVNNI__ && GT_LANES == 8
    return (gt_vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
#elif defined __ARM_FEATURE_MATMUL_INT8 && GT_LANES == 4
    return (gt_vi)vusdotq_s32((int32x4_t)sum, (uint8x16_t)a, (int8x16_t)b);
#elif defined __ARM_FEATURE_DOTPROD && GT_LANES == 4
    /* a = (a - 128) + 128, and the 128 as two signed numbers of one instruction each */
    const int8x16_t near = veorq_s8((int8x16_t)a, vdupq_n_s8(-128));
    const int32x4_t part = vdotq_s32((int32x4_t)sum, near, (int8x16_t)b);
    return (gt_vi)vdotq_s32(vdotq_s32(part, vdupq_n_s8(64), (int8x16_t)b), vdupq_n_s8(64),
                            (int8x16_t)b);
#elif (defined __SSE2__ || defined __AVX2__ || defined __wasm_simd128__) && GT_LANES > 1
    /* the even bytes and the odd ones, each as halves */
    const gt_vq even = (gt_vq)a & 255, odd = (gt_vq)((gt_vuq)a >> 8);
    sum = gt_dot_pair(sum, (gt_vi)even, (gt_vi)((gt_vq)((gt_vuq)b << 8) >> 8));
    return gt_dot_pair(sum, (gt_vi)odd, (gt_vi)((gt_vq)b >> 8));
#elif defined GT_HALVES && GT_LANES == 1
    /* where an operand meets several, its halves stay in registers */
    return gt_pair(gt_odd(a, 0), gt_odd(b, 1), gt_pair(gt_even(a, 0), gt_even(b, 1), sum));
#else
    for (int i = 0; i < 4; i++) sum += ((a >> 8 * i) & 255) * ((b << (24 - 8 * i)) >> 24);
    return sum;
#endif
}

/* The same for an a whose bytes are below 128, so that two products fit a half. */
GT_INLINE gt_vi gt_dot_low(gt_vi sum, gt_vi a, gt_vi b)
{
#if (defined __AVX512VNNI__ && GT_LANES == 16) || (defined __AVXVNNI__ && GT_LANES == 8)
    return gt_dot_quad(sum, a, b);
#elif defined __AVX512BW__ && GT_LANES == 16
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)a, (__m512i)b);
    return sum + (gt_vi)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined __AVX2__ && GT_LANES == 8
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)a, (__m256i)b);
    return sum + (gt_vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#elif defined __SSSE3__ && GT_LANES == 4
    const __m128i pairs = _mm_maddubs_epi16((__m128i)a, (__m128i)b);
    return sum + (gt_vi)_mm_madd_epi16(pairs, _mm_set1_epi16(1));
#elif defined __ARM_FEATURE_DOTPROD && GT_LANES == 4
    return (gt_vi)vdotq_s32((int32x4_t)sum, (int8x16_t)a, (int8x16_t)b);
#elif defined __wasm_relaxed_simd__ && GT_LANES == 4
    return (gt_vi)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)b, (v128_t)a, (v128_t)sum);
#else
    return gt_dot_quad(sum, a, b);
#endif
}

/* The `count` <= 4 bytes at a, then zeros, in every lane. */
GT_INLINE gt_vi gt_splat_bytes(const char *a, const int64_t count)
{
    int32_t word = 0;
    if (count == 4) memcpy(&word, a, 4);
    else if (count == 3) word = (int32_t)(*(const uint8_t *)a | (uint32_t)(uint8_t)a[1] << 8 |
                                          (uint32_t)(uint8_t)a[2] << 16);
    else if (count == 2) word = (int32_t)(*(const uint8_t *)a | (uint32_t)(uint8_t)a[1] << 8);
    else word = *(const uint8_t *)a;
#if GT_LANES == 1
    return word;
#else
    return word - (gt_vi){0};
#endif
}

GT_INLINE void gt_ints_zero(gt_vi *acc, const int count)
{
    GT_UNROLL for (int i = 0; i < count; i++) acc[i] = (gt_vi){0};
}

GT_INLINE void gt_ints_store(const gt_vi *acc, const int count, int32_t *out)
{
    GT_UNROLL for (int i = 0; i < count; i++) ((gt_vi *)out)[i] = acc[i];
}

GT_INLINE void gt_ints_step(gt_vi *acc, const int rows, const int nv, const char *a, int64_t lda,
                            int64_t line, int64_t ldl, const char *b, const int64_t count,
                            const int pairs)
{
    gt_vi panel[16];
    GT_UNROLL for (int j = 0; j < nv; j++) panel[j] = ((const gt_vi *)b)[j];
    GT_UNROLL for (int i = 0; i < rows; i++) {
        const int64_t at = line > 0 ? i / line * ldl + i % line * lda : i * lda;
        const gt_vi x = gt_splat_bytes(a + at, count);
        GT_UNROLL for (int j = 0; j < nv; j++)
            acc[i * nv + j] = pairs ? gt_dot_pair(acc[i * nv + j], x, panel[j])
                                    : gt_dot_quad(acc[i * nv + j], x, panel[j]);
    }
}

/* acc[rows][nv] += A · B over `depth` bytes of each row of A. Row i of A starts at a + i·lda bytes;
   with `line` > 0 (a constant) at a + (i / line)·ldl + (i % line)·lda. Prefetching is that of
   tile.h. */
GT_INLINE void gt_ints_tile(gt_vi *acc, const int rows, const int nv, const char *a, int64_t lda,
                            int64_t line, int64_t ldl, const char *b, int64_t depth,
                            const int pairs, const char *ahead, int64_t step, const int stream)
{
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4, b += nv * GT_LANES * 4) {
        if (stream) {
            GT_UNROLL for (int j = 0; j < nv; j++)
                GT_FETCH(b + (stream * nv + j) * GT_LANES * 4, 3);
        } else {
            GT_FETCH(ahead, 2);
            ahead += step;
        }
        gt_ints_step(acc, rows, nv, a + k, lda, line, ldl, b, 4, pairs);
    }
    switch (depth - k) {
    case 1: gt_ints_step(acc, rows, nv, a + k, lda, line, ldl, b, 1, pairs); break;
    case 2: gt_ints_step(acc, rows, nv, a + k, lda, line, ldl, b, 2, pairs); break;
    case 3: gt_ints_step(acc, rows, nv, a + k, lda, line, ldl, b, 3, pairs); break;
    }
}

#endif
