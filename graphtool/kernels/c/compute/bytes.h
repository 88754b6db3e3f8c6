/* Numbers of 8 bits that a kernel widens as it reads them: integers of -128 … 127 as floats. */
#ifndef GT_BYTES_H
#define GT_BYTES_H

#include "prelude.h"

#if defined __AVX512F__ || defined __AVX2__ || defined __SSE4_1__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

/* A vector of numbers as floats. */
GT_INLINE gt_vf gt_load_bytes(const int8_t *p)
{
#if GT_LANES == 1
    return (float)*p;
#elif GT_LANES == 16 && defined __AVX512F__
    return (gt_vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
#elif GT_LANES == 8 && defined __AVX2__
    return (gt_vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#elif GT_LANES == 4 && defined __SSE4_1__
    int32_t word;
    memcpy(&word, p, sizeof word);
    return (gt_vf)_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(word)));
#elif GT_LANES == 4 && defined __aarch64__
    int32_t word;
    memcpy(&word, p, sizeof word);
    const int8x8_t few = vreinterpret_s8_s32(vdup_n_s32(word));
    return (gt_vf)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(few))));
#else
    gt_vf v;
    for (int i = 0; i < GT_LANES; i++) v[i] = (float)p[i];
    return v;
#endif
}

#endif
