/* Pairs of signed 16-bit integers, for processors without vectors: the low half of a word is the
   first of the pair. GT_HALVES is defined where one instruction multiplies two pairs and adds both
   products; there, bytes are widened two at a time, the even ones of a word and the odd ones. */
#ifndef GT_INT16_PAIRS_H
#define GT_INT16_PAIRS_H

#include "prelude.h"

typedef int32_t gt_halves __attribute__((may_alias)); /* a word of memory that holds a pair */

#ifdef __ARM_FEATURE_DSP
#include <arm_acle.h>
#define GT_HALVES 1

/* sum + a[0]·b[0] + a[1]·b[1]; it wraps around. */
GT_INLINE int32_t gt_pair(int32_t a, int32_t b, int32_t sum) { return __smlad(a, b, sum); }

/* Bytes 0 and 2 of a word as a pair, and bytes 1 and 3, for which ACLE has no single function. */
GT_INLINE int32_t gt_even(int32_t word) { return __sxtb16(word); }

GT_INLINE int32_t gt_odd(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* The same for bytes that are signed or not, less a number: both halves of `zeros`. */
GT_INLINE int32_t gt_even_less(int32_t word, const int is_signed, const int32_t zeros)
{
    const int32_t pair = is_signed ? __sxtb16(word) : (int32_t)__uxtb16((uint32_t)word);
    return zeros ? __ssub16(pair, zeros) : pair;
}

GT_INLINE int32_t gt_odd_less(int32_t word, const int is_signed, const int32_t zeros)
{
    const uint32_t turned = (uint32_t)word >> 8 | (uint32_t)word << 24;
    return gt_even_less((int32_t)turned, is_signed, zeros);
}

/* The pair of two numbers of 16 bits. */
GT_INLINE int32_t gt_pair_of(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)low & 0xffff) | (int32_t)((uint32_t)high << 16);
}
#endif

#endif
