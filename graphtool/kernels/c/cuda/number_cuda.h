/* The numbers of a template that computes in float32: GT_NUMBER is their type, GT_AS_FLOAT(x) the
   float that one is. GT_HALF, if defined, says which type of 16 bits they have. */
#ifdef GT_HALF
#define GT_NUMBER uint16_t
#define GT_AS_FLOAT(x) (GT_HALF == GT_FLOAT16 ? gt_f16_to_f32(x) : gt_bf16_to_f32(x))
#else
#define GT_NUMBER float
#define GT_AS_FLOAT(x) (x)
#endif
