/* How a kernel is declared in CUDA. The C program around the kernels reads the prototypes too. */
#ifndef GT_CUDA_H
#define GT_CUDA_H

#ifdef __CUDACC__
#define GT_KERNEL extern "C" __global__
#else
#define GT_KERNEL
#endif

/* From sm_90 on a kernel may start while those before it run. First it asks for constants, so that
   its blocks together bring them into the second cache: nothing that a kernel writes may be touched
   yet. Then GT_AFTER lets the next kernel start too, and waits until all before have ended, and
   what they wrote is there. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
/* Asks for the share of this thread in so many bytes; thread 0 of each block has the first pieces.
   A size is a multiple of 16. */
static __device__ void gt_ask_for(const char *at, size_t bytes)
{
    const size_t piece = 4096, first = (size_t)threadIdx.x * gridDim.x + blockIdx.x;
    for (size_t from = first * piece; from + 16 <= bytes; from += piece * gridDim.x * blockDim.x) {
        const unsigned size = (unsigned)(bytes - from < piece ? bytes - from : piece) & ~15u;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at + from), "r"(size));
    }
}
#define GT_ASK_FOR(at, bytes) gt_ask_for((const char *)(at), bytes)
#define GT_AFTER()                                                                                \
    asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory")
#elif !defined GT_AFTER
#define GT_ASK_FOR(at, bytes) ((void)0)
#define GT_AFTER() ((void)0)
#endif

#define GT_LANES 1  /* a thread computes one element at a time */
#define GT_TEAM 128 /* threads of a block */
#define GT_WARP 32  /* threads in step; packed weights are in panels of so many columns, or more */
#define GT_WARPS (GT_TEAM / GT_WARP)

#endif
