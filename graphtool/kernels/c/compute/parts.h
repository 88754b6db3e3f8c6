/* Products of float32 by the bfloat16 tiles of a matrix unit. A float32 has 24 binary digits, a
   bfloat16 has 8: x·2²⁴ is exactly the sum of three bfloat16, x₁ + x₂ + x₃, each the nearest to
   what the ones before leave. So is w·2²⁴, and

      x·w·2⁴⁸ = x₁·w₁ + (x₁·w₂ + x₂·w₁) + (x₁·w₃ + x₂·w₂ + x₃·w₁) + …

   The products of parts are exact in float32. The three that are left out are below 2⁻²³ of x·w, so
   six products keep the accuracy of float32. Two parts and three products keep 16 digits. `parts`
   is 2 or 3, a literal.

   The unit takes subnormal numbers for zero. Because of the factor 2²⁴ no part of a float32 is
   subnormal, not even of the least one, and because of 2⁴⁸ no product that counts. In return
   operands must be below GT_PARTS_BELOW: then up to 2²⁰ of them have a sum below 2¹²⁷. What is
   larger, infinities and NaN do not split. gt_split_run reports them, and gt_parts_rows multiplies
   the floats themselves.

   Rows of the left operand are split in runs of 32 numbers. The right one is a panel,
   [steps][parts][16][GT_COLUMNS][2]: for each step of 32 along the depth and each part what amx.h
   reads in one step. */
#ifndef GT_PARTS_H
#define GT_PARTS_H

#include "amx.h"

#define GT_PARTS_SCALE 0x1p24f /* of each operand */
#define GT_PARTS_BACK 0x1p-48f /* of sums: multiply by it */
#define GT_PARTS_BELOW 0x1p29f /* magnitudes that split */
#define GT_PARTS_RUN 32 /* numbers of a step along the depth */
#define GT_PARTS_PRODUCTS(parts) ((parts) * ((parts) + 1) / 2) /* of parts in a step */
#define GT_PART_BYTES (16 * GT_COLUMNS * 4) /* of one part of a panel, in one step */

#if GT_LANES == 1
typedef uint32_t gt_vw;
#endif

