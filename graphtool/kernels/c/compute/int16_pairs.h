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
GT_INLINE int32_t gt_even(int32_t word, const int is_signed)
{
    return is_signed ? __sxtb16(word) : (int32_t)__uxtb16((uint32_t)word);
}

GT_INLINE int32_t gt_odd(int32_t word, const int is_signed)
{
    int32_t pair;
    if (is_signed) __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    else __asm__("uxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* sum + a's first · b's second, and sum + a's second · b's first. */
GT_INLINE int32_t gt_first_second(int32_t a, int32_t b, int32_t sum) { return __smlabt(a, b, sum); }
GT_INLINE int32_t gt_second_first(int32_t a, int32_t b, int32_t sum) { return __smlatb(a, b, sum); }

/* Four elements of two rows by two filters: x holds the even pair of each row, then the odd ones, w
   four bytes of each filter. Both move on. A compiler that orders these instructions itself needs
   more registers than there are, and a third more instructions. */
GT_INLINE void gt_two_by_two(const gt_halves **x, const int8_t **w, int32_t *first_a,
                             int32_t *first_b, int32_t *second_a, int32_t *second_b)
{
    int32_t va, vb, first, second, pair;
    __asm__("ldrd %[va], %[vb], [%[w]], #8\n\t"
            "ldrd %[first], %[second], [%[x]], #8\n\t"
            "sxtb16 %[pair], %[va]\n\t"
            "smlad %[first_a], %[first], %[pair], %[first_a]\n\t"
            "smlad %[second_a], %[second], %[pair], %[second_a]\n\t"
            "sxtb16 %[pair], %[vb]\n\t"
            "smlad %[first_b], %[first], %[pair], %[first_b]\n\t"
            "smlad %[second_b], %[second], %[pair], %[second_b]\n\t"
            "ldrd %[first], %[second], [%[x]], #8\n\t"
            "sxtb16 %[pair], %[va], ror #8\n\t"
            "smlad %[first_a], %[first], %[pair], %[first_a]\n\t"
            "smlad %[second_a], %[second], %[pair], %[second_a]\n\t"
            "sxtb16 %[pair], %[vb], ror #8\n\t"
            "smlad %[first_b], %[first], %[pair], %[first_b]\n\t"
            "smlad %[second_b], %[second], %[pair], %[second_b]"
            : [x] "+r"(*x), [w] "+r"(*w), [first_a] "+r"(*first_a), [first_b] "+r"(*first_b),
              [second_a] "+r"(*second_a), [second_b] "+r"(*second_b), [va] "=&r"(va),
              [vb] "=&r"(vb), [first] "=&r"(first), [second] "=&r"(second), [pair] "=&r"(pair)
            :
            : "memory");
}

/* The pair of two numbers of 16 bits. */
GT_INLINE int32_t gt_pair_of(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)low & 0xffff) | (int32_t)((uint32_t)high << 16);
}
#endif

#endif
