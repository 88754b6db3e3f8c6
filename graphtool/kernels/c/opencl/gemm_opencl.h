/* Matrix product with a packed right-hand side in OpenCL C: the macros of gemm.h, and GT_ROWS as
   product_opencl.h has it. */
#include "prelude.h"
#include "template_begin.h"
#include "gemm_operands.h"

#include "product_opencl.h"

#include "template_end.h"
