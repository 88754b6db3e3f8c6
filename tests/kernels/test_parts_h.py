"""parts.h: numbers as sums of bfloat16, and products of them by tiles and by multiply-adds."""

from pathlib import Path

import numpy as np
import pytest

from graphtool.machines import tiles_allowed
from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, width

SOURCE = """
#include "parts.h"
void split(int t, int threads, const float *x, int64_t n, uint16_t *to, int32_t *fits);
void split(int t, int threads, const float *x, int64_t n, uint16_t *to, int32_t *fits)
{
    const gt_vw none = {0};
    (void)t, (void)threads;
    *fits = gt_all_split(gt_split_run(x, n, 3, to, GT_PARTS_RUN, none));
}
void panel(int t, int threads, const float *w, int64_t ldw, int64_t rows, char *b);
void panel(int t, int threads, const float *w, int64_t ldw, int64_t rows, char *b)
{
    (void)t, (void)threads;
    for (int64_t k = 0; k < rows; k += 2)
        for (int64_t j = 0; j < GT_COLUMNS; j += GT_LANES) {
            gt_vw pairs[3];
            gt_split_pairs(gt_load(w + k * ldw + j), gt_load(w + (k + 1) * ldw + j), 3, pairs);
            for (int p = 0; p < 3; p++)
                memcpy(b + (k / GT_PARTS_RUN * 3 + p) * GT_PART_BYTES
                           + (k % GT_PARTS_RUN / 2 * GT_COLUMNS + j) * 4, pairs + p, sizeof *pairs);
        }
}
/* up to two segments of 16 rows, which are split; says whether tiles multiplied them */
GT_INLINE void product(const int parts, const float *x, int64_t rows, int64_t depth,
                       const char *b, float *sums, int32_t *in_tiles)
{
    static uint16_t planes[10 * 3 * 32 * 32] GT_ALIGNED;
    const int64_t steps = gt_ceil_div(depth, 32), plane = 32 * 32, along = parts * plane;
    gt_vw seen = {0};
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < steps; k++)
            seen = gt_split_run(x + i * depth + k * 32, gt_min(32, depth - k * 32), parts,
                                planes + k * along + i * 32, plane, seen);
    *in_tiles = gt_all_split(seen) && gt_parts_in_tiles();
    memset(sums, 0, sizeof(float) * 32 * GT_COLUMNS);
    if (!*in_tiles) {
        gt_parts_rows(parts, x, depth, rows, b, 0, depth, sums);
        return;
    }
#ifdef GT_AMX
    gt_amx_shape(16);
    gt_block_zero(GT_BFLOAT16, sums);
    gt_parts_run(parts, 1, 1, (char *)planes, along * 2, 16 * 64, 64, plane * 2, b, steps, b, 0);
    gt_block_store(GT_BFLOAT16, 1, GT_COLUMNS, sums);
    gt_amx_done();
#endif
    for (int64_t i = 0; i < 32 * GT_COLUMNS; i++) sums[i] *= GT_PARTS_BACK;
}
#define PRODUCT(parts)                                                                         \\
    void product##parts(int t, int threads, const float *x, int64_t rows, int64_t depth,       \\
                        const char *b, float *sums, int32_t *in_tiles);                        \\
    void product##parts(int t, int threads, const float *x, int64_t rows, int64_t depth,       \\
                        const char *b, float *sums, int32_t *in_tiles)                         \\
    {                                                                                          \\
        (void)t, (void)threads;                                                                \\
        product(parts, x, rows, depth, b, sums, in_tiles);                                     \\
    }
PRODUCT(3)
PRODUCT(2)
""" + LANES

# the greatest error of products by so many parts, relative to the sum of magnitudes
ERROR = {3: 4e-7, 2: 4e-5}


def parts(x: Array) -> Array:
    """The three parts of each number, along a new first axis."""
    rest, out = x * np.float32(2 ** 24), []
    for _ in range(3):
        bits = rest.view(np.uint32) + np.uint32(0x8000) & np.uint32(0xffff0000)
        out.append(bits.view(np.float32))
        rest = rest - out[-1]
    assert not rest.any()
    return np.stack(out)


