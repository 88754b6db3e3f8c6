/* How a product with packed weights hands its sums to the epilogue, for templates that have the
   macros of linear_q8.h and panels of GT_NR columns. */
/* The last panel, of which only N % NR columns exist. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tail)(const float *tile, int64_t rows, int64_t m,
                                         int64_t n GT_PARAMS)
{
    for (int64_t i = 0; i < rows; i++)
        GT_EPILOGUE(tile + i * GT_NR, m + i, n, (GT_N) % GT_NR GT_ARGS);
}

/* Rows m to m + rows of one panel; `tile` is [rows][NR]. */
GT_INLINE void GT_JOIN(GT_NAME, _hand)(const float *tile, int64_t rows, int64_t m,
                                       int64_t panel GT_PARAMS)
{
    const int64_t n = panel * GT_NR;
    if ((GT_N) % GT_NR != 0 && n + GT_NR > (GT_N)) {
        GT_JOIN(GT_NAME, _tail)(tile, rows, m, n GT_ARGS);
        return;
    }
    for (int64_t i = 0; i < rows; i++) GT_EPILOGUE(tile + i * GT_NR, m + i, n, GT_NR GT_ARGS);
}
