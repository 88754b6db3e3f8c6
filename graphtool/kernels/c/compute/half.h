/* Operands of 16 bits that a kernel widens as it reads them; sums stay float. Their type is a
   literal: GT_BFLOAT16 or GT_FLOAT16. Rows of A are widened block by block into a small array of
   the thread, from which the register tile takes them; B is widened where it is loaded. */
#ifndef GT_HALF_H
#define GT_HALF_H

#include "tile.h"

#if defined __F16C__ || (defined __AVX512BW__ && defined __AVX512VL__)
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

#define GT_STAGE 128 /* numbers of a row that are widened together */
#define GT_TALLEST 16 /* rows of a register tile at most */

/* A number as a float. */
GT_INLINE float gt_widen_one(const int type, uint16_t h)
{
    return type == GT_BFLOAT16 ? gt_bf16_to_f32(h) : gt_f16_to_f32(h);
}

#if GT_LANES > 1
typedef uint16_t gt_vh __attribute__((vector_size(GT_LANES * 2), may_alias));
typedef uint16_t gt_vhu __attribute__((vector_size(GT_LANES * 2), may_alias, aligned(2)));
typedef uint32_t gt_vw __attribute__((vector_size(GT_LANES * 4), may_alias));

/* Numbers of 16 bits as words; compilers split what __builtin_convertvector has to do. */
GT_INLINE gt_vw gt_words(gt_vh h)
{
#if GT_LANES == 16 && defined __AVX512F__
    return (gt_vw)_mm512_cvtepu16_epi32((__m256i)h);
#elif GT_LANES == 8 && defined __AVX2__
    return (gt_vw)_mm256_cvtepu16_epi32((__m128i)h);
#else
    return __builtin_convertvector(h, gt_vw);
#endif
}

/* A vector of numbers as floats. */
GT_INLINE gt_vf gt_widened(const int type, gt_vh h)
{
#if GT_LANES == 16 && defined __AVX512F__
    if (type == GT_FLOAT16) return (gt_vf)_mm512_cvtph_ps((__m256i)h);
#elif GT_LANES == 8 && defined __F16C__
    if (type == GT_FLOAT16) return (gt_vf)_mm256_cvtph_ps((__m128i)h);
#elif GT_LANES == 4 && defined __aarch64__
    if (type == GT_FLOAT16) return (gt_vf)vcvt_f32_f16(vreinterpret_f16_u16((uint16x4_t)h));
#endif
    const gt_vw bits = gt_words(h);
    if (type == GT_BFLOAT16) return (gt_vf)(bits << 16);
    /* as gt_f16_to_f32 does it */
    const gt_vw magnitude = (bits & 0x7fff) << 13;
    const gt_vf scaled = (gt_vf)magnitude * gt_splat(0x1p112f);
    const gt_vw special = (gt_vw)(magnitude >= 0x0f800000) & 0x7f800000;
    return (gt_vf)((gt_vw)scaled | special | (bits & 0x8000) << 16);
}

/* The first `count` < GT_LANES numbers at p, then zeros; it reads nothing after them. */
GT_INLINE gt_vh gt_first_halves(const uint16_t *p, int64_t count)
{
#if GT_LANES == 16 && defined __AVX512BW__ && defined __AVX512VL__
    return (gt_vh)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), p);
#else
    gt_vh h = {0};
    memcpy(&h, p, (size_t)count * sizeof *p);
    return h;
#endif
}

GT_INLINE gt_vf gt_load_half(const int type, const uint16_t *p)
{
    return gt_widened(type, *(const gt_vhu *)p);
}

GT_INLINE gt_vf gt_load_half_first(const int type, const uint16_t *p, int64_t count)
{
    return gt_widened(type, gt_first_halves(p, count));
}
#else
GT_INLINE gt_vf gt_load_half(const int type, const uint16_t *p)
{
    return gt_widen_one(type, *p);
}

GT_INLINE gt_vf gt_load_half_first(const int type, const uint16_t *p, int64_t count)
{
    return count ? gt_load_half(type, p) : 0.0f;
}
#endif

