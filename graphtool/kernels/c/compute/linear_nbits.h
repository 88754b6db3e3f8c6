/* Products with weights of 2, 4 or 8 bits, a template: y = x·wᵀ with w = (q - zero)·scale, and q
   read as it is packed.

   GT_M GT_N GT_K  rows of x, rows of w, columns of x: constants or names among GT_PARAMS
   GT_BITS       2, 4 or 8; GT_BLOCK columns share a scale, GT_PARTS of them cover GT_K
   GT_X(row)     a row of x, GT_XS the step to the next column
   GT_W          uint8_t, GT_BLOCK * GT_BITS / 8 a block, the lowest bits first
   GT_SCALES     float a row of w and block; GT_ZEROS likewise, or left out for the middle
   GT_Y(row)     where the results go, GT_YS the step to the next one
   GT_MR, GT_NV  the register tile of many rows: up to MR rows (a literal) of NV vectors
   GT_DEEP       columns of x that a panel of weights is widened for at a time, whole blocks
   GT_WORK(t)    room for 8 sorted rows of x, and for DEEP rows of a panel; floats of thread t */
#include "nbits.h"
#include "template_begin.h"

#ifndef GT_LINEAR_NBITS_H
#define GT_LINEAR_NBITS_H
#if GT_LANES == 1
#define GT_SPREAD(v, words) (v)
#else
#ifdef __clang__
#define GT_PICK(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define GT_PICK(v, ...) __builtin_shuffle(v, (gt_vi){__VA_ARGS__})
#endif
/* Element i / words of v in lane i. */
#if GT_LANES == 4
#define GT_SPREAD(v, w) GT_PICK(v, 0, 1 / (w), 2 / (w), 3 / (w))
#elif GT_LANES == 8
#define GT_SPREAD(v, w) \
    GT_PICK(v, 0, 1 / (w), 2 / (w), 3 / (w), 4 / (w), 5 / (w), 6 / (w), 7 / (w))
#else
#define GT_SPREAD(v, w) \
    GT_PICK(v, 0, 1 / (w), 2 / (w), 3 / (w), 4 / (w), 5 / (w), 6 / (w), 7 / (w), 8 / (w), \
            9 / (w), 10 / (w), 11 / (w), 12 / (w), 13 / (w), 14 / (w), 15 / (w))
#endif
#endif
/* The first `count` floats, without storing them to memory. */
#if GT_LANES == 16 && defined __AVX512F__
GT_INLINE gt_vf gt_first_scales(const float *p, const int count)
{
    return (gt_vf)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
}
#else
GT_INLINE gt_vf gt_first_scales(const float *p, const int count) { return gt_load_first(p, count); }
#endif
/* The words, or floats, that lie so many bytes, or elements, behind p. */
GT_INLINE gt_vi gt_gathered_words(const uint8_t *p, const int32_t *bytes)
{
#if GT_LANES == 16 && defined __AVX512F__
    return (gt_vi)_mm512_i32gather_epi32(_mm512_loadu_si512(bytes), p, 1);
#else
    int32_t word[GT_LANES];
    gt_vi v;
    for (int i = 0; i < GT_LANES; i++) memcpy(&word[i], p + bytes[i], 4);
    memcpy(&v, word, sizeof v);
    return v;
#endif
}
GT_INLINE gt_vf gt_gathered(const float *p, const int32_t *elements)
{
    float lanes[GT_LANES];
    gt_vf v;
    for (int i = 0; i < GT_LANES; i++) lanes[i] = p[elements[i]];
    memcpy(&v, lanes, sizeof v);
    return v;
}
GT_INLINE float gt_total(gt_vf v)
{
    float lanes[GT_LANES], total = 0.0f;
    memcpy(lanes, &v, sizeof lanes);
    for (int i = 0; i < GT_LANES; i++) total += lanes[i];
    return total;
}
#endif

