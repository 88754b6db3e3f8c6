/* Rows divided by their Euclidean length, a template: y = x / max(|x|, EPS), handed to an epilogue.
   Define the macros, include this file, repeat; it undefines them at its end.

   GT_NAME         the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_ROWS GT_COLS how many rows, and elements of a row
   GT_X GT_XR      const float *, the rows; elements from one to the next
   GT_EPS          the least length
   GT_PARAMS       more parameters, with a leading comma (default none); GT_ARGS hands them on
   GT_EPILOGUE     static inline void f(const float *restrict acc, int64_t r, int64_t c,
                   int64_t count GT_PARAMS): takes `count` elements of row r from c on; acc is
                   vector-aligned */
#include "prelude.h"
#include "template_begin.h"

static void GT_NAME(int t, int threads GT_PARAMS)
{
    for (int64_t r = gt_part(GT_ROWS, t, threads); r < gt_part(GT_ROWS, t + 1, threads); r++) {
        const float *x = GT_X + r * (GT_XR);
        float part[GT_LANES] GT_ALIGNED, length = 0;
        gt_vf squares = gt_splat(0.0f);
        int64_t c = 0;
        for (; c + GT_LANES <= (GT_COLS); c += GT_LANES)
            squares += gt_load(x + c) * gt_load(x + c);
        gt_store(part, squares);
        for (int i = 0; i < GT_LANES; i++) length += part[i];
        for (; c < (GT_COLS); c++) length += x[c] * x[c];
        length = sqrtf(length);
        const float scale = 1.0f / (length > GT_EPS ? length : GT_EPS);
        for (c = 0; c < (GT_COLS); c += GT_LANES) {
            const int64_t count = (GT_COLS)-c < GT_LANES ? (GT_COLS)-c : GT_LANES;
            for (int64_t i = 0; i < count; i++) part[i] = scale * x[c + i];
            GT_EPILOGUE(part, r, c, count GT_ARGS);
        }
    }
}

#include "template_end.h"
