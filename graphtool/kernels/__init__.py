"""The kernels: a module each beside its C header; importing the package fills their table, and
adds the ops that stand for them to the op set.
"""

from graphtool.kernels import (
    attend,
    blas,
    collective,
    conv,
    conv_int,
    depthwise,
    depthwise_int,
    gemm,
    gemm_int,
    linear_nbits,
    pooled,
    recurrence,
    recurrence_grad,
    sort,
    transpose,
    trees,
    winograd,
    winograd_line,
)

__all__ = [
    "attend", "blas", "collective", "conv", "conv_int", "depthwise", "depthwise_int", "gemm",
    "gemm_int", "linear_nbits", "pooled", "recurrence", "recurrence_grad", "sort", "transpose",
    "trees", "winograd", "winograd_line"]
