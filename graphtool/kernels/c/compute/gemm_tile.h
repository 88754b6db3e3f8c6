/* The tiles of gemm_loop.h for templates that sum rows of A in registers: they have the macros of
   gemm.h and define, before they include this, GT_SUM and

   NAME_sums(rows, b, m, panel, ahead, step, tile GT_ARGS)
             puts the sums [rows][NR] of rows m to m + rows of product b, of one panel, into tile,
             which is vector-aligned; rows is a literal. Each step prefetches the line at `ahead`,
             which moves on by `step` bytes */
#include "gemm_hand.h"

/* Rows m to m + rows of one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(const int rows, int64_t b, int64_t m, int64_t panel,
                                       const char *ahead, int64_t step GT_PARAMS)
{
    GT_SUM tile[GT_MR * GT_NR] GT_ALIGNED;
    GT_JOIN(GT_NAME, _sums)(rows, b, m, panel, ahead, step, tile GT_ARGS);
    GT_JOIN(GT_NAME, _hand)(tile, rows, b, m, panel GT_ARGS);
}

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _tile##rows)(int64_t b, int64_t m, int64_t panel,           \
                                                   const char *ahead, int64_t step GT_PARAMS)     \
    {                                                                                             \
        if (GT_OCCURS(rows, GT_M, GT_MR))                                                         \
            GT_JOIN(GT_NAME, _tile)(rows, b, m, panel, ahead, step GT_ARGS);                      \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

#ifndef GT_BATCH
#define GT_BATCH 1
#endif
/* Whether all of B costs less than the rows of A and C. Then blocks go one by one over the panels
   that stay in the second-level cache, so that the epilogue reads and writes along rows; else each
   panel is read once, by all rows that stay there. */
#define GT_MANY ((GT_M) * ((GT_K) + (GT_N)) >= (GT_K) * (GT_N))
#define GT_NEAR (640 * 1024)
#ifndef GT_RESIDENT
#define GT_RESIDENT (GT_MANY ? 1 : GT_NEAR)
#define GT_WIDE (GT_MANY ? GT_NEAR / gt_max(1, GT_PANEL) : GT_N)
#endif
#ifndef GT_BY_ROWS
#define GT_BY_ROWS GT_MANY
#endif
#define GT_PRODUCTS GT_BATCH
#define GT_LINES (GT_M)
#include "gemm_loop.h"