/* numbers are counted from there: sums have smaller rounding errors */
#define GT_MIDDLE ((float)(1 << (GT_BITS - 1)))

enum {
    GT_JOIN(GT_NAME, _fields) = 32 / GT_BITS,            /* of a word */
    GT_JOIN(GT_NAME, _words) = GT_BLOCK * GT_BITS < 32 ? 1 : GT_BLOCK * GT_BITS / 32, /* a block */
    GT_JOIN(GT_NAME, _even) = GT_BLOCK * GT_BITS % 32 == 0 &&
                              (GT_JOIN(GT_NAME, _words) % GT_LANES == 0 ||
                               GT_LANES % GT_JOIN(GT_NAME, _words) == 0),
    GT_JOIN(GT_NAME, _group) = GT_LANES * GT_JOIN(GT_NAME, _fields), /* columns of a vector */
};

/* A row of x with its columns sorted by the field of a word that they meet, a vector of words at a
   time; what fills no vector stays in order. Returns where that begins. */
GT_INLINE int64_t GT_JOIN(GT_NAME, _sorted)(int64_t row, float *to GT_PARAMS)
{
    enum { fields = GT_JOIN(GT_NAME, _fields), group = GT_JOIN(GT_NAME, _group) };
    const int64_t all = (GT_PARTS) * (GT_BLOCK);
    const int64_t sorted = GT_JOIN(GT_NAME, _even) ? all / group * group : 0;
    for (int64_t k = 0; k < all; k++) {
        const int64_t i = k % group, first = k - i;
        const int64_t at = k < sorted ? first + i % fields * GT_LANES + i / fields : k;
        to[at] = k < GT_K ? (GT_X(row))[k * (GT_XS)] : 0.0f;
    }
    return sorted;
}

/* `rows` rows of sorted x by `columns` rows of w from n on; both are literals. A weight is
   converted to a number once and used for all rows. */
GT_INLINE void GT_JOIN(GT_NAME, _tile)(int rows, int columns, int64_t row, int64_t n,
                                       int64_t sorted, const float *x GT_PARAMS)
{
    enum { fields = GT_JOIN(GT_NAME, _fields), group = GT_JOIN(GT_NAME, _group) };
    enum { words = GT_JOIN(GT_NAME, _words), mask = (1 << GT_BITS) - 1 };
    const int64_t all = (GT_PARTS) * (GT_BLOCK);
    gt_vf sums[8][4];
    float rest[8][4];
    GT_UNROLL
    for (int r = 0; r < rows; r++)
        GT_UNROLL
        for (int c = 0; c < columns; c++) {
            sums[r][c] = gt_splat(0.0f);
            rest[r][c] = 0.0f;
        }
    for (int64_t k = 0; k < sorted; k += group) {
        gt_vi packed[4];
        gt_vf scale[4], shift[4], part[4];
        GT_UNROLL
        for (int c = 0; c < columns; c++) {
            const int64_t block = (n + c) * (GT_PARTS) + k / (GT_BLOCK);
            const int several = words < GT_LANES ? GT_LANES / words : 1;
            memcpy(&packed[c], GT_W + ((n + c) * all + k) * GT_BITS / 8, sizeof packed[c]);
            scale[c] = GT_SPREAD(gt_first_scales(GT_SCALES + block, several), words);
#ifdef GT_ZEROS
            shift[c] = GT_SPREAD(gt_first_scales(GT_ZEROS + block, several), words)
                       - gt_splat(GT_MIDDLE);
#else
            shift[c] = gt_splat(0.0f);
#endif
            part[c] = gt_splat(0.0f);
        }
        gt_vf given = gt_splat(0.0f); /* the sum of x where a lane's fields are */
        GT_UNROLL
        for (int f = 0; f < fields; f++) {
            gt_vf real[4];
            GT_UNROLL
            for (int c = 0; c < columns; c++)
                real[c] = gt_centred(GT_BITS, packed[c], f * GT_BITS);
            if (rows == 1) { /* scales and zeros are the same for all fields of a lane */
                const gt_vf v = gt_load(x + k + f * GT_LANES);
                given += v;
                GT_UNROLL
                for (int c = 0; c < columns; c++) part[c] += real[c] * v;
                continue;
            }
            GT_UNROLL
            for (int c = 0; c < columns; c++) real[c] = (real[c] - shift[c]) * scale[c];
            GT_UNROLL
            for (int r = 0; r < rows; r++) {
                const gt_vf v = gt_load(x + r * all + k + f * GT_LANES);
                GT_UNROLL
                for (int c = 0; c < columns; c++) sums[r][c] += real[c] * v;
            }
        }
        if (rows == 1)
            GT_UNROLL
            for (int c = 0; c < columns; c++)
                sums[0][c] += (part[c] - shift[c] * given) * scale[c];
    }
    for (int64_t k = sorted; k < all; k++)
        for (int c = 0; c < columns; c++) {
            const int64_t block = (n + c) * (GT_PARTS) + k / (GT_BLOCK), bit = k * GT_BITS;
            const int q = (GT_W)[(n + c) * all * GT_BITS / 8 + bit / 8] >> bit % 8 & mask;
#ifdef GT_ZEROS
            const float real = ((float)q - (GT_ZEROS)[block]) * (GT_SCALES)[block];
#else
            const float real = (float)(q - (1 << (GT_BITS - 1))) * (GT_SCALES)[block];
#endif
            for (int r = 0; r < rows; r++) rest[r][c] += real * x[r * all + k];
        }
    for (int r = 0; r < rows; r++) {
        const int64_t mine = row + r;
        for (int c = 0; c < columns; c++)
            (GT_Y(mine))[(n + c) * (GT_YS)] = gt_total(sums[r][c]) + rest[r][c];
    }
}

