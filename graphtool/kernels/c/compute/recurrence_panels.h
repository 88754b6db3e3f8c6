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

/* The same for any number of rows and panels; a panel has `deep` rows. */
GT_INLINE void GT_JOIN(GT_NAME, _panels)(int64_t rows, const float *a, int64_t lda, int64_t depth,
                                         const float *b, int64_t deep, float *out, int64_t ldo,
                                         int64_t columns)
{
    for (int64_t j = 0; j < columns; j += GT_PANEL * GT_LANES) {
        const int64_t some = gt_min(GT_PANEL * GT_LANES, columns - j);
        const float *panel = b + j * deep;
        float *to = out + j;
        int64_t i = 0;
        for (; i + GT_BLOCK <= rows; i += GT_BLOCK)
            GT_JOIN(GT_NAME, _panel)
            (GT_BLOCK, a + i * lda, lda, depth, panel, to + i * ldo, ldo, some);
#if GT_BLOCK > 4
        for (; i + 4 <= rows; i += 4)
            GT_JOIN(GT_NAME, _panel)(4, a + i * lda, lda, depth, panel, to + i * ldo, ldo, some);
#endif
        for (; i < rows; i++)
            GT_JOIN(GT_NAME, _panel)(1, a + i * lda, lda, depth, panel, to + i * ldo, ldo, some);
    }
}
