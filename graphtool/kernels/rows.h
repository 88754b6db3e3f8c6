/* Rows of bytes to rows of words and back, for loops that compute in words. Conversions to bytes
   keep the low eight bits. */
#ifndef GT_ROWS_H
#define GT_ROWS_H

#include "prelude.h"

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

#ifdef GT_ROWS_WIDE
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
    for (; i < count; i++) p[i] = (uint8_t)row[i];
}

GT_INLINE void gt_row_to_i8(int8_t *p, const int32_t *row, int64_t count)
{
    gt_row_to_u8((uint8_t *)p, row, count);
}

#undef GT_ROWS_WIDENED
#undef GT_ROWS_LOAD
#undef GT_ROWS_KEEP
#undef GT_ROWS_U8
#undef GT_ROWS_I8
#undef GT_ROWS_WIDE

#endif
