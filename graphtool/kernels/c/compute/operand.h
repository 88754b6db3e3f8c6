/* The operands of a template: floats, or numbers of 16 bits if GT_HALF is their type. GT_NUMBER is
   what memory holds; GT_READ(p) is a vector of them as floats, GT_READ_FIRST(p, count) the first
   count < GT_LANES of them. */
#ifdef GT_HALF
#include "half.h"
#define GT_NUMBER uint16_t
#define GT_READ(p) gt_load_half(GT_HALF, p)
#define GT_READ_FIRST(p, count) gt_load_half_first(GT_HALF, p, count)
#else
#define GT_NUMBER float
#define GT_READ(p) gt_load(p)
#define GT_READ_FIRST(p, count) gt_load_first(p, count)
#endif
