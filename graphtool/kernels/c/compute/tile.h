/* The register tile that gemm.h, conv_direct.h and winograd.h share: mr rows of A, read in place,
   times a packed panel of B that is nv <= 16 vectors wide. Row counts are literals after inlining.
   The tile must fit the registers: mr·nv sums, nv of B and one of A. With 32 of them (AVX-512,
   NEON) 14×2 is best, and 1×8, 2×8, 3×8, 4×6 to stream B; with 16 (AVX2, SSE) 6×2, and 1×8, 2×5,
   4×2. */
#ifndef GT_TILE_H
#define GT_TILE_H

#include "prelude.h"

#define GT_NR (GT_NV * GT_LANES) /* columns of a panel, of a template with NV */

/* X(1, …) X(2, …) ... X(n, …): one instance for every count of rows up to a literal n <= 16. An X
   of one parameter takes a second one, which is empty: C99 wants an argument for the dots. */
#define GT_UPTO_1(X, ...) X(1, __VA_ARGS__)
#define GT_UPTO_2(X, ...) GT_UPTO_1(X, __VA_ARGS__) X(2, __VA_ARGS__)
#define GT_UPTO_3(X, ...) GT_UPTO_2(X, __VA_ARGS__) X(3, __VA_ARGS__)
#define GT_UPTO_4(X, ...) GT_UPTO_3(X, __VA_ARGS__) X(4, __VA_ARGS__)
#define GT_UPTO_5(X, ...) GT_UPTO_4(X, __VA_ARGS__) X(5, __VA_ARGS__)
#define GT_UPTO_6(X, ...) GT_UPTO_5(X, __VA_ARGS__) X(6, __VA_ARGS__)
#define GT_UPTO_7(X, ...) GT_UPTO_6(X, __VA_ARGS__) X(7, __VA_ARGS__)
#define GT_UPTO_8(X, ...) GT_UPTO_7(X, __VA_ARGS__) X(8, __VA_ARGS__)
#define GT_UPTO_9(X, ...) GT_UPTO_8(X, __VA_ARGS__) X(9, __VA_ARGS__)
#define GT_UPTO_10(X, ...) GT_UPTO_9(X, __VA_ARGS__) X(10, __VA_ARGS__)
#define GT_UPTO_11(X, ...) GT_UPTO_10(X, __VA_ARGS__) X(11, __VA_ARGS__)
#define GT_UPTO_12(X, ...) GT_UPTO_11(X, __VA_ARGS__) X(12, __VA_ARGS__)
#define GT_UPTO_13(X, ...) GT_UPTO_12(X, __VA_ARGS__) X(13, __VA_ARGS__)
#define GT_UPTO_14(X, ...) GT_UPTO_13(X, __VA_ARGS__) X(14, __VA_ARGS__)
#define GT_UPTO_15(X, ...) GT_UPTO_14(X, __VA_ARGS__) X(15, __VA_ARGS__)
#define GT_UPTO_16(X, ...) GT_UPTO_15(X, __VA_ARGS__) X(16, __VA_ARGS__)
#define GT_UPTO(n, X, ...) GT_JOIN(GT_UPTO_, n)(X, __VA_ARGS__)

/* Calls the instance of a template's function for `rows` <= most rows: GT_CALL(_f, 3, 8, x) is
   NAME_f3(x). */
#define GT_CASE(n, f, ...)                                                                        \
    case n: GT_JOIN(GT_NAME, f##n)(__VA_ARGS__); break;
#define GT_CALL(f, rows, most, ...)                                                               \
    do {                                                                                          \
        switch (rows) {                                                                           \
            GT_UPTO(most, GT_CASE, f, __VA_ARGS__)                                                \
        }                                                                                         \
    } while (0)

/* n rows fall into ceil(n / most) balanced blocks; whether one of them has `rows` rows. If n is a
   constant, the instances for all other counts are left empty, for the sake of compile time. */
#define GT_BLOCKS(n, most) (((n) + (most)-1) / (most))
#define GT_OCCURS(rows, n, most)                                                                  \
    (!__builtin_constant_p(n)                                                                     \
     || (((rows)-1) * GT_BLOCKS(n, most) < (n) && (n) < ((rows) + 1) * GT_BLOCKS(n, most)))

/* So many bytes from p on, into the second cache: more lines can be on their way there than to the
   first. */
GT_INLINE void gt_prefetch(const void *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64) GT_FETCH((const char *)p + i, 2);
}

