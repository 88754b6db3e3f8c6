/* The first K of the N elements of each row in order, stably, a template: values and places.

   GT_ROWS GT_N GT_K  integer expressions, constants or names among GT_PARAMS, K <= N
   GT_KEY        the type in which elements are compared, GT_LOAD(e) an element as a key
   GT_BEFORE(a, b)  whether key a must stand before key b; equal keys keep their order
   GT_X(row)     the first element of a row, GT_XS the step to the next one
   GT_V(row) GT_VS  where the values go; leave both out if nobody reads them
   GT_I(row) GT_IS  where the places go, as int64_t; likewise
   GT_WORK(t)    int64_t[2·N] of thread t, scratch */
#include "prelude.h"
#include "template_begin.h"

/* Whether the element at place a stands before the one at place b. */
GT_INLINE int GT_JOIN(GT_NAME, _before)(int64_t row, int64_t a, int64_t b GT_PARAMS)
{
    const GT_KEY left = GT_LOAD((GT_X(row))[a * (GT_XS)]);
    const GT_KEY right = GT_LOAD((GT_X(row))[b * (GT_XS)]);
    return GT_BEFORE(left, right);
}

/* Puts i into the sorted list of the best so far, behind those that it equals; returns the length
   of the list. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _insert)(int64_t row, int64_t i, int64_t *best,
                                            int64_t length GT_PARAMS)
{
    int64_t lo = 0, hi = length;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        if (GT_JOIN(GT_NAME, _before)(row, i, best[mid] GT_ARGS))
            hi = mid;
        else
            lo = mid + 1;
    }
    if (lo >= GT_K) return length;
    length = gt_min(length + 1, GT_K);
    memmove(best + lo + 1, best + lo, (size_t)(length - 1 - lo) * sizeof *best);
    best[lo] = i;
    return length;
}

/* A few of many: a sorted list of the best so far. Most elements never enter it, so blocks of them
   are compared with its last element at once. */
GT_INLINE void GT_JOIN(GT_NAME, _select)(int64_t row, int64_t *best GT_PARAMS)
{
    enum { BLOCK = 32 };
    int64_t length = 0, i = 0;
    for (; i < GT_K; i++) length = GT_JOIN(GT_NAME, _insert)(row, i, best, length GT_ARGS);
    for (; i + BLOCK <= GT_N; i += BLOCK) {
        const GT_KEY last = GT_LOAD((GT_X(row))[best[(GT_K) - 1] * (GT_XS)]);
        int enters = 0;
        GT_SIMD_REDUCE(|, enters)
        for (int64_t j = 0; j < BLOCK; j++) {
            const GT_KEY key = GT_LOAD((GT_X(row))[(i + j) * (GT_XS)]);
            enters |= GT_BEFORE(key, last);
        }
        if (enters)
            for (int64_t j = i; j < i + BLOCK; j++)
                if (GT_JOIN(GT_NAME, _before)(row, j, best[(GT_K) - 1] GT_ARGS))
                    GT_JOIN(GT_NAME, _insert)(row, j, best, length GT_ARGS);
    }
    for (; i < GT_N; i++) GT_JOIN(GT_NAME, _insert)(row, i, best, length GT_ARGS);
}

/* Merges runs of growing length between the halves of the scratch; returns the sorted half. */
GT_INLINE const int64_t *GT_JOIN(GT_NAME, _merge)(int64_t row, int64_t *work GT_PARAMS)
{
    int64_t *from = work, *to = work + GT_N;
    for (int64_t i = 0; i < GT_N; i++) from[i] = i;
    for (int64_t run = 1; run < GT_N; run *= 2) {
        for (int64_t lo = 0; lo < GT_N; lo += 2 * run) {
            const int64_t mid = gt_min(lo + run, GT_N), hi = gt_min(lo + 2 * run, GT_N);
            int64_t a = lo, b = mid;
            for (int64_t i = lo; i < hi; i++) {
                const int right = a == mid || (b < hi && GT_JOIN(GT_NAME, _before)(
                                                             row, from[b], from[a] GT_ARGS));
                to[i] = right ? from[b++] : from[a++];
            }
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    int64_t *work = GT_WORK(t);
    for (int64_t row = gt_part(GT_ROWS, t, threads); row < gt_part(GT_ROWS, t + 1, threads);
         row++) {
        const int64_t *order = work;
        if (GT_K > 0 && GT_K <= 256 && 4 * (GT_K) <= GT_N)
            GT_JOIN(GT_NAME, _select)(row, work GT_ARGS);
        else
            order = GT_JOIN(GT_NAME, _merge)(row, work GT_ARGS);
        for (int64_t i = 0; i < GT_K; i++) {
#ifdef GT_V
            (GT_V(row))[i * (GT_VS)] = (GT_X(row))[order[i] * (GT_XS)];
#endif
#ifdef GT_I
            (GT_I(row))[i * (GT_IS)] = order[i];
#endif
        }
    }
}

#include "template_end.h"
