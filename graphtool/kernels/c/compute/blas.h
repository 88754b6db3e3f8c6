/* Matrix product by a CBLAS library, a template: C = A·B, then row by row to an epilogue.

   GT_M GT_N GT_K GT_LDA   sizes, and the row stride of A, in floats
   GT_A GT_B     const float *: A, and B as it is, [K][N]
   GT_WORK       float *, 64-byte aligned, M rows of N rounded up to 16: C before the epilogue
   GT_EPILOGUE   as gemm.h has it, with b = 0 and n = 0: a whole row at a time

   Each thread calls the library for its own rows; the library is told not to start threads.
   GT_BLAS(f) is the library's name for f, with a prefix in builds of scipy. */
#include "prelude.h"

#ifndef GT_BLAS_H
#define GT_BLAS_H
#ifndef GT_BLAS_PREFIX
#define GT_BLAS_PREFIX
#endif
#define GT_BLAS(f) GT_JOIN(GT_BLAS_PREFIX, f)
void GT_BLAS(cblas_sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                          float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                          float *c, int ldc);
void GT_BLAS(openblas_set_num_threads)(int count) __attribute__((weak));
#endif

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif

static void GT_NAME(int t, int threads GT_PARAMS)
{
    const int64_t first = gt_part(GT_M, t, threads), last = gt_part(GT_M, t + 1, threads);
    const int64_t stride = gt_ceil_div(GT_N, 16) * 16;
    if (first == last) return;
    if (GT_BLAS(openblas_set_num_threads)) GT_BLAS(openblas_set_num_threads)(1);
    float *const c = GT_WORK + first * stride;
    /* 101: row-major, 111: not transposed */
    GT_BLAS(cblas_sgemm)(101, 111, 111, (int)(last - first), (int)(GT_N), (int)(GT_K), 1.0f,
                         GT_A + first * (GT_LDA), (int)(GT_LDA), GT_B, (int)(GT_N), 0.0f, c,
                         (int)stride);
    for (int64_t m = first; m < last; m++)
        GT_EPILOGUE(c + (m - first) * stride, 0, m, 0, GT_N GT_ARGS);
}

#undef GT_NAME
#undef GT_M
#undef GT_N
#undef GT_K
#undef GT_LDA
#undef GT_A
#undef GT_B
#undef GT_WORK
#undef GT_PARAMS
#undef GT_ARGS
#undef GT_EPILOGUE