/* Pairs of numbers, a vector of them: the first and the second of each, as floats. */
GT_INLINE void gt_split_halves(const int type, const uint16_t *pairs, gt_vf *even, gt_vf *odd)
{
    uint16_t one[GT_LANES] GT_ALIGNED, two[GT_LANES] GT_ALIGNED;
    for (int i = 0; i < GT_LANES; i++) one[i] = pairs[2 * i], two[i] = pairs[2 * i + 1];
    *even = gt_load_half(type, one);
    *odd = gt_load_half(type, two);
}

/* n numbers as floats; `out` has room for whole vectors. */
GT_INLINE void gt_widen_row(const int type, const uint16_t *x, int64_t n, float *out)
{
    int64_t i = 0;
    for (; i + GT_LANES <= n; i += GT_LANES) gt_store(out + i, gt_load_half(type, x + i));
    if (i < n) gt_store(out + i, gt_load_half_first(type, x + i, n - i));
}

/* acc[rows][nv] += A · B, where A[i][k] is stage[i·lda + k·ldk]; prefetches as tile.h does. */
GT_INLINE void gt_tile_staged(gt_vf *acc, const int rows, const int nv, const int type,
                              const float *stage, int64_t lda, int64_t ldk, const uint16_t *b,
                              int64_t depth, const char *ahead, int64_t step, const int stream)
{
    for (int64_t k = 0; k < depth; k++, b += nv * GT_LANES) {
        gt_vf panel[16];
        GT_UNROLL for (int j = 0; j < nv; j++) {
            panel[j] = gt_load_half(type, b + j * GT_LANES);
            if (stream) __builtin_prefetch(b + (stream * nv + j) * GT_LANES, 0, 3);
        }
        if (!stream) {
            __builtin_prefetch(ahead, 0, 2);
            ahead += step;
        }
        GT_UNROLL for (int i = 0; i < rows; i++) {
            const gt_vf x = gt_splat(stage[i * lda + k * ldk]);
            GT_UNROLL for (int j = 0; j < nv; j++) acc[i * nv + j] += x * panel[j];
        }
    }
}

/* gt_tile_fma_lines of operands of 16 bits. */
GT_INLINE void gt_tile_half_lines(gt_vf *acc, const int rows, const int nv, const int type,
                                  const uint16_t *a, int64_t lda, int64_t line, int64_t ldl,
                                  const uint16_t *b, int64_t depth, const char *ahead,
                                  int64_t step, const int stream)
{
    float stage[GT_TALLEST * GT_STAGE] GT_ALIGNED;
    for (int64_t k = 0; k < depth; k += GT_STAGE) {
        const int64_t some = gt_min(GT_STAGE, depth - k);
        for (int i = 0; i < rows; i++) {
            const int64_t at = line > 0 ? i / line * ldl + i % line * lda : i * lda;
            gt_widen_row(type, a + at + k, some, stage + i * GT_STAGE);
        }
        gt_tile_staged(acc, rows, nv, type, stage, GT_STAGE, 1, b + k * nv * GT_LANES, some,
                       ahead + k * step, step, stream);
    }
}

/* The same for an A that is transposed in memory: the elements of a column are adjacent, and
   columns are ldk apart. */
GT_INLINE void gt_tile_half_across(gt_vf *acc, const int rows, const int nv, const int type,
                                   const uint16_t *a, int64_t ldk, const uint16_t *b,
                                   int64_t depth, const char *ahead, int64_t step,
                                   const int stream)
{
    float stage[GT_TALLEST * GT_STAGE] GT_ALIGNED;
    for (int64_t k = 0; k < depth; k += GT_STAGE) {
        const int64_t some = gt_min(GT_STAGE, depth - k);
        for (int64_t j = 0; j < some; j++)
            gt_widen_row(type, a + (k + j) * ldk, rows, stage + j * GT_TALLEST);
        gt_tile_staged(acc, rows, nv, type, stage, 1, GT_TALLEST, b + k * nv * GT_LANES, some,
                       ahead + k * step, step, stream);
    }
}

#endif
