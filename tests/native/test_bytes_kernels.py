"""conv_bytes.h and depthwise_bytes.h: images whose padding is not in memory, to the bit as the
evaluator has it, here and on boards with and without instructions for pairs and vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool import ops as o
from graphtool.compile.build import emit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.dtypes import int8, int32, uint8
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels import conv_bytes, headers
from graphtool.native import board
from graphtool.passes.select import select
from graphtool.target import named
from tests.native.small_targets import available, harness, here, on_board

pytestmark = pytest.mark.compiled
NONE = ((0, 0), (0, 0))
# image, output channels (0: depthwise), zero point of uint8, window, strides, dilation, padding;
# every other image holds int8
CASES: list[tuple[Any, ...]] = [
    ((1, 5, 5, 8), 6, 0, (1, 1), (1, 1), (1, 1), NONE),
    ((1, 7, 5, 4), 5, 7, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))),
    ((2, 6, 6, 3), 4, 255, (3, 3), (2, 2), (1, 1), ((0, 1), (0, 1))),
    ((1, 9, 4, 1), 3, 100, (4, 2), (2, 2), (1, 1), ((1, 2), (1, 0))),
    ((1, 8, 9, 4), 2, 3, (2, 3), (1, 2), (3, 2), ((2, 1), (3, 3))),
    ((1, 2, 2, 4), 2, 9, (3, 3), (1, 1), (1, 1), ((2, 2), (2, 2))),
    ((1, 6, 5, 4), 0, 0, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))),
    ((2, 6, 8, 3), 0, 200, (3, 3), (2, 2), (1, 1), ((0, 1), (0, 1))),
    ((1, 7, 6, 2), 0, 12, (2, 4), (1, 1), (1, 1), ((1, 0), (1, 2))),
    ((1, 8, 7, 4), 0, 5, (2, 2), (1, 1), (3, 2), ((2, 1), (0, 1))),
    ((1, 9, 9, 4), 0, 77, (5, 5), (1, 3), (1, 1), ((2, 2), (2, 2))),
    ((1, 12, 4, 3), 0, 1, (1, 1), (3, 3), (1, 1), NONE),
    ((1, 5, 4, 20), 7, 128, (1, 1), (1, 1), (1, 1), NONE),
    ((1, 7, 15, 5), 0, 250, (3, 3), (1, 1), (1, 2), ((1, 1), (2, 2))),
    ((1, 5, 13, 8), 0, 0, (3, 3), (1, 2), (1, 1), ((1, 1), (0, 1))),
]


def _module(rng: np.random.Generator) -> Module:
    """An output of each case."""
    def run(*xs: Any) -> Any:
        out = []
        for x, (shape, outs, zero, window, strides, dilation, padding) in zip(
                xs, CASES, strict=True):
            attrs = {"zero": zero - 128 if x.dtype is int8 else zero, "window": window,
                     "strides": strides, "dilation": dilation, "padding": padding}
            w = rng.integers(-128, 128, (outs or shape[3], shape[3] if outs else 1, *window))
            out.append(o.conv_bytes(x, x.builder.constant(conv_bytes.packed(w.astype(np.int8))),
                                    channels=outs, **attrs) if outs else o.depthwise_bytes(
                x, x.builder.constant(w[:, 0].astype(np.int8)), **attrs))
        return tuple(out)
    types = [TensorType((uint8, int8)[i % 2], c[0]) for i, c in enumerate(CASES)]
    graph = trace(run, types, [f"x{i}" for i in range(len(types))])
    return Module(graph, tuple(f"y{i}" for i in range(len(CASES))))


@pytest.mark.parametrize("target", ["cortex-m4", *(pytest.param(t, marks=pytest.mark.slow)
                                                   for t in ("cortex-m0plus", "cortex-m55"))])
def test_every_shape_has_the_evaluators_bits(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    module = _module(rng)
    xs = {v.hint: rng.integers(0, 256, CASES[i][0]).astype(np.uint8).view(v.type.dtype.numpy)
          for i, v in enumerate(module.graph.inputs)}
    want = interp.run(module, xs)
    how = Build(target=target)
    emit(unit_of(Source(module), how, "padded"), tmp_path, how)
    shapes = {name: y.shape for name, y in want.items()}
    words = {k: np.resize(x.view(np.uint8), -(-x.size // 4) * 4) for k, x in xs.items()}
    harness(tmp_path, "padded", words, shapes)
    runs = [here(tmp_path, "padded", shapes)]
    if not available(target):
        runs.append(on_board(tmp_path, "padded", target, shapes))
    for ran in runs:
        for name, y in want.items():
            np.testing.assert_array_equal(ran.outputs[name].view(np.int32), y, err_msg=name)


ROUNDS = """
#define GT_LANES 1
#include "rows.h"
void board_write(const char *text);
static const uint32_t bits[] = {%s};
int main(void)
{
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        float x;
        uint8_t y[2];
        memcpy(&x, &bits[i], sizeof x);
        gt_row_round_u8(y, &x, 1, 0);
        gt_row_round_i8((int8_t *)y + 1, &x, 1, -3);
        const char text[] = {(char)(y[0] / 16 + 'a'), (char)(y[0] %% 16 + 'a'),
                             (char)(y[1] / 16 + 'a'), (char)(y[1] %% 16 + 'a'), 0};
        board_write(text);
    }
    return 0;
}
"""


def test_floats_become_bytes_without_a_call(tmp_path: Path) -> None:
    """Ties, the ends of both types, what is too large for the sum that rounds, and NaN, which is 0
    with a zero point too."""
    if why := available("cortex-m4"):
        pytest.skip(why)
    rng = np.random.default_rng(0)
    edges = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 127.5, -128.5, 254.5,
             255.5, 4194303.5, -4194304.5, 1.3e7, -1.3e7, 3e9, -3e9, 1e38, -1e38]
    x = np.concatenate([np.array(edges, np.float32), rng.uniform(-300, 300, 600).astype(np.float32),
                        rng.integers(0, 1 << 32, 600, np.uint32).view(np.float32)])
    for name in headers.names():
        (tmp_path / name).write_text(headers.text(name) or "")
    (tmp_path / "main.c").write_text(ROUNDS % ",".join(map(hex, x.view(np.uint32))))
    text = board.run(tmp_path, ["main.c"], "cortex-m4").strip()
    digits = np.frombuffer(text.encode(), np.uint8).reshape(-1, 2, 2) - ord("a")
    got = digits[..., 0] * 16 + digits[..., 1]
    with np.errstate(invalid="ignore"):  # some NaN are signalling
        whole, less = (np.nan_to_num(np.rint(x.astype(np.float64)) + zero, nan=0.0, posinf=1e39,
                                     neginf=-1e39) for zero in (0, -3))
    np.testing.assert_array_equal(got[:, 0], np.clip(whole, 0, 255).astype(np.uint8))
    np.testing.assert_array_equal(got[:, 1].astype(np.uint8).view(np.int8),
                                  np.clip(less, -128, 127).astype(np.int8))


SCALED = """
#define GT_LANES 1
#include "scaled.h"
void board_write(const char *text);
static const int32_t a[] = {%s}, b[] = {%s};
static const uint32_t scales[] = {%s};
static uint8_t y[4][sizeof a / sizeof *a];
int main(void)
{
    enum { N = sizeof a / sizeof *a };
    float scale[N];
    memcpy(scale, scales, sizeof scale);
    for (int64_t i = 0, count = 1; i < N; i += count, count = count %% 9 + 1) {
        if (count > N - i) count = N - i;
        gt_scaled_u8(y[0] + i, a + i, b + i, scale + i, count, 0);
        gt_scaled_u8(y[1] + i, a + i, b + i, scale + i, count, 131);
        gt_scaled_i8((int8_t *)y[2] + i, a + i, b + i, scale + i, count, 0);
        gt_scaled_i8((int8_t *)y[3] + i, a + i, b + i, scale + i, count, -7);
    }
    for (int i = 0; i < 4 * N; i++) {
        const uint8_t byte = y[i / N][i %% N];
        const char text[] = {(char)(byte / 16 + 'a'), (char)(byte %% 16 + 'a'), 0};
        board_write(text);
    }
    return 0;
}
"""


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_sums_are_scaled_to_bytes(target: str, tmp_path: Path) -> None:
    """Sums that wrap around, ties, the ends of both types, scales that are subnormal or no finite
    numbers, and rows of any length."""
    if why := available(target):
        pytest.skip(why)
    rng = np.random.default_rng(1)
    a, b = rng.integers(-1000, 1000, (2, 300), np.int32)
    a[:60], b[:60] = rng.integers(-1 << 31, 1 << 31, (2, 60), np.int64).astype(np.int32)
    a[60:90] = -b[60:90]
    scale = rng.choice(np.array([0.5, 0.25, 0.1, 0.01], np.float32), 300)
    scale[::7] = rng.choice(np.array(
        [1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan, 1e-7, 0.0], np.float32), 43)
    for name in headers.names():
        (tmp_path / name).write_text(headers.text(name) or "")
    (tmp_path / "main.c").write_text(SCALED % tuple(
        ",".join(map(str, v)) for v in (a, b, scale.view(np.uint32))))
    digits = np.frombuffer(board.run(tmp_path, ["main.c"], target).strip().encode(), np.uint8)
    got = (digits.reshape(4, 300, 2) - ord("a")) @ np.array([16, 1])
    with np.errstate(all="ignore"):
        x = (a + b).astype(np.float32) * scale
        want = [np.clip(np.nan_to_num(np.rint(x.astype(np.float64)) + zero, nan=0.0, posinf=1e39,
                                      neginf=-1e39), low, low + 255).astype(np.int64) & 255
                for low, zero in ((0, 0), (0, 131), (-128, 0), (-128, -7))]
    np.testing.assert_array_equal(got, want)


def test_what_is_one_product_stays_one() -> None:
    """An image of one pixel, or one pixel of output, is not gathered."""
    def run(x: Any, y: Any) -> Any:
        w = x.builder.constant(np.ones((4, 8, 3, 3), np.int32))
        wide = [o.cast(v, dtype=int32) for v in (x, y)]
        return (o.conv(wide[0], w, padding=((1, 1), (1, 1)), channels_last=True),
                o.conv(wide[1], w, channels_last=True))
    graph = trace(run, [TensorType(uint8, (1, 1, 1, 8)), TensorType(uint8, (1, 3, 3, 8))], "xy")
    chosen = select(graph, target=named("cortex-m4"))
    assert {n.op.name for n in chosen.nodes} >= {"gemm_int"}
    assert not [n for n in chosen.nodes if n.op.name == "conv_bytes"]
