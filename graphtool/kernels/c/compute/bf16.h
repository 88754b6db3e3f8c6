/* The register tile of products of bfloat16 numbers summed in float32: for rows of A read in place
   and a panel of B whose rows come in pairs, [ceil(K/2)][NR][2]. With AVX512-BF16 a pair is one
   instruction, which rounds to nearest even and takes subnormals for zero; elsewhere it is two
   multiplications in float32. NaN and infinities keep their meaning. */
#ifndef GT_BF16_H
#define GT_BF16_H

#include "half.h"
#include "square.h"

/* The lower half of each word in its upper half. */
#if GT_LANES > 1
#define GT_UPPER(v) ((gt_vi)((gt_vw)(v) * 65536u))
#else
#define GT_UPPER(v) ((gt_vi)((uint32_t)(v) * 65536u))
#endif

/* sum + lo(a)·lo(b) + hi(a)·hi(b), each lane of a and b a pair of bfloat16 numbers. */
GT_INLINE gt_vf gt_dot_bf16(gt_vf sum, gt_vi a, gt_vi b)
{
#if defined __AVX512BF16__ && GT_LANES == 16
    return (gt_vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    const gt_vi al = GT_UPPER(a), bl = GT_UPPER(b), ah = a & -65536, bh = b & -65536;
    gt_vf low_a, low_b, high_a, high_b;
    memcpy(&low_a, &al, sizeof al);
    memcpy(&low_b, &bl, sizeof bl);
    memcpy(&high_a, &ah, sizeof ah);
    memcpy(&high_b, &bh, sizeof bh);
    return sum + low_a * low_b + high_a * high_b;
#endif
}

/* In every lane the pair of two numbers, rounded to the nearest bfloat16. */
GT_INLINE gt_vi gt_rounded_pairs(gt_vf low, gt_vf high)
{
#if defined __AVX512BF16__ && GT_LANES == 16
    static const uint16_t from[32] GT_ALIGNED = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                 21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
    return (gt_vi)_mm512_permutexvar_epi16(_mm512_load_si512(from), both);
#else
    float lows[GT_LANES] GT_ALIGNED, highs[GT_LANES] GT_ALIGNED;
    gt_vi pairs;
    gt_store(lows, low);
    gt_store(highs, high);
    for (int i = 0; i < GT_LANES; i++) {
        const uint32_t pair = (uint32_t)gt_f32_to_bf16(highs[i]) << 16 | gt_f32_to_bf16(lows[i]);
        memcpy((char *)&pairs + 4 * i, &pair, sizeof pair);
    }
    return pairs;
#endif
}

/* A pair in every lane. */
GT_INLINE gt_vi gt_splat_pair(int32_t pair)
{
#if GT_LANES == 1
    return pair;
#else
    return pair - (gt_vi){0};
#endif
}

/* Two adjacent numbers, or with `odd` one and a zero. */
GT_INLINE int32_t gt_pair(const uint16_t *a, const int odd)
{
    int32_t pair = a[0];
    if (!odd) memcpy(&pair, a, sizeof pair);
    return pair;
}

GT_INLINE void gt_step_bf16(gt_vf *acc, const int rows, const int nv, const uint16_t *a,
                            int64_t lda, int64_t line, int64_t ldl, const uint16_t *b,
                            const int odd)
{
    gt_vi panel[16];
    GT_UNROLL for (int j = 0; j < nv; j++) panel[j] = ((const gt_vi *)b)[j];
    GT_UNROLL for (int i = 0; i < rows; i++) {
        const int64_t at = line > 0 ? i / line * ldl + i % line * lda : i * lda;
        const gt_vi x = gt_splat_pair(gt_pair(a + at, odd));
        GT_UNROLL for (int j = 0; j < nv; j++)
            acc[i * nv + j] = gt_dot_bf16(acc[i * nv + j], x, panel[j]);
    }
}

/* acc[rows][nv] += A[rows][depth] · B[depth/2][nv vectors of pairs]; rows of A lie, and the next
   panel is prefetched, as in gt_tile_fma_lines. */
GT_INLINE void gt_tile_bf16_lines(gt_vf *acc, const int rows, const int nv, const uint16_t *a,
                                  int64_t lda, int64_t line, int64_t ldl, const uint16_t *b,
                                  int64_t depth, const char *ahead, int64_t step,
                                  const int stream)
{
    for (int64_t k = 0; k + 1 < depth; k += 2, b += nv * GT_LANES * 2) {
        if (stream) {
            GT_UNROLL for (int j = 0; j < nv; j++)
                __builtin_prefetch(b + (stream * nv + j) * GT_LANES * 2, 0, 3);
        } else {
            __builtin_prefetch(ahead, 0, 2);
            ahead += step;
        }
        gt_step_bf16(acc, rows, nv, a + k, lda, line, ldl, b, 0);
    }
    if (depth % 2) gt_step_bf16(acc, rows, nv, a + depth - 1, lda, line, ldl, b, 1);
}

/* n <= GT_TALLEST pairs of x[i] and y[i]; `out` has room for whole vectors. */
GT_INLINE void gt_zip_pairs(const uint16_t *x, const uint16_t *y, int64_t n, int32_t *out)
{
#if GT_LANES == 1
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)(x[i] | (uint32_t)y[i] << 16);
#else
    for (int64_t i = 0; i < n; i += GT_LANES) {
        const int whole = i + GT_LANES <= n;
        const gt_vh low = whole ? *(const gt_vhu *)(x + i) : gt_first_halves(x + i, n - i);
        const gt_vh high = whole ? *(const gt_vhu *)(y + i) : gt_first_halves(y + i, n - i);
        *(gt_vw *)(out + i) = __builtin_convertvector(low, gt_vw)
                              | __builtin_convertvector(high, gt_vw) << 16;
    }
#endif
}

