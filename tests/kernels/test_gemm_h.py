"""gemm.h against numpy, in exact arithmetic."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, call, compile_c, guarded, lanes, pack, whole, width

PARAMS = """
#include "prelude.h"
#define PARAMS , const float *restrict a_, const float *restrict b_, float *restrict c_, \\
    int64_t d_M, int64_t d_N, int64_t d_K, int64_t d_lda, int64_t d_batch
#define ARGS , a_, b_, c_, d_M, d_N, d_K, d_lda, d_batch
static inline void add_up(const float *restrict acc, int64_t b, int64_t m, int64_t n,
                          int64_t count PARAMS)
{
    (void)a_, (void)b_, (void)d_K, (void)d_lda, (void)d_batch;
    for (int64_t j = 0; j < count; j++) c_[(b * d_M + m) * d_N + n + j] += acc[j];
}
"""
INSTANCE = """
#define GT_NAME {name}_share
#define GT_MR {mr}
#define GT_NV {nv}
#define GT_M {M}
#define GT_N {N}
#define GT_K {K}
#define GT_LDA d_lda
#define GT_BATCH d_batch
#define GT_A(b) (a_ + (b) * ({M}) * d_lda)
#define GT_B(b) (b_ + (b) * gt_ceil_div({N}, {laid} * GT_LANES) * {laid} * GT_LANES * ({K}))
{more}#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE add_up
#include "gemm.h"
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""
AWKWARD = (1, 2, 5, 13, 14, 15, 31, 33, 64, 100)


def source(*instances: dict[str, object]) -> str:
    return PARAMS + "".join(INSTANCE.format(**i) for i in instances) + LANES


def instance(mr: int, nv: int, M: object = "d_M", N: object = "d_N", K: object = "d_K",
             laid: int = 0) -> dict[str, object]:
    name = f"gemm_{mr}_{nv}" if M == "d_M" else f"gemm_{mr}_{nv}_{M}_{N}_{K}"
    name, more = (f"{name}_of_{laid}", f"#define GT_LAID {laid}\n") if laid else (name, "")
    return {"name": name, "mr": mr, "nv": nv, "M": M, "N": N, "K": K, "laid": laid or nv,
            "more": more}


def check(library, name, nr, M, N, K, batch=1, threads=1, pad=3):
    rng = np.random.default_rng(M * 10007 + N * 101 + K)
    a, b = whole(rng, batch, M, K), whole(rng, batch, K, N)
    padded = np.full((batch, M, K + pad), np.nan, np.float32)
    padded[..., :K] = a
    c = guarded(np.zeros((batch, M, N), np.float32))
    # no row stride beyond the last row
    left = guarded(padded.reshape(-1)[:padded.size - pad])
    call(getattr(library, name), left, guarded(pack(b, nr)), c, M, N, K, K + pad, batch,
         threads=threads)
    np.testing.assert_array_equal(c, a @ b, err_msg=f"{name} {M}x{N}x{K} batch {batch}")


@pytest.mark.part(2)
@width
def test_awkward_sizes(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(source(instance(14, 2), instance(6, 2)), tmp_path, flags)
    for tile, (M, N, K) in itertools.product((14, 6), itertools.product(AWKWARD, repeat=3)):
        check(library, f"gemm_{tile}_2", 2 * lanes(library), M, N, K)


@width
def test_threads_share_without_overlap(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(source(instance(14, 2)), tmp_path, flags)
    for threads, batch, M, N in itertools.product((1, 2, 3, 7), (1, 3), (1, 14, 43), (1, 33, 100)):
        check(library, "gemm_14_2", 2 * lanes(library), M, N, 9, batch, threads)


@width
def test_few_rows_and_wide_panels(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(source(instance(1, 8), instance(2, 8), instance(4, 6)), tmp_path, flags)
    for (mr, nv), N, K in itertools.product(((1, 8), (2, 8), (4, 6)), AWKWARD, (1, 7, 64)):
        for M in range(1, mr + 1):
            check(library, f"gemm_{mr}_{nv}", nv * lanes(library), M, N, K)
        check(library, f"gemm_{mr}_{nv}", nv * lanes(library), mr, N, K, threads=2)


@pytest.mark.part(2)
@width
def test_few_rows_and_panels_side_by_side(tmp_path: Path, flags: list[str]) -> None:
    """The last tile has fewer panels than it takes, and reads none behind the last one."""
    tiles = ((1, 8, 2), (3, 8, 1), (2, 6, 3), (4, 4, 2))
    library = compile_c(source(*(instance(mr, nv, laid=laid) for mr, nv, laid in tiles)), tmp_path,
                        flags)
    for (mr, nv, laid), N, K in itertools.product(tiles, AWKWARD, (0, 1, 7, 64)):
        for M in range(1, mr + 1):
            check(library, f"gemm_{mr}_{nv}_of_{laid}", laid * lanes(library), M, N, K)
        check(library, f"gemm_{mr}_{nv}_of_{laid}", laid * lanes(library), mr, N, K, 3, threads=2)


@width
def test_constant_sizes(tmp_path: Path, flags: list[str]) -> None:
    sizes = [(14, 2, 128, 96, 40), (14, 2, 32, 64, 32), (1, 8, 1, 300, 50), (8, 3, 20, 30, 10)]
    library = compile_c(source(*(instance(*s) for s in sizes)), tmp_path, flags)
    for mr, nv, M, N, K in sizes:
        for threads in (1, 2):
            check(library, f"gemm_{mr}_{nv}_{M}_{N}_{K}", nv * lanes(library), M, N, K, 2, threads)


def test_what_goes_beyond_the_second_level_cache_is_cut(tmp_path: Path) -> None:
    """Rows, where B moves more than they do: 640 KB hold 3 blocks of 14 rows of 4000 floats, so 100
    rows are 3 chunks. Else panels: one of 4000 rows at a time, or 5 of 1000."""
    library = compile_c(source(instance(14, 2)), tmp_path, ["-march=native"])
    for threads, size in itertools.product(
            (1, 2, 3), ((100, 110, 4000), (100, 70, 4000), (250, 300, 1000))):
        check(library, "gemm_14_2", 2 * lanes(library), *size, 2, threads)


def test_no_rows_no_columns_no_depth(tmp_path: Path) -> None:
    library = compile_c(source(instance(14, 2)), tmp_path, ["-march=native"])
    for M, N, K in ((0, 5, 5), (5, 0, 5), (5, 5, 0)):
        check(library, "gemm_14_2", 2 * lanes(library), M, N, K, pad=0)


@pytest.mark.parametrize("cc", ["clang"])
@width
def test_clang(tmp_path: Path, flags: list[str], cc: str) -> None:
    library = compile_c(source(instance(14, 2), instance(1, 8)), tmp_path, flags, cc)
    for M, N in itertools.product(AWKWARD, AWKWARD):
        check(library, "gemm_14_2", 2 * lanes(library), M, N, 33)
