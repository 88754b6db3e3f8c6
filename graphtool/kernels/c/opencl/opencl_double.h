/* Included by kernels that compute in float64. */
#ifndef GT_OPENCL_DOUBLE_H
#define GT_OPENCL_DOUBLE_H
#ifdef GT_NO_DOUBLE
#error "these kernels compute in float64, which this device does not have"
#endif
#endif