/* Up to 16 rows of an A that is transposed in memory, columns ldk apart, as rows of `depth` numbers
   that are ldt apart, with zeros up to a multiple of 32. A pair of columns becomes words, and these
   are transposed in squares. Rows of the result that are not in A are arbitrary. */
GT_INLINE void gt_turn_pairs(const uint16_t *a, int64_t ldk, int64_t rows, int64_t depth,
                             uint16_t *to, int64_t ldt)
{
    static const uint16_t none[GT_TALLEST];
    int32_t pairs[GT_TALLEST * GT_TALLEST] GT_ALIGNED = {0};
    for (int64_t k = 0; k < depth; k += 2 * GT_TALLEST) {
        for (int64_t i = 0; i < GT_TALLEST; i++) {
            const int64_t at = k + 2 * i;
            const uint16_t *x = at < depth ? a + at * ldk : none;
            const uint16_t *y = at + 1 < depth ? a + (at + 1) * ldk : none;
            gt_zip_pairs(x, y, rows, pairs + i * GT_TALLEST);
        }
        for (int64_t i = 0; i < GT_TALLEST; i += GT_LANES)
            for (int64_t m = 0; m < GT_TALLEST; m += GT_LANES) {
                uint16_t *square = to + m * ldt + k + 2 * i;
#if GT_LANES == 1
                memcpy(square, pairs + i * GT_TALLEST + m, sizeof *pairs);
#else
                gt_transpose_square((const float *)(pairs + i * GT_TALLEST + m), GT_TALLEST,
                                    (float *)square, ldt / 2);
#endif
            }
    }
}

/* The tile for an A that is transposed in memory: the elements of a column are adjacent, and
   columns are ldk apart. Pairs are made block by block, in a small array of the thread. */
GT_INLINE void gt_tile_bf16_across(gt_vf *acc, const int rows, const int nv, const uint16_t *a,
                                   int64_t ldk, const uint16_t *b, int64_t depth)
{
    static const uint16_t none[GT_TALLEST];
    int32_t pairs[GT_TALLEST * GT_STAGE / 2] GT_ALIGNED;
    for (int64_t first = 0; first < depth; first += GT_STAGE) {
        const int64_t some = gt_min(GT_STAGE, depth - first), whole = some / 2;
        const uint16_t *x = a + first * ldk;
        for (int64_t k = 0; k < whole; k++)
            gt_zip_pairs(x + 2 * k * ldk, x + (2 * k + 1) * ldk, rows, pairs + k * GT_TALLEST);
        if (some % 2)
            gt_zip_pairs(x + 2 * whole * ldk, none, rows, pairs + whole * GT_TALLEST);
        for (int64_t k = 0; k < some; k += 2, b += nv * GT_LANES * 2) {
            gt_vi panel[16];
            GT_UNROLL for (int j = 0; j < nv; j++) panel[j] = ((const gt_vi *)b)[j];
            GT_UNROLL for (int i = 0; i < rows; i++) {
                const gt_vi p = gt_splat_pair(pairs[k / 2 * GT_TALLEST + i]);
                GT_UNROLL for (int j = 0; j < nv; j++)
                    acc[i * nv + j] = gt_dot_bf16(acc[i * nv + j], p, panel[j]);
            }
        }
    }
}

#endif
