"""The kernels on operands of 16 bits, against numpy in exact arithmetic: whole numbers are exact in
both types, and so are their sums in float."""

import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels import test_conv_direct_h as conv
from tests.kernels import test_gemm_h as gemm
from tests.kernels import test_winograd_h as winograd
from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, pack, whole, width

TYPES = {"GT_BFLOAT16": ml_dtypes.bfloat16, "GT_FLOAT16": np.float16}
PAIRS = "pairs"
KINDS = (*TYPES, PAIRS)
kinds = pytest.mark.parametrize("kind", KINDS)
types = pytest.mark.parametrize("kind", [
    "GT_FLOAT16", pytest.param("GT_BFLOAT16", marks=pytest.mark.slow)])


def bits(x: Array, kind: str) -> Array:
    return x.astype(TYPES.get(kind, ml_dtypes.bfloat16)).view(np.uint16)


def of_halves(source: str, kind: str, pointers: tuple[str, ...]) -> str:
    """A test's source whose operands called so hold 16 bits."""
    for name in pointers:
        source = source.replace(f"const float *restrict {name}", f"const uint16_t *restrict {name}")
    given = f"#define GT_HALF {kind if kind in TYPES else 'GT_BFLOAT16'}\n"
    return source.replace("#define GT_NAME", ("#define GT_PAIRS\n" if kind == PAIRS else "")
                          + given + "#define GT_NAME")


