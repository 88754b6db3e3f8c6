/* The first K of the N elements of each row in order, stably, in CUDA: the macros of sort.h but
   GT_WORK, and

   GT_PLACES(row)  int64_t[2·N] of a row, scratch
   GT_TILE  the first launch: elements that a block sorts in shared memory, a power of 2
   GT_RUN   a later one: elements of the sorted runs that it merges in pairs, and GT_FROM, the half
            of GT_PLACES in which they are
   GT_TO    the half for the results; 2: they go to GT_V and GT_I

   Only the first K elements of a run are kept. Elements are known by their places, of which no two
   are equal, so there is one order, whatever sorts. */
#include "cuda_unit.h"
#include "template_begin.h"

/* Stores place `place` of a row as number `at` of those in order. */
GT_INLINE void GT_JOIN(GT_NAME, _put)(int64_t row, int64_t at, int64_t place GT_PARAMS)
{
#if GT_TO < 2
    (GT_PLACES(row))[GT_TO * (GT_N) + at] = place;
#else
#ifdef GT_V
    (GT_V(row))[at * (GT_VS)] = (GT_X(row))[place * (GT_XS)];
#endif
#ifdef GT_I
    (GT_I(row))[at * (GT_IS)] = place;
#endif
#endif
}

#ifdef GT_TILE
/* Whether place a of a tile stands before place b; places behind the row are the last ones. */
GT_INLINE int GT_JOIN(GT_NAME, _first)(const GT_KEY *keys, int a, int b, int count)
{
    if (a < count && b < count) {
        if (GT_BEFORE(keys[a], keys[b])) return 1;
        if (GT_BEFORE(keys[b], keys[a])) return 0;
    }
    return a < b;
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    GT_SHARED_ARRAY(GT_KEY, keys, GT_TILE);
    GT_SHARED_ARRAY(uint16_t, order, GT_TILE);
    const int64_t tiles = ((GT_N) + GT_TILE - 1) / GT_TILE;
    for (int64_t unit = team; unit < (GT_ROWS) * tiles; unit += teams) {
        const int64_t row = unit / tiles, start = unit % tiles * GT_TILE;
        const int count = (int)gt_min(GT_TILE, (GT_N) - start);
        for (int i = threadIdx.x; i < GT_TILE; i += GT_TEAM) {
            order[i] = (uint16_t)i;
            if (i < count) keys[i] = GT_LOAD((GT_X(row))[(start + i) * (GT_XS)]);
        }
        __syncthreads();
        /* runs of growing length, each first rising then falling, become twice as long */
        for (int run = 2; run <= GT_TILE; run *= 2)
            for (int step = run / 2; step > 0; step /= 2) {
                for (int i = threadIdx.x; i < GT_TILE / 2; i += GT_TEAM) {
                    const int at = i / step * 2 * step + i % step;
                    const int a = order[at], b = order[at + step];
                    if (GT_JOIN(GT_NAME, _first)(keys, b, a, count) == !(at & run)) {
                        order[at] = (uint16_t)b;
                        order[at + step] = (uint16_t)a;
                    }
                }
                __syncthreads();
            }
        for (int i = threadIdx.x; i < gt_min(count, GT_K); i += GT_TEAM)
            GT_JOIN(GT_NAME, _put)(row, start + i, start + order[i] GT_ARGS);
        __syncthreads();
    }
}
#else
/* A place that an earlier launch has stored; within the row, whatever is in memory. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _place)(const int64_t *at GT_PARAMS)
{
    return gt_max(0, gt_min(*at, (GT_N)-1));
}

/* How many of the `count` sorted places at `run` stand before a place: those that are `equal` count
   if they come from the left. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _rank)(int64_t row, int64_t place, const int64_t *run,
                                          int64_t count, int equal GT_PARAMS)
{
    const GT_KEY key = GT_LOAD((GT_X(row))[place * (GT_XS)]);
    int64_t lo = 0, hi = count;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        const int64_t across = GT_JOIN(GT_NAME, _place)(run + mid GT_ARGS);
        const GT_KEY other = GT_LOAD((GT_X(row))[across * (GT_XS)]);
        if (equal ? !GT_BEFORE(key, other) : GT_BEFORE(other, key))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    const int64_t runs = ((GT_N) + (GT_RUN)-1) / (GT_RUN), kept = gt_min(GT_K, GT_RUN);
    const int64_t all = (GT_ROWS) * runs * kept;
    for (int64_t i = team * GT_TEAM + threadIdx.x; i < all; i += teams * GT_TEAM) {
        const int64_t row = i / (runs * kept), run = i / kept % runs, at = i % kept;
        const int64_t start = run * (GT_RUN), across = (run ^ 1) * (GT_RUN);
        const int64_t *places = (GT_PLACES(row)) + GT_FROM * (GT_N);
        if (at >= (GT_N)-start) continue;
        const int64_t others = gt_max(0, gt_min(kept, (GT_N)-across));
        const int64_t place = GT_JOIN(GT_NAME, _place)(places + start + at GT_ARGS);
        const int64_t rank = at + GT_JOIN(GT_NAME, _rank)(row, place, places + across, others,
                                                          (int)(run & 1) GT_ARGS);
        if (rank < (GT_K)) GT_JOIN(GT_NAME, _put)(row, gt_min(start, across) + rank, place GT_ARGS);
    }
}
#endif

#include "template_end.h"
