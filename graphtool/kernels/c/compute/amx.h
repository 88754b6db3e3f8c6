/* Blocks of sums by a matrix unit: two segments of up to 16 rows of A, read in place, by 32 columns
   of a panel of B, in 2×2 tiles of sums. The panel has the rows that one instruction adds in groups
   of four bytes, [rows][32][4 bytes], a multiple of 16 such rows for every run of A; what lies
   behind a run is zero there.

   `kind` says what operands are: GT_BFLOAT16, GT_FLOAT16, or 0: bytes, of A unsigned. It is a
   literal.

   With AMX in Linux these are Intel's tiles, which need AMX-FP16 for float16. Elsewhere, and where
   the system refuses them to the process, the vectors of int8.h, bf16.h and half.h give the same:
   integers to the bit; floats up to the order of the sums, and tiles take subnormals for zero, but
   not those of float16. */
#ifndef GT_AMX_H
#define GT_AMX_H

#include "bf16.h"
#include "int8.h"

#define GT_SEGMENT 16 /* rows of a tile */
#define GT_RUN_BYTES 64 /* bytes of a row of a tile: a step along the depth */
#define GT_COLUMNS (2 * GT_LANES) /* columns of a panel */
#define GT_RUN_ROWS(bytes) gt_ceil_div(bytes, GT_RUN_BYTES) * 16 /* rows of the panel for a run */

#if defined __AMX_TILE__ && defined __AMX_INT8__ && defined __AMX_BF16__ && defined __linux__     \
    && defined __x86_64__ && GT_LANES == 16
#define GT_AMX

/* Instructions by text: compilers differ in what their own functions say about memory. */
#define GT_TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::: "memory")
#define GT_TILE_LOAD(t, from, stride)                                                             \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((int64_t)(stride)) : "memory")
#define GT_TILE_STORE(t, to)                                                                      \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to),                               \
                     "r"((int64_t)GT_COLUMNS * 4)                                                  \
                     : "memory")
#define GT_TILE_DOT(kind, sum, a, b)                                                              \
    do {                                                                                          \
        if (kind == GT_FLOAT16) GT_TILE_DOT_F16(sum, a, b);                                       \
        else if (kind)                                                                            \
            __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::: "memory");      \
        else __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::: "memory");       \
    } while (0)
/* tdpfp16ps by its bytes: few assemblers know it. GT_AMX_FP16 says that the CPU has it to a
   compiler that does not know the CPU. */
#define GT_TILE_DOT_F16(sum, a, b)                                                                \
    __asm__ volatile(".byte 0xc4, 0xe2, (15 - " #b ") * 8 + 3, 0x5c, 0xc0 + " #sum " * 8 + " #a   \
                     ::: "memory")
/* Whether there is an instruction for operands of this kind. */
#if defined __AMX_FP16__ || defined GT_AMX_FP16
#define GT_HAS_TILES(kind) 1
#else
#define GT_HAS_TILES(kind) ((kind) != GT_FLOAT16)
#endif

/* Whether the process may use tiles: it asks the system once. */
GT_INLINE int gt_amx_allowed(void)
{
    static int known; /* 1: yes, 2: no */
    int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!found) {
        long status; /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */
        __asm__ volatile("syscall" : "=a"(status) : "a"(158L), "D"(0x1023L), "S"(18L)
                         : "rcx", "r11", "memory");
        found = status == 0 ? 1 : 2;
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    }
    return found == 1;
}

/* Every tile of A and of sums has so many rows. Sums are the tiles 0 to 3, segments of A 4 and 5,
   halves of a panel 6 and 7. */
GT_INLINE void gt_amx_shape(int64_t rows)
{
    if (!gt_amx_allowed()) return;
    struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } shape;
    memset(&shape, 0, sizeof shape);
    shape.palette = 1;
    for (int i = 0; i < 8; i++) {
        shape.bytes[i] = GT_RUN_BYTES;
        shape.rows[i] = (uint8_t)(i < 6 ? rows : 16);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shape) : "memory");
}

