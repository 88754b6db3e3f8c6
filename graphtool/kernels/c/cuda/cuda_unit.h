/* The matrix unit of a GPU, copies into shared memory that run beside the arithmetic, and numbers
   that the threads of a warp exchange.

   The unit multiplies words of 32 bits: a float of which it reads the upper 19 bits, or two numbers
   of 16 bits, or four of 8. All have one layout in the registers of a warp. Of A, 16 rows and 8
   words of the depth: a[0] is row lane / 4 and word lane % 4; a[1] eight rows below; a[2] and a[3]
   the same four words further on. Of B, b[0] is word lane % 4 of column lane / 4, and b[1] four
   words further on. Of the sums, d[0] and d[1] are row lane / 4 and columns 2 (lane % 4) and the
   next one; d[2] and d[3] eight rows below. */
#ifndef GT_CUDA_UNIT_H
#define GT_CUDA_UNIT_H

#include "cuda.h"
#include "prelude.h"

#define GT_UNIT_FMA 0 /* ways to multiply floats */
#define GT_UNIT_TF32 1
#define GT_UNIT_PARTS 2

#ifdef __CUDACC__
#define GT_SHARED_ARRAY(type, name, count) __shared__ __align__(16) type name[count]
#define GT_MULTIPLY(name, shape)                                                                  \
    GT_INLINE void gt_multiply_##name(float *d, const uint32_t *a, const uint32_t *b)             \
    {                                                                                             \
        asm("mma.sync.aligned." shape                                                             \
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                    \
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                      \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                  \
    }
GT_MULTIPLY(tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
GT_MULTIPLY(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
GT_MULTIPLY(f16, "m16n8k16.row.col.f32.f16.f16.f32")
#undef GT_MULTIPLY

/* Unsigned bytes by signed ones; the sums wrap around. */
GT_INLINE void gt_multiply_u8(int32_t *d, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* An address as instructions for shared memory want it. */
GT_INLINE uint32_t gt_shared(const void *at) { return (uint32_t)__cvta_generic_to_shared(at); }

/* Four squares of 8 rows of 16 bytes: lane i names row i % 8 of square i / 8. r[s] is word
   lane % 4 of row lane / 4 of square s. */
GT_INLINE void gt_squares(uint32_t *r, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(gt_shared(row)));
}

/* The same, turned over by halves of a word: r[s] has the numbers of column lane / 4 in the rows
   2 (lane % 4) and the next one. */
GT_INLINE void gt_squares_across(uint32_t *r, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(gt_shared(row)));
}

/* Copies `bytes` of 16 into shared memory, the rest are zeros. What was copied is there after the
   group of the copy was waited for. */
GT_INLINE void gt_copy_16(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(gt_shared(to)), "l"(from), "r"(bytes) : "memory");
}

/* The same for 4 bytes. */
GT_INLINE void gt_copy_4(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(gt_shared(to)), "l"(from), "r"(bytes) : "memory");
}

/* Ends a group of this thread's copies. */
GT_INLINE void gt_copy_group(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Waits for this thread's groups, but for the last `n`, a literal. */
#define gt_copy_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* The number of the lane whose number differs by these bits. */
GT_INLINE float gt_other_lane(float x, int bits) { return __shfl_xor_sync(0xffffffffu, x, bits); }
#endif

/* The bits of a float rounded to the 19 that the unit reads. A NaN and an infinity stay, and what
   would become one: the unit cuts it off. */
GT_INLINE uint32_t gt_tf32(uint32_t bits)
{
    return (bits & 0x7fffffffu) < 0x7f7ff000u ? (bits + 0x1000u) & 0xffffe000u : bits;
}

/* What a float has besides the bits that are read of `read`. */
GT_INLINE uint32_t gt_tf32_beside(uint32_t bits, uint32_t read)
{
    return gt_bits_of_float(gt_float_of_bits(bits) - gt_float_of_bits(read & 0xffffe000u));
}

/* What a float has besides: both parts together have 22 bits and more. */
GT_INLINE uint32_t gt_tf32_rest(uint32_t bits) { return gt_tf32_beside(bits, gt_tf32(bits)); }

/* The same, if the unit reads the float as it is, and cuts it off. */
GT_INLINE uint32_t gt_tf32_cut(uint32_t bits) { return gt_tf32_beside(bits, bits); }

#endif
