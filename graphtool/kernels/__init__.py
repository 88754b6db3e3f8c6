"""The kernels: one module for each C header. Importing the package fills their table."""

from graphtool.kernels import (
    attend,
    attend_amx,
    blas,
    cholesky,
    collective,
    conv_amx,
    conv_direct,
    conv_int,
    depthwise,
    depthwise_int,
    fft,
    gemm,
    gemm_amx,
    gemm_amx_blocked,
    gemm_blocked,
    gemm_int,
    linear_bf16,
    linear_f32,
    linear_nbits,
    linear_q8,
    pooled,
    recurrence,
    recurrence_grad,
    sort,
    transpose,
    trees,
    triangular,
    winograd,
    winograd_line,
)

__all__ = [
    "attend", "attend_amx", "blas", "cholesky", "collective", "conv_amx", "conv_direct", "conv_int",
    "depthwise", "depthwise_int", "fft", "gemm", "gemm_amx", "gemm_amx_blocked", "gemm_blocked",
    "gemm_int", "linear_bf16", "linear_f32", "linear_nbits", "linear_q8", "pooled", "recurrence",
    "recurrence_grad", "sort", "transpose", "trees", "triangular", "winograd", "winograd_line"]
