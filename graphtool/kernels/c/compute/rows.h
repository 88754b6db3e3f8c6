/* Rows of bytes to rows of words and back, for loops that compute in words, and rows of floats to
   16 bits. Conversions of words to bytes keep the low eight bits. */
#ifndef GT_ROWS_H
#define GT_ROWS_H

#include "integers.h"
#include "nest.h"

#ifdef __ARM_FEATURE_DSP
#include <arm_acle.h>
#endif

#if (defined __AVX512F__ && GT_LANES == 16) || (defined __AVX2__ && GT_LANES == 8)
#include <immintrin.h>
#define GT_ROWS_WIDE
#endif

#if defined GT_ROWS_WIDE && GT_LANES == 16
#define GT_ROWS_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define GT_ROWS_KEEP(p, v) _mm512_storeu_si512(p, v)
#define GT_ROWS_U8 _mm512_cvtepu8_epi32
#define GT_ROWS_I8 _mm512_cvtepi8_epi32
#elif defined GT_ROWS_WIDE
#define GT_ROWS_LOAD(p) _mm_loadl_epi64((const __m128i *)(p))
#define GT_ROWS_KEEP(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define GT_ROWS_U8 _mm256_cvtepu8_epi32
#define GT_ROWS_I8 _mm256_cvtepi8_epi32
#endif

#if defined GT_ROWS_WIDE && GT_LANES == 16 && defined __AVX512BW__ && defined __AVX512VL__
#define GT_ROWS_MASKED /* elements that do not fill a vector are read and written with a mask */
#define GT_ROWS_FIRST(n) ((__mmask16)((1u << (n)) - 1))
#endif

#ifdef GT_ROWS_MASKED
#define GT_ROWS_WIDENED(WIDE)                                                                     \
    for (; i + 16 <= count; i += 16) GT_ROWS_KEEP(row + i, WIDE(GT_ROWS_LOAD(p + i)));            \
    if (i < count)                                                                                \
        GT_ROWS_KEEP(row + i, WIDE(_mm_maskz_loadu_epi8(GT_ROWS_FIRST(count - i), p + i)));       \
    return;
#elif defined GT_ROWS_WIDE
#define GT_ROWS_WIDENED(WIDE)                                                                     \
    for (; i + GT_LANES <= count; i += GT_LANES) GT_ROWS_KEEP(row + i, WIDE(GT_ROWS_LOAD(p + i)));
#else
#define GT_ROWS_WIDENED(WIDE)
#endif

GT_INLINE void gt_row_of_u8(int32_t *row, const uint8_t *p, int64_t count)
{
    int64_t i = 0;
    GT_ROWS_WIDENED(GT_ROWS_U8)
    for (; i < count; i++) row[i] = p[i];
}

GT_INLINE void gt_row_of_i8(int32_t *row, const int8_t *p, int64_t count)
{
    int64_t i = 0;
    GT_ROWS_WIDENED(GT_ROWS_I8)
    for (; i < count; i++) row[i] = p[i];
}

GT_INLINE void gt_row_to_u8(uint8_t *p, const int32_t *row, int64_t count)
{
    int64_t i = 0;
#if defined GT_ROWS_WIDE && GT_LANES == 16
    for (; i + 16 <= count; i += 16) {
        const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_loadu_si512(row + i));
        _mm_storeu_si128((__m128i *)(p + i), bytes);
    }
#endif
#ifdef GT_ROWS_MASKED
    if (i < count) {
        const __mmask16 there = GT_ROWS_FIRST(count - i);
        const __m512i words = _mm512_maskz_loadu_epi32(there, row + i);
        _mm_mask_storeu_epi8(p + i, there, _mm512_cvtepi32_epi8(words));
    }
    return;
#endif
    for (; i < count; i++) p[i] = (uint8_t)row[i];
}

GT_INLINE void gt_row_to_i8(int8_t *p, const int32_t *row, int64_t count)
{
    gt_row_to_u8((uint8_t *)p, row, count);
}

/* Floats to bytes as gt_cast_f32_u8 and gt_cast_f32_i8 do it, clamped, NaN as 0: towards zero
   (cast), or to the nearest with a zero point added, which is a number of the type (round). */
#ifdef GT_ROWS_MASKED
/* Of a NaN the maximum or minimum is its second operand; as a word, what is too large for one is
   0x80000000. */
