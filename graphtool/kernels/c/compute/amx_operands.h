/* The operands of a template by a matrix unit: numbers of 16 bits if GT_HALF is their type, else
   bytes, unsigned times signed. GT_KIND is what amx.h calls them, GT_SIZE the bytes of one, GT_SUM
   the type of a sum. */
#ifdef GT_HALF
#define GT_KIND GT_HALF
#define GT_SIZE 2
#define GT_SUM float
#else
#define GT_KIND 0
#define GT_SIZE 1
#define GT_SUM int32_t
#endif
