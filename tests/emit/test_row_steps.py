"""Loops over short rows run for several rows before the next loop begins, wherever one row touches
nothing that another stores; no bit depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.emit.kept_rows import Block
from graphtool.emit.row_steps import in_steps
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops.ir import Accumulate, Const, For, Index, Let, Load, Name, Stmt, Store
from graphtool.loops.pull import iterator
from graphtool.native import runtime
from graphtool.symbolic import Dim, Symbol, symbol_of
from graphtool.target import named

F32, ZERO = dtypes.float32, Const(0.0, dtypes.float32)


def norm(x: Any) -> Any:
    centred = x - o.reduce_mean(x, axes=(1,))
    return centred * o.rsqrt(o.reduce_mean(centred * centred, axes=(1,)) + 1e-5)


FUNCTIONS = {"softmax": lambda x: o.softmax(x, axis=-1), "norm": norm}


@pytest.mark.parametrize(("name", "shape", "march", "precision"), [
    ("softmax", (19, 12), "native", "default"), ("softmax", (33, 33), "x86-64-v3", "default"),
    ("softmax", (33, 197), "native", "strict"),
    ("softmax", (19, Symbol("t", 1)), "native", "default"),
    ("norm", (1, 40), "native", "default"), ("norm", (Symbol("n", 0), 23), "native", "default"),
    ("norm", (33, 208), "x86-64", "default")])
def test_agrees_with_the_evaluator(name: str, shape: tuple[Dim | Symbol, ...], march: str,
                                   precision: str, tmp_path: Path) -> None:
    sizes = tuple(symbol_of(d) if isinstance(d, Symbol) else d for d in shape)
    graph = trace(FUNCTIONS[name], [TensorType(F32, sizes)], ["x"])
    target = named(march, 2)
    dims = {d.name: d for d in shape if isinstance(d, Symbol)}
    module = passes.run(Module(graph, ("y",), dims),
                        supply={"target": target, "precision": precision})
    built = build(module, tmp_path / "build", target=target, jobs=2)
    assert ("_first += " in "".join(p.read_text() for p in built.glob("*_kernels*.c"))) is (
        shape[0] != 1), built
    for d in (1, 208, 209) if dims else (0,):
        at: Any = tuple(d if isinstance(x, Symbol) else x for x in shape)
        x = np.random.default_rng(0).normal(0, 3, at).astype(np.float32)
        x[3:4, -1], x[5:6, 0], x[6:7], x[8:9] = np.nan, np.inf, -np.inf, 1e-42
        with np.errstate(all="ignore"):
            want = interp.run(module, {"x": x})["y"]
        for threads in (1, 2):
            got = runtime.load(built, threads).run({"x": x})["y"]
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


ROW, R, J = (iterator(name, n) for name, n in (("i0", 6), ("r0", 4), ("j0", 4)))
i, r, j = map(symbol_of, (ROW, R, J))
ADDED = For(R, 4, "simd", (Accumulate("acc0", "add", Load("x0", 4 * i + r, F32)),))
SUM = Let("acc0", ZERO, True), ADDED
TOTAL = Name("acc0", F32)


def stored(at: Dim, value: Load | Name = TOTAL) -> Stmt:
    return For(J, 4, "simd", (Store("y0", at, value),))


AT = Symbol("v0")
CASES: dict[str, tuple[tuple[Stmt, ...], bool]] = {
    "rows": ((*SUM, stored(4 * i + j)), True),
    "rows with gaps": ((*SUM, stored(5 * i + j)), True),
    "an index by name": ((Let("v0", Index(2 * i, dtypes.int64)), *SUM, stored(4 * i + j, Load(
        "x0", symbol_of(AT) + j, F32))), True),
    "rows that overlap": ((*SUM, stored(3 * i + j)), False),
    "the row before": ((*SUM, stored(4 * i + j, Load("y0", 4 * i + j + 4, F32))), False),
    "one row for all": ((*SUM, stored(j)), False),
    "a place that is computed": ((Let("v0", Index(4 * i, dtypes.int64)), *SUM,
                                  stored(symbol_of(AT) + j)), False),
    "a sum that goes on": ((*SUM, ADDED, stored(4 * i + j)), False),
    "a truth for later": ((Let("v0", Const(True, dtypes.bool_)), *SUM, For(J, 4, "simd", (
        Store("y1", 4 * i + j, Name("v0", dtypes.bool_)),))), False),
    "no sum": ((stored(4 * i + j, Load("x0", i, F32)),) * 2, False),
    "one loop": (SUM, False),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_of_which_none_touches_what_another_stores(case: str) -> None:
    body, fits = CASES[case]
    assert (in_steps(For(ROW, 6, "serial", body), Block(body)) is not None) is fits


def test_long_rows_are_alone() -> None:
    long = iterator("r0", 209)
    body = (SUM[0], For(long, 209, "simd", ADDED.body), stored(4 * i + j))
    assert in_steps(For(ROW, 6, "serial", body), Block(body)) is None
