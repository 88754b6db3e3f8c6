/* Matrix product with a packed right-hand side, in large tiles in CUDA.

   GT_HALF     the type of the numbers, as half.h calls it; sums are float
   GT_UNIT     they are float, and multiplied as product_cuda.h says. With neither, u8 by s8, sums
               are int32_t, which wrap around
   GT_M GT_N GT_K  rows, columns and depth
   GT_LDA      numbers between the starts of adjacent rows of A
   GT_LDK      floats between adjacent ones of a row of A, if they are not adjacent in memory
   GT_BATCH    how many independent products
   GT_A(b)     A of product b
   GT_B(b)     B of product b, packed [ceil(N/128)][8·ceil(K/(8·G))][128][G], zero padded; G
               numbers have 16 bytes
   GT_ROWS     rows of the tile of a block, a literal: 64 or 128
   GT_SHARED   bytes of shared memory that the launch gives a block, a literal
   GT_EPILOGUE as gemm.h has it; it gets one sum at a time, adjacent ones in adjacent threads */
#include "cuda_wide.h"
#include "template_begin.h"
#include "gemm_operands.h"

#define GT_WHOLE(g) \
    ((((uintptr_t)GT_A(g) | (uintptr_t)((GT_LDA) * (int64_t)sizeof(GT_NUMBER))) & 15) == 0)

#include "product_wide_cuda.h"

#include "template_end.h"
