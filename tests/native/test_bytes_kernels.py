"""conv_bytes.h and depthwise_bytes.h: images whose padding is not in memory, to the bit as the
evaluator has it, here and on boards with and without instructions for pairs."""

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
from graphtool.dtypes import int8, uint8
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels import conv_bytes
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


@pytest.mark.parametrize("target", ["cortex-m4", pytest.param(
    "cortex-m0plus", marks=pytest.mark.slow)])
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
