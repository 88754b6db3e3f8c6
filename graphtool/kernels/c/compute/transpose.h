/* Elementwise work from one order of axes to another, a template: what is adjacent along axis A is
   handed, adjacent along axis B, to an epilogue.

   GT_PLANES GT_A GT_B  how many planes there are, and their extents
   GT_X(b)      const float *, the elements of plane b
   GT_XB        element (a, b) of a plane lies at a + b·XB
   GT_PAIRS     defined: an element is two adjacent numbers of 16 bits. X and acc point to uint16_t,
                and b and `count` are in numbers
   GT_EPILOGUE  static inline void f(const float *restrict acc, int64_t p, int64_t a, int64_t b,
                int64_t count GT_PARAMS): takes `count` elements of row a from b on; acc is
                vector-aligned, count is the literal GT_CHUNK but at the end of a row

   Shares need no barrier among themselves. Lines are read and written whole, so strides that fall
   on one set of the cache do no harm. Blocks go along axis A for 1 KB before the next chunk, and
   fetch the line after each that they read, as the next block reads it. */
#include "square.h"
#include "template_begin.h"

#define GT_CHUNK (4 * GT_LANES)
#define GT_NEAR 256 /* elements of 1 KB */
#ifdef GT_PAIRS
#define GT_NUMBER uint16_t
#define GT_NUMBERS 2 /* numbers of an element */
#else
#define GT_NUMBER float
#define GT_NUMBERS 1
#endif

/* Rows a to a + height of a plane, from b on; `width` of each exist. Where less than a square is
   left of a side that is longer, its last square is taken, and what it has of others left out. */
GT_INLINE void GT_JOIN(GT_NAME, _block)(int64_t p, int64_t a, int64_t height, int64_t b,
                                        int64_t width GT_PARAMS)
{
    float room[GT_LANES + GT_LANES * GT_CHUNK] GT_ALIGNED, *const tile = room + GT_LANES;
    const int64_t above = (GT_A) < GT_LANES ? 0 : GT_LANES - height;
    const float *x = (const float *)(GT_X(p)) + a - above + b * (GT_XB);
    if ((GT_A) < GT_LANES || (GT_B) < GT_LANES || GT_LANES == 1) {
        for (int64_t j = 0; j < width; j++)
            for (int64_t i = above; i < above + height; i++)
                memcpy(tile + i * GT_CHUNK + j, x + j * (GT_XB) + i, sizeof *x);
    } else {
        for (int64_t j = 0; j < width; j += GT_LANES) {
            /* to the left of column 0 lies what no row uses: such a chunk is the row's end */
            const int64_t at = gt_min(j, width - GT_LANES);
            const float *from = x + at * (GT_XB);
            gt_transpose_square(from, GT_XB, tile + at, GT_CHUNK);
            GT_UNROLL for (int i = 0; i < GT_LANES; i++)
                __builtin_prefetch(from + i * (GT_XB) + 2 * GT_LANES - 1);
        }
    }
    for (int64_t i = 0; i < height; i++) {
        const GT_NUMBER *row = (const GT_NUMBER *)(tile + (above + i) * GT_CHUNK);
        if (width == GT_CHUNK)
            GT_EPILOGUE(row, p, a + i, b * GT_NUMBERS, GT_CHUNK * GT_NUMBERS GT_ARGS);
        else
            GT_EPILOGUE(row, p, a + i, b * GT_NUMBERS, width * GT_NUMBERS GT_ARGS);
    }
}

static void GT_NAME(int t, int threads GT_PARAMS)
{
    /* A unit is one chunk of a block of rows; a group of blocks takes chunk after chunk. */
    const int64_t blocks = gt_ceil_div(GT_A, GT_LANES), chunks = gt_ceil_div(GT_B, GT_CHUNK);
    const int64_t units = (GT_PLANES) * blocks * chunks, most = GT_NEAR / GT_LANES;
    const int64_t end = gt_part(units, t + 1, threads);
    for (int64_t u = gt_part(units, t, threads); u < end; u++) {
        const int64_t p = u / (blocks * chunks), in_plane = u % (blocks * chunks);
        const int64_t group = in_plane / (most * chunks), at = in_plane % (most * chunks);
        const int64_t near = gt_min(most, blocks - group * most);
        const int64_t a = (group * most + at % near) * GT_LANES, b = at / near * GT_CHUNK;
        GT_JOIN(GT_NAME, _block)
        (p, a, gt_min(GT_LANES, (GT_A)-a), b, gt_min(GT_CHUNK, (GT_B)-b) GT_ARGS);
    }
}

#include "template_end.h"
