/* Slices of the depth, for products with fewer tiles than a device has multiprocessors: a block
   computes the sums of a tile over one slice, and the block that is done last adds those of all
   slices in their order. So there is one launch, and a run gives the same bits each time. The
   header that includes this one defines GT_SUM, GT_ROWS, GT_PANEL_WIDTH and

   GT_PITCH_OUT  elements between the rows of a tile in shared memory */
#ifndef GT_SLICES
#define GT_SLICES 1
#endif
#define GT_HIGH_TILES (((GT_HEIGHT) + GT_ROWS - 1) / GT_ROWS)
#define GT_WIDE_TILES (((GT_WIDTH) + GT_PANEL_WIDTH - 1) / GT_PANEL_WIDTH)
/* The tile and the slice of a piece of the work. */
#define GT_TILE_OF(at) (GT_SLICES > 1 ? (at) % (GT_TILES) : (at))
#define GT_SLICE_OF(at) (GT_SLICES > 1 ? (at) / (GT_TILES) : 0)
#define GT_TILES ((GT_GROUPED) * GT_HIGH_TILES * GT_WIDE_TILES)

#if GT_SLICES > 1
#ifdef GT_INTEGERS
#define GT_PLUS(a, b) ((GT_SUM)((uint32_t)(a) + (uint32_t)(b)))
#else
#define GT_PLUS(a, b) ((a) + (b))
#endif
/* How many slices of a tile are done; zeros again when a launch ends. */
static __device__ unsigned GT_JOIN(GT_NAME, _done)[GT_TILES];

/* Stores the sums of a slice, which are in shared memory at `own`; returns whether the other slices
   of the tile were done before. Then `own` has the sums of the whole depth. */
GT_INLINE int GT_JOIN(GT_NAME, _joined)(GT_SUM *own, int64_t tile, int64_t slice GT_PARAMS)
{
    __shared__ int last;
    const int count = GT_ROWS * GT_PANEL_WIDTH;
    volatile GT_SUM *const slabs = GT_SLABS + tile * GT_SLICES * count;
    for (int i = threadIdx.x; i < count; i += GT_TEAM)
        slabs[slice * count + i] = own[i / GT_PANEL_WIDTH * GT_PITCH_OUT + i % GT_PANEL_WIDTH];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&GT_JOIN(GT_NAME, _done)[tile], 1u) == GT_SLICES - 1;
        if (last) GT_JOIN(GT_NAME, _done)[tile] = 0;
        __threadfence();
    }
    __syncthreads();
    const int all = last;
    for (int i = threadIdx.x; all && i < count; i += GT_TEAM) {
        GT_SUM sum = slabs[i];
        for (int s = 1; s < GT_SLICES; s++) sum = GT_PLUS(sum, slabs[s * count + i]);
        own[i / GT_PANEL_WIDTH * GT_PITCH_OUT + i % GT_PANEL_WIDTH] = sum;
    }
    __syncthreads();
    return all;
}
#endif
