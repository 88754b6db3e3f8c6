/* Sums of products in tiles, for products and for convolutions alike. A worker computes some rows
   of one panel of weights, and keeps its sums in registers, a vector of GT_NV for each row.
   The workers of a group have adjacent rows of the same panel: what one of them reads of it is near
   for the others. The header that includes this one defines what product_cuda.h lists, and

   GT_FINISH_ROW(acc, g, row, column, count)  hands adjacent sums of a row on

   and these come from the use:

   GT_ROWS     rows of a group, a multiple of GT_TEAM
   GT_NV       columns of a panel: 4, 8 or 16
   GT_HALF     numbers have 16 bits, of this type; they become float32 when they are read
   GT_NUMBER_STEP  elements between adjacent numbers of a run; left out: 1
   GT_INTEGERS if it is 8, products of u8 by s8, else, 16, of two int16; sums are int32, which wrap
               around, and of a panel as many rows are joined as 32 bits have numbers */
#ifdef GT_INTEGERS
#define GT_PER (32 / GT_INTEGERS)
#define GT_SUM int32_t
#define GT_TERM(x) ((uint)(x))
#define GT_VECTOR GT_JOIN(uint, GT_NV)
#if GT_INTEGERS == 8
#define GT_NUMBER uint8_t
#define GT_WEIGHT int8_t
#else
#define GT_NUMBER int16_t
#define GT_WEIGHT int16_t
#endif
#else
#include "number_cuda.h"
#define GT_PER 1
#define GT_SUM float
#define GT_TERM(x) GT_AS_FLOAT(x)
#define GT_VECTOR GT_JOIN(float, GT_NV)
#define GT_WEIGHT GT_NUMBER
#endif
#ifndef GT_SEEN
#define GT_SEEN(row, run, at) 1
#endif
#ifndef GT_NUMBER_STEP
#define GT_NUMBER_STEP 1
#endif
#ifndef GT_PADDED
#define GT_PADDED (((GT_RUN) + GT_PER - 1) / GT_PER * GT_PER) /* numbers of a run in a panel */
#endif
#define GT_OWN (GT_ROWS / GT_TEAM)
/* The same at any address of a number: some drivers leave vload as a call. */
typedef GT_VECTOR GT_JOIN(GT_NAME, _vector) __attribute__((aligned(4)));
#if defined GT_HALF || defined GT_INTEGERS
#define GT_LOADED(w, k) GT_JOIN(GT_NAME, _loaded)(w, k)
/* The numbers of row k of a panel. */
static GT_VECTOR GT_JOIN(GT_NAME, _loaded)(const __global GT_WEIGHT *w, int64_t k)
{
    const __global GT_WEIGHT *row = w + k / GT_PER * GT_PER * GT_NV + k % GT_PER;
    GT_SUM wide[GT_NV];
    GT_UNROLL
    for (int c = 0; c < GT_NV; c++) wide[c] = GT_TERM(row[c * GT_PER]);
    return *(GT_JOIN(GT_NAME, _vector) *)wide;
}
#else
#define GT_LOADED(w, k) (*(const __global GT_JOIN(GT_NAME, _vector) *)((w) + (k) * GT_NV))
#endif

/* Computes the rows from `row` on, which all are rows of the product but for the last ones. */
static void GT_JOIN(GT_NAME, _rows)(int64_t g, int64_t row, int64_t panel GT_PARAMS)
{
    const __global GT_NUMBER *x = GT_OPERAND(g);
    const __global GT_WEIGHT *w = (const __global GT_WEIGHT *)GT_PANELS(g) +
                                  panel * (GT_DEPTH_RUNS) * GT_PADDED * GT_NV;
    GT_VECTOR acc[GT_OWN];
    GT_UNROLL
    for (int r = 0; r < GT_OWN; r++) acc[r] = 0;
    for (int64_t run = 0; run < (GT_DEPTH_RUNS); run++, w += GT_PADDED * GT_NV) {
        const __global GT_NUMBER *at[GT_OWN];
        int counts[GT_OWN], all = 1;
        GT_UNROLL
        for (int r = 0; r < GT_OWN; r++) {
            const int64_t own = row + r < (GT_HEIGHT) ? row + r : (GT_HEIGHT) - 1;
            const int seen = GT_SEEN(own, run, 0);
            at[r] = seen ? x + GT_ROW(own) + GT_OFFSET(run, 0) : x;
            counts[r] = seen, all &= seen;
        }
        if (all)
            for (int64_t k = 0; k < (GT_RUN); k++) {
                const GT_VECTOR b = GT_LOADED(w, k);
                GT_UNROLL
                for (int r = 0; r < GT_OWN; r++)
                    acc[r] += GT_TERM(at[r][k * GT_NUMBER_STEP]) * b;
            }
        else
            for (int64_t k = 0; k < (GT_RUN); k++) {
                const GT_VECTOR b = GT_LOADED(w, k);
                GT_UNROLL
                for (int r = 0; r < GT_OWN; r++)
                    acc[r] += (counts[r] ? GT_TERM(at[r][k * GT_NUMBER_STEP]) : 0) * b;
            }
    }
    const int64_t column = panel * GT_NV, left = (GT_WIDTH)-column;
    GT_UNROLL
    for (int r = 0; r < GT_OWN; r++)
        if (row + r < (GT_HEIGHT)) {
            GT_SUM out[GT_NV];
            *(GT_JOIN(GT_NAME, _vector) *)out = acc[r];
            GT_FINISH_ROW(out, g, row + r, column, left < GT_NV ? left : GT_NV);
        }
}

static void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    const int64_t high = ((GT_HEIGHT) + GT_ROWS - 1) / GT_ROWS;
    const int64_t panels = ((GT_WIDTH) + GT_NV - 1) / GT_NV, tiles = (GT_GROUPED) * panels * high;
    for (int64_t tile = team; tile < tiles; tile += teams) {
        const int64_t row = tile % high * GT_ROWS + (int64_t)get_local_id(0) * GT_OWN;
        if (row < (GT_HEIGHT))
            GT_JOIN(GT_NAME, _rows)
            (tile / (panels * high), row, tile / high % panels GT_ARGS);
    }
}
