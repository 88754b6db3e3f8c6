/* Direct 2-d convolution of small integers, channels last, in OpenCL C: the macros of conv_int.h,
   of which it needs no tile but GT_NV, and GT_ROWS as product_opencl.h has it. */
#include "prelude.h"
#include "template_begin.h"
#define GT_PANEL_WIDTH (GT_NV)
#include "conv_int_operands.h"

#include "product_opencl.h"

#include "template_end.h"
