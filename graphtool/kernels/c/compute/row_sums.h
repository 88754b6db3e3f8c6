/* Sums along a row of pixels, channels last, in an order that depends on nothing but its length. */
#ifndef GT_ROW_SUMS_H
#define GT_ROW_SUMS_H

#include "prelude.h"

/* sums[c·apart] = Σ y[w·step + c·across] over `width` pixels, for the channels first to last. Four
   sums are computed side by side, so that no addition waits for the one before it. */
GT_INLINE void gt_row_sums(const float *y, int64_t width, int64_t step, int64_t across,
                           float *sums, int64_t apart, int64_t first, int64_t last)
{
    int64_t c = first;
    for (; across == 1 && apart == 1 && c + GT_LANES <= last; c += GT_LANES) {
        gt_vf s[4];
        GT_UNROLL for (int i = 0; i < 4; i++) s[i] = gt_splat(0.0f);
        int64_t w = 0;
        for (; w + 4 <= width; w += 4)
            GT_UNROLL for (int i = 0; i < 4; i++) s[i] += gt_load(y + (w + i) * step + c);
        for (; w < width; w++) s[0] += gt_load(y + w * step + c);
        gt_store(sums + c, (s[0] + s[1]) + (s[2] + s[3]));
    }
    y += c * across, sums += c * apart; /* by pointers: no product c·apart that might overflow */
    for (int64_t left = last - c; left > 0; left--, y += across, sums += apart) {
        float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        int64_t w = 0;
        for (; w + 4 <= width; w += 4)
            GT_UNROLL for (int i = 0; i < 4; i++) s[i] += y[(w + i) * step];
        for (; w < width; w++) s[0] += y[w * step];
        *sums = (s[0] + s[1]) + (s[2] + s[3]);
    }
}

#endif
