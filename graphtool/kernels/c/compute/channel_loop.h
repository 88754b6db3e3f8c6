/* The loop over the channels of some pixels, a vector of them at a time, for templates that have
   the macros BW, OW and C of depthwise.h and define, before they include this:

   GT_BH    rows of a block of pixels
   GT_SUM   the type of a result
   NAME_block(height, width, n, oh, ow, c, tile GT_ARGS)
            puts the results [height][width][LANES] of the pixels from (oh, ow) on, of the channels
            from c on, into tile, which is vector-aligned; height and width are literals

   It defines NAME_pixels(width, high, n, oh, ow, first, last GT_ARGS): channels first to last of BH
   rows of width <= BW pixels, or where `high` is 0 of one row, go to the epilogue. */

/* The first `done` lanes were finished by the vector before: the last vector overlaps it where C is
   not a multiple of GT_LANES. */
GT_INLINE void GT_JOIN(GT_NAME, _vector)(const int height, const int width, int64_t n, int64_t oh,
                                         int64_t ow, int64_t c, int64_t done GT_PARAMS)
{
    GT_SUM tile[GT_BH * GT_BW * GT_LANES] GT_ALIGNED;
    GT_JOIN(GT_NAME, _block)(height, width, n, oh, ow, c, tile GT_ARGS);
    const int64_t count = (GT_C) < GT_LANES ? (GT_C) : GT_LANES - done;
    for (int h = 0; h < height; h++)
        for (int i = 0; i < width; i++) {
            GT_SUM *out = tile + (h * width + i) * GT_LANES;
            if (done) memmove(out, out + done, (size_t)count * sizeof(GT_SUM));
            GT_EPILOGUE(out, n, oh + h, ow + i, c + done, count GT_ARGS);
        }
}

#define GT_INSTANCE(width, ...)                                                                   \
    GT_INLINE void GT_JOIN(GT_NAME, _sweep##width)(const int height, int64_t n, int64_t oh,       \
                                                   int64_t ow, int64_t first,                     \
                                                   int64_t last GT_PARAMS)                        \
    {                                                                                             \
        for (int64_t c = first; c < last; c += GT_LANES)                                          \
            if (c + GT_LANES <= (GT_C) || (GT_C) < GT_LANES)                                      \
                GT_JOIN(GT_NAME, _vector)(height, width, n, oh, ow, c, 0 GT_ARGS);                \
            else                                                                                  \
                GT_JOIN(GT_NAME, _vector)(height, width, n, oh, ow, (GT_C)-GT_LANES,              \
                                          c + GT_LANES - (GT_C)GT_ARGS);                          \
    }                                                                                             \
    GT_NOINLINE void GT_JOIN(GT_NAME, _high##width)(int64_t n, int64_t oh, int64_t ow,            \
                                                    int64_t first, int64_t last GT_PARAMS)        \
    {                                                                                             \
        if (GT_OCCURS(width, GT_OW, GT_BW))                                                       \
            GT_JOIN(GT_NAME, _sweep##width)(GT_BH, n, oh, ow, first, last GT_ARGS);               \
    }                                                                                             \
    GT_NOINLINE void GT_JOIN(GT_NAME, _low##width)(int64_t n, int64_t oh, int64_t ow,             \
                                                   int64_t first, int64_t last GT_PARAMS)         \
    {                                                                                             \
        if (GT_BH > 1 && GT_OCCURS(width, GT_OW, GT_BW))                                          \
            GT_JOIN(GT_NAME, _sweep##width)(1, n, oh, ow, first, last GT_ARGS);                   \
    }                                                                                             \
    GT_INLINE void GT_JOIN(GT_NAME, _pixels##width)(int64_t high, int64_t n, int64_t oh,          \
                                                    int64_t ow, int64_t first,                    \
                                                    int64_t last GT_PARAMS)                       \
    {                                                                                             \
        if (high)                                                                                 \
            GT_JOIN(GT_NAME, _high##width)(n, oh, ow, first, last GT_ARGS);                       \
        else                                                                                      \
            GT_JOIN(GT_NAME, _low##width)(n, oh, ow, first, last GT_ARGS);                        \
    }
GT_UPTO(GT_BW, GT_INSTANCE, )
#undef GT_INSTANCE

GT_INLINE void GT_JOIN(GT_NAME, _pixels)(int64_t width, int64_t high, int64_t n, int64_t oh,
                                         int64_t ow, int64_t first, int64_t last GT_PARAMS)
{
    GT_CALL(_pixels, width, GT_BW, high, n, oh, ow, first, last GT_ARGS);
}
