/* What a run asks of its arguments, in whatever language its kernels are. */
#ifndef GT_ARGUMENTS_H
#define GT_ARGUMENTS_H

#include <stddef.h>

static inline double gt_greater(double a, double b) { return a > b ? a : b; }

static inline int gt_any_null(const void *const *pointers, int count)
{
    for (int i = 0; i < count; i++)
        if (!pointers[i]) return 1;
    return 0;
}

#endif