GT_INLINE void gt_tile_zero(gt_vf *acc, const int rows, const int nv)
{
    GT_UNROLL for (int i = 0; i < rows * nv; i++) acc[i] = gt_splat(0.0f);
}

/* acc[rows][nv] += A[rows][depth] · B[depth][nv vectors], B aligned. Row i of A starts at
   a + i·lda; with `line` > 0 (a constant) at a + (i / line)·ldl + (i % line)·lda.
   Each k-step prefetches one line at `ahead`, which moves on by `step` bytes: a walk through the
   panel that comes next. With stream > 0 it prefetches this panel, `stream` steps ahead, instead:
   for products with so few rows that reading B is all the work. */
GT_INLINE void gt_tile_fma_lines(gt_vf *acc, const int rows, const int nv, const float *a,
                                 int64_t lda, int64_t line, int64_t ldl, const float *b,
                                 int64_t depth, const char *ahead, int64_t step, const int stream)
{
    for (int64_t k = 0; k < depth; k++, b += nv * GT_LANES) {
        gt_vf panel[16];
        GT_UNROLL for (int j = 0; j < nv; j++) {
            panel[j] = ((const gt_vf *)b)[j];
            if (stream) GT_FETCH(b + (stream * nv + j) * GT_LANES, 3);
        }
        if (!stream) {
            GT_FETCH(ahead, 2);
            ahead += step;
        }
        GT_UNROLL for (int i = 0; i < rows; i++) {
            const int64_t at = line > 0 ? i / line * ldl + i % line * lda : i * lda;
            const gt_vf x = gt_splat(a[at + k]);
            GT_UNROLL for (int j = 0; j < nv; j++) acc[i * nv + j] += x * panel[j];
        }
    }
}

/* The same for an A that is transposed in memory: its columns are `ldk` floats apart. */
GT_INLINE void gt_tile_fma_across(gt_vf *acc, const int rows, const int nv, const float *a,
                                  int64_t lda, int64_t ldk, const float *b, int64_t depth,
                                  const char *ahead, int64_t step)
{
    for (int64_t k = 0; k < depth; k++, b += nv * GT_LANES, a += ldk, ahead += step) {
        gt_vf panel[16];
        GT_UNROLL for (int j = 0; j < nv; j++) panel[j] = ((const gt_vf *)b)[j];
        GT_FETCH(ahead, 2);
        GT_UNROLL for (int i = 0; i < rows; i++) {
            const gt_vf x = gt_splat(a[i * lda]);
            GT_UNROLL for (int j = 0; j < nv; j++) acc[i * nv + j] += x * panel[j];
        }
    }
}

GT_INLINE void gt_tile_fma(gt_vf *acc, const int rows, const int nv, const float *a, int64_t lda,
                           const float *b, int64_t depth, const char *ahead, int64_t step,
                           const int stream)
{
    gt_tile_fma_lines(acc, rows, nv, a, lda, 0, 0, b, depth, ahead, step, stream);
}

/* gt_tile_fma for a B in narrower panels of `laid` vectors, `apart` floats from one to the next.
   The tile takes nv / laid of them side by side, of which `count` exist; where one does not, the
   last one is read again. */
GT_INLINE void gt_tile_fma_beside(gt_vf *acc, const int rows, const int nv, const int laid,
                                  const float *a, int64_t lda, const float *b, int64_t apart,
                                  int64_t count, int64_t depth, const int stream)
{
    const float *panels[16];
    GT_UNROLL for (int p = 0; p < nv / laid; p++) panels[p] = b + gt_min(p, count - 1) * apart;
    for (int64_t k = 0; k < depth; k++) {
        gt_vf panel[16];
        GT_UNROLL for (int j = 0; j < nv; j++) {
            const float *at = panels[j / laid] + (k * laid + j % laid) * GT_LANES;
            panel[j] = *(const gt_vf *)at;
            GT_FETCH(at + stream * laid * GT_LANES, 3);
        }
        GT_UNROLL for (int i = 0; i < rows; i++) {
            const gt_vf x = gt_splat(a[i * lda + k]);
            GT_UNROLL for (int j = 0; j < nv; j++) acc[i * nv + j] += x * panel[j];
        }
    }
}

/* The tile's rows into an array of rows of nv vectors, 64-byte aligned. */
GT_INLINE void gt_tile_store(const gt_vf *acc, const int rows, const int nv, float *out)
{
    GT_UNROLL for (int i = 0; i < rows * nv; i++) ((gt_vf *)out)[i] = acc[i];
}

#endif
