/* The register tile of products of bfloat16 numbers summed in float32: for rows of A read in place
   and a panel of B whose rows come in pairs, [ceil(K/2)][NR][2]. With AVX512-BF16 a pair is one
   instruction, which rounds to nearest even and takes subnormals for zero; elsewhere it is two
   multiplications in float32. NaN and infinities keep their meaning. */
#ifndef GT_BF16_H
#define GT_BF16_H

#include "tile.h"

#if defined __AVX512BF16__ && GT_LANES == 16
#include <immintrin.h>
#endif

/* sum + lo(a)·lo(b) + hi(a)·hi(b), each lane of a and b a pair of bfloat16 numbers. */
GT_INLINE gt_vf gt_dot_bf16(gt_vf sum, gt_vi a, gt_vi b)
{
#if defined __AVX512BF16__ && GT_LANES == 16
    return (gt_vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    const gt_vi al = a * 65536, bl = b * 65536, ah = a & -65536, bh = b & -65536;
    gt_vf low_a, low_b, high_a, high_b;
    memcpy(&low_a, &al, sizeof al);
    memcpy(&low_b, &bl, sizeof bl);
    memcpy(&high_a, &ah, sizeof ah);
    memcpy(&high_b, &bh, sizeof bh);
    return sum + low_a * low_b + high_a * high_b;
#endif
}

/* One pair in every lane: a[0] and what is `ldk` behind it, or with `odd` a zero. */
GT_INLINE gt_vi gt_pair_bf16(const uint16_t *a, int64_t ldk, const int odd)
{
    int32_t pair = a[0];
    if (!odd && ldk == 1) memcpy(&pair, a, sizeof pair);
    else if (!odd) pair = (int32_t)(a[0] | (uint32_t)a[ldk] << 16);
#if GT_LANES == 1
    return pair;
#else
    return pair - (gt_vi){0};
#endif
}

GT_INLINE void gt_step_bf16(gt_vf *acc, const int rows, const int nv, const uint16_t *a,
                            int64_t lda, int64_t ldk, const uint16_t *b, const int odd)
{
    gt_vi panel[16];
    GT_UNROLL for (int j = 0; j < nv; j++) panel[j] = ((const gt_vi *)b)[j];
    GT_UNROLL for (int i = 0; i < rows; i++) {
        const gt_vi x = gt_pair_bf16(a + i * lda, ldk, odd);
        GT_UNROLL for (int j = 0; j < nv; j++)
            acc[i * nv + j] = gt_dot_bf16(acc[i * nv + j], x, panel[j]);
    }
}

/* acc[rows][nv] += A[rows][depth] · B[depth/2][nv vectors of pairs]; prefetches as tile.h does.
   From one number of a row of A to the next it is ldk. */
GT_INLINE void gt_tile_bf16(gt_vf *acc, const int rows, const int nv, const uint16_t *a,
                            int64_t lda, int64_t ldk, const uint16_t *b, int64_t depth,
                            const char *ahead, int64_t step, const int stream)
{
    for (int64_t k = 0; k + 1 < depth; k += 2, b += nv * GT_LANES * 2) {
        if (stream) {
            GT_UNROLL for (int j = 0; j < nv; j++)
                __builtin_prefetch(b + (stream * nv + j) * GT_LANES * 2, 0, 3);
        } else {
            __builtin_prefetch(ahead, 0, 2);
            ahead += step;
        }
        gt_step_bf16(acc, rows, nv, a + k * ldk, lda, ldk, b, 0);
    }
    if (depth % 2) gt_step_bf16(acc, rows, nv, a + (depth - 1) * ldk, lda, ldk, b, 1);
}

#endif
