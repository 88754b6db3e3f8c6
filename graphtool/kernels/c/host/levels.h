/* Which level of x86-64 the processor and the system offer: 1 (SSE2), 2 (SSE4.2), 3 (AVX2 and FMA),
   4 (AVX-512 F, BW, CD, DQ, VL), 5 (what -march=sapphirerapids adds for vectors, and AMX). The
   feature lists of 1 to 4 are those of the x86-64 psABI. */
#ifndef GT_LEVELS_H
#define GT_LEVELS_H

#include <cpuid.h>
#include <stdint.h>
#include <stdlib.h>

/* The vector registers that the operating system saves: bits of XCR0. */
static inline uint32_t gt_saved_registers(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static inline int gt_all(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

/* Whether the processor has the vectors and the matrix unit of Sapphire Rapids, and the system
   saves its tiles and lets this process use them. c and d are those of leaf 7. */
static inline int gt_has_tiles(uint32_t c, uint32_t d)
{
#ifdef __linux__
    /* VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI, BITALG, VPOPCNTDQ; AMX-BF16, AVX512-FP16,
       AMX-TILE, AMX-INT8; AVX-VNNI, AVX512-BF16 */
    const uint32_t vectors = 0x5f42, tiles = 0x3c00000, more = 0x30;
    uint32_t a, b, e, f;
    long status;
    if (!gt_all(c, vectors) || !gt_all(d, tiles) || !__get_cpuid_count(7, 1, &a, &b, &e, &f)
        || !gt_all(a, more) || !gt_all(gt_saved_registers(), 0x600e6))
        return 0;
    /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */
    __asm__ volatile("syscall" : "=a"(status) : "a"(158L), "D"(0x1023L), "S"(18L)
                     : "rcx", "r11", "memory");
    return status == 0;
#else
    (void)c, (void)d;
    return 0;
#endif
}

static inline int gt_cpu_level(void)
{
    const uint32_t sse42 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | 1u << 13;
    const uint32_t avx = bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE;
    const uint32_t avx2 = bit_AVX2 | bit_BMI | bit_BMI2, lzcnt = 1u << 5;
    const uint32_t avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
    uint32_t a, b, c, d, features, more, extended = 0;
    if (!__get_cpuid(1, &a, &b, &features, &d) || !gt_all(features, sse42)) return 1;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d)) extended = c;
    if (!__get_cpuid_count(7, 0, &a, &more, &c, &d)) return 2;
    if (!gt_all(features, avx) || !gt_all(more, avx2) || !gt_all(extended, lzcnt)) return 2;
    if (!gt_all(gt_saved_registers(), 0x06)) return 2; /* SSE and AVX state */
    if (!gt_all(more, avx512) || !gt_all(gt_saved_registers(), 0xe6)) return 3;
    return gt_has_tiles(c, d) ? 5 : 4;
}

/* The level to use: the processor's, or a lower one that GRAPHTOOL_LEVEL=1 … 5 asks for. */
static inline int gt_x86_level(void)
{
    const int level = gt_cpu_level();
    const char *most = getenv("GRAPHTOOL_LEVEL");
    const int wanted = most && most[0] >= '1' && most[0] <= '5' && !most[1] ? most[0] - '0' : level;
    return wanted < level ? wanted : level;
}

#endif
