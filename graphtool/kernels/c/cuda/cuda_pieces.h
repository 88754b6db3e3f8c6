/* Neighbouring elements that a thread reads and writes by one instruction: up to 16 bytes, which
   start at a multiple of their number. They are in an array, whose loops are unrolled, so that its
   elements are registers. */
#ifndef GT_CUDA_PIECES_H
#define GT_CUDA_PIECES_H

#include <stdint.h>

#define GT_PIECE __attribute__((aligned(16)))
#ifndef GT_MUST_ALIGN /* on a processor it stops the program */
#define GT_MUST_ALIGN(at, bytes) ((void)0)
#endif

#define GT_PIECES_OF(bytes, words, T)                                                             \
    typedef struct __attribute__((aligned(bytes))) {                                              \
        T word[words];                                                                            \
    } gt_piece_##bytes;                                                                           \
    static __device__ void gt_read_##bytes(void *to, const void *from)                            \
    {                                                                                             \
        GT_MUST_ALIGN(from, bytes);                                                               \
        *(gt_piece_##bytes *)to = *(const gt_piece_##bytes *)from;                                \
    }                                                                                             \
    static __device__ void gt_write_##bytes(void *to, const void *from)                           \
    {                                                                                             \
        GT_MUST_ALIGN(to, bytes);                                                                 \
        *(gt_piece_##bytes *)to = *(const gt_piece_##bytes *)from;                                \
    }
GT_PIECES_OF(2, 1, uint16_t)
GT_PIECES_OF(4, 1, uint32_t)
GT_PIECES_OF(8, 2, uint32_t)
GT_PIECES_OF(16, 4, uint32_t)
#undef GT_PIECES_OF

#endif
