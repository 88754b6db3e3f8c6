"""Scans and sorts of long rows on a device, by many workers."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.symbolic import Symbol, evaluate, symbol
from tests.lower.compiling import faults

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
              pytest.mark.usefixtures("device")]
RNG = np.random.default_rng(17)
F32, I32 = dtypes.float32, dtypes.int32
N = symbol("N", 0, 20000)


def built(fn: Any, types: list[TensorType], folder: Path) -> tuple[Module, Path, str]:
    graph = trace(fn, types, [f"x{i}" for i in range(len(types))])
    open_sizes = {"N": Symbol("N", 0, 20000)} if any(N in t.shape for t in types) else {}
    m = Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), open_sizes)
    work = graphtool.build(m, folder, target="sm_90")
    return m, work, (work / "model_kernels0.cu").read_text()


def test_scans_of_long_rows_are_in_slabs(tmp_path: Path) -> None:
    """Slabs within slabs, in every direction and order of axes; all runs give the same bits."""
    ways = list(itertools.product((False, True), (False, True)))

    def scans(x: Any, y: Any, z: Any) -> Any:
        return (*(o.cumulative(x, kind="sum", axis=0, exclusive=e, reverse=r) for e, r in ways),
                *(o.cumulative(y, kind=k, axis=a, reverse=a == 1)
                  for k in ("sum", "max") for a in (0, 1)),
                o.cumulative(z, kind="sum", axis=1, exclusive=True))
    m, work, text = built(scans, [TensorType(F32, (N,)), TensorType(I32, (300, 260)),
                                  TensorType(dtypes.bfloat16, (2, 256))], tmp_path / "b")
    assert "i0 < 312" in text and "i0 < 4;" in text
    model = runtime.load(work)
    for n in (20000, 1, 0, 700):
        xs = {"x0": RNG.standard_normal(n).astype(np.float32),
              "x1": RNG.integers(-99, 99, (300, 260)).astype(np.int32),
              "x2": RNG.standard_normal((2, 256)).astype(np.float32).astype(
                  dtypes.bfloat16.numpy)}
        got = {name: y.copy() for name, y in model(**xs).items()}
        assert not faults(got, interp.run(m, xs), 1e-3, 1e-3)
        again = model(**xs)
        assert all(got[name].tobytes() == again[name].tobytes() for name in got)


def numbers(dtype: DType, *shape: int) -> np.ndarray:
    """Many equal numbers, NaN of both signs, infinities and zeros of both signs."""
    x = RNG.integers(-40, 40, shape).astype(np.float32)
    if dtype.is_float:
        x.flat[::7] = RNG.choice(np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0],
                                          np.float32), x.flat[::7].shape)
    return x.astype(dtype.numpy)


SORTS = {
    "columns": (lambda x: o.sort(x, axis=0), (70, 6), F32),
    "one": (lambda x: o.sort(x, axis=1), (3, 1), F32),
    "halves": (lambda x: o.sort(x, axis=1, descending=True), (3, 300), dtypes.bfloat16),
    "bools": (lambda x: o.sort(x, axis=0, descending=True), (90,), dtypes.bool_),
    "long": (lambda x: o.sort(x, axis=1, descending=True), (2, 4500), F32),
    "integers": (lambda x: o.sort(x, axis=0), (9000,), dtypes.int64),
    "open": (lambda x: o.sort(x, axis=0), (N,), F32),
    "best": (lambda x: o.top_k(x, k=50, axis=1), (2, 9000), F32),
    "least": (lambda x: o.top_k(x, k=3, axis=0, largest=False), (N, 2), I32)}


def test_sorts_equal_the_evaluator(tmp_path: Path) -> None:
    """In tiles, in merged runs, of each kind of number, with every bit of NaN and of zero."""
    def sorts(*xs: Any) -> list[Any]:
        return [y for x, (fn, _, _) in zip(xs, SORTS.values(), strict=True) for y in fn(x)]
    m, work, text = built(sorts, [TensorType(t, shape) for _, shape, t in SORTS.values()],
                          tmp_path / "b")
    assert "#define GT_RUN 4096" in text
    model = runtime.load(work)
    for n in (5000, 3):
        xs = {v.hint: numbers(v.type.dtype, *(evaluate(d, {"N": n}) for d in v.type.shape))
              for v in m.graph.inputs}
        got, want = model(**xs), interp.run(m, xs)
        for y in want:
            np.testing.assert_array_equal(got[y].view(np.uint8), want[y].view(np.uint8), y)


def test_scatters_equal_the_evaluator(tmp_path: Path) -> None:
    """Few updates and many, of which several address one element; all runs give the same bits."""
    def scatters(x: Any, i: Any, u: Any, y: Any, j: Any, v: Any, w: Any, i_open: Any,
                 u_open: Any) -> list[Any]:
        few = o.slice(i, start=(0, 0), limit=(3, 1), strides=(1, 1))
        rows = o.slice(u, start=(0, 0), limit=(3, 5), strides=(1, 1))
        return [*(o.scatter(x, i, u, axes=(0,), batch=0, kind=k)
                  for k in ("add", "set", "max", "mul")),
                o.scatter(x, few, rows, axes=(0,), batch=0, kind="add"),
                o.scatter(y, j, v, axes=(2, 1), batch=1, kind="add"),
                o.scatter(o.slice(x, start=(0, 0), limit=(40, 1), strides=(1, 1)), i, w, axes=(0,),
                          batch=0, kind="add"),
                o.scatter(x, i_open, u_open, axes=(0,), batch=0, kind="add")]
    I64 = dtypes.int64
    m, work, text = built(scatters, [
        TensorType(F32, (40, 5)), TensorType(I64, (300, 1)), TensorType(F32, (300, 5)),
        TensorType(I32, (2, 3, 4, 3)), TensorType(I32, (2, 10, 9, 2)),
        TensorType(I32, (2, 10, 9, 3)), TensorType(F32, (300, 1)),
        TensorType(I64, (N, 1)), TensorType(F32, (N, 5))], tmp_path / "b")
    assert "sort_cuda.h" in text
    model = runtime.load(work)
    xs = {"x0": RNG.standard_normal((40, 5)).astype(np.float32),
          "x1": RNG.integers(0, 40, (300, 1)), "x3": RNG.integers(-9, 9, (2, 3, 4, 3)).astype("i4"),
          "x2": RNG.standard_normal((300, 5)).astype(np.float32),
          "x4": RNG.integers(0, 3, (2, 10, 9, 2)).astype("i4"),
          "x5": RNG.integers(-9, 9, (2, 10, 9, 3)).astype("i4"),
          "x6": RNG.standard_normal((300, 1)).astype(np.float32)}
    for n in (100, 1, 0):
        xs |= {"x7": RNG.integers(0, 40, (n, 1)),
               "x8": RNG.standard_normal((n, 5)).astype(np.float32)}
        got = {name: y.copy() for name, y in model(**xs).items()}
        assert not faults(got, interp.run(m, xs), 1e-5, 1e-5)
        again = model(**xs)
        assert all(got[name].tobytes() == again[name].tobytes() for name in got)
