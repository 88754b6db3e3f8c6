/* Elements of 4 and 2 bits that share bytes, from the low end: one of them, and rows of them with a
   byte each, in which signed ones are what they mean. */
#ifndef GT_FIELDS_H
#define GT_FIELDS_H

#include "prelude.h"

GT_INLINE uint8_t gt_field4(const GT_GLOBAL uint8_t *x, int64_t i)
{
    return x[i >> 1] >> (i & 1) * 4 & 15;
}
GT_INLINE uint8_t gt_field2(const GT_GLOBAL uint8_t *x, int64_t i)
{
    return x[i >> 2] >> (i & 3) * 2 & 3;
}

#if !defined __CUDACC__ && !defined __OPENCL_VERSION__
typedef uint8_t gt_b16 __attribute__((vector_size(16), may_alias));
typedef uint8_t gt_b16u __attribute__((vector_size(16), may_alias, aligned(1)));
#define GT_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define GT_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#ifdef __clang__
#define GT_BETWEEN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define GT_BETWEEN(a, b, ...) __builtin_shuffle(a, b, (gt_b16){__VA_ARGS__})
#endif

/* The 32 fields of 4 bits in 16 bytes, centred on `middle`, and the 64 of 2 bits. */
GT_INLINE void gt_spread4(uint8_t *row, gt_b16 v, uint8_t middle)
{
    const gt_b16 a = ((v & 15) ^ middle) - middle, b = (v >> 4 ^ middle) - middle;
    *(gt_b16u *)row = GT_BETWEEN(a, b, GT_LOW);
    *(gt_b16u *)(row + 16) = GT_BETWEEN(a, b, GT_HIGH);
}

GT_INLINE void gt_spread2(uint8_t *row, gt_b16 v, uint8_t middle)
{
    const gt_b16 even = v & 0x33, odd = v >> 2 & 0x33; /* fields 0 and 2, and 1 and 3 */
    const gt_b16 a = ((even & 3) ^ middle) - middle, b = ((odd & 3) ^ middle) - middle;
    const gt_b16 c = (even >> 4 ^ middle) - middle, d = (odd >> 4 ^ middle) - middle;
    uint8_t first[32], second[32];
    *(gt_b16u *)first = GT_BETWEEN(a, b, GT_LOW);
    *(gt_b16u *)(first + 16) = GT_BETWEEN(a, b, GT_HIGH);
    *(gt_b16u *)second = GT_BETWEEN(c, d, GT_LOW);
    *(gt_b16u *)(second + 16) = GT_BETWEEN(c, d, GT_HIGH);
    for (int i = 0; i < 16; i++) {
        memcpy(row + 4 * i, first + 2 * i, 2);
        memcpy(row + 4 * i + 2, second + 2 * i, 2);
    }
}

#endif

/* `count` of them from element `at` on. */
#if defined __CUDACC__ || defined __OPENCL_VERSION__
#define GT_WHOLE_BYTES(bits, middle)
#else
#define GT_WHOLE_BYTES(bits, middle)                                                             \
    const uint8_t *p = x + (at + i) / (8 / bits);                                                \
    for (; i + 128 / bits <= count; i += 128 / bits, p += 16)                                    \
        gt_spread##bits((uint8_t *)row + i, *(const gt_b16u *)p, middle);
#endif
#define GT_FIELDS(name, T, bits, middle)                                                         \
    GT_INLINE void gt_fields_##name(T *row, const GT_GLOBAL uint8_t *x, int64_t at,              \
                                    int64_t count)                                               \
    {                                                                                            \
        int64_t i = 0;                                                                           \
        for (; i < count && (at + i) % (8 / bits); i++)                                          \
            row[i] = (T)((gt_field##bits(x, at + i) ^ middle) - middle);                         \
        GT_WHOLE_BYTES(bits, middle)                                                             \
        for (; i < count; i++) row[i] = (T)((gt_field##bits(x, at + i) ^ middle) - middle);      \
    }
GT_FIELDS(i4, int8_t, 4, 8)
GT_FIELDS(u4, uint8_t, 4, 0)
GT_FIELDS(f4e2m1, uint8_t, 4, 0)
GT_FIELDS(i2, int8_t, 2, 2)
GT_FIELDS(u2, uint8_t, 2, 0)
#undef GT_FIELDS
#undef GT_WHOLE_BYTES
#undef GT_LOW
#undef GT_HIGH

#endif