GT_INLINE __m128i gt_row_cast_bytes_u8(__m512 x, int32_t zero)
{
    (void)zero;
    x = _mm512_max_ps(x, _mm512_setzero_ps());
    return _mm512_cvtusepi32_epi8(_mm512_cvttps_epu32(x));
}
GT_INLINE __m128i gt_row_round_bytes_u8(__m512 x, int32_t zero)
{
    x = _mm512_max_ps(x, _mm512_set1_ps((float)-zero));
    const __m512i words = _mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(zero));
    return _mm512_cvtusepi32_epi8(words); /* without a sign, 0x80000000 and more is large */
}
#define GT_ROWS_WORDS_I8(how, cvt)                                                                \
    GT_INLINE __m128i gt_row_##how##_bytes_i8(__m512 x, int32_t zero)                             \
    {                                                                                             \
        const __m512i z = _mm512_set1_epi32(zero), nan = _mm512_set1_epi32(-zero);                \
        const __mmask16 numbers = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);                           \
        x = _mm512_min_ps(x, _mm512_set1_ps((float)(127 - zero)));                                \
        x = _mm512_max_ps(x, _mm512_set1_ps((float)(-128 - zero)));                               \
        const __m512i words = _mm512_mask_##cvt##ps_epi32(nan, numbers, x);                       \
        return _mm512_cvtepi32_epi8(_mm512_add_epi32(words, z));                                  \
    }
GT_ROWS_WORDS_I8(cast, cvtt)
GT_ROWS_WORDS_I8(round, cvt)
#undef GT_ROWS_WORDS_I8

