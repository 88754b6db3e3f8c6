/* What pixels of a convolution's output read, copied so that it is adjacent: for templates that
   have the macros GT_OH to GT_XW of conv_parts.h. */
#define GT_LINE gt_max(1, GT_OW) /* pixels of a row */
#define GT_PIXELS gt_max(1, (GT_OH) * (GT_OW)) /* of an image */
#define GT_PIXEL (2 * GT_PARTS_RUN) /* behind 32 elements, room for what is copied too much */
/* Where `run`, counted through the window, begins behind the first element that a pixel reads. */
#define GT_WHERE(run) ((run) / (GT_RUNS) * (GT_DH) * (GT_XH) + (run) % (GT_RUNS) * (GT_HOP))

/* Where the elements begin that up to 16 pixels from m on read; x is where the first one's do. */
GT_INLINE void GT_JOIN(GT_NAME, _begins)(const float *x, int64_t m, int64_t rows,
                                         const float **pixels GT_PARAMS)
{
    int64_t n = m / GT_PIXELS, oh = m % GT_PIXELS / GT_LINE, ow = m % GT_LINE;
    for (int64_t r = 0; r < rows; r++) {
        pixels[r] = x + n * (GT_XN) + oh * (GT_SH) * (GT_XH) + ow * (GT_SW) * (GT_XW);
        if (++ow < (GT_OW)) continue;
        ow = 0;
        if (++oh == (GT_OH)) oh = 0, n++;
    }
}

/* Copies `depth` <= 32 of the elements that up to 16 pixels read, from element k on, run by run, to
   rows of GT_PIXEL floats. */
GT_INLINE void GT_JOIN(GT_NAME, _gather)(const float **pixels, int64_t k, int64_t rows,
                                         int64_t depth, float *room GT_PARAMS)
{
    for (int64_t run = k / (GT_RUN), at = k % (GT_RUN), done = 0; done < depth; run++, at = 0) {
        const int64_t some = gt_min((GT_RUN)-at, depth - done), from = GT_WHERE(run) + at;
        for (int64_t i = 0; i < some; i += GT_LANES)
            for (int64_t r = 0; r < rows; r++) {
                const float *own = pixels[r] + from + i;
                gt_store(room + r * GT_PIXEL + done + i, i + GT_LANES <= some
                         ? gt_load(own) : gt_load_first(own, some - i));
            }
        done += some;
    }
}
