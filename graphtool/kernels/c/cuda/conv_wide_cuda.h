/* Direct 2-d convolution, channels last, in large tiles in CUDA. The pixels of all
   results are the rows of one product.

   GT_HALF     the type of the numbers, as half.h calls it; sums are float
   GT_UNIT     they are float, and multiplied as product_cuda.h says. With neither, u8 by s8, sums
               are int32_t, which wrap around
   GT_BATCH GT_OH GT_OW  images, output rows, output columns
   GT_C GT_O   input channels, a multiple of G, and output channels
   GT_KH GT_KW GT_SH GT_SW GT_DH GT_DW  window, strides, dilations
   GT_X        the input
   GT_XN GT_XH GT_XW  strides of the input in numbers: image, row, pixel
   GT_W        the filters, packed [ceil(O/128)][8·ceil(KH·KW·C/(8·G))][128][G], zero
               padded; G numbers have 16 bytes
   GT_IH GT_IW rows and columns of the image, if the padding around it is not in memory; then
   GT_PT GT_PL are the rows of padding above it, and the columns left of it
   GT_ROWS     pixels of the tile of a block, a literal: 64 or 128
   GT_SHARED   bytes of shared memory that the launch gives a block, a literal
   GT_EPILOGUE as conv_direct.h has it; it gets one sum at a time */
#include "cuda_wide.h"
#include "template_begin.h"
#define GT_GROUPS 1
#include "conv_operands.h"

#define GT_WHOLE(g)                                                                             \
    ((((uintptr_t)GT_X | (uintptr_t)(((GT_XN) | (GT_XH) | (GT_XW)) *                            \
                                     (int64_t)sizeof(GT_NUMBER))) & 15) == 0)

#include "product_wide_cuda.h"

#include "template_end.h"
