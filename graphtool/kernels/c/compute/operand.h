/* The operands of a template: floats, numbers of 16 bits if GT_HALF is their type, or int8 if
   GT_BYTES is defined. GT_NUMBER is what memory holds; GT_READ(p) is a vector of them as floats,
   GT_READ_ONE(p) a single one, GT_READ_FIRST(p, count) the first count < GT_LANES of them (not of
   int8). */
#ifdef GT_BYTES
#include "bytes.h"
#define GT_NUMBER int8_t
#define GT_READ(p) gt_load_bytes(p)
#define GT_READ_ONE(p) ((float)*(p))
#endif
#ifdef GT_HALF
#include "half.h"
#define GT_NUMBER uint16_t
#define GT_READ(p) gt_load_half(GT_HALF, p)
#define GT_READ_ONE(p) gt_widen_one(GT_HALF, *(p))
#define GT_READ_FIRST(p, count) gt_load_half_first(GT_HALF, p, count)
#endif
#ifndef GT_NUMBER
#define GT_NUMBER float
#define GT_READ(p) gt_load(p)
#define GT_READ_ONE(p) (*(p))
#define GT_READ_FIRST(p, count) gt_load_first(p, count)
#endif