#define GT_ROWS_BYTES(how, kind, T, zero)                                                         \
    {                                                                                             \
        int64_t i = 0;                                                                            \
        for (; i + 16 <= count; i += 16) {                                                        \
            const __m512 x = _mm512_loadu_ps(row + i);                                            \
            _mm_storeu_si128((__m128i *)(p + i), gt_row_##how##_bytes_##kind(x, zero));           \
        }                                                                                         \
        if (i == count) return;                                                                   \
        const __mmask16 there = GT_ROWS_FIRST(count - i);                                         \
        const __m512 last = _mm512_maskz_loadu_ps(there, row + i);                                \
        _mm_mask_storeu_epi8(p + i, there, gt_row_##how##_bytes_##kind(last, zero));              \
    }
#elif GT_LANES == 1 && (defined __arm__ || defined __riscv) /* a small stack, and no vectors */
#define GT_ROWS_BYTES(how, kind, T, zero)                                                         \
    {                                                                                             \
        for (int64_t i = 0; i < count; i++) p[i] = GT_ROWS_##how(kind, row[i], zero);             \
    }
#else
#define GT_ROWS_BYTES(how, kind, T, zero)                                                         \
    {                                                                                             \
        int32_t words[256];                                                                       \
        GT_SIMD                                                                                   \
        for (int64_t i = 0; i < count; i++) words[i] = GT_ROWS_##how(kind, row[i], zero);         \
        gt_row_to_##kind(p, words, count);                                                        \
    }
#endif
#define GT_ROWS_cast(kind, x, zero) gt_cast_f32_##kind(x)
#define GT_ROWS_round(kind, x, zero) gt_cast_f32_##kind(gt_round_f32(x) + (float)(zero))
#define GT_ROWS_CAST(kind, T)                                                                     \
    GT_INLINE void gt_row_cast_##kind(T *p, const float *row, int64_t count)                      \
        GT_ROWS_BYTES(cast, kind, T, 0)
GT_ROWS_CAST(u8, uint8_t)
GT_ROWS_CAST(i8, int8_t)
#undef GT_ROWS_CAST
#if GT_LANES == 1 && defined __ARM_FP && defined __ARM_FEATURE_DSP && defined __ARM_FEATURE_SAT
/* Where rintf is a call, one instruction rounds to the nearest whole number, saturates, and takes
   NaN to 0. */
GT_INLINE int32_t gt_whole(float x)
{
    float bits;
    __asm__("vcvtr.s32.f32 %0, %1" : "=t"(bits) : "t"(x));
    return (int32_t)gt_bits_of_float(bits);
}
GT_INLINE uint8_t gt_saturated_u8(int32_t x) { return (uint8_t)__usat(x, 8); }
GT_INLINE int8_t gt_saturated_i8(int32_t x)
{
    return (int8_t)__builtin_arm_ssat(x, 8); /* gcc's __ssat changes a sign without a cast */
}
#define GT_ROWS_ROUND(kind, T, smallest)                                                          \
    GT_INLINE void gt_row_round_##kind(T *p, const float *row, int64_t count, int32_t zero)       \
    {                                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                     \
            int32_t whole = gt_whole(row[i]);                                                     \
            if (zero != 0) whole = row[i] == row[i] ? __qadd(whole, zero) : 0;                    \
            p[i] = gt_saturated_##kind(whole);                                                    \
        }                                                                                         \
    }
#elif GT_LANES == 1 && (defined __ARM_FP || defined __riscv_flen)
#define GT_ROWS_ROUND(kind, T, smallest)                                                          \
    GT_INLINE void gt_row_round_##kind(T *p, const float *row, int64_t count, int32_t zero)       \
    {                                                                                             \
        const int32_t least = 0x4b400000 + (smallest)-zero; /* the bits of GT_ROUNDER + that */   \
        for (int64_t i = 0; i < count; i++) {                                                     \
            const int32_t bits = (int32_t)gt_bits_of_float(row[i] + GT_ROUNDER);                  \
            uint32_t y = (uint32_t)bits - (uint32_t)least;                                        \
            if (y > 255) { /* NaN is 0 */                                                         \
                y = bits < least ? 0 : 255;                                                       \
                if ((bits & 0x7fffffff) > 0x7f800000) y = (uint32_t) - (smallest);                \
            }                                                                                     \
            p[i] = (T)((int32_t)y + (smallest));                                                  \
        }                                                                                         \
    }
#else
#define GT_ROWS_ROUND(kind, T, smallest)                                                          \
    GT_INLINE void gt_row_round_##kind(T *p, const float *row, int64_t count, int32_t zero)       \
        GT_ROWS_BYTES(round, kind, T, zero)
#endif
GT_ROWS_ROUND(u8, uint8_t, 0)
GT_ROWS_ROUND(i8, int8_t, INT8_MIN)
#undef GT_ROWS_ROUND
#undef GT_ROWS_BYTES
#undef GT_ROWS_round
#undef GT_ROWS_cast

/* Floats to the nearest bfloat16, as gt_f32_to_bf16 does it. */
GT_INLINE void gt_row_cast_each_bf16(uint16_t *p, const float *row, int64_t count)
{
    GT_SIMD
    for (int64_t i = 0; i < count; i++) p[i] = gt_f32_to_bf16(row[i]);
}

#if defined GT_ROWS_MASKED && defined __AVX512BF16__ && defined __AVX512DQ__
#define GT_ROWS_TINY(x) _mm512_fpclass_ps_mask(x, 0x20) /* subnormal: the instruction makes it 0 */
GT_NOINLINE void gt_row_cast_tiny_bf16(uint16_t *p, const float *row, int64_t count)
{
    gt_row_cast_each_bf16(p, row, count);
}

GT_INLINE void gt_row_cast_bf16(uint16_t *p, const float *row, int64_t count)
{
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m512 low = _mm512_loadu_ps(row + i), high = _mm512_loadu_ps(row + i + 16);
        if (__builtin_expect(GT_ROWS_TINY(low) | GT_ROWS_TINY(high), 0))
            gt_row_cast_tiny_bf16(p + i, row + i, 32);
        else
            _mm512_storeu_si512(p + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
    for (; i < count; i += 16) {
        const int64_t some = gt_min(16, count - i);
        const __mmask16 there = GT_ROWS_FIRST(some);
        const __m512 x = _mm512_maskz_loadu_ps(there, row + i);
        if (__builtin_expect(GT_ROWS_TINY(x), 0))
            gt_row_cast_tiny_bf16(p + i, row + i, some);
        else
            _mm256_mask_storeu_epi16(p + i, there, (__m256i)_mm512_cvtneps_pbh(x));
    }
}
#undef GT_ROWS_TINY
#else
GT_INLINE void gt_row_cast_bf16(uint16_t *p, const float *row, int64_t count)
{
    gt_row_cast_each_bf16(p, row, count);
}
#endif

/* Floats to float16 and back, as gt_f32_to_f16 and gt_f16_to_f32 do it. */
#if defined __AVX512F__ && GT_LANES == 16
#define GT_ROWS_HALVES(x) _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#define GT_ROWS_FLOATS(p, h) _mm512_storeu_ps(p, _mm512_cvtph_ps(h))
#define GT_ROWS_PUT(p, h) _mm256_storeu_si256((__m256i *)(p), h)
#define GT_ROWS_GET(p) _mm256_loadu_si256((const __m256i *)(p))
#define GT_ROWS_FLOAT(p) _mm512_loadu_ps(p)
#elif defined __F16C__ && GT_LANES == 8
#define GT_ROWS_HALVES(x) _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#define GT_ROWS_FLOATS(p, h) _mm256_storeu_ps(p, _mm256_cvtph_ps(h))
#define GT_ROWS_PUT(p, h) _mm_storeu_si128((__m128i *)(p), h)
#define GT_ROWS_GET(p) _mm_loadu_si128((const __m128i *)(p))
#define GT_ROWS_FLOAT(p) _mm256_loadu_ps(p)
#endif

GT_INLINE void gt_row_cast_f16(uint16_t *p, const float *row, int64_t count)
{
    int64_t i = 0;
#ifdef GT_ROWS_HALVES
    for (; i + GT_LANES <= count; i += GT_LANES)
        GT_ROWS_PUT(p + i, GT_ROWS_HALVES(GT_ROWS_FLOAT(row + i)));
#endif
    GT_SIMD
    for (int64_t j = i; j < count; j++) p[j] = gt_f32_to_f16(row[j]);
}

GT_INLINE void gt_row_of_f16(float *row, const uint16_t *p, int64_t count)
{
    int64_t i = 0;
#ifdef GT_ROWS_HALVES
    for (; i + GT_LANES <= count; i += GT_LANES) GT_ROWS_FLOATS(row + i, GT_ROWS_GET(p + i));
#endif
    GT_SIMD
    for (int64_t j = i; j < count; j++) row[j] = gt_f16_to_f32(p[j]);
}

/* The elements of p at these positions, one by one: instructions that gather take longer. */
#define GT_ROWS_AT(t, T)                                                                          \
    GT_INLINE void gt_row_at_##t(T *row, const T *p, const int32_t *at, int64_t count)            \
    {                                                                                             \
        int64_t i = 0;                                                                            \
        for (; i + 4 <= count; i += 4) {                                                          \
            const T a = p[at[i]], b = p[at[i + 1]], c = p[at[i + 2]], d = p[at[i + 3]];           \
            GT_SCALAR;                                                                            \
            row[i] = a, row[i + 1] = b, row[i + 2] = c, row[i + 3] = d;                           \
        }                                                                                         \
        for (; i < count; i++) row[i] = p[at[i]];                                                 \
    }
GT_ROWS_AT(f32, float)
GT_ROWS_AT(f64, double)
GT_ROWS_AT(i32, int32_t)
GT_ROWS_AT(i64, int64_t)
#undef GT_ROWS_AT

/* What a table of 256 bytes has for each byte of p. */
#if defined GT_ROWS_MASKED && defined __AVX512VBMI__
GT_INLINE void gt_row_by_table(void *row, const uint8_t *p, const void *table, int64_t count)
{
    const __m512i *const parts = (const __m512i *)table;
    const __m512i a = _mm512_loadu_si512(parts), b = _mm512_loadu_si512(parts + 1),
                  c = _mm512_loadu_si512(parts + 2), d = _mm512_loadu_si512(parts + 3);
    for (int64_t i = 0; i < count; i += 64) {
        const __mmask64 there = ~(__mmask64)0 >> (64 - gt_min(64, count - i));
        const __m512i x = _mm512_maskz_loadu_epi8(there, p + i);
        const __m512i low = _mm512_permutex2var_epi8(a, x, b);
        const __m512i high = _mm512_permutex2var_epi8(c, x, d); /* of bytes from 128 on */
        _mm512_mask_storeu_epi8((uint8_t *)row + i, there,
                                _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
    }
}
#else
GT_INLINE void gt_row_by_table(void *row, const uint8_t *p, const void *table, int64_t count)
{
    uint8_t *const y = (uint8_t *)row;
    const uint8_t *const entries = (const uint8_t *)table;
    for (int64_t i = 0; i < count; i++) y[i] = entries[p[i]];
}
#endif

#undef GT_ROWS_HALVES
#undef GT_ROWS_FLOATS
#undef GT_ROWS_PUT
#undef GT_ROWS_GET
#undef GT_ROWS_FLOAT
#undef GT_ROWS_MASKED
#undef GT_ROWS_FIRST
#undef GT_ROWS_WIDENED
#undef GT_ROWS_LOAD
#undef GT_ROWS_KEEP
#undef GT_ROWS_U8
#undef GT_ROWS_I8
#undef GT_ROWS_WIDE

#endif
