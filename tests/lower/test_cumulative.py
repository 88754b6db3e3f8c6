"""Running sums of columns, a row at a time, and the first elements of long rows."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import ops as o
from graphtool import passes
from graphtool.dtypes import float32, int32
from graphtool.emit.c import emit
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.target import named

KINDS = list(itertools.product(("sum", "prod", "max", "min"), (False, True), (False, True)))


def test_columns_equal_the_evaluator(tmp_path: Path) -> None:
    def columns(x: Any, y: Any, z: Any) -> Any:
        return (*(o.cumulative(v, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse)
                  for kind, exclusive, reverse in KINDS for v, axis in ((x, 0), (y, 1))),
                o.cumulative(z, kind="sum", axis=0))
    graph = trace(columns, [TensorType(float32, (5, 24)), TensorType(int32, (3, 7, 8)),
                            TensorType(float32, (1, 16))])
    module = Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))))
    rng = np.random.default_rng(0)
    arrays = {"x": rng.standard_normal((5, 24)).astype(np.float32),
              "y": rng.integers(-9, 9, (3, 7, 8)).astype(np.int32),
              "z": np.ones((1, 16), np.float32)}
    names = [i.hint for i in graph.inputs]
    inputs = dict(zip(names, arrays.values(), strict=True))
    want = graphtool.evaluate(module, inputs)
    model = graphtool.load(graphtool.build(module, tmp_path / "b"))
    for threads in (1, 2):
        model.threads = threads
        got = model(**inputs)
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value, strict=True)
            assert np.array_equal(np.signbit(got[name]), np.signbit(value))


@pytest.mark.parametrize(("threads", "pieces"), [(1, 1), (2, 2), (0, 4)])
def test_columns_are_as_wide_as_the_threads_allow(threads: int, pieces: int) -> None:
    graph = trace(lambda x: o.cumulative(x, kind="sum", axis=0), [TensorType(float32, (9, 256))])
    target = named("x86-64-v4", threads)
    program = lower(passes.run(Module(graph, ("y",)), supply={"target": target}), target,
                    name="m")
    assert f" < {256 // pieces}; i" in emit(program)["m_kernels0.c"]


def test_many_of_the_greatest_keep_their_order(tmp_path: Path) -> None:
    """Equal elements, NaN and infinities, rising and falling rows: the list of the best is kept in
    order whatever comes."""
    rng = np.random.default_rng(1)
    rows = np.stack([np.arange(700), -np.arange(700), rng.integers(0, 9, 700),
                     np.where(rng.random(700) < 0.1, np.nan, rng.standard_normal(700)),
                     np.full(700, -np.inf)]).astype(np.float32)
    graph = trace(lambda x: (*o.top_k(x, k=60, axis=1, largest=True),
                             *o.top_k(x, k=40, axis=1, largest=False)),
                  [TensorType(float32, rows.shape)])
    module = Module(graph, ("a", "b", "c", "d"))
    inputs = {graph.inputs[0].hint: rows}
    got = graphtool.load(graphtool.build(module, tmp_path / "b"))(**inputs)
    for name, value in graphtool.evaluate(module, inputs).items():
        np.testing.assert_array_equal(got[name], value, strict=True)
