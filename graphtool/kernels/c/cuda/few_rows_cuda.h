/* A product of up to four rows, which is bound by reading the weights: a block has a panel, each of
   its warps every GT_WARPS-th word of the depth, and each thread some columns side by side. Numbers
   are multiplied and added in float32. gemm_cuda.h has defined what product_cuda.h lists. */
#include "number_cuda.h"
#ifdef GT_PAIRS
#define GT_PER 2 /* numbers of a column that are adjacent in a panel */
#else
#define GT_PER 1
#endif
#define GT_PANEL_WIDTH ((GT_NV) * GT_WARP)
#define GT_PITCH_OUT GT_PANEL_WIDTH
#define GT_SUM float
#define GT_PADDED (((GT_RUN) + GT_PER - 1) / GT_PER * GT_PER)

#include "slices_cuda.h"

/* What this thread adds to its columns for GT_PER numbers of the depth, from k on. */
GT_INLINE void GT_JOIN(GT_NAME, _add)(float (*acc)[GT_NV], const GT_NUMBER *panel, int64_t g,
                                      int64_t k GT_PARAMS)
{
    const GT_NUMBER *x = GT_OPERAND(g);
    GT_PIECE GT_NUMBER w[GT_NV * GT_PER];
    const GT_NUMBER *at = panel + k * GT_PANEL_WIDTH + threadIdx.x % GT_WARP * (GT_NV * GT_PER);
    if (sizeof w == 2) gt_read_2(w, at);
    if (sizeof w == 4) gt_read_4(w, at);
    if (sizeof w == 8) gt_read_8(w, at);
    if (sizeof w == 16) gt_read_16(w, at);
    GT_UNROLL
    for (int p = 0; p < GT_PER; p++)
        if (GT_PER == 1 || k + p < (GT_RUN))
            GT_UNROLL
            for (int r = 0; r < GT_ROWS; r++) {
                const float left = GT_AS_FLOAT(x[GT_ROW(r) + GT_OFFSET(0, k + p)]);
                GT_UNROLL
                for (int c = 0; c < GT_NV; c++) acc[r][c] += left * GT_AS_FLOAT(w[c * GT_PER + p]);
            }
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    GT_SHARED_ARRAY(float, part, GT_WARPS *GT_ROWS *GT_PANEL_WIDTH);
    const int warp = threadIdx.x / GT_WARP, first = threadIdx.x % GT_WARP * GT_NV;
    const int64_t pairs = GT_PADDED / GT_PER;
    for (int64_t at = team; at < GT_TILES * GT_SLICES; at += teams) {
        const int64_t tile = GT_TILE_OF(at), slice = GT_SLICE_OF(at);
        const int64_t from = pairs * slice / GT_SLICES * GT_PER;
        const int64_t end = pairs * (slice + 1) / GT_SLICES * GT_PER;
        const int64_t g = tile / GT_WIDE_TILES, n = tile % GT_WIDE_TILES * GT_PANEL_WIDTH;
        const GT_NUMBER *panel = GT_PANELS(g) + n * GT_PADDED;
        float acc[GT_ROWS][GT_NV];
        GT_UNROLL
        for (int r = 0; r < GT_ROWS; r++)
            GT_UNROLL
            for (int c = 0; c < GT_NV; c++) acc[r][c] = 0;
        _Pragma("unroll 8")
        for (int64_t k = from + warp * GT_PER; k < end; k += GT_WARPS * GT_PER)
            GT_JOIN(GT_NAME, _add)(acc, panel, g, k GT_ARGS);
        GT_UNROLL
        for (int r = 0; r < GT_ROWS; r++)
            GT_UNROLL
            for (int c = 0; c < GT_NV; c++)
                part[(warp * GT_ROWS + r) * GT_PANEL_WIDTH + first + c] = acc[r][c];
        __syncthreads();
        for (int i = threadIdx.x; i < GT_ROWS * GT_PANEL_WIDTH; i += GT_TEAM) {
            float sum = part[i];
            GT_UNROLL
            for (int w = 1; w < GT_WARPS; w++) sum += part[w * GT_ROWS * GT_PANEL_WIDTH + i];
            part[i] = sum; /* below, the same thread takes it */
        }
#if GT_SLICES > 1
        if (!GT_JOIN(GT_NAME, _joined)(part, tile, slice GT_ARGS)) continue;
#endif
        for (int i = threadIdx.x; i < GT_ROWS * GT_PANEL_WIDTH; i += GT_TEAM)
            if (i / GT_PANEL_WIDTH < (GT_HEIGHT) && n + i % GT_PANEL_WIDTH < (GT_WIDTH))
                GT_FINISH(part + i, g, (int64_t)(i / GT_PANEL_WIDTH), n + i % GT_PANEL_WIDTH);
        __syncthreads();
    }
}
