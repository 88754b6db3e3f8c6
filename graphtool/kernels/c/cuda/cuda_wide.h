/* The instructions by which the four warps of a block multiply together (wgmma, of sm_90a), and
   copies whose bytes a barrier counts.

   A product is of 64 rows by 128 columns, and of 32 bytes of the depth. Both operands are in shared
   memory, in pieces of 16 bytes of a row or of a column; or rows of floats in registers, as
   cuda_unit.h has words of A, for the 16 rows of a warp. A descriptor says where:

   gt_in_rows     a row has 128 bytes. Its piece i is at place i ^ (row % 8), so that neither
                  pieces of a row nor those of eight rows ask one bank twice; the first row starts
                  at a multiple of 1,024 bytes
   gt_in_columns  the first pieces of all columns lie side by side, then all second ones, ...

   A warp has 16 rows of the sums; d[4 j + s] is in the columns from 8 j on, where cuda_unit.h has
   d[s]. What a group of products adds is there when it was waited for, and before that nobody may
   touch the sums, or what is multiplied. Devices that lack these instructions multiply by those of
   a warp. */
#ifndef GT_CUDA_WIDE_H
#define GT_CUDA_WIDE_H

#include "cuda_unit.h"

#define GT_WIDE_ROWS 64
#define GT_WIDE_COLUMNS 128
#define GT_WIDE_SUMS (GT_WIDE_ROWS * GT_WIDE_COLUMNS / GT_TEAM) /* of a thread */
#define GT_WIDE_BYTES 32                                        /* of the depth */
#define GT_ROW_BYTES 128


/* A descriptor: places in shared memory in units of 16 bytes, from bit 0 where it starts, from bit
   16 the distance of pieces, from bit 32 that of eights of rows or columns, and from bit 62 how
   pieces lie: 1 as in rows. */
#define GT_DESCRIPTOR(at, pieces, eights, how)                                                    \
    ((uint64_t)((at) >> 4 & 0x3fff) | (uint64_t)((pieces) >> 4) << 16 |                           \
     (uint64_t)((eights) >> 4) << 32 | (uint64_t)(how) << 62)
#define gt_in_rows(at) GT_DESCRIPTOR(gt_shared(at), 16, 8 * GT_ROW_BYTES, 1)
#define gt_in_columns(at) GT_DESCRIPTOR(gt_shared(at), 16 * GT_WIDE_COLUMNS, 8 * 16, 0)
#define GT_FURTHER(bytes) ((uint64_t)((bytes) >> 4)) /* what moves the start of a descriptor */

/* The words of this warp's rows from byte `k` on: rows as gt_in_rows has them. */
GT_INLINE void gt_wide_rows(uint32_t *x, const unsigned char *rows, uint32_t k)
{
    const uint32_t lane = threadIdx.x % GT_WARP, row = threadIdx.x / GT_WARP * 16 + lane % 16;
    gt_squares(x, rows + row * GT_ROW_BYTES + ((k / 16 + lane / 16) ^ row % 8) * 16);
}

#ifdef __CUDACC__
extern __shared__ __align__(1024) unsigned char gt_given[];
/* The shared memory that the launch gave, of which so many bytes are used. */
#define gt_room(bytes) ((void *)gt_given)

/* Shows what this thread has written to shared memory to the unit and to bulk copies. */
GT_INLINE void gt_async_fence(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Makes a barrier, for one copy at a time. */
GT_INLINE void gt_barrier(uint64_t *own)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(gt_shared(own)) : "memory");
}

/* Copies bytes into shared memory, a multiple of 16 as both addresses are. */
GT_INLINE void gt_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(gt_shared(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 ::"r"(gt_shared(to)), "l"(from), "r"(bytes), "r"(gt_shared(barrier)) : "memory");
}

/* Waits for the copy of a barrier: `turn` is 0 for the first one, then 1, 0, 1, ... */
GT_INLINE void gt_barrier_wait(uint64_t *barrier, uint32_t turn)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}"
                 ::"r"(gt_shared(barrier)), "r"(turn) : "memory");
}
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GT_FOUR_WARPS
#define GT_SUMS(r, d, i)                                                                          \
    r(d[i]), r(d[i + 1]), r(d[i + 2]), r(d[i + 3]), r(d[i + 4]), r(d[i + 5]), r(d[i + 6]),        \
        r(d[i + 7])
