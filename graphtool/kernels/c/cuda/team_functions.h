/* How the workers of a team join numbers, of every type: each line defines a function by the macro
   GT_TOGETHER(name, t, T, join), in which `join` makes one number of a and b. */
#define GT_TOGETHER_FLOATS(t, T)                                                                  \
    GT_TOGETHER(add, t, T, a + b)                                                                 \
    GT_TOGETHER(mul, t, T, a * b)                                                                 \
    GT_TOGETHER(max, t, T, gt_max_##t(a, b))                                                      \
    GT_TOGETHER(min, t, T, gt_min_##t(a, b))
#define GT_TOGETHER_INTEGERS(t, T)                                                                \
    GT_TOGETHER(add, t, T, gt_add_##t(a, b))                                                      \
    GT_TOGETHER(mul, t, T, gt_mul_##t(a, b))                                                      \
    GT_TOGETHER(max, t, T, gt_max_##t(a, b))                                                      \
    GT_TOGETHER(min, t, T, gt_min_##t(a, b))                                                      \
    GT_TOGETHER(and, t, T, (T)(a & b))                                                            \
    GT_TOGETHER(or, t, T, (T)(a | b))
GT_TOGETHER_FLOATS(f32, float)
#ifndef GT_NO_DOUBLE
GT_TOGETHER_FLOATS(f64, double)
#endif
GT_TOGETHER_INTEGERS(i8, int8_t)
GT_TOGETHER_INTEGERS(i16, int16_t)
GT_TOGETHER_INTEGERS(i32, int32_t)
GT_TOGETHER_INTEGERS(i64, int64_t)
GT_TOGETHER_INTEGERS(u8, uint8_t)
GT_TOGETHER_INTEGERS(u16, uint16_t)
GT_TOGETHER_INTEGERS(u32, uint32_t)
GT_TOGETHER_INTEGERS(u64, uint64_t)
GT_TOGETHER(max, bool, uint8_t, gt_max_bool(a, b))
GT_TOGETHER(min, bool, uint8_t, gt_min_bool(a, b))
GT_TOGETHER(and, bool, uint8_t, (uint8_t)(a & b))
GT_TOGETHER(or, bool, uint8_t, (uint8_t)(a | b))
#undef GT_TOGETHER_FLOATS
#undef GT_TOGETHER_INTEGERS