/* NV vectors of rows of w from n on, as numbers: columns from k on, a row of the panel each. Rows
   beyond the last one are copies of it. */
GT_NOINLINE void GT_JOIN(GT_NAME, _widen)(int64_t n, int64_t k, int64_t depth,
                                          float *panel GT_PARAMS)
{
    enum { fields = GT_JOIN(GT_NAME, _fields) };
    const int64_t all = (GT_PARTS) * (GT_BLOCK);
    for (int64_t j = 0; j < GT_NV; j++) {
        const int64_t first = gt_min(n + j * GT_LANES, (GT_N)-1);
        int32_t row[GT_LANES], tables[GT_LANES]; /* from the first row on: bytes, and blocks */
        for (int i = 0; i < GT_LANES; i++) {
            const int64_t down = gt_min(n + j * GT_LANES + i, (GT_N)-1) - first;
            row[i] = (int32_t)(down * (all * GT_BITS / 8));
            tables[i] = (int32_t)(down * (GT_PARTS));
        }
        for (int64_t b = 0; b < depth; b += GT_BLOCK) {
            const int64_t block = first * (GT_PARTS) + (k + b) / (GT_BLOCK);
            const uint8_t *w = GT_W + (first * all + k + b) * GT_BITS / 8;
            const gt_vf scale = gt_gathered(GT_SCALES + block, tables);
#ifdef GT_ZEROS
            const gt_vf zero = gt_gathered(GT_ZEROS + block, tables);
            const gt_vf shift = (zero - gt_splat(GT_MIDDLE)) * scale;
#else
            const gt_vf shift = gt_splat(0.0f);
#endif
            for (int64_t c = 0; c < (GT_BLOCK); c += fields) {
                const gt_vi words = gt_gathered_words(w + c * GT_BITS / 8, row);
                GT_UNROLL
                for (int f = 0; f < fields; f++) {
                    const gt_vf real = gt_centred(GT_BITS, words, f * GT_BITS);
                    gt_store(panel + ((b + c + f) * GT_NV + j) * GT_LANES, real * scale - shift);
                }
            }
        }
    }
}

