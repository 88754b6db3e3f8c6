/* What recurrence.h and recurrence_grad.h share if weights are in panels of GT_PANEL vectors: a
   product that is added to rows, GT_BLOCK of them at a time. */

/* out[rows][columns] += A[rows][depth]·B, of one panel; rows of A are lda apart, of out ldo. */
GT_INLINE void GT_JOIN(GT_NAME, _panel)(const int rows, const float *a, int64_t lda,
                                        int64_t depth, const float *panel, float *out, int64_t ldo,
                                        int64_t columns)
{
    gt_vf acc[GT_BLOCK * GT_PANEL];
    float tile[GT_BLOCK * GT_PANEL * GT_LANES] GT_ALIGNED;
    gt_tile_zero(acc, rows, GT_PANEL);
    gt_tile_fma(acc, rows, GT_PANEL, a, lda, panel, depth, (const char *)panel, 0, 8);
    gt_tile_store(acc, rows, GT_PANEL, tile);
    for (int i = 0; i < rows; i++)
        GT_SIMD for (int64_t k = 0; k < columns; k++)
        {
            out[i * ldo + k] += tile[i * GT_PANEL * GT_LANES + k];
        }
}

/* Vectors of the panels that a row or two take side by side: one panel has too few sums, each of
   which waits for the one before. */
#if GT_PANEL > 4
#define GT_BESIDE GT_PANEL
#elif GT_LANES == 16
#define GT_BESIDE (8 / GT_PANEL * GT_PANEL)
#else
#define GT_BESIDE (4 / GT_PANEL * GT_PANEL)
#endif

/* The same of one row or two and adjacent panels, `apart` floats from one to the next. */
GT_INLINE void GT_JOIN(GT_NAME, _beside)(const int rows, const float *a, int64_t lda,
                                         int64_t depth, const float *b, int64_t apart, float *out,
                                         int64_t ldo, int64_t columns)
{
    enum { nr = GT_PANEL * GT_LANES, wide = GT_BESIDE * GT_LANES };
    for (int64_t j = 0; j < columns; j += wide) {
        const int64_t some = gt_min(wide, columns - j);
        gt_vf acc[2 * GT_BESIDE];
        float tile[2 * wide] GT_ALIGNED;
        gt_tile_zero(acc, rows, GT_BESIDE);
        gt_tile_fma_beside(acc, rows, GT_BESIDE, GT_PANEL, a, lda, b + j / nr * apart, apart,
                           gt_ceil_div(some, nr), depth, 8);
        gt_tile_store(acc, rows, GT_BESIDE, tile);
        for (int i = 0; i < rows; i++)
            GT_SIMD for (int64_t k = 0; k < some; k++)
            {
                out[i * ldo + j + k] += tile[i * wide + k];
            }
    }
}

/* The same for any number of rows and panels; a panel has `deep` rows. */
GT_INLINE void GT_JOIN(GT_NAME, _panels)(int64_t rows, const float *a, int64_t lda, int64_t depth,
                                         const float *b, int64_t deep, float *out, int64_t ldo,
                                         int64_t columns)
{
    enum { nr = GT_PANEL * GT_LANES };
    int64_t whole = rows / GT_BLOCK * GT_BLOCK;
    if (GT_BLOCK > 4) whole += (rows - whole) / 4 * 4;
    for (int64_t j = 0; j < columns && whole > 0; j += nr) {
        const int64_t some = gt_min(nr, columns - j);
        const float *panel = b + j * deep;
        float *to = out + j;
        int64_t i = 0;
        for (; i + GT_BLOCK <= whole; i += GT_BLOCK)
            GT_JOIN(GT_NAME, _panel)
            (GT_BLOCK, a + i * lda, lda, depth, panel, to + i * ldo, ldo, some);
#if GT_BLOCK > 4
        for (; i < whole; i += 4)
            GT_JOIN(GT_NAME, _panel)(4, a + i * lda, lda, depth, panel, to + i * ldo, ldo, some);
#endif
    }
#if GT_BLOCK > 2
    for (; whole + 2 <= rows; whole += 2)
        GT_JOIN(GT_NAME, _beside)
        (2, a + whole * lda, lda, depth, b, nr * deep, out + whole * ldo, ldo, columns);
#endif
    for (; whole < rows; whole++)
        GT_JOIN(GT_NAME, _beside)
        (1, a + whole * lda, lda, depth, b, nr * deep, out + whole * ldo, ldo, columns);
}
#undef GT_BESIDE
