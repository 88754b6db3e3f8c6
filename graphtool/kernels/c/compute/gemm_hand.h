/* How a product hands its sums to the epilogue, for templates that have the macros of gemm.h and
   define GT_SUM, the type of a sum; and GT_HANDED, if something takes the place of the epilogue. */
#ifndef GT_HANDED
#define GT_HANDED GT_EPILOGUE
#endif

/* The last panel of a row of panels, of which only N % NR columns exist: where that is a constant,
   the epilogue's loop is unrolled. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const GT_SUM *tile, int rows, int64_t b, int64_t m,
                                         int64_t n GT_PARAMS)
{
    for (int i = 0; i < rows; i++)
        GT_HANDED(tile + i * GT_NR, b, m + i, n, (GT_N) % GT_NR GT_ARGS);
}

/* Rows m to m + rows of one panel; `tile` is [rows][NR]. */
GT_INLINE void GT_JOIN(GT_NAME, _hand)(const GT_SUM *tile, int rows, int64_t b, int64_t m,
                                       int64_t panel GT_PARAMS)
{
    const int64_t n = panel * GT_NR;
    if ((GT_N) % GT_NR != 0 && n + GT_NR > (GT_N)) {
        GT_JOIN(GT_NAME, _tail)(tile, rows, b, m, n GT_ARGS);
        return;
    }
    for (int i = 0; i < rows; i++) GT_HANDED(tile + i * GT_NR, b, m + i, n, GT_NR GT_ARGS);
}