#define GT_FLOAT(x) "+f"(x) /* how registers are named */
#define GT_INTEGER(x) "+r"(x)
#define GT_WIDE(name, T, r, shape, more)                                                          \
    GT_INLINE void gt_wide_##name(T *d, uint64_t a, uint64_t b)                                   \
    {                                                                                             \
        asm volatile(                                                                             \
            "{\n.reg .pred p;\nsetp.eq.u32 p, 0, 0;\n" GT_ASSEMBLY(shape)                         \
            "%64, %65, p" more ";\n}"                                                             \
            : GT_ALL_SUMS(r, d) : "l"(a), "l"(b) : "memory");                                     \
    }
#define GT_ASSEMBLY(shape)                                                                        \
    "wgmma.mma_async.sync.aligned." shape " {"                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
#define GT_ALL_SUMS(r, d)                                                                         \
    GT_SUMS(r, d, 0), GT_SUMS(r, d, 8), GT_SUMS(r, d, 16), GT_SUMS(r, d, 24), GT_SUMS(r, d, 32),  \
        GT_SUMS(r, d, 40), GT_SUMS(r, d, 48), GT_SUMS(r, d, 56)
GT_WIDE(bf16, float, GT_FLOAT, "m64n128k16.f32.bf16.bf16", ", 1, 1, 0, 0")
GT_WIDE(f16, float, GT_FLOAT, "m64n128k16.f32.f16.f16", ", 1, 1, 0, 0")
GT_WIDE(u8, int32_t, GT_INTEGER, "m64n128k32.s32.u8.s8", "") /* the sums wrap around */
#undef GT_WIDE

/* Rows in registers, which nobody may touch before the product was waited for. `more`: 0: the sums
   begin at 0. */
GT_INLINE void gt_wide_tf32(float *d, const uint32_t *a, uint64_t b, int more)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
                 GT_ASSEMBLY("m64n128k8.f32.tf32.tf32")
                 "{%64, %65, %66, %67}, %68, p, 1, 1;\n}"
                 : GT_ALL_SUMS(GT_FLOAT, d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more) : "memory");
}
#undef GT_ASSEMBLY
#undef GT_ALL_SUMS
#undef GT_FLOAT
#undef GT_INTEGER
#undef GT_SUMS

/* Begins a group of products, ends it, and waits for all groups. */
GT_INLINE void gt_wide_begin(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
GT_INLINE void gt_wide_end(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
GT_INLINE void gt_wide_wait(void) { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
#endif

#ifndef GT_FOUR_WARPS
/* Where in the room a descriptor starts. */
#define GT_STARTS(how) (((uint32_t)(how) & 0x3fff) * 16 - gt_shared(gt_room(0)))
#define GT_BY_WARPS(name, T)                                                                      \
    GT_INLINE void gt_warps_##name(T *d, const uint32_t *x, uint64_t b)                           \
    {                                                                                             \
        const uint32_t lane = threadIdx.x % GT_WARP;                                              \
        const unsigned char *right = (const unsigned char *)gt_room(0) + GT_STARTS(b) +           \
                                     lane % 8 * 16 + lane / 16 * 128 +                            \
                                     lane / 8 % 2 * (16 * GT_WIDE_COLUMNS);                       \
        uint32_t w[4];                                                                            \
        GT_UNROLL                                                                                 \
        for (int j = 0; j < GT_WIDE_COLUMNS / 8; j += 2) {                                        \
            gt_squares(w, right + j * 128);                                                       \
            gt_multiply_##name(d + 4 * j, x, w);                                                  \
            gt_multiply_##name(d + 4 * j + 4, x, w + 2);                                          \
        }                                                                                         \
    }
#define GT_WIDE(name, T)                                                                          \
    GT_BY_WARPS(name, T)                                                                          \
    GT_INLINE void gt_wide_##name(T *d, uint64_t a, uint64_t b)                                   \
    {                                                                                             \
        const uint32_t k = GT_STARTS(a) % GT_ROW_BYTES;                                           \
        uint32_t x[4];                                                                            \
        gt_wide_rows(x, (const unsigned char *)gt_room(0) + GT_STARTS(a) - k, k);                 \
        gt_warps_##name(d, x, b);                                                                 \
    }
GT_WIDE(bf16, float)
GT_WIDE(f16, float)
GT_WIDE(u8, int32_t)
GT_BY_WARPS(tf32, float)
#undef GT_BY_WARPS
#undef GT_WIDE
GT_INLINE void gt_wide_tf32(float *d, const uint32_t *a, uint64_t b, int more)
{
    GT_UNROLL
    for (int s = 0; s < GT_WIDE_SUMS; s++) d[s] = more ? d[s] : 0;
    gt_warps_tf32(d, a, b);
}
GT_INLINE void gt_wide_begin(void) {}
GT_INLINE void gt_wide_end(void) {}
GT_INLINE void gt_wide_wait(void) {}
#endif

#endif