GT_INLINE void gt_amx_done(void)
{
    if (gt_amx_allowed()) __asm__ volatile("tilerelease" ::: "memory");
}

GT_INLINE void gt_amx_step(const int kind, const int two, const int wide, const char *a,
                           const char *second, int64_t lda, const char *b)
{
    GT_TILE_LOAD(6, b, GT_COLUMNS * 4);
    GT_TILE_LOAD(4, a, lda);
    GT_TILE_DOT(kind, 0, 4, 6);
    if (wide) {
        GT_TILE_LOAD(7, b + GT_RUN_BYTES, GT_COLUMNS * 4);
        GT_TILE_DOT(kind, 1, 4, 7);
    }
    if (!two) return;
    GT_TILE_LOAD(5, second, lda);
    GT_TILE_DOT(kind, 2, 5, 6);
    if (wide) GT_TILE_DOT(kind, 3, 5, 7);
}

/* The last `bytes` < 64 of a run, with zeros behind them. */
GT_INLINE void gt_amx_last(char *last, const char *a, int64_t lda, int64_t rows, int64_t bytes)
{
    for (int64_t i = 0; i < rows; i++) {
        const __m512i row = _mm512_maskz_loadu_epi8(((__mmask64)1 << bytes) - 1, a + i * lda);
        _mm512_store_si512(last + i * GT_RUN_BYTES, row);
    }
}

GT_INLINE void gt_amx_run(const int kind, const int two, const int wide, const char *a,
                          const char *second, int64_t lda, int64_t rows, const char *b,
                          int64_t depth, const char *ahead, int64_t step)
{
    for (; depth >= GT_RUN_BYTES; depth -= GT_RUN_BYTES) {
        for (int64_t at = 0; at < 16 * step; at += 64) __builtin_prefetch(ahead + at, 0, 2);
        ahead += 16 * step;
        gt_amx_step(kind, two, wide, a, second, lda, b);
        a += GT_RUN_BYTES, second += GT_RUN_BYTES, b += 16 * GT_COLUMNS * 4;
    }
    if (!depth) return;
    char last[2 * GT_SEGMENT * GT_RUN_BYTES] GT_ALIGNED;
    gt_amx_last(last, a, lda, rows, depth);
    if (two) gt_amx_last(last + GT_SEGMENT * GT_RUN_BYTES, second, lda, rows, depth);
    gt_amx_step(kind, two, wide, last, last + GT_SEGMENT * GT_RUN_BYTES, GT_RUN_BYTES, b);
}

/* Whether the sums of such operands are in tiles. */
GT_INLINE int gt_in_tiles(const int kind) { return GT_HAS_TILES(kind) && gt_amx_allowed(); }
#else
#define gt_amx_shape(rows) (void)(rows)
#define gt_amx_done() (void)0
#endif

/* acc[2] += the dot product of a row and a panel of two vectors, in pairs of float16. */
GT_INLINE void gt_row_f16(gt_vf *acc, const uint16_t *a, const uint16_t *b, int64_t depth)
{
    for (int64_t k = 0; k < depth; k += 2, b += 2 * GT_COLUMNS) {
        const gt_vf low = gt_splat(gt_f16_to_f32(a[k]));
        const gt_vf high = gt_splat(k + 1 < depth ? gt_f16_to_f32(a[k + 1]) : 0.0f);
        for (int j = 0; j < 2; j++) {
            gt_vf even, odd;
            gt_split_halves(GT_FLOAT16, b + j * 2 * GT_LANES, &even, &odd);
            acc[j] += low * even + high * odd;
        }
    }
}

/* Sets the sums of a block to zero. They are in tiles, or in `sums`, [2][16][GT_COLUMNS] words. */
GT_INLINE void gt_block_zero(const int kind, void *sums)
{
    (void)kind;
#ifdef GT_AMX
    if (gt_in_tiles(kind)) {
        GT_TILE_ZERO(0);
        GT_TILE_ZERO(1);
        GT_TILE_ZERO(2);
        GT_TILE_ZERO(3);
        return;
    }
#endif
    memset(sums, 0, sizeof(float) * 2 * GT_SEGMENT * GT_COLUMNS);
}