GT_INLINE gt_vw gt_vector_bits(gt_vf x)
{
    gt_vw bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

GT_INLINE gt_vf gt_vector_of_bits(gt_vw bits)
{
    gt_vf x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x·2²⁴ as a sum of parts, all of them numbers of bfloat16. A tie is rounded away from zero. */
GT_INLINE void gt_split(gt_vf x, const int parts, gt_vf *part)
{
    gt_vf rest = x * gt_splat(GT_PARTS_SCALE);
    GT_UNROLL for (int p = 0; p < parts; p++) {
        part[p] = p == 2 ? rest : gt_vector_of_bits((gt_vector_bits(rest) + 0x8000u) & 0xffff0000u);
        rest -= part[p];
    }
}

/* Remembers in `seen`, at first zero, whether all numbers split, which gt_all_split says. */
GT_INLINE gt_vw gt_see(gt_vw seen, gt_vf x)
{
    /* the upper bit of a lane is set by a magnitude of GT_PARTS_BELOW or more */
    const uint32_t upto = 0x80000000u - 0x4e000000u;
    return seen | ((gt_vector_bits(x) & 0x7fffffffu) + upto);
}

GT_INLINE int gt_all_split(gt_vw seen)
{
    uint32_t lanes[GT_LANES], all = 0;
    memcpy(lanes, &seen, sizeof lanes);
    for (int i = 0; i < GT_LANES; i++) all |= lanes[i];
    return all >> 31 == 0;
}

/* Numbers of bfloat16, which floats hold, as 16 bits each: 32 of them. */
GT_INLINE void gt_store_part(uint16_t *to, const gt_vf *part)
{
#if GT_LANES == 16 && defined __AVX512BW__
    static const uint16_t upper[32] GT_ALIGNED = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                  23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                  45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16((__m512i)part[0], _mm512_load_si512(upper),
                                                      (__m512i)part[1]));
#else
    for (int i = 0; i < GT_PARTS_RUN / GT_LANES; i++) {
#if GT_LANES == 1
        to[i] = (uint16_t)(gt_vector_bits(part[i]) >> 16);
#else
        *(gt_vhu *)(to + i * GT_LANES) = __builtin_convertvector(gt_vector_bits(part[i]) >> 16,
                                                                 gt_vh);
#endif
    }
#endif
}

/* Splits `count` <= 32 adjacent numbers, with zeros behind them: part p to 32 numbers at
   to + p·plane. Returns `seen`. */
GT_INLINE gt_vw gt_split_run(const float *x, int64_t count, const int parts, uint16_t *to,
                             int64_t plane, gt_vw seen)
{
    enum { vectors = GT_PARTS_RUN / GT_LANES };
    gt_vf part[3][vectors];
    GT_UNROLL for (int i = 0; i < vectors; i++) {
        const int64_t at = i * GT_LANES;
        const gt_vf some = at + GT_LANES <= count ? gt_load(x + at)
                                                  : gt_load_first(x + at, gt_max(0, count - at));
        gt_vf own[3];
        seen = gt_see(seen, some);
        gt_split(some, parts, own);
        GT_UNROLL for (int p = 0; p < parts; p++) part[p][i] = own[p];
    }
    GT_UNROLL for (int p = 0; p < parts; p++) gt_store_part(to + p * plane, part[p]);
    return seen;
}

/* Up to 16 rows of a matrix that is transposed in memory, columns ldk apart, as rows of 32 numbers
   of which `depth` are set. Rows of the result that are not in the matrix are arbitrary. */
GT_INLINE void gt_turn_run(const float *x, int64_t ldk, int64_t rows, int64_t depth, float *to)
{
    float columns[GT_PARTS_RUN * GT_SEGMENT] GT_ALIGNED = {0};
    for (int64_t k = 0; k < depth; k++)
        if (rows == GT_SEGMENT) memcpy(columns + k * GT_SEGMENT, x + k * ldk, GT_SEGMENT * 4);
        else memcpy(columns + k * GT_SEGMENT, x + k * ldk, (size_t)rows * sizeof(float));
    for (int64_t k = 0; k < GT_PARTS_RUN; k += GT_LANES)
        for (int64_t m = 0; m < GT_SEGMENT; m += GT_LANES)
            gt_transpose_square(columns + k * GT_SEGMENT + m, GT_SEGMENT, to + m * GT_PARTS_RUN + k,
                                GT_PARTS_RUN);
}

/* The parts of two rows of a right-hand side by pairs, as a panel holds them: in each lane the
   first row's number is the lower half. */
GT_INLINE void gt_split_pairs(gt_vf first, gt_vf second, const int parts, gt_vw *pairs)
{
    gt_vf low[3], high[3];
    gt_split(first, parts, low);
    gt_split(second, parts, high);
    GT_UNROLL for (int p = 0; p < parts; p++)
        pairs[p] = gt_vector_bits(low[p]) >> 16 | (gt_vector_bits(high[p]) & 0xffff0000u);
}

/* Splits a panel of floats, `depth` rows of GT_COLUMNS, with rows of zeros up to a whole step.
   Returns `seen`. */
GT_INLINE gt_vw gt_split_panel(const float *w, int64_t depth, const int parts, char *to)
{
    gt_vw seen = {0};
    for (int64_t k = 0; k < gt_ceil_div(depth, GT_PARTS_RUN) * GT_PARTS_RUN; k += 2) {
        char *tile = to + k / GT_PARTS_RUN * parts * GT_PART_BYTES;
        for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES) {
            gt_vw pairs[3];
            const gt_vf none = gt_splat(0.0f);
            const gt_vf first = k < depth ? gt_load(w + k * GT_COLUMNS + j) : none;
            const gt_vf second = k + 1 < depth ? gt_load(w + (k + 1) * GT_COLUMNS + j) : none;
            seen = gt_see(gt_see(seen, first), second);
            gt_split_pairs(first, second, parts, pairs);
            GT_UNROLL for (int p = 0; p < parts; p++)
                memcpy(tile + p * GT_PART_BYTES + (k % GT_PARTS_RUN / 2 * GT_COLUMNS + j) * 4,
                       pairs + p, sizeof *pairs);
        }
    }
    return seen;
}

