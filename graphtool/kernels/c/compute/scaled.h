/* Rows of sums to bytes, for processors whose memory is small: (float)(a + b)·scale, rounded to the
   nearest whole number, with a zero point added, as gt_row_round_u8 and gt_row_round_i8 do it. The
   sum wraps around. No row of floats is kept. */
#ifndef GT_SCALED_H
#define GT_SCALED_H

#include "rows.h"

#if defined __ARM_FEATURE_MVE && (__ARM_FEATURE_MVE & 2)
#include <arm_mve.h>

/* Vectors take a subnormal number as 0. That is what it is rounded to, and a sum times a subnormal
   scale is below 1/2. A NaN becomes 0; of rounded numbers, those that no word holds the nearest
   word. Narrowing saturates. */
GT_INLINE int32x4_t gt_scaled_words(int32x4_t sum, float32x4_t scale, int32_t zero)
{
    const float32x4_t x = vmulq_f32(vcvtq_f32_s32(sum), scale);
    const int32x4_t whole = vcvtnq_s32_f32(x);
    if (zero == 0) return whole;
    return vpselq_s32(vqaddq_n_s32(whole, zero), vdupq_n_s32(0), vcmpeqq_f32(x, x));
}

/* Bytes in the low quarter of each word; what is above them is not defined. Of its functions for
   these instructions a compiler copies what they overwrite. */
GT_INLINE uint32x4_t gt_scaled_bytes_u8(int32x4_t v)
{
    __asm__("vqmovunb.s32 %q0, %q0\n\tvqmovnb.u16 %q0, %q0" : "+w"(v));
    return (uint32x4_t)v;
}
GT_INLINE uint32x4_t gt_scaled_bytes_i8(int32x4_t v)
{
    __asm__("vqmovnb.s32 %q0, %q0\n\tvqmovnb.s16 %q0, %q0" : "+w"(v));
    return (uint32x4_t)v;
}

#define GT_SCALED_SOME(kind)                                                                      \
    for (; i + 4 <= count; i += 4) {                                                              \
        const int32x4_t sum = vaddq_s32(vld1q_s32(a + i), vld1q_s32(b + i));                      \
        const int32x4_t words = gt_scaled_words(sum, vld1q_f32(scale + i), zero);                 \
        vstrbq_u32((uint8_t *)p + i, gt_scaled_bytes_##kind(words));                              \
    }
#else
#define GT_SCALED_SOME(kind)                                                                      \
    for (; i + 2 <= count; i += 2) {                                                              \
        const float x[] = {(float)gt_add_i32(a[i], b[i]) * scale[i],                              \
                           (float)gt_add_i32(a[i + 1], b[i + 1]) * scale[i + 1]};                 \
        gt_row_round_##kind(p + i, x, 2, zero);                                                   \
    }
#endif

#define GT_SCALED(kind, T)                                                                        \
    GT_INLINE void gt_scaled_##kind(T *p, const int32_t *a, const int32_t *b, const float *scale, \
                                    int64_t count, int32_t zero)                                  \
    {                                                                                             \
        int64_t i = 0;                                                                            \
        GT_SCALED_SOME(kind)                                                                      \
        for (; i < count; i++) {                                                                  \
            const float x = (float)gt_add_i32(a[i], b[i]) * scale[i];                             \
            gt_row_round_##kind(p + i, &x, 1, zero);                                              \
        }                                                                                         \
    }
GT_SCALED(u8, uint8_t)
GT_SCALED(i8, int8_t)
#undef GT_SCALED
#undef GT_SCALED_SOME

#endif
