/* CUDA's words in C: a block runs as fibers, one for each thread, in an order that is drawn. */
#ifndef CUDA_ON_C_H
#define CUDA_ON_C_H

typedef struct {
    unsigned x;
} cuda_place;

extern cuda_place threadIdx, blockIdx, blockDim, gridDim;

/* Waits for all threads of the block. */
void __syncthreads(void);

#define __shared__ static
#define __restrict__ restrict
#endif
