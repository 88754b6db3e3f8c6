"""conv_direct.h and depthwise.h against a plain convolution in numpy, in exact arithmetic."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, Array, call, compile_c, guarded, lanes, pack, whole, width


@dataclass(frozen=True)
class Case:
    """One convolution; `wider` floats stand between the channels of two pixels."""

    c: int
    o: int
    size: tuple[int, int] = (5, 7)
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    batch: int = 1
    wider: int = 0


CASES = [
    Case(1, 1, (1, 1), (1, 1)),
    Case(3, 5),
    Case(3, 33, (4, 15), (7, 7), (2, 2)),
    Case(16, 64, (7, 7)),
    Case(20, 40, (3, 29), batch=2),
    Case(5, 7, (4, 14), groups=3),
    Case(4, 32, (6, 5), groups=2, batch=3, stride=(2, 1)),
    Case(7, 18, (5, 9), dilation=(2, 3)),
    Case(8, 16, (5, 9), (1, 5), (1, 3), wider=5),
    Case(6, 3, (2, 31), (2, 4), dilation=(3, 1), wider=1),
    Case(40, 300, (9, 13), (3, 3)),  # weights beyond 400 KB: panels outermost
    Case(96, 130, (9, 6), (3, 3), batch=2),
]


def convolve(x: Array, w: Array, case: Case) -> Array:
    """x [n][h][w][groups·c] with its halo, w [groups][kh][kw][c][o] -> [n][oh][ow][groups·o]."""
    (oh, ow), (sh, sw), (dh, dw) = case.size, case.stride, case.dilation
    y = np.zeros((case.batch, oh, ow, case.groups, case.o), np.float32)
    for r, s in np.ndindex(*case.kernel):
        part = x[:, r * dh:r * dh + (oh - 1) * sh + 1:sh, s * dw:s * dw + (ow - 1) * sw + 1:sw]
        part = part.reshape(*part.shape[:3], case.groups, case.c)
        y += np.einsum("nhwgc,gco->nhwgo", part, w[:, r, s])
    return y.reshape(case.batch, oh, ow, -1)


def operands(case: Case) -> tuple[Array, Array]:
    rng = np.random.default_rng(case.c * 1000 + case.o)
    h, w = ((n - 1) * s + (k - 1) * d + 1 for n, s, k, d in
            zip(case.size, case.stride, case.kernel, case.dilation, strict=True))
    x = whole(rng, case.batch, h, w, case.c * case.groups)
    return x, whole(rng, case.groups, *case.kernel, case.c, case.o)


def spread(x: Array, wider: int) -> Array:
    """x with unused floats after each pixel but the last, before an inaccessible page."""
    padded = np.full((*x.shape[:-1], x.shape[-1] + wider), np.nan, np.float32)
    padded[..., :x.shape[-1]] = x
    return guarded(padded.reshape(-1)[:padded.size - wider])


DIRECT = """
#include "prelude.h"
#define PARAMS , const float *restrict x_, const float *restrict w_, float *restrict y_, \\
    int64_t d_n, int64_t d_oh, int64_t d_ow, int64_t d_groups, int64_t d_c, int64_t d_o, \\
    int64_t d_kh, int64_t d_kw, int64_t d_sh, int64_t d_sw, int64_t d_dh, int64_t d_dw, \\
    int64_t d_xn, int64_t d_xh, int64_t d_xw
#define ARGS , x_, w_, y_, d_n, d_oh, d_ow, d_groups, d_c, d_o, d_kh, d_kw, d_sh, d_sw, d_dh, \\
    d_dw, d_xn, d_xh, d_xw
#pragma GCC diagnostic ignored "-Wunused-parameter"
static inline void add_up(const float *restrict acc, int64_t n, int64_t oh, int64_t ow, int64_t o,
                          int64_t count PARAMS)
{
    float *y = y_ + ((n * d_oh + oh) * d_ow + ow) * d_groups * d_o + o;
    for (int64_t j = 0; j < count; j++) y[j] += acc[j];
}
"""
INSTANCE = """
#define GT_NAME {name}_share
#define GT_MR {mr}
#define GT_TALL {tall}
#define GT_NV {nv}
#define GT_BATCH {n}
#define GT_OH {oh}
#define GT_OW {ow}
#define GT_GROUPS {groups}
#define GT_C {c}
#define GT_O {o}
#define GT_KH {kh}
#define GT_KW {kw}
#define GT_SH {sh}
#define GT_SW {sw}
#define GT_DH {dh}
#define GT_DW {dw}
#define GT_X x_
#define GT_XN {xn}
#define GT_XH {xh}
#define GT_XW {xw}
#define GT_W w_
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE add_up
#include "conv_direct.h"
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""
SIZES = ["n", "oh", "ow", "groups", "c", "o", "kh", "kw", "sh", "sw", "dh", "dw",
         "xn", "xh", "xw"]


