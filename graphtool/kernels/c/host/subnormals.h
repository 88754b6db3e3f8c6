/* Subnormal numbers as 0, while a run computes: where they occur, CPUs take up to a hundred times
   as long for them. The modes of the caller's thread are restored after the run. On other CPUs
   than these nothing changes. */
#ifndef GT_SUBNORMALS_H
#define GT_SUBNORMALS_H

#include "team.h"

#if defined __SSE__
/* MXCSR: results (bit 15) and operands (bit 6) */
static inline uint64_t gt_modes(void) { return __builtin_ia32_stmxcsr(); }
static inline void gt_set_modes(uint64_t modes) { __builtin_ia32_ldmxcsr((unsigned)modes); }
enum { GT_TO_ZERO = 0x8040 };
#elif defined __aarch64__
/* FPCR.FZ, for both */
static inline uint64_t gt_modes(void)
{
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return modes;
}
static inline void gt_set_modes(uint64_t modes)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(modes));
}
enum { GT_TO_ZERO = 1 << 24 };
#else
static inline uint64_t gt_modes(void) { return 0; }
static inline void gt_set_modes(uint64_t modes) { (void)modes; }
enum { GT_TO_ZERO = 0 };
#endif

static inline void gt_body_to_zero(void (*body)(const void *state, gt_worker *w),
                                   const void *state, gt_worker *w)
{
    const uint64_t modes = gt_modes();
    gt_set_modes(modes | GT_TO_ZERO);
    body(state, w);
    gt_set_modes(modes);
}
#define GT_BODY(body, state, w) gt_body_to_zero(body, state, w)

#endif
