/* The loop of a template over blocks of one or two segments: gemm_loop.h, and the groups of blocks
   that take a part of the depth one after the other, while that part of a panel stays in the first
   cache and their sums beside it. The template has what gemm_loop.h wants, but for the tiles, and

   GT_SUM       the type of a sum
   GT_DIVIDED   whether the depth is divided, where a group has several blocks
   NAME_tile(segments, b, line, panel, from, upto, ahead, step, sums GT_ARGS)
                adds the steps `from` to `upto` of the depth to the sums of a block, which are new
                if `from` is 0, and hands them out after the last step; `segments` is a literal.
                Each row of the panel prefetches the line at `ahead`, which moves on by `step`
                bytes */
#define GT_GROUP 4 /* blocks of a group at most */
#define GT_PART 8 /* steps of a part: 16 KB of a panel */

GT_NOINLINE void GT_JOIN(GT_NAME, _tile1)(int64_t b, int64_t line, int64_t panel, int64_t from,
                                          int64_t upto, const char *ahead, int64_t step,
                                          GT_SUM *sums GT_PARAMS)
{
    GT_JOIN(GT_NAME, _tile)(1, b, line, panel, from, upto, ahead, step, sums GT_ARGS);
}

GT_NOINLINE void GT_JOIN(GT_NAME, _tile2)(int64_t b, int64_t line, int64_t panel, int64_t from,
                                          int64_t upto, const char *ahead, int64_t step,
                                          GT_SUM *sums GT_PARAMS)
{
    GT_JOIN(GT_NAME, _tile)(2, b, line, panel, from, upto, ahead, step, sums GT_ARGS);
}

/* The blocks from `at` on, `some` of them, of which those before `longer` have a segment more than
   `shorter`. If they are the `first` that read the panel, they prefetch what is read next: the next
   part, or the beginning of panel `next`. */
GT_INLINE void GT_JOIN(GT_NAME, _group)(int64_t b, int64_t at, int64_t some, int64_t shorter,
                                        int64_t longer, int64_t panel, int64_t next,
                                        int first GT_PARAMS)
{
    GT_SUM sums[GT_GROUP * 2 * GT_SEGMENT * GT_NR] GT_ALIGNED;
    const int64_t steps = GT_STEPS / 16, step = first ? gt_ceil_div(GT_NR * 4, some) : 0;
    const int64_t parts = (GT_DIVIDED) && some > 1 ? gt_ceil_div(steps, GT_PART) : 1;
    const int64_t part = gt_ceil_div(steps, parts);
    for (int64_t from = 0; from < steps; from += part) {
        const int64_t upto = gt_min(from + part, steps);
        const char *ahead = (const char *)GT_B(b)
                            + (upto < steps ? panel * GT_PANEL + upto * 16 * GT_NR * 4
                                            : next * GT_PANEL);
        for (int64_t i = 0; i < some; i++, ahead += (upto - from) * 16 * step) {
            GT_SUM *own = sums + (parts > 1 ? i : 0) * 2 * GT_SEGMENT * GT_NR;
            const int64_t line = (at + i) * shorter + gt_min(at + i, longer);
            if (shorter + (at + i < longer) == 2)
                GT_JOIN(GT_NAME, _tile2)(b, line, panel, from, upto, ahead, step, own GT_ARGS);
            else
                GT_JOIN(GT_NAME, _tile1)(b, line, panel, from, upto, ahead, step, own GT_ARGS);
        }
    }
}

#include "gemm_loop.h"