#ifdef GT_AMX
/* The tiles of sums += a part of A times a part of B, which tiles hold. */
#define GT_PARTS_DOTS(two, wide)                                                                  \
    do {                                                                                          \
        GT_TILE_DOT(GT_BFLOAT16, 0, 4, 6);                                                        \
        if (wide) GT_TILE_DOT(GT_BFLOAT16, 1, 4, 7);                                              \
        if (two) GT_TILE_DOT(GT_BFLOAT16, 2, 5, 6);                                               \
        if ((two) && (wide)) GT_TILE_DOT(GT_BFLOAT16, 3, 5, 7);                                   \
    } while (0)
#define GT_PARTS_LEFT(p)                                                                          \
    do {                                                                                          \
        GT_TILE_LOAD(4, a + (p) * plane, lda);                                                    \
        if (two) GT_TILE_LOAD(5, a + (p) * plane + second, lda);                                  \
    } while (0)
#define GT_PARTS_RIGHT(p)                                                                         \
    do {                                                                                          \
        GT_TILE_LOAD(6, b + (p) * GT_PART_BYTES, GT_COLUMNS * 4);                                 \
        if (wide) GT_TILE_LOAD(7, b + (p) * GT_PART_BYTES + GT_RUN_BYTES, GT_COLUMNS * 4);        \
    } while (0)

/* Product `at` of a step: the small ones first, and each tile loaded as seldom as eight tiles
   allow. */
GT_INLINE void gt_parts_product(const int parts, const int at, const int two, const int wide,
                                const char *a, int64_t second, int64_t lda, int64_t plane,
                                const char *b)
{
    const int left[2][6] = {{0, 1, 0}, {0, 0, 1, 1, 2, 0}};
    const int right[2][6] = {{1, 0, 0}, {2, 1, 1, 0, 0, 0}};
    const int l = left[parts - 2][at], r = right[parts - 2][at];
    if (!at || l != left[parts - 2][at - 1]) GT_PARTS_LEFT(l);
    if (!at || r != right[parts - 2][at - 1]) GT_PARTS_RIGHT(r);
    GT_PARTS_DOTS(two, wide);
}

#undef GT_PARTS_DOTS
#undef GT_PARTS_LEFT
#undef GT_PARTS_RIGHT

/* Adds so many steps to the tiles of sums, which gt_block_zero begins and gt_block_store stores,
   multiplied by 2⁴⁸. Part p of the first segment is at a + p·plane, with rows that are lda bytes
   apart; the second segment, if there are `two`, is `second` bytes further, the next step `along`
   bytes. The panel begins at b; if not `wide`, only its first half is read. Each row of a panel's
   tile prefetches the line at `ahead`, which moves on by `step` bytes. Needs gt_parts_in_tiles. */
GT_INLINE void gt_parts_run(const int parts, const int two, const int wide, const char *a,
                            int64_t along, int64_t second, int64_t lda, int64_t plane,
                            const char *b, int64_t steps, const char *ahead, int64_t step)
{
    for (int64_t i = 0; i < steps; i++) {
        for (int64_t at = 0; at < 16 * parts * step; at += 64)
            __builtin_prefetch(ahead + at, 0, 2);
        GT_UNROLL for (int p = 0; p < GT_PARTS_PRODUCTS(parts); p++)
            gt_parts_product(parts, p, two, wide, a, second, lda, plane, b);
        a += along, b += parts * GT_PART_BYTES, ahead += 16 * parts * step;
    }
}
#endif

/* A block's sums of parts, [2][16][GT_COLUMNS], as sums of floats: put into `sums`, or added if it
   has `begun`. Both are vector-aligned, and may be the same if it has not. */