def pairs(matrix: Array) -> Array:
    """[..., K, N] with an even K, of zeros where it was odd, so that rows stand by pairs:
    [..., K/2, N·2]."""
    *lead, k, n = matrix.shape
    even = np.zeros((*lead, -(-k // 2) * 2, n), np.float32)
    even[..., :k, :] = matrix
    return np.swapaxes(even.reshape(*lead, -1, 2, n), -1, -2).reshape(*lead, -1, n * 2)


def packed(matrix: Array, nr: int, kind: str) -> Array:
    if kind != PAIRS:
        return bits(pack(matrix, nr), kind)
    return bits(pack(pairs(matrix), nr * 2), kind)


# ---- products ----------------------------------------------------------------------------------

ACROSS = "#define GT_LDA 1\n#define GT_LDK d_lda"


def gemm_source(kind: str, across: bool) -> str:
    text = gemm.source(gemm.instance(14, 2), gemm.instance(6, 2), gemm.instance(1, 8))
    if kind == PAIRS:
        text = text.replace("* GT_LANES * (d_K))", "* GT_LANES * ((d_K + 1) / 2 * 2))")
    if across:
        text = text.replace("#define GT_LDA d_lda", ACROSS).replace(
            "(a_ + (b) * (d_M) * d_lda)", "(a_ + (b) * (d_K) * d_lda)")
    return of_halves(text, kind, ("a_", "b_"))


@pytest.mark.part(6)
@kinds
@width
@pytest.mark.parametrize("across", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("cc", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_products(tmp_path: Path, flags: list[str], kind: str, across: bool, cc: str) -> None:
    library = compile_c(gemm_source(kind, across), tmp_path, flags, cc)
    sizes = itertools.product((1, 5, 29), (1, 33, 100), (1, 13, 128, 259))
    for (mr, nv), (M, N, K) in itertools.product(((14, 2), (6, 2), (1, 8)), sizes):
        if mr >= M or mr > 1:
            check_product(library, f"gemm_{mr}_{nv}", nv * lanes(library), M, N, K, kind, across)


def check_product(library: Any, name: str, nr: int, M: int, N: int, K: int, kind: str,
                  across: bool) -> None:
    rng = np.random.default_rng(M * 10007 + N * 101 + K)
    a, b = whole(rng, 2, M, K), whole(rng, 2, K, N)
    left = np.swapaxes(a, 1, 2) if across else a
    padded = np.full((*left.shape[:2], left.shape[2] + 3), np.nan, np.float32)
    padded[..., :-3] = left
    c = guarded(np.zeros((2, M, N), np.float32))
    given = guarded(bits(padded.reshape(-1)[:-3], kind))
    call(getattr(library, name), given, guarded(packed(b, nr, kind)), c, M, N, K,
         padded.shape[2], 2, threads=2)
    np.testing.assert_array_equal(c, a @ b, err_msg=f"{name} {M}x{N}x{K}")


# ---- convolutions ------------------------------------------------------------------------------

ROWS = conv.Case(3, 20, (4, 15), (5, 5), (2, 2))  # odd, and a kernel row is one run


def conv_weights(w: Array, case: conv.Case, nr: int, kind: str) -> Array:
    """w [groups][kh][kw][c][o] as conv_direct.h wants it."""
    groups, kh, kw, c, o = w.shape
    if kind != PAIRS:
        return bits(pack(w.reshape(groups, -1, o), nr), kind)
    together = case.dilation[1] == 1 and groups == 1
    runs = w.reshape(groups, kh, kw * c, o) if together else w.reshape(groups, kh * kw, c, o)
    flat = pairs(runs)
    return bits(pack(flat.reshape(groups, -1, o * 2), nr * 2), kind)


def check_conv(library: Any, name: str, nr: int, case: conv.Case, kind: str,
               threads: int) -> None:
    x, w = conv.operands(case)
    y = guarded(np.zeros((case.batch, *case.size, case.groups * case.o), np.float32))
    given = guarded(bits(np.nan_to_num(conv.spread(x, case.wider)), kind))
    call(getattr(library, name), given, guarded(conv_weights(w, case, nr, kind)), y,
         *conv.sizes(case), threads=threads)
    np.testing.assert_array_equal(y, conv.convolve(x, w, case), err_msg=f"{name} {case}")


@pytest.mark.part(4)
@kinds
@width
def test_direct(tmp_path: Path, flags: list[str], kind: str) -> None:
    tall = "".join(conv.direct(f"tall{i}", mr, 2, case, high)
                   for i, (mr, high, case) in enumerate(conv.TALL))
    text = conv.DIRECT + conv.direct("conv14", 14, 2) + conv.direct("fixed", 14, 2, ROWS) + tall
    library = compile_c(of_halves(text, kind, ("x_", "w_")) + LANES, tmp_path, flags)
    fit = [c for c in (*conv.CASES, ROWS) if kind != PAIRS or c.c % 2 == 0 or not c.wider
           or c.groups > 1 or c.dilation[1] > 1]
    for case in fit:
        check_conv(library, "conv14", 2 * lanes(library), case, kind, 2)
    check_conv(library, "fixed", 2 * lanes(library), ROWS, kind, 1)
    for i, (_, _, case) in enumerate(conv.TALL):
        check_conv(library, f"tall{i}", 2 * lanes(library), case, kind, 2)


@pytest.mark.part(2)
@types
@width
def test_depthwise(tmp_path: Path, flags: list[str], kind: str) -> None:
    text = conv.DEPTHWISE
    for i, ((bh, bw, cb), case) in enumerate(conv.DEPTHWISE_CASES):
        facts = dict(zip(conv.SIZES, conv.sizes(case), strict=True)) | {"c": case.groups}
        text += conv.DEPTHWISE_INSTANCE.format(name=f"case{i}", bh=bh, bw=bw, cb=cb, **facts)
    library = compile_c(of_halves(text, kind, ("x_", "w_")), tmp_path, flags)
    for i, (_, case) in enumerate(conv.DEPTHWISE_CASES):
        x, w = conv.operands(case)
        y = guarded(np.zeros((case.batch, *case.size, case.groups), np.float32))
        filters = np.ascontiguousarray(np.moveaxis(w[..., 0, 0], 0, -1))
        call(getattr(library, f"case{i}"), guarded(bits(conv.spread(x, case.wider), kind)),
             guarded(bits(filters, kind)), y, threads=2)
        np.testing.assert_array_equal(y, conv.convolve(x, w, case), err_msg=f"case{i} {case}")


@pytest.mark.part(2)
@types
@width
def test_winograd(tmp_path: Path, flags: list[str], kind: str) -> None:
    """Equal to the same kernel on floats."""
    plain = winograd.SOURCE + winograd.instance(2, "f2") + winograd.instance(4, "f4")
    (tmp_path / "plain").mkdir()
    wide = compile_c(plain + LANES, tmp_path / "plain", flags)
    half = compile_c(of_halves(plain, kind, ("x_",)) + LANES, tmp_path, flags)
    for m, (n, oh, ow, c, o, group) in itertools.product((2, 4), winograd.CASES):
        rng = np.random.default_rng(c)
        nr, points = 2 * lanes(half), (m + 2) ** 2
        x, u = whole(rng, n, oh + 2, ow + 2, c), whole(rng, points, c, o)
        share = points * (group * (c + o + 96) + 32)
        results = []
        for library, given in ((wide, x), (half, bits(x, kind))):
            y = guarded(np.zeros((n, oh, ow, o), np.float32))
            work = guarded(np.zeros((2, -(-share // 16) * 16), np.float32))
            call(getattr(library, f"f{m}"), guarded(given), guarded(pack(u, nr)), y, work, n, oh,
                 ow, c, o, group, work.shape[1], threads=2)
            results.append(y)
        np.testing.assert_array_equal(*results)


# ---- the conversions ---------------------------------------------------------------------------

ALL = """
#include "half.h"
void widen(const uint16_t *x, int64_t n, float *bfloat, float *half);
void widen(const uint16_t *x, int64_t n, float *bfloat, float *half)
{
    gt_widen_row(GT_BFLOAT16, x, n, bfloat);
    gt_widen_row(GT_FLOAT16, x, n, half);
}
"""


@width
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_every_number(tmp_path: Path, flags: list[str], cc: str) -> None:
    library = compile_c(ALL, tmp_path, flags, cc)
    x = np.arange(1 << 16, dtype=np.uint16)[:-3]
    out = [np.zeros(1 << 16, np.float32) for _ in TYPES]
    library.widen(guarded(x).ctypes.data_as(gemm_pointer()), x.size,
                  *(o.ctypes.data_as(gemm_pointer()) for o in out))
    for o, dtype in zip(out, TYPES.values(), strict=True):
        np.testing.assert_array_equal(o[:x.size], x.view(dtype).astype(np.float32))
        assert not o[x.size:].any()


def gemm_pointer() -> Any:
    import ctypes
    return ctypes.c_void_p
