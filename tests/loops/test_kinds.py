"""One program with every kind of expression and statement, sent through all that reads the loop IR;
and expressions that are deeper than Python's stack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from graphtool.compile.as_is import build
from graphtool.dtypes import bool_, float32, float64, int64
from graphtool.emit.c import emit
from graphtool.emit.expr import ExprPrinter
from graphtool.errors import InputError, InternalError
from graphtool.loops import interp, serial, totals, walk
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    Hook,
    If,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Buffer, Kernel, Param, Port, Program, Run
from graphtool.loops.verify import verify
from graphtool.loops.verify_memory import verify_memory
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol_of
from tests.loops.programs import TARGET

I, R, LANE = (Symbol(n, 0, 5, 6) for n in ("i0", "r0", "j0"))  # noqa: E741
COUNT = symbol_of(Symbol("count", 0))
ROW = tuple(Symbol(n, 0) for n in ("b", "m", "n"))
AT, ALONG = symbol_of(I), symbol_of(Symbol("j0", 0, None, COUNT))
X, ACC = Load("x0", AT, float32), Name("acc0", float32)
HALF = Apply("lt", (Index(AT, int64), Index(3, int64)), bool_)
TWICE = Apply("mul", (X, Const(2.0, float32)), float32)
PLACE = symbol_of(ROW[1]) * 3 + symbol_of(ROW[2]) + ALONG
PLUS = Apply("add", (Load("acc", ALONG, float32), Const(1.0, float32)), float32)
BODIES: tuple[tuple[Stmt, ...], ...] = (
    (Let("acc0", Const(0.0, float32), mutable=True),
     For(R, 6, "simd", (Accumulate("acc0", "add", Load("x0", symbol_of(R), float32)),),
         (("acc0", "add"),)),
     For(I, 6, "parallel", (Let("v0", TWICE), If(
         HALF, (Store("y0", AT, Name("v0", float32)),), (Store("y0", AT, ACC),))))),
    (Template("transpose", (("PLANES", 1), ("A", 2), ("B", 3), ("XB", 2)), (("X", "x0", 0),),
              ("x0",), ("y0",), (Hook("epilogue", ROW, (For(
                  Symbol("j0", 0, None, COUNT), COUNT, "simd", (Store("y0", PLACE, PLUS),)),)),)),))


def program(*bodies: tuple[Stmt, ...], ports: str = "yz") -> Program:
    """Each body computes six numbers from x and stores them in the next output."""
    params = (Param("x0", float32, True), Param("y0", float32, False))
    return Program(
        "model", (), (Port("x", float32, (6,)),), tuple(Port(p, float32, (6,)) for p in ports),
        (Buffer("in0", float32, 6, "input"),
         *(Buffer(f"out{i}", float32, 6, "output", slot=i) for i in range(len(ports)))),
        tuple(Kernel(f"k{i}", params, b) for i, b in enumerate(bodies)),
        tuple(Run(f"k{i}", ("in0", f"out{i}"), f"step {i}") for i in range(len(ports))))


ALL = program(*BODIES)
INPUT = np.arange(1, 7, dtype=np.float32)
WANT = {"y": [2, 4, 6, 21, 21, 21], "z": [2, 4, 6, 3, 5, 7]}


def kinds(p: Program) -> set[type]:
    found = [s for k in p.kernels for s in walk.statements(k.body)]
    return {type(x) for x in (*found, *walk.each(v for s in found for v in walk.values(s)))}


def test_every_kind_is_in_the_program() -> None:
    assert kinds(ALL) == {*get_args(Stmt), *get_args(Expr)}


def test_every_kind_is_read_alike(tmp_path: Path) -> None:
    verify(ALL)
    verify_memory(ALL)
    text = serial.dumps(ALL)
    again = serial.loads(text)
    assert serial.dumps(again) == text and emit(again) == emit(ALL)
    assert [k.body for k in again.kernels] == [*BODIES]
    results = (interp.run(again, {"x": INPUT}, {}),
               runtime.load(build(ALL, tmp_path / "b", target=TARGET)).run({"x": INPUT}))
    assert [{k: list(v) for k, v in r.items()} for r in results] == [WANT, WANT]


def test_every_access_is_counted() -> None:
    buffers = {b.name: b for b in ALL.buffers}
    moved = [totals.moved(r, k, buffers, frozenset())  # 6 numbers in and 6 out
             for r, k in zip(ALL.steps, ALL.kernels, strict=True) if isinstance(r, Run)]
    assert moved == [2 * 6 * 4, 2 * 6 * 4]


NO: Expr = Load("nowhere", 0, float32)
SPOILT: dict[type, Stmt] = {  # what the verifier finds only if it looks at this kind, or inside it
    Name: Store("y0", 0, Name("w", float32)), Index: Store("y0", 0, Index(AT, float64)),
    Load: Store("y0", 0, NO), Apply: Store("y0", 0, Apply("exp", (NO,), float32)),
    Const: Store("y0", 0, Const(1.0, float64)), Let: Let("v0", NO), Store: Store("y0", 7, X),
    Accumulate: Accumulate("acc0", "add", NO), For: For(I, 6, "simd", (Store("y0", AT, NO),)),
    If: If(Const(True, bool_), (), (Store("y0", 0, NO),)),
    Template: replace(BODIES[1][0], hooks=(Hook("epilogue", ROW, (Store("y0", 0, NO),)),))}


@pytest.mark.parametrize("kind", [*get_args(Expr), *get_args(Stmt)])
def test_a_fault_in_every_kind_is_found(kind: type) -> None:
    with pytest.raises(InputError):
        verify(program((BODIES[0][0], SPOILT[kind]), ports="y"))


def test_a_kind_without_a_form_in_c_is_an_error() -> None:
    with pytest.raises(InternalError, match="cannot be printed"):
        ExprPrinter({}).expr(BODIES[0][0])  # type: ignore[arg-type]


# ---- depth -------------------------------------------------------------------------------------

def deep(fn: str, levels: int = 3000) -> Program:
    """y[0] is x[0] to which so many functions were applied, none of them used twice."""
    e: Expr = Load("x0", 0, float32)
    for n in range(levels):
        other = Const(float(n % 7), float32)
        args = (HALF_TRUE, e, other) if fn == "select" else (e, other)
        e = Apply(fn, args, float32)
    return program((Store("y0", 0, e),), ports="y")


HALF_TRUE = Apply("lt", (Load("x0", 1, float32), Const(100.0, float32)), bool_)


@pytest.mark.parametrize(("fn", "want"), [("max", 6.0), ("select", 1.0)])
def test_depth_costs_no_stack(fn: str, want: float) -> None:
    p = deep(fn)
    verify(p)
    again = serial.loads(serial.dumps(p))
    assert again.kernels[0].body == p.kernels[0].body
    assert "gt_" in emit(again)["model_kernels0.c"]
    if fn != "select":
        assert interp.run(again, {"x": INPUT}, {})["y"][0] == want
    assert len(walk.each(walk.values(p.kernels[0].body[0]))) > 3000
