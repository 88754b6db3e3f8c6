/* The loop of a template over blocks of one or two segments: it has what gemm_loop.h wants, but for
   NAME_tile1 and NAME_tile2, which are made of NAME_tile(segments, b, line, panel, ahead, step
   GT_ARGS); `segments` is a literal. */
GT_NOINLINE void GT_JOIN(GT_NAME, _tile1)(int64_t b, int64_t line, int64_t panel,
                                          const char *ahead, int64_t step GT_PARAMS)
{
    GT_JOIN(GT_NAME, _tile)(1, b, line, panel, ahead, step GT_ARGS);
}

GT_NOINLINE void GT_JOIN(GT_NAME, _tile2)(int64_t b, int64_t line, int64_t panel,
                                          const char *ahead, int64_t step GT_PARAMS)
{
    GT_JOIN(GT_NAME, _tile)(2, b, line, panel, ahead, step GT_ARGS);
}

#include "gemm_loop.h"
#undef GT_SHAPE