def panel(w: Array, columns: int, count: int) -> Array:
    """w [K, columns] as tiles [steps, parts, 16, columns, 2], as 16 bits each."""
    wide = np.zeros((-(-len(w) // 32) * 32, columns), np.float32)
    wide[:len(w), :w.shape[1]] = w
    tiles = parts(wide)[:count].reshape(count, -1, 16, 2, columns).transpose(1, 0, 2, 4, 3)
    return (np.ascontiguousarray(tiles).view(np.uint32) >> 16).astype(np.uint16)


def numbers(*shape: int, spread: float = 1.0) -> Array:
    """Numbers of both signs that split, whose exponents have this standard deviation."""
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape) * 2 ** (spread * rng.standard_normal(shape))
    return np.clip(x, -2.0 ** 28, 2.0 ** 28).astype(np.float32)


@width
def test_parts_add_up_to_the_number(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, flags)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 ** 32, 32 * 200, dtype=np.uint32).view(np.float32)
    x = x[np.abs(x) < 2.0 ** 29]
    special = [0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38, 3e-39, 1 + 2 ** -8,
               -1 - 2 ** -8 + 2 ** -23, np.nextafter(np.float32(2 ** 29), np.float32(0))]
    for row in (np.float32(special), *x[:len(x) // 32 * 32].reshape(-1, 32)):
        to, fits = np.full((3, 32), 7, np.uint16), np.zeros(1, np.int32)
        call(library.split, guarded(row), len(row), to, fits)
        got = (to.astype(np.uint32) << 16).view(np.float32)
        assert fits[0] == 1 and not to[:, len(row):].any()
        np.testing.assert_array_equal(got[:, :len(row)], parts(row))
        np.testing.assert_array_equal(got.astype(float).sum(0)[:len(row)] / 2 ** 24, row)
    for bad in (np.inf, -np.inf, np.nan, -np.nan, 2.0 ** 29, -2.0 ** 29, 3e38):
        for at in (0, 9, 30):
            row = np.ones(31, np.float32)
            row[at] = bad
            call(library.split, guarded(row), 31, to, fits)
            assert fits[0] == 0


@width
def test_panels(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, flags)
    columns = 2 * lanes(library)
    w = numbers(64, columns, spread=20)
    got = np.zeros((2, 3, 16, columns, 2), np.uint16)
    call(library.panel, guarded(w), columns, 64, got)
    np.testing.assert_array_equal(got, panel(w, columns, 3))


@width
@pytest.mark.parametrize("count", [3, 2])
@pytest.mark.parametrize("spread", [0, 8, 25], ids="spread{}".format)
def test_products(count: int, spread: float, tmp_path: Path, flags: list[str]) -> None:
    """The error is that of float32, however far apart the exponents are; with two parts 2⁻¹⁶."""
    library = compile_c(SOURCE, tmp_path, flags)
    columns = 2 * lanes(library)
    for rows, depth, scale in ((32, 300, 1.0), (13, 32, 2.0 ** -70), (32, 1, 1.0), (5, 67, 1.0)):
        x, w = numbers(rows, depth, spread=spread), numbers(depth, columns, spread=spread)
        x[0, 0] = 1e-41  # a subnormal number is no zero
        w[:, 1] *= np.float32(scale)
        exact, size = (f(x).astype(float) @ f(w).astype(float) for f in (np.positive, np.abs))
        sums, tiles = np.zeros((32, columns), np.float32), np.zeros(1, np.int32)
        call(getattr(library, f"product{count}"), x, rows, depth, panel(w, columns, count), sums,
             tiles)
        assert tiles[0] == ("native" in flags[0] and columns == 32 and bool(tiles_allowed()))
        limit = size * (ERROR[count] if tiles or count == 2 else depth * 2 ** -23)
        assert (np.abs(sums[:rows] - exact) <= limit + 2.0 ** -149).all()


@width
def test_numbers_that_do_not_split_keep_their_meaning(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, flags)
    columns = 2 * lanes(library)
    x, w = numbers(13, 40), numbers(40, columns)
    x[2, 5], x[3, 39], x[4, 7], x[5] = np.inf, np.nan, 1e30, -np.inf
    w[5, 1] = 0  # 0 · ∞
    sums, tiles = np.zeros((32, columns), np.float32), np.zeros(1, np.int32)
    call(library.product3, x, 13, 40, panel(w, columns, 3), sums, tiles)
    with np.errstate(invalid="ignore"):
        want = (x[:, :, None].astype(float) * w[None]).sum(1)
    np.testing.assert_allclose(sums[:13], want, rtol=1e-4, atol=1e-5)
    assert not tiles and np.isnan(sums[2, 1]) and np.isinf(sums[2, 0])
