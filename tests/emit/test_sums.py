"""Loops that sum have partial sums side by side; the results are those of the evaluator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, evaluate
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol_of
from graphtool.target import named

LENGTH = Symbol("n", 1, 2000)
LENGTHS = (1, 16, 63, 64, 127, 128, 129, 191, 1000)  # of rows: some are below one row of parts


def sums(x: Any) -> tuple[Any, ...]:
    """A sum, one whose terms have a name and two ops, and a product, of each row."""
    centred = x - o.slice(x, start=(0, 0), limit=(5, 1), strides=(1, 1))
    return (o.reduce_sum(x, axes=(1,)), o.reduce_sum(centred * centred, axes=(1,)),
            o.reduce_prod(x, axes=(1,)))


def module(*shapes: tuple[Any, ...]) -> Module:
    """The sums of each input."""
    graph = trace(lambda *xs: tuple(y for x in xs for y in sums(x)),
                  [TensorType(dtypes.float32, s) for s in shapes],
                  [f"x{i}" for i in range(len(shapes))])
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), {"n": LENGTH})


def rows(n: int, seed: int) -> np.ndarray[Any, Any]:
    """Numbers near 1, whose products stay finite; in two rows a NaN and an infinity."""
    x = 1 + 0.05 * np.random.default_rng(seed).standard_normal((5, n), np.float32)
    x[1, n // 2], x[2, n - 1] = np.nan, -np.inf
    return x


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3", "native"])
def test_sums_of_all_lengths(march: str, tmp_path: Path) -> None:
    both = module((5, LENGTHS[-1]), (5, symbol_of(LENGTH)))
    model = runtime.load(build(both, tmp_path / "build", target=named(march, 1)))
    for n in LENGTHS:
        inputs = {"x0": rows(LENGTHS[-1], n), "x1": rows(n, n)}
        want = evaluate(both, inputs)
        for name, y in model.run(inputs).items():
            np.testing.assert_allclose(y, want[name], 2e-5, 1e-4, err_msg=f"{name} of {n}")


def test_order_is_kept_where_it_counts() -> None:
    program = lower(module((5, 1000)), named("x86-64-v3", 1))
    strict = replace(program, meta={**program.meta, "precision": "strict"})
    assert "acc0_parts[32]" in str(emit(program))
    assert "acc0_parts" not in str(emit(strict))
