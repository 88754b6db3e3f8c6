/* Product of small integers with a packed right-hand side in OpenCL C: the macros of gemm_int.h, of
   which it needs no tile but GT_NV, and GT_ROWS as product_opencl.h has it. */
#include "prelude.h"
#include "template_begin.h"
#include "gemm_int_operands.h"

#include "product_opencl.h"

#include "template_end.h"
