"""The kernels: a module each beside its C header; importing the package fills their table."""

from graphtool.kernels import (
    attention,
    blas,
    collective,
    conv,
    depthwise,
    gemm,
    int8_conv,
    int8_depthwise,
    int8_gemm,
    nbits,
    pool,
    recurrent,
    recurrent_grad,
    sort,
    transpose,
    trees,
    winograd,
    winograd_line,
)

__all__ = [
    "attention", "blas", "collective", "conv", "depthwise", "gemm", "int8_conv", "int8_depthwise",
    "int8_gemm", "nbits", "pool", "recurrent", "recurrent_grad", "sort", "transpose", "trees",
    "winograd", "winograd_line"]
