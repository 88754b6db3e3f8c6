/* Direct 2-d convolution, channels last, in OpenCL C: the macros of conv_direct.h, of which it
   needs no tile but GT_NV, and GT_ROWS as product_opencl.h has it. No matrix of windows is
   written.

   GT_IH GT_IW  rows and columns of the image, if the padding around it is not in memory; then
   GT_PT GT_PL  are the rows of padding above it, and the columns left of it */
#include "prelude.h"
#include "template_begin.h"
#define GT_BY_LINES 0 /* so that the numbers of a run all count, or none of them */
#define GT_PANEL_WIDTH (GT_NV)
#define GT_PADDED (GT_RUN)
#include "conv_operands.h"

#include "product_opencl.h"

#include "template_end.h"
