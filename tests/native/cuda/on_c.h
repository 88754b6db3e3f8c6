/* CUDA's words in C, so that gcc compiles emitted kernels: machine.h has what runs them. */
#ifndef ON_C_H
#define ON_C_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    unsigned x;
} on_c_place;

extern on_c_place threadIdx, blockIdx, blockDim, gridDim;

/* Waits for all threads of the block. */
void __syncthreads(void);

/* Waits for the launches before this one, if it started while they ran. Until then a thread asks
   for memory, which the driver knows, and touches none. */
void on_c_after(void);
void on_c_ask_for(const void *at, unsigned bytes);
#define GT_AFTER() on_c_after()
#define GT_ASK_FOR(at, bytes) on_c_ask_for(at, bytes)

/* Blocks run one after the other, so that memory is as it was written. */
#define __threadfence() ((void)0)
static inline unsigned atomicAdd(unsigned *at, unsigned more)
{
    const unsigned before = *at;
    *at += more;
    return before;
}

#define __device__ __attribute__((unused))
#define __shared__ static __attribute__((section("on_c_memory")))
#define GT_SHARED_ARRAY(type, name, count) __shared__ __attribute__((aligned(16))) type name[count]

/* Waits for all threads of the warp. */
void __syncwarp(void);

/* The bytes that another lane of the warp gives. */
void on_c_lane_xor(void *to, const void *from, unsigned bytes, unsigned by);
#define GT_LANE_XOR(T, to, from, by) on_c_lane_xor(&(to), &(from), sizeof(T), by)

/* Stops the program unless a piece of memory starts at a multiple of its bytes. */
void on_c_must_align(const void *at, unsigned bytes);
#define GT_MUST_ALIGN(at, bytes) on_c_must_align(at, bytes)

/* What cuda_unit.h has of a GPU's own instructions. */
void gt_multiply_tf32(float *d, const uint32_t *a, const uint32_t *b);
void gt_multiply_bf16(float *d, const uint32_t *a, const uint32_t *b);
void gt_multiply_f16(float *d, const uint32_t *a, const uint32_t *b);
void gt_multiply_u8(int32_t *d, const uint32_t *a, const uint32_t *b);
void gt_squares(uint32_t *r, const void *row);
void gt_squares_across(uint32_t *r, const void *row);
void gt_copy_16(void *to, const void *from, int bytes);
void gt_copy_4(void *to, const void *from, int bytes);
void gt_copy_group(void);
void gt_copy_wait(int groups);
float gt_other_lane(float x, int bits);

/* What cuda_wide.h has of them. With ON_C_ONE_WARP it multiplies by the instructions of a warp. */
void *gt_room(uint32_t bytes);
uint32_t gt_shared(const void *at);
void gt_async_fence(void);
void gt_barrier(uint64_t *own);
void gt_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *barrier);
void gt_barrier_wait(uint64_t *barrier, uint32_t turn);
#ifndef ON_C_ONE_WARP
#define GT_FOUR_WARPS
void gt_wide_begin(void);
void gt_wide_bf16(float *d, uint64_t a, uint64_t b);
void gt_wide_f16(float *d, uint64_t a, uint64_t b);
void gt_wide_u8(int32_t *d, uint64_t a, uint64_t b);
void gt_wide_tf32(float *d, const uint32_t *a, uint64_t b, int more);
void gt_wide_end(void);
void gt_wide_wait(void);
#endif

#ifndef MACHINE_H
/* Where a module's shared memory is, which the driver fills before each block. */
extern char __start_on_c_memory[] __attribute__((weak)), __stop_on_c_memory[] __attribute__((weak));
__attribute__((used)) char *on_c_shared(size_t *bytes)
{
    *bytes = (size_t)(__stop_on_c_memory - __start_on_c_memory);
    return __start_on_c_memory;
}
#endif
#endif
