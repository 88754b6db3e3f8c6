"""winograd_line.h against a plain convolution in float64."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import LANES, call, compile_c, guarded, lanes, pack, width

SOURCE = """
#include "prelude.h"
#define PARAMS , const float *restrict x_, const float *restrict w_, float *restrict y_, \\
    float *restrict work_, int64_t d_work
#define ARGS , x_, w_, y_, work_, d_work
#pragma GCC diagnostic ignored "-Wunused-parameter"
"""
INSTANCE = """
static inline void {name}_add_up(const float *restrict acc, int64_t n, int64_t oh, int64_t ow,
                                 int64_t o, int64_t count PARAMS)
{{
    float *y = y_ + ((n * {oh} + oh) * {ow} + ow) * {o} + o;
    for (int64_t j = 0; j < count; j++) y[j] += acc[j];
}}
#define GT_NAME {name}_share
#define GT_TILE {m}
#define GT_MR 14
#define GT_NV 2
#define GT_GROUP {group}
#define GT_UPRIGHT {upright}
#define GT_BATCH {n}
#define GT_ACROSS {across}
#define GT_ALONG {along}
#define GT_C {c}
#define GT_O {o}
#define GT_KA {ka}
#define GT_KL {kl}
#define GT_DA {da}
#define GT_DL {dl}
#define GT_X x_
#define GT_XN {xn}
#define GT_XA {xa}
#define GT_XL {xl}
#define GT_W w_
#define GT_WORK(t) (work_ + (t) * d_work)
#define GT_PARAMS PARAMS
#define GT_ARGS ARGS
#define GT_EPILOGUE {name}_add_up
#include "winograd_line.h"
void {name}(int t, int threads PARAMS);
void {name}(int t, int threads PARAMS) {{ {name}_share(t, threads ARGS); }}
"""
# batch, output rows and columns, channels in and out, window, dilation, tiles a group, upright
CASES = [
    (1, 1, 1, 1, 1, (1, 3), (1, 1), 1, 0),
    (1, 1, 50, 19, 37, (1, 3), (1, 1), 5, 0),
    (2, 3, 21, 16, 32, (1, 15), (1, 1), 7, 0),
    (1, 7, 9, 20, 40, (3, 3), (2, 3), 14, 0),
    (2, 11, 6, 18, 33, (7, 1), (1, 1), 28, 1),
    (1, 13, 5, 5, 20, (4, 2), (5, 2), 14, 1),
    (1, 6, 7, 33, 16, (5, 5), (1, 1), 9, 0),
    (1, 1, 30, 8, 16, (1, 3), (1, 16), 14, 0),
]
G = {2: [[1, 0, 0], [.5, .5, .5], [.5, -.5, .5], [0, 0, 1]],
     4: [[1 / 4, 0, 0], [-1 / 6] * 3, [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6],
         [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]}


def facts(case) -> dict[str, int]:
    n, oh, ow, c, o, (kh, kw), (dh, dw), group, upright = case
    wide = ow + (kw - 1) * dw
    rows, columns = (oh, kh, dh, wide * c), (ow, kw, dw, c)
    across, along = (columns, rows) if upright else (rows, columns)
    keys = ("across", "ka", "da", "xa", "along", "kl", "dl", "xl")
    return {"n": n, "oh": oh, "ow": ow, "c": c, "o": o, "group": group, "upright": upright,
            "xn": (oh + (kh - 1) * dh) * wide * c,
            **dict(zip(keys, (*across, *along), strict=True))}


def check(library, name, m, case, threads):
    n, oh, ow, c, o, (kh, kw), (dh, dw), group, upright = case
    rng = np.random.default_rng(oh * 100 + c)
    x = rng.standard_normal((n, oh + (kh - 1) * dh, ow + (kw - 1) * dw, c)).astype(np.float32)
    w = rng.standard_normal((kh, kw, c, o)).astype(np.float32)
    lined = (w.swapaxes(0, 1) if upright else w).astype(np.float64)
    ka, kl = lined.shape[:2]
    threes = np.pad(lined, ((0, 0), (0, -kl % 3), (0, 0), (0, 0))).reshape(ka, -1, 3, c, o)
    u = np.einsum("is,rjsco->irjco", np.array(G[m]), threes).reshape(m + 2, -1, o)
    size, nr = lanes(library), 2 * lanes(library)
    depth, op = -(-u.shape[1] // size) * size, -(-o // nr) * nr
    floats = (m + 2) * (group * (depth + 16) + 16 + group * (op + 16) + 16)
    floats = -(-floats // 16) * 16
    y = guarded(np.zeros((n, oh, ow, o), np.float32))
    work = guarded(np.full(threads * floats, np.nan, np.float32))
    call(getattr(library, name), guarded(x), guarded(pack(u.astype(np.float32), nr)), y, work,
         floats, threads=threads)
    expected = sum(np.einsum("nhwc,co->nhwo", x[:, r * dh:r * dh + oh, s * dw:s * dw + ow].astype(
        np.float64), w[r, s]) for r, s in np.ndindex(kh, kw))
    worst = np.abs(y - expected).max() / np.sqrt(kh * kw * c)
    assert worst < {2: 4e-6, 4: 2e-5}[m], (name, case, worst)


@pytest.mark.part(6)
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@width
def test_lines(tmp_path: Path, flags: list[str], cc: str) -> None:
    text = SOURCE + LANES
    for m in (2, 4):
        for i, case in enumerate(CASES):
            text += INSTANCE.format(name=f"case{m}_{i}", m=m, **facts(case))
    library = compile_c(text, tmp_path, flags, cc)
    for threads in (1, 2, 3):
        for m in (2, 4):
            for i, case in enumerate(CASES):
                check(library, f"case{m}_{i}", m, case, threads)