def sizes(case: Case) -> list[int]:
    x, _ = operands(case)
    pixel = x.shape[3] + case.wider
    return [case.batch, *case.size, case.groups, case.c, case.o, *case.kernel, *case.stride,
            *case.dilation, x.shape[1] * x.shape[2] * pixel, x.shape[2] * pixel, pixel]


def direct(name: str, mr: int, nv: int, case: Case | None = None, tall: int = 1) -> str:
    """An instance with run-time sizes, or with those of one case as literals."""
    names = [f"d_{s}" for s in SIZES] if case is None else sizes(case)
    given = dict(zip(SIZES, names, strict=True))
    return INSTANCE.format(name=name, mr=mr, nv=nv, tall=tall, **given)


def check_direct(library, name, nr, case, threads):
    x, w = operands(case)
    packed = pack(w.reshape(case.groups, -1, case.o), nr)
    y = guarded(np.zeros((case.batch, *case.size, case.groups * case.o), np.float32))
    call(getattr(library, name), spread(x, case.wider), guarded(packed), y, *sizes(case),
         threads=threads)
    np.testing.assert_array_equal(y, convolve(x, w, case), err_msg=f"{name} {case}")


@pytest.mark.part(2)
@width
def test_direct(tmp_path: Path, flags: list[str]) -> None:
    fixed = "".join(direct(f"fixed{i}", 14, 2, CASES[i]) for i in (2, 3, 7, 10))
    library = compile_c(DIRECT + direct("conv14", 14, 2) + direct("conv5", 5, 3) + fixed + LANES,
                        tmp_path, flags)
    for threads in (1, 2, 5):
        for case in CASES:
            check_direct(library, "conv14", 2 * lanes(library), case, threads)
            check_direct(library, "conv5", 3 * lanes(library), case, threads)
        for i in (2, 3, 7, 10):
            check_direct(library, f"fixed{i}", 2 * lanes(library), CASES[i], threads)


TALL = [
    (14, 2, Case(16, 64, (7, 7))),
    (8, 2, Case(20, 40, (4, 4), batch=3)),
    (12, 4, Case(5, 7, (9, 3), groups=3, stride=(2, 1))),
    (5, 5, Case(8, 33, (11, 1), dilation=(2, 3), wider=5)),
    (14, 7, Case(96, 130, (6, 2), stride=(2, 2))),
]


@width
def test_tiles_of_several_rows(tmp_path: Path, flags: list[str]) -> None:
    source = "".join(direct(f"tall{i}", mr, 2, case, tall)
                     for i, (mr, tall, case) in enumerate(TALL))
    library = compile_c(DIRECT + source + LANES, tmp_path, flags)
    for threads in (1, 2, 5):
        for i, (_, _, case) in enumerate(TALL):
            check_direct(library, f"tall{i}", 2 * lanes(library), case, threads)


@pytest.mark.part(2)
@pytest.mark.parametrize("cc", ["clang"])
@width
def test_direct_clang(tmp_path: Path, flags: list[str], cc: str) -> None:
    library = compile_c(DIRECT + direct("conv14", 14, 2) + LANES, tmp_path, flags, cc)
    for case in CASES:
        check_direct(library, "conv14", 2 * lanes(library), case, 2)