#define GT_INSTANCE(rows, ...)                                                                    \
    GT_NOINLINE void GT_JOIN(GT_NAME, _rows##rows)(const float *x, const float *panel,            \
                                                   int64_t depth, float *out GT_PARAMS)           \
    {                                                                                             \
        gt_vf acc[GT_MR * GT_NV];                                                                 \
        gt_tile_zero(acc, rows, GT_NV);                                                           \
        gt_tile_fma(acc, rows, GT_NV, x, (GT_X(1)) - (GT_X(0)), panel, depth,                     \
                    (const char *)panel, 0, 0);                                                   \
        gt_tile_store(acc, rows, GT_NV, out);                                                     \
    }
GT_UPTO(GT_MR, GT_INSTANCE, )
#undef GT_INSTANCE

/* Many rows: a panel of weights is widened once for all of them, DEEP columns at a time. */
GT_NOINLINE void GT_JOIN(GT_NAME, _panels)(int t, int threads GT_PARAMS)
{
    enum { nr = GT_NV * GT_LANES };
    const int64_t panels = gt_ceil_div(GT_N, nr), end = gt_part(panels, t + 1, threads);
    const int64_t blocks = gt_ceil_div(GT_M, GT_MR);
    const int64_t shorter = (GT_M) / blocks, longer = (GT_M) % blocks;
    float *panel = GT_WORK(t), out[GT_MR * nr] GT_ALIGNED;
    for (int64_t k = 0; k < (GT_K); k += GT_DEEP)
        for (int64_t p = gt_part(panels, t, threads); p < end; p++) {
            const int64_t n = p * nr, depth = gt_min(GT_DEEP, (GT_K)-k);
            const int64_t count = gt_min(nr, (GT_N)-n);
            GT_JOIN(GT_NAME, _widen)(n, k, depth, panel GT_ARGS);
            for (int64_t block = 0, m = 0; block < blocks; block++) {
                const int64_t rows = shorter + (block < longer);
                const float *x = GT_X(m) + k;
                GT_CALL(_rows, rows, GT_MR, x, panel, depth, out GT_ARGS);
                for (int64_t i = 0; i < rows; i++, m++)
                    for (int64_t c = 0; c < count; c++) {
                        float *y = GT_Y(m) + (n + c) * (GT_YS);
                        *y = k ? *y + out[i * nr + c] : out[i * nr + c];
                    }
            }
        }
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    if ((GT_M) >= 16 && (GT_XS) == 1 && GT_BLOCK * GT_BITS % 32 == 0) {
        GT_JOIN(GT_NAME, _panels)(t, threads GT_ARGS);
        return;
    }
    const int64_t all = (GT_PARTS) * (GT_BLOCK), end = gt_part(GT_N, t + 1, threads);
    float *x = GT_WORK(t);
    int64_t sorted = 0;
    for (int64_t row = 0; row < GT_M;) {
        const int many = (GT_M) - row >= 8;
        for (int r = 0; r < (many ? 8 : 1); r++)
            sorted = GT_JOIN(GT_NAME, _sorted)(row + r, x + r * all GT_ARGS);
        int64_t n = gt_part(GT_N, t, threads);
        if (many) {
            for (; n + 2 <= end; n += 2) GT_JOIN(GT_NAME, _tile)(8, 2, row, n, sorted, x GT_ARGS);
            for (; n < end; n++) GT_JOIN(GT_NAME, _tile)(8, 1, row, n, sorted, x GT_ARGS);
        }
        for (; n + 4 <= end; n += 4) GT_JOIN(GT_NAME, _tile)(1, 4, row, n, sorted, x GT_ARGS);
        for (; n < end; n++) GT_JOIN(GT_NAME, _tile)(1, 1, row, n, sorted, x GT_ARGS);
        row += many ? 8 : 1;
    }
}

#include "template_end.h"