GT_INLINE void gt_parts_finish(const float *tiles, const int two, int begun, float *sums)
{
    for (int64_t i = 0; i < (two ? 2 : 1) * GT_SEGMENT * GT_COLUMNS; i += GT_LANES) {
        gt_vf sum = *(const gt_vf *)(tiles + i) * gt_splat(GT_PARTS_BACK);
        if (begun) sum += *(const gt_vf *)(sums + i);
        *(gt_vf *)(sums + i) = sum;
    }
}

/* Whether sums of parts are in tiles; else gt_parts_rows is for all numbers. */
GT_INLINE int gt_parts_in_tiles(void)
{
#ifdef GT_AMX
    return gt_in_tiles(GT_BFLOAT16);
#else
    return 0;
#endif
}

/* Rows k and k + 1 of a panel, two vectors each, as floats. The panel is split; or with no parts it
   has rows of GT_COLUMNS floats, of which the last one may be k. */
GT_INLINE void gt_panel_rows(const int parts, const char *b, int64_t k, int last, gt_vf *even,
                             gt_vf *odd)
{
    if (!parts) {
        const float *row = (const float *)b + k * GT_COLUMNS;
        for (int j = 0; j < 2; j++) {
            even[j] = gt_load(row + j * GT_LANES);
            odd[j] = last ? even[j] : gt_load(row + GT_COLUMNS + j * GT_LANES);
        }
        return;
    }
    b += k / GT_PARTS_RUN * parts * GT_PART_BYTES + k % GT_PARTS_RUN / 2 * GT_COLUMNS * 4;
    for (int j = 0; j < 2; j++) {
        gt_vf low = gt_splat(0.0f), high = gt_splat(0.0f);
        GT_UNROLL for (int p = parts - 1; p >= 0; p--) {
            gt_vw pairs;
            memcpy(&pairs, b + p * GT_PART_BYTES + j * sizeof pairs, sizeof pairs);
            low += gt_vector_of_bits(pairs << 16);
            high += gt_vector_of_bits(pairs & 0xffff0000u);
        }
        even[j] = low * gt_splat(1 / GT_PARTS_SCALE);
        odd[j] = high * gt_splat(1 / GT_PARTS_SCALE);
    }
}

#define GT_PARTS_ROWS 6 /* rows that gt_parts_rows takes together */

/* sums[rows][GT_COLUMNS] += the floats x[r·ldx + k], `depth` of each row r, times rows `from` to
   from + depth of a panel as gt_panel_rows reads it, by multiply-adds. */
GT_INLINE void gt_parts_rows(const int parts, const float *x, int64_t ldx, int64_t rows,
                             const char *b, int64_t from, int64_t depth, float *sums)
{
    for (int64_t first = 0; first < rows; first += GT_PARTS_ROWS) {
        const int64_t some = gt_min(GT_PARTS_ROWS, rows - first);
        const float *own = x + first * ldx;
        gt_vf acc[GT_PARTS_ROWS * 2];
        GT_UNROLL for (int i = 0; i < GT_PARTS_ROWS * 2; i++)
            acc[i] = gt_load(sums + (first + gt_min(i / 2, some - 1)) * GT_COLUMNS
                             + i % 2 * GT_LANES);
        for (int64_t k = 0; k < depth; k += 2) {
            gt_vf even[2], odd[2];
            gt_panel_rows(parts, b, from + k, k + 1 == depth, even, odd);
            GT_UNROLL for (int i = 0; i < GT_PARTS_ROWS; i++) {
                const float *row = own + gt_min(i, some - 1) * ldx + k;
                GT_UNROLL for (int j = 0; j < 2; j++) {
                    acc[i * 2 + j] += gt_splat(row[0]) * even[j];
                    if (k + 1 < depth) acc[i * 2 + j] += gt_splat(row[1]) * odd[j];
                }
            }
        }
        GT_UNROLL for (int i = 0; i < GT_PARTS_ROWS * 2; i++)
            if (i / 2 < some)
                gt_store(sums + (first + i / 2) * GT_COLUMNS + i % 2 * GT_LANES, acc[i]);
    }
}

#endif
