"""pooled.h against windows in numpy, over awkward sizes and numbers that are none."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.kernels.harness import Array, call, compile_c, guarded, whole, width


@dataclass(frozen=True)
class Case:
    """One pool; `wider` floats stand between the channels of two pixels."""

    kind: int
    c: int
    size: tuple[int, int] = (5, 7)
    window: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (2, 2)
    dilation: tuple[int, int] = (1, 1)
    batch: int = 1
    wider: int = 0


CASES = [
    Case(1, 1, (1, 1), (1, 1)),
    Case(1, 64),
    Case(1, 37, (4, 15), (5, 5), (1, 1), batch=2),
    Case(2, 50, (3, 8), (3, 2), (1, 1), (2, 3)),
    Case(0, 16, (7, 7), wider=3),
    Case(0, 3, (2, 9), (4, 6), (2, 3), batch=2),
    Case(2, 9, (6, 14), (2, 2), wider=1),
    Case(1, 33, (2, 6), (1, 4), (1, 2)),
]
REDUCE = (np.sum, np.max, np.min)
TEXT = """
#include "prelude.h"
#define GT_NAME {name}_share
#define GT_PARAMS , const float *x_, float *y_
#define GT_ARGS , x_, y_
static inline void {name}_keep(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                               int64_t c, int64_t count, const float *x_, float *y_)
{{
    (void)x_;
    for (int64_t j = 0; j < count; j++)
        y_[((n * {oh} + oh) * {ow} + ow) * {c} + c + j] = acc[j];
}}
#define GT_KIND {kind}
#define GT_BW 7
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
#define GT_EPILOGUE {name}_keep
#include "pooled.h"
void {name}(int t, int threads, const float *x_, float *y_);
void {name}(int t, int threads, const float *x_, float *y_) {{ {name}_share(t, threads, x_, y_); }}
"""


def image(case: Case) -> Array:
    h, w = ((n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(
        case.size, case.stride, case.window, case.dilation, strict=True))
    x = whole(np.random.default_rng(case.c), case.batch, h, w, case.c)
    if case.kind:
        x[0, h // 2, w // 2, case.c // 2] = np.nan
        x[-1, h // 2, 0, 0] = -np.nan
        x[0, 0, -1, -1] = np.inf
    return x


def pooled(x: Array, case: Case) -> Array:
    (kh, kw), (sh, sw), (dh, dw) = case.window, case.stride, case.dilation
    seen = sliding_window_view(x, ((kh - 1) * dh + 1, (kw - 1) * dw + 1), (1, 2))
    return REDUCE[case.kind](seen[:, ::sh, ::sw, :, ::dh, ::dw], axis=(4, 5))


def text(case: Case, name: str) -> str:
    x = image(case)
    step = case.c + case.wider
    return TEXT.format(
        name=name, kind=case.kind, n=case.batch, oh=case.size[0], ow=case.size[1], c=case.c,
        kh=case.window[0], kw=case.window[1], sh=case.stride[0], sw=case.stride[1],
        dh=case.dilation[0], dw=case.dilation[1], xn=x.shape[1] * x.shape[2] * step,
        xh=x.shape[2] * step, xw=step)


@pytest.mark.part(3)
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@width
def test_pools(tmp_path: Path, flags: list[str], cc: str) -> None:
    cases = {f"case{i}": case for i, case in enumerate(CASES)}
    library = compile_c("".join(text(case, name) for name, case in cases.items()), tmp_path,
                        flags, cc)
    for threads in (1, 3):
        for name, case in cases.items():
            x, y = image(case), guarded(np.zeros((case.batch, *case.size, case.c), np.float32))
            apart = np.pad(x, ((0, 0), (0, 0), (0, 0), (0, case.wider)))
            call(getattr(library, name), guarded(apart), y, threads=threads)
            np.testing.assert_array_equal(y, pooled(x, case), err_msg=f"{name} {case}")
