"""Products with packed weights of few bits at every vector width: many rows and few, slabs of
columns, and rows of weights that fill no panel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.linear_nbits import WIDENED
from graphtool.native.build import build
from graphtool.target import named

CASES = [  # rows, columns, rows of weights, bits, block, with zero points
    (33, WIDENED + 70, 41, 4, 32, True), (16, 90, 70, 8, 16, False), (20, 130, 9, 2, 64, True),
    (15, 96, 40, 4, 32, False), (17, 64, 33, 4, 128, False)]


@pytest.mark.parametrize("march", ["native", "x86-64-v3", "x86-64", "generic"])
def test_rows(march: str, tmp_path: Path) -> None:
    rng, xs, calls = np.random.default_rng(0), {}, []
    for i, (m, k, n, bits, block, shifted) in enumerate(CASES):
        blocks = -(-k // block)
        xs[f"x{i}"] = rng.standard_normal((m, k)).astype(np.float32)
        tables = [rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
                  rng.random((n, blocks), np.float32)]
        tables += [rng.random((n, blocks), np.float32) * 9] if shifted else []
        calls.append(lambda x, tables=tables, bits=bits, block=block: o.linear_nbits(
            x, *map(x.builder.constant, tables), bits=bits, block=block))
    graph = trace(lambda *xs: tuple(c(x) for c, x in zip(calls, xs, strict=True)),
                  [TensorType(dtypes.float32, x.shape) for x in xs.values()], list(xs))
    module = Module(graph, tuple(f"y{i}" for i in range(len(CASES))))
    want = interp.run(module, xs)
    ready = passes.run(module, supply={"target": named(march)})
    got = graphtool.load(build(ready, tmp_path / "b", target=named(march)))(**xs)
    for name, y in want.items():
        np.testing.assert_allclose(got[name], y, rtol=1e-4, atol=1e-5 * np.abs(y).max())
