/* Rows of a left operand that is transposed in memory, for templates with parts_loop.h: A and LDK
   are as in gemm_parts.h. */
#define GT_ONCE GT_PARTS_RUN
#define GT_APART GT_PARTS_RUN
#define GT_ROOM (GT_SEGMENT * GT_PARTS_RUN)
#define GT_BESIDE (8 * GT_SEGMENT)

GT_INLINE const float *GT_JOIN(GT_NAME, _rows)(int64_t b, int64_t m, int64_t k, int64_t rows,
                                               int64_t depth, float *room GT_PARAMS)
{
    gt_turn_run(GT_A(b) + m + k * (GT_LDK), GT_LDK, rows, depth, room);
    return room;
}