DEPTHWISE = """
#include "prelude.h"
#define PARAMS , const float *restrict x_, const float *restrict w_, float *restrict y_
#define ARGS , x_, w_, y_
#pragma GCC diagnostic ignored "-Wunused-parameter"
"""
DEPTHWISE_INSTANCE = """
static inline void {name}_add_up(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                                 int64_t c, int64_t count PARAMS)
{{
    float *y = y_ + ((n * {oh} + oh) * {ow} + ow) * {c} + c;
    for (int64_t j = 0; j < count; j++) y[j] += acc[j];
}}
#define GT_NAME {name}_share
#define GT_BH {bh}
#define GT_BW {bw}
#define GT_CB {cb}
#define GT_BATCH {n}
#define GT_OH {oh}
#define GT_OW {ow}
#define GT_C {c}
#define GT_KH {kh}
#define GT_KW {kw}
#define GT_SH {sh}
#define GT_SW {sw}
#define GT_DH {dh}
#define GT_DW {dw}
#define GT_X x_
#define GT_XN {xn}
#define GT_XH {xh}
#define GT_XW {xw}
#define GT_W w_
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE {name}_add_up
#include "depthwise.h"
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""
# here c counts the groups, each of one channel in and out
DEPTHWISE_CASES = [
    ((2, 7, 1), Case(1, 1, (5, 9), groups=1)),
    ((2, 7, 1), Case(1, 1, (5, 9), groups=3, batch=2)),
    ((2, 7, 1), Case(1, 1, (4, 14), groups=16)),
    ((2, 7, 2), Case(1, 1, (7, 7), groups=37)),
    ((1, 7, 2), Case(1, 1, (6, 8), groups=50, stride=(2, 2))),
    ((1, 7, 2), Case(1, 1, (3, 15), (5, 5), groups=34, batch=2, wider=3)),
    ((1, 4, 3), Case(1, 1, (4, 6), (3, 2), dilation=(2, 3), groups=21)),
    ((3, 4, 1), Case(1, 1, (7, 5), (1, 4), (1, 3), groups=9)),
    ((1, 7, 1), Case(1, 1, (2, 15), (2, 3), dilation=(1, 9), groups=20)),
    ((2, 4, 1), Case(1, 1, (3, 9), (3, 2), (1, 5), dilation=(1, 2), groups=5)),
]


def check_depthwise(library, name, case, threads):
    x, w = operands(case)
    y = guarded(np.zeros((case.batch, *case.size, case.groups), np.float32))
    filters = np.ascontiguousarray(np.moveaxis(w[..., 0, 0], 0, -1))
    call(getattr(library, name), spread(x, case.wider), guarded(filters), y, threads=threads)
    np.testing.assert_array_equal(y, convolve(x, w, case), err_msg=f"{name} {case}")


@pytest.mark.part(4)
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@width
def test_depthwise(tmp_path: Path, flags: list[str], cc: str) -> None:
    text = DEPTHWISE
    for i, ((bh, bw, cb), case) in enumerate(DEPTHWISE_CASES):
        facts = dict(zip(SIZES, sizes(case), strict=True)) | {"c": case.groups}
        text += DEPTHWISE_INSTANCE.format(name=f"case{i}", bh=bh, bw=bw, cb=cb, **facts)
    library = compile_c(text, tmp_path, flags, cc)
    for threads in (1, 2, 5):
        for i, (_, case) in enumerate(DEPTHWISE_CASES):
            check_depthwise(library, f"case{i}", case, threads)


NEIGHBOURS = [  # how many pixels are one, and the convolution
    ((2, 7, 1), 2, Case(1, 1, (5, 14), groups=8)),
    ((2, 3, 1), 4, Case(1, 1, (4, 8), (3, 3), dilation=(1, 2), groups=12, batch=2)),
    ((1, 7, 4), 9, Case(1, 1, (3, 9), (1, 5), (2, 1), groups=3)),
    ((1, 2, 2), 16, Case(1, 1, (3, 32), (2, 3), groups=1)),
]


@width
def test_neighbours_of_few_channels_as_one_pixel(tmp_path: Path, flags: list[str]) -> None:
    text = DEPTHWISE
    for i, ((bh, bw, cb), count, case) in enumerate(NEIGHBOURS):
        facts = dict(zip(SIZES, sizes(case), strict=True))
        wide = count * case.groups
        facts |= {"c": wide, "ow": case.size[1] // count, "xw": wide}
        text += f"#define GT_XT {case.groups * case.dilation[1]}\n"
        text += DEPTHWISE_INSTANCE.format(name=f"case{i}", bh=bh, bw=bw, cb=cb, **facts)
    library = compile_c(text, tmp_path, flags)
    for threads in (1, 3):
        for i, (_, count, case) in enumerate(NEIGHBOURS):
            x, w = operands(case)
            y = guarded(np.zeros((case.batch, *case.size, case.groups), np.float32))
            filters = np.moveaxis(w[..., 0, 0], 0, -1)
            repeated = np.ascontiguousarray(np.tile(filters, (1, 1, count)))
            call(getattr(library, f"case{i}"), guarded(x), guarded(repeated), y, threads=threads)
            np.testing.assert_array_equal(y, convolve(x, w, case), err_msg=str(case))
