/* How a kernel is declared in CUDA. The C program around the kernels reads the prototypes too. */
#ifndef GT_CUDA_H
#define GT_CUDA_H

#ifdef __CUDACC__
#define GT_KERNEL extern "C" __global__
#else
#define GT_KERNEL
#endif

/* Begins each kernel. From sm_90 on a kernel may start while the one before runs: it lets the next
   one start too, and then waits until all before it have ended, and what they wrote is there. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
#define GT_AFTER()                                                                                \
    asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory")
#elif !defined GT_AFTER
#define GT_AFTER() ((void)0)
#endif

#define GT_LANES 1  /* a thread computes one element at a time */
#define GT_TEAM 128 /* threads of a block */
#define GT_WARP 32  /* threads in step; packed weights are in panels of so many columns, or more */
#define GT_WARPS (GT_TEAM / GT_WARP)

#endif
