"""gemm_blocked.h against numpy, in exact arithmetic, and against gemm.h, bit by bit."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, call, compile_c, guarded, lanes, pack, whole, width
from tests.kernels.test_gemm_h import PARAMS

DEEP, CHUNK, WIDTH = 16, 2, 3
INSTANCE = """
#define GT_NAME {name}_share
#define GT_MR {mr}
#define GT_NV 2
#define GT_M d_M
#define GT_N d_N
#define GT_K d_K
#define GT_BATCH d_batch
#define GT_B(b) (b_ + (b) * gt_ceil_div(d_N, 2 * GT_LANES) * 2 * GT_LANES * d_K)
{left}
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE add_up
#include "{header}.h"
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""
ROWS = "#define GT_LDA d_lda\n#define GT_A(b) (a_ + (b) * d_M * d_lda)"
COLUMNS = "#define GT_LDA 1\n#define GT_LDK d_lda\n#define GT_A(b) (a_ + (b) * d_K * d_lda)"
BLOCKS = f"""
#define GT_DEEP {DEEP}
#define GT_CHUNK {CHUNK}
#define GT_WIDTH {WIDTH}
#define GT_WORK(t) (work_ + (t) * {CHUNK} * 16 * ({DEEP} + 16 + {WIDTH} * 2 * GT_LANES))
"""
WORK = f"""
#include "tile.h"
static float work_[8 * {CHUNK} * 16 * ({DEEP} + 16 + {WIDTH} * 2 * GT_LANES)] GT_ALIGNED;
"""


def source(mr: int, shared: int = 1) -> str:
    """The products `rows` and `columns` by blocks, and `plain_rows` in place."""
    blocked = f"{BLOCKS}#define GT_BY_ROWS {shared}\n"
    return PARAMS + WORK + "".join(
        INSTANCE.format(name=name, mr=mr, left=left, header=header)
        for name, left, header in (("rows", ROWS + blocked, "gemm_blocked"),
                                   ("columns", COLUMNS + blocked, "gemm_blocked"),
                                   ("plain_rows", ROWS, "gemm"))) + LANES


def product(library, name, a, b, threads=1, pad=3):
    batch, M, K = a.shape
    N, turned = b.shape[-1], name == "columns"
    left = a.swapaxes(-1, -2) if turned else a
    padded = np.full((batch, left.shape[1], left.shape[2] + pad), np.nan, np.float32)
    padded[..., :left.shape[2]] = left
    c = guarded(np.zeros((batch, M, N), np.float32))
    nr = 2 * lanes(library)
    call(getattr(library, name), guarded(padded.reshape(-1)[:padded.size - pad]),
         guarded(pack(b, nr)), c, M, N, K, left.shape[2] + pad, batch, threads=threads)
    return c


@pytest.mark.part(4)
@pytest.mark.parametrize("mr", [14, 6])
@width
def test_awkward_sizes(tmp_path: Path, flags: list[str], mr: int) -> None:
    library = compile_c(source(mr), tmp_path, flags)
    rng = np.random.default_rng(mr)
    for name, M, N, K in itertools.product(("rows", "columns"), (1, 5, 14, 33, 100),
                                           (1, 31, 64, 130), (1, 16, 17, 50)):
        a, b = whole(rng, 2, M, K), whole(rng, 2, K, N)
        np.testing.assert_array_equal(product(library, name, a, b), a @ b,
                                      err_msg=f"{name} {M}x{N}x{K}")


@pytest.mark.part(4)
@pytest.mark.parametrize("shared", [0, 1])
@width
def test_threads_share_without_overlap(tmp_path: Path, flags: list[str], shared: int) -> None:
    library = compile_c(source(14, shared), tmp_path, flags)
    rng = np.random.default_rng(shared)
    for name, threads, M, N in itertools.product(("rows", "columns"), (2, 3, 7), (1, 14, 43),
                                                 (1, 33, 100)):
        a, b = whole(rng, 1, M, 40), whole(rng, 1, 40, N)
        np.testing.assert_array_equal(product(library, name, a, b, threads), a @ b)


def test_sums_set_aside_are_rounded_as_in_registers(tmp_path: Path) -> None:
    library = compile_c(source(14), tmp_path, ["-march=native"])
    rng = np.random.default_rng(3)
    a = rng.standard_normal((1, 45, 70)).astype(np.float32)
    b = rng.standard_normal((1, 70, 90)).astype(np.float32)
    np.testing.assert_array_equal(product(library, "rows", a, b),
                                  product(library, "plain_rows", a, b))


def test_no_rows_no_columns_no_depth(tmp_path: Path) -> None:
    library = compile_c(source(14), tmp_path, ["-march=native"])
    for name, (M, N, K) in itertools.product(("rows", "columns"),
                                             ((0, 5, 5), (5, 0, 5), (5, 5, 0))):
        a, b = np.ones((1, M, K), np.float32), np.ones((1, K, N), np.float32)
        np.testing.assert_array_equal(product(library, name, a, b, pad=0), a @ b)
