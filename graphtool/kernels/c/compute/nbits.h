/* Weights of 2, 4 or 8 bits, which lie in words, as numbers. */
#ifndef GT_NBITS_H
#define GT_NBITS_H

#include "tile.h"

#if GT_LANES == 16 && defined __AVX512F__
#include <immintrin.h>
#endif

#define GT_WEIGHTS_AHEAD 7168 /* bytes between what is multiplied and what is prefetched */

GT_INLINE gt_vi gt_load_words(const uint8_t *p)
{
    gt_vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* A field of each word, less the middle of its range: `bits` from bit `shift` on, both literals. */
GT_INLINE gt_vf gt_centred(const int bits, gt_vi words, const int shift)
{
    const int mask = (1 << bits) - 1, middle = 1 << (bits - 1);
#if GT_LANES == 16 && defined __AVX512F__
    /* a table of sixteen takes what is above four bits as it is */
    const gt_vf four = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    const gt_vf two = {-2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1};
    if (bits < 8)
        return (gt_vf)_mm512_permutexvar_ps((__m512i)(words >> shift),
                                            (__m512)(bits == 4 ? four : two));
#endif
#if GT_LANES == 1
    return (float)(((words >> shift) & mask) - middle);
#else
    return __builtin_convertvector(((words >> shift) & mask) - middle, gt_vf);
#endif
}

#endif
