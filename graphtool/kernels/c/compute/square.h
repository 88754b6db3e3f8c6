/* A square of floats as wide as a vector, transposed or summed in registers. Needs no CPU-specific
   header. */
#ifndef GT_SQUARE_H
#define GT_SQUARE_H

#include "prelude.h"

/* Lane i of the first and of the second of two vectors whose blocks of s lanes change places. */
#define GT_FIRST(i, s) ((i) & (s) ? GT_LANES + (i) - (s) : (i))
#define GT_SECOND(i, s) ((i) & (s) ? GT_LANES + (i) : (i) + (s))
#define GT_FROM4(f, i, s) f(i, s), f((i) + 1, s), f((i) + 2, s), f((i) + 3, s)
#if GT_LANES == 16
#define GT_LIST(f, s)                                                                             \
    GT_FROM4(f, 0, s), GT_FROM4(f, 4, s), GT_FROM4(f, 8, s), GT_FROM4(f, 12, s)
#elif GT_LANES == 8
#define GT_LIST(f, s) GT_FROM4(f, 0, s), GT_FROM4(f, 4, s)
#elif GT_LANES == 4
#define GT_LIST(f, s) GT_FROM4(f, 0, s)
#endif
#ifdef __clang__
#define GT_SHUFFLE(x, y, f, s) __builtin_shufflevector(x, y, GT_LIST(f, s))
#else
#define GT_SHUFFLE(x, y, f, s) __builtin_shuffle(x, y, (gt_vi){GT_LIST(f, s)})
#endif

/* Between vectors s apart, blocks of s lanes change places. */
#define GT_EXCHANGE(v, s)                                                                         \
    GT_UNROLL for (int i = 0; i < GT_LANES; i++)                                                  \
    {                                                                                             \
        if (i & (s)) continue;                                                                    \
        const gt_vf x = (v)[i], y = (v)[i + (s)];                                                 \
        (v)[i] = GT_SHUFFLE(x, y, GT_FIRST, s);                                                   \
        (v)[i + (s)] = GT_SHUFFLE(x, y, GT_SECOND, s);                                            \
    }

/* GT_LANES rows of GT_LANES floats, ldx apart, transposed to rows ldy apart. */
GT_INLINE void gt_transpose_square(const float *x, int64_t ldx, float *y, int64_t ldy)
{
    gt_vf v[GT_LANES];
    GT_UNROLL for (int i = 0; i < GT_LANES; i++) v[i] = gt_load(x + i * ldx);
#if GT_LANES > 8
    GT_EXCHANGE(v, 8)
#endif
#if GT_LANES > 4
    GT_EXCHANGE(v, 4)
#endif
#if GT_LANES > 1
    GT_EXCHANGE(v, 2)
    GT_EXCHANGE(v, 1)
#endif
    GT_UNROLL for (int i = 0; i < GT_LANES; i++) gt_store(y + i * ldy, v[i]);
}

/* Vectors s apart as one: each block of s lanes is the sum of two blocks of one of them. */
#define GT_FOLD_BLOCKS(v, s)                                                                      \
    GT_UNROLL for (int i = 0; i < (s); i++)                                                       \
    {                                                                                             \
        const gt_vf x = (v)[i], y = (v)[i + (s)];                                                 \
        (v)[i] = GT_SHUFFLE(x, y, GT_FIRST, s) + GT_SHUFFLE(x, y, GT_SECOND, s);                  \
    }

/* Lane i is the sum of the lanes of v[i], of GT_LANES vectors, which are changed. */
GT_INLINE gt_vf gt_lane_sums(gt_vf *v)
{
#if GT_LANES > 8
    GT_FOLD_BLOCKS(v, 8)
#endif
#if GT_LANES > 4
    GT_FOLD_BLOCKS(v, 4)
#endif
#if GT_LANES > 1
    GT_FOLD_BLOCKS(v, 2)
    GT_FOLD_BLOCKS(v, 1)
#endif
    return v[0];
}

#endif
