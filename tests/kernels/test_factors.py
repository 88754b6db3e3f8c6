"""cholesky.h and triangular.h against numpy in float64, for sizes around those of their blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.target import named

TARGET = named("native", 2)
ERROR = {dtypes.float32: 2e-5, dtypes.float64: 1e-13}
RNG = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def ran(fn: Any, xs: list[Array], folder: Path) -> list[Array]:
    names = [f"x{i}" for i in range(len(xs))]
    types = [TensorType(dtypes.of_numpy(x.dtype), x.shape) for x in xs]
    graph = trace(fn, types, names)
    module = passes.run(Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs)))),
                        supply={"target": TARGET})
    model = runtime.load(build(module, folder, target=TARGET), 2)
    return list(model.run(dict(zip(names, xs, strict=True))).values())


def positive(shape: tuple[int, ...], dtype: DType) -> Array:
    x = RNG.normal(size=shape)
    return (x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype.numpy)


@pytest.mark.part(3)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (2, 8, 8), (2, 2, 9, 9), (33, 33), (96, 96)],
                         ids=str)
def test_a_factor(shape: tuple[int, ...], dtype: DType, tmp_path: Path) -> None:
    a = positive(shape, dtype)
    upper = a + np.triu(RNG.normal(size=shape), 1).astype(dtype.numpy)  # which is not read

    def both(x: Any, y: Any) -> Any:
        axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        return o.cholesky(x), o.cholesky(o.transpose(y, perm=axes))
    for got in ran(both, [upper, np.swapaxes(upper, -1, -2).copy()], tmp_path / "b"):
        want = np.linalg.cholesky(a.astype(np.float64))
        np.testing.assert_allclose(got, want, atol=ERROR[dtype])


def test_a_matrix_without_a_factor(tmp_path: Path) -> None:
    got, = ran(o.cholesky, [-positive((12, 12), dtypes.float32)], tmp_path / "b")
    assert np.isnan(got).any() and not np.triu(got, 1).any()


@pytest.mark.part(3)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (9, 1), (40, 3), (17, 5), (20, 32),
                                              (11, 70)])
def test_a_system(rows: int, columns: int, dtype: DType, tmp_path: Path) -> None:
    a = positive((2, rows, rows), dtype)
    b = RNG.normal(size=(2, rows, columns)).astype(dtype.numpy)
    ways = [(lower, unit, turned) for lower in (True, False) for unit in (False, True)
            for turned in (False, True)]

    def all_ways(x: Any, y: Any) -> Any:
        turned = o.transpose(x, perm=(0, 2, 1))
        return tuple(o.triangular_solve(turned if t else x, y, lower=low, unit=unit)
                     for low, unit, t in ways)
    for (low, unit, turned), got in zip(ways, ran(all_ways, [a, b], tmp_path / "b"), strict=True):
        half = np.swapaxes(a, 1, 2) if turned else a
        half = np.tril(half) if low else np.triu(half)
        if unit:
            half = half * (1 - np.eye(rows)) + np.eye(rows)
        want = np.linalg.solve(half.astype(np.float64), b.astype(np.float64))
        np.testing.assert_allclose(got, want, atol=ERROR[dtype] * max(1, np.abs(want).max()))
