/* A part of attend_parts.h: keys, values and queries as its products read them. Keys and values are
   panels of NR columns, in parts or as floats, queries the rows of a block, in parts. */
/* A square of floats, transposed; beyond `count` rows and n columns there are zeros. */
GT_INLINE void GT_JOIN(GT_NAME, _turned)(const float *x, int64_t ldx, int64_t count, int64_t n,
                                         float *to)
{
    float square[GT_LANES * GT_LANES] GT_ALIGNED = {0};
    if (count < GT_LANES || n < GT_LANES) {
        for (int64_t i = 0; i < gt_min(count, GT_LANES); i++)
            for (int64_t j = 0; j < gt_min(n, GT_LANES); j++)
                square[i * GT_LANES + j] = x[i * ldx + j];
        x = square, ldx = GT_LANES;
    }
    gt_transpose_square(x, ldx, to, GT_NR);
}

/* Step i of panels: 32 rows of NR floats, in parts or as they are. Returns `seen`, as gt_see
   does. */
GT_INLINE gt_vw GT_JOIN(GT_NAME, _panel_step)(const float *rows, int split, float *panels,
                                              int64_t i, gt_vw seen)
{
    if (!split) {
        memcpy(panels + i * GT_FLOATS_STEP, rows, GT_FLOATS_STEP * 4);
        return seen;
    }
    char *panel = (char *)panels + i * GT_PANEL_STEP;
    for (int64_t k = 0; k < GT_PARTS_RUN; k += 2, rows += 2 * GT_NR)
        for (int64_t j = 0; j < GT_NR; j += GT_LANES) {
            const gt_vf one = gt_load(rows + j), two = gt_load(rows + GT_NR + j);
            gt_vw pairs[3];
            gt_split_pairs(one, two, GT_PARTS, pairs);
            seen = gt_see(gt_see(seen, one), two);
            GT_UNROLL for (int p = 0; p < GT_PARTS; p++)
                memcpy(panel + p * GT_PART_BYTES + (k / 2 * GT_NR + j) * 4, &pairs[p],
                       sizeof pairs[p]);
        }
    return seen;
}

/* The keys as panels, a column for each key; whether all numbers split, if they shall. */
GT_NOINLINE int GT_JOIN(GT_NAME, _pack_keys)(const float *x, int split, float *panels GT_PARAMS)
{
    gt_vw seen = {0};
    int64_t step = 0;
    for (int64_t k = 0; k < (GT_T); k += GT_NR)
        for (int64_t d = 0; d < (GT_D); d += GT_PARTS_RUN) {
            float rows[GT_FLOATS_STEP] GT_ALIGNED;
            for (int64_t i = 0; i < GT_NR; i += GT_LANES)
                for (int64_t j = 0; j < GT_PARTS_RUN; j += GT_LANES)
                    GT_JOIN(GT_NAME, _turned)
                    (x + (k + i) * (GT_LDK) + d + j, GT_LDK, (GT_T)-k - i, (GT_D)-d - j,
                     rows + j * GT_NR + i);
            seen = GT_JOIN(GT_NAME, _panel_step)(rows, split, panels, step++, seen);
        }
    return gt_all_split(seen);
}

/* The values as panels, a row for each value; whether all numbers split, if they shall. */
GT_NOINLINE int GT_JOIN(GT_NAME, _pack_values)(const float *x, int split, float *panels GT_PARAMS)
{
    gt_vw seen = {0};
    int64_t step = 0;
    for (int64_t d = 0; d < (GT_DV); d += GT_NR)
        for (int64_t k = 0; k < (GT_T); k += GT_PARTS_RUN) {
            float rows[GT_FLOATS_STEP] GT_ALIGNED;
            for (int64_t i = 0; i < GT_PARTS_RUN; i++)
                for (int64_t j = 0; j < GT_NR; j += GT_LANES) {
                    const float *from = x + (k + i) * (GT_LDV) + d + j;
                    const int64_t left = k + i < (GT_T) ? (GT_DV)-d - j : 0;
                    gt_store(rows + i * GT_NR + j, left >= GT_LANES ? gt_load(from)
                                                   : left > 0       ? gt_load_first(from, left)
                                                                    : gt_splat(0.0f));
                }
            seen = GT_JOIN(GT_NAME, _panel_step)(rows, split, panels, step++, seen);
        }
    return gt_all_split(seen);
}

/* A block of queries in parts, [steps][TALL][PARTS][32]; whether all numbers split. */
GT_INLINE int GT_JOIN(GT_NAME, _split_queries)(const float *x, int64_t rows, uint16_t *to GT_PARAMS)
{
    gt_vw seen = {0};
    for (int64_t i = 0; i < rows; i++, x += (GT_LDQ))
        for (int64_t d = 0; d < (GT_D); d += GT_PARTS_RUN)
            seen = gt_split_run(x + d, gt_min(GT_PARTS_RUN, (GT_D)-d), GT_PARTS,
                                to + d / GT_PARTS_RUN * GT_ROWS_STEP + i * GT_PARTS * GT_PARTS_RUN,
                                GT_PARTS_RUN, seen);
    return gt_all_split(seen);
}
