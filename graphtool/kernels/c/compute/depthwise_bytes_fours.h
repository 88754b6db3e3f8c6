/* Of depthwise_bytes.h, what takes four channels together: bytes of an image, of weights and of the
   ring are widened to vectors of four words, and the zero point meets the sum of the weights. */

/* The weights of four channels from c on, tap by tap, behind what their sums start from. Channels
   beyond the last one have weights of 0. */
GT_INLINE void GT_JOIN(GT_NAME, _hold)(int32_t *held, int64_t c GT_PARAMS)
{
    const int8_t *w = GT_W + c * GT_TAPS;
    int8_t *const fours = (int8_t *)(held + 4);
#ifdef __ARM_FEATURE_MVE
    const mve_pred16_t there = vctp32q((uint32_t)((GT_C)-c));
    const uint32x4_t at = vmulq_n_u32(vidupq_n_u32(0, 1), GT_TAPS);
    int32x4_t sum = vdupq_n_s32(0);
    for (int i = 0; i < GT_TAPS; i++, w++) {
        const int32x4_t four = vldrbq_gather_offset_z_s32(w, at, there);
        vstrbq_s32(fours + 4 * i, four);
        sum = vaddq_s32(sum, four);
    }
    vst1q_s32(held, vmulq_n_s32(sum, -(GT_ZERO)));
#else
    for (int j = 0; j < 4; j++) {
        held[j] = 0;
        for (int i = 0; i < GT_TAPS; i++) {
            fours[4 * i + j] = c + j < (GT_C) ? w[j * GT_TAPS + i] : 0;
            held[j] -= (GT_ZERO)*fours[4 * i + j];
        }
    }
#endif
}

/* Row y of the image, of the channels from c on, into a row of the ring. */
GT_INLINE void GT_JOIN(GT_NAME, _load)(GT_BYTE *line, const GT_BYTE *x, int64_t y, int64_t c)
{
    line += 4 * (GT_PL);
    x += y * (GT_XH);
    GT_BYTE *const end = line + 4 * GT_SEEN;
    if (y < 0 || y >= (GT_IH))
        memset(line, (GT_ZERO)&255, (size_t)(end - line));
    else if ((GT_XC) == 1 && c + 4 <= (GT_C))
        for (; line < end; line += 4, x += (GT_XW)) memcpy(line, x, 4);
    else
        for (; line < end; line += 4, x += (GT_XW))
            for (int j = 0; j < 4 && c + j < (GT_C); j++) line[j] = x[j * (GT_XC)];
}

/* The sums of GT_BLOCK neighbours: [neighbour][channel]. */
GT_NOINLINE void GT_JOIN(GT_NAME, _sums)(const GT_BYTE *const *rows, const int32_t *held,
                                         int32_t *sums)
{
    const int8_t *w = (const int8_t *)(held + 4);
#ifdef __ARM_FEATURE_MVE
    int32x4_t sum[GT_MOST];
    GT_UNROLL for (int p = 0; p < GT_MOST; p++) sum[p] = vld1q_s32(held);
    GT_ROLLED for (int r = 0; r < (GT_KH); r++) {
        const GT_BYTE *const x = rows[r];
        GT_UNROLL for (int s = 0; s < (GT_KW); s++, w += 4) {
            const int32x4_t four = vldrbq_s32(w);
            GT_UNROLL for (int p = 0; p < GT_MOST; p++)
                if (p < GT_BLOCK) {
                    const GT_BYTE *const at = x + 4 * (p * (GT_SW) + s * (GT_DW));
                    sum[p] = vaddq_s32(sum[p], vmulq_s32(four, GT_WORDS(at)));
                    /* in this order, for which there are registers enough */
                    __asm__ volatile("" : "+w"(sum[p]) : : "memory");
                }
        }
    }
    GT_UNROLL for (int p = 0; p < GT_MOST; p++)
        if (p < GT_BLOCK) vst1q_s32(sums + 4 * p, sum[p]);
#else
    for (int p = 0; p < GT_BLOCK; p++)
        for (int j = 0; j < 4; j++) {
            int32_t sum = held[j];
            for (int r = 0; r < (GT_KH); r++)
                for (int s = 0; s < (GT_KW); s++)
                    sum += rows[r][4 * (p * (GT_SW) + s * (GT_DW)) + j]
                           * w[4 * (r * (GT_KW) + s) + j];
            sums[4 * p + j] = sum;
        }
#endif
}

/* An output row of the channels from c on, whose windows begin in row `slot` of the ring. */
GT_INLINE void GT_JOIN(GT_NAME, _row)(int64_t slot, const int32_t *held, int64_t n, int64_t oh,
                                      int64_t c GT_PARAMS)
{
    const GT_BYTE *rows[GT_KH];
    GT_UNROLL for (int r = 0; r < (GT_KH); r++) rows[r] = GT_RING_ROW(slot + r * (GT_DH));
    for (int64_t ow = 0; ow < (GT_OW); ow += GT_BLOCK) {
        int32_t sums[4 * GT_MOST];
        const int64_t some = gt_min(GT_BLOCK, (GT_OW)-ow);
        GT_JOIN(GT_NAME, _sums)(rows, held, sums);
        GT_UNROLL for (int r = 0; r < (GT_KH); r++) rows[r] += 4 * GT_BLOCK * (GT_SW);
        for (int64_t i = 0; c + 4 <= (GT_C) && i < some; i++)
            GT_EPILOGUE(sums + 4 * i, n, oh, ow + i, c, 4 GT_ARGS);
        for (int64_t i = 0; c + 4 > (GT_C) && i < some; i++)
            GT_EPILOGUE(sums + 4 * i, n, oh, ow + i, c, (GT_C) % 4 GT_ARGS);
    }
}