/* The sums of a block that were stored in memory go on. */
GT_INLINE void gt_block_load(const int kind, const int two, int64_t columns, const void *sums)
{
#ifdef GT_AMX
    if (!gt_in_tiles(kind)) return;
    const char *from = (const char *)sums;
    GT_TILE_LOAD(0, from, GT_COLUMNS * 4);
    if (columns > GT_COLUMNS / 2) GT_TILE_LOAD(1, from + GT_RUN_BYTES, GT_COLUMNS * 4);
    if (!two) return;
    from += GT_SEGMENT * GT_COLUMNS * 4;
    GT_TILE_LOAD(2, from, GT_COLUMNS * 4);
    if (columns > GT_COLUMNS / 2) GT_TILE_LOAD(3, from + GT_RUN_BYTES, GT_COLUMNS * 4);
#else
    (void)kind, (void)two, (void)columns, (void)sums;
#endif
}

/* The sums of a block before a part of the depth: zero, or those of the parts before. */
GT_INLINE void gt_block_begin(const int kind, int zero, const int two, int64_t columns, void *sums)
{
    if (zero) gt_block_zero(kind, sums);
    else gt_block_load(kind, two, columns, sums);
}

/* Adds a run of `depth` bytes of the rows from a on, and from `second` on if there is one; they are
   lda bytes apart. Of the panel at b `columns` are used. Each row of the panel prefetches the line
   at `ahead`, which moves on by `step` bytes. */
GT_INLINE void gt_block_add(const int kind, const char *a, const char *second,
                            int64_t lda, int64_t rows, const char *b, int64_t columns,
                            int64_t depth, const char *ahead, int64_t step, void *sums)
{
#ifdef GT_AMX
    if (gt_in_tiles(kind)) {
        const int wide = columns > GT_COLUMNS / 2;
        if (second && wide) gt_amx_run(kind, 1, 1, a, second, lda, rows, b, depth, ahead, step);
        else if (second) gt_amx_run(kind, 1, 0, a, second, lda, rows, b, depth, ahead, step);
        else if (wide) gt_amx_run(kind, 0, 1, a, a, lda, rows, b, depth, ahead, step);
        else gt_amx_run(kind, 0, 0, a, a, lda, rows, b, depth, ahead, step);
        return;
    }
#endif
    (void)columns, (void)step;
    for (int64_t i = 0; i < 2 * rows; i++) {
        const char *row = i < rows ? a + i * lda : second ? second + (i - rows) * lda : 0;
        void *to = (char *)sums + (i < rows ? i : GT_SEGMENT + i - rows) * GT_COLUMNS * 4;
        if (!row) return;
        if (kind == GT_FLOAT16)
            gt_row_f16((gt_vf *)to, (const uint16_t *)row, (const uint16_t *)b, depth / 2);
        else if (kind)
            gt_tile_bf16_lines((gt_vf *)to, 1, 2, (const uint16_t *)row, 0, 0, 0,
                               (const uint16_t *)b, depth / 2, ahead, 0, 0);
        else gt_ints_tile((gt_vi *)to, 1, 2, row, 0, 0, 0, b, depth, 0, ahead, 0, 0);
    }
}

/* The sums in memory, if they are not yet there. */
GT_INLINE void gt_block_store(const int kind, const int two, int64_t columns, void *sums)
{
#ifdef GT_AMX
    if (!gt_in_tiles(kind)) return;
    char *to = (char *)sums;
    GT_TILE_STORE(0, to);
    if (columns > GT_COLUMNS / 2) GT_TILE_STORE(1, to + GT_RUN_BYTES);
    if (!two) return;
    GT_TILE_STORE(2, to + GT_SEGMENT * GT_COLUMNS * 4);
    if (columns > GT_COLUMNS / 2) GT_TILE_STORE(3, to + GT_SEGMENT * GT_COLUMNS * 4 + GT_RUN_BYTES);
#else
    (void)kind, (void)two, (void)columns, (void)sums;
#endif
}

#endif
