"""Branches and loops in compiled C and in the interpreter of programs, against the evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool import ops as o
from graphtool.dtypes import bool_, float32, int64
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify_module
from graphtool.loops import interp as loops
from graphtool.loops import serial
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.symbolic import Symbol, symbol_of
from graphtool.target import named
from tests.lower.compiling import compiled, faults, optimised

N = Symbol("n", 0, 64)


def f32(*shape: Any) -> TensorType:
    return TensorType(float32, shape)


FLAG, COUNT = TensorType(bool_, ()), TensorType(int64, ())
ROWS = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
SQUARE = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(4, 4)


def branch() -> Graph:
    then = trace(lambda x, y: (o.matmul(x, y), o.neg(x)), [f32(5, 4), f32(4, 4)])
    orelse = trace(lambda x, y: (o.mul(x, 2.0), x), [f32(5, 4), f32(4, 4)])

    def body(p: Any, x: Any, y: Any) -> Any:
        a, b = o.cond(p, o.exp(x), y, then=then, orelse=orelse)
        return o.add(a, b), b
    return trace(body, [FLAG, f32(5, 4), f32(4, 4)], ["p", "x", "y"])


def collatz() -> Graph:
    """How many steps until 1, and the largest number on the way."""
    types = [COUNT, COUNT, COUNT]
    cond = trace(lambda n, k, top: o.gt(n, 1), types)

    def step(n: Any, k: Any, top: Any) -> Any:
        even = o.eq(o.mod(n, 2), 0)
        new = o.select(even, o.div(n, 2), o.add(o.mul(n, 3), 1))
        return new, o.add(k, 1), o.max(top, new)
    body = trace(step, types)
    return trace(lambda n: o.while_(n, o.sub(n, n), n, cond=cond, body=body, carries=3),
                 [COUNT], ["n"])


def powers() -> Graph:
    """A matrix product at each iteration, the matrix standing outside."""
    types = [f32(5, 4), COUNT, f32(4, 4)]
    cond = trace(lambda x, k, w: o.gt(k, 0), types)
    body = trace(lambda x, k, w: (o.tanh(o.matmul(x, w)), o.sub(k, 1)), types)
    return trace(lambda x, k, w: o.while_(x, k, w, cond=cond, body=body, carries=2),
                 types, ["x", "k", "w"])


def recurrent(reverse: bool, length: Any = 5) -> Graph:
    """State and rows; the rows that come out are kept."""
    types = [f32(4), f32(4), f32(4, 4)]

    def cell(h: Any, x: Any, w: Any) -> Any:
        new = o.tanh(o.add(o.reshape(o.matmul(o.reshape(h, shape=(1, 4)), w), shape=(4,)), x))
        return new, o.reshape(o.mul(new, x), shape=(2, 2)), h
    body = trace(cell, types)
    return trace(lambda h, xs, w: o.scan(h, xs, w, body=body, carries=1, xs=1, length=length,
                                         reverse=reverse),
                 [f32(4), f32(length, 4), f32(4, 4)], ["h", "xs", "w"])


def nested() -> Graph:
    """In each iteration of a scan a branch, and in one side of it a loop."""
    types = [COUNT, f32(4)]
    cond = trace(lambda k, x: o.lt(k, 3), types)
    double = trace(lambda k, x: (o.add(k, 1), o.mul(x, 2.0)), types)
    then = trace(lambda h, k: o.while_(k, h, cond=cond, body=double, carries=2)[1],
                 [f32(4), COUNT])
    orelse = trace(lambda h, k: o.neg(h), [f32(4), COUNT])

    def cell(h: Any, x: Any, k: Any) -> Any:
        up = o.gt(o.reshape(o.reduce_sum(x, axes=(0,)), shape=()), 0.0)
        (new,) = o.cond(up, o.add(h, x), k, then=then, orelse=orelse)
        return new, new
    body = trace(cell, [f32(4), f32(4), COUNT])
    return trace(lambda h, xs, k: o.scan(h, xs, k, body=body, carries=1, xs=1, length=5),
                 [f32(4), f32(5, 4), COUNT], ["h", "xs", "k"])


def shifted() -> Graph:
    """The last six numbers are carried, once where only the concat reads them, once where what
    comes behind it reads them too, and once where all of it is arithmetic."""
    def cell(g: Any, h: Any, k: Any, x: Any) -> Any:
        a, b, c = (o.concat(v, x, axis=0) for v in (g, h, k))
        y = o.reduce_sum(o.mul(a, b), axes=(0,))
        return (a.take(0, 4, 10), b.take(0, 4, 10), o.neg(c).take(0, 4, 10),
                o.add(h, y), o.exp(c))
    body = trace(cell, [f32(6)] * 3 + [f32(4)])
    return trace(lambda g, h, k, xs: o.scan(g, h, k, xs, body=body, carries=3, xs=1, length=5),
                 [f32(6)] * 3 + [f32(5, 4)], ["g", "h", "k", "xs"])


ZERO = np.zeros((), np.int64)
CASES: dict[str, tuple[Graph, list[dict[str, Any]]]] = {
    "branch": (branch(), [{"p": np.asarray(p), "x": ROWS, "y": SQUARE} for p in (True, False)]),
    "collatz": (collatz(), [{"n": np.asarray(n)} for n in (1, 27, 97)]),
    "powers": (powers(), [{"x": ROWS, "k": np.asarray(k), "w": SQUARE} for k in (0, 1, 6)]),
    "scan": (recurrent(False), [{"h": ROWS[1], "xs": ROWS, "w": SQUARE}]),
    "scan reversed": (recurrent(True), [{"h": ROWS[1], "xs": ROWS, "w": SQUARE}]),
    "scan of an open length": (recurrent(False, symbol_of(N)), [
        {"h": ROWS[1], "xs": ROWS[:k], "w": SQUARE} for k in (0, 1, 5)]),
    "shifted": (shifted(), [{"g": ROWS.reshape(-1)[:6], "h": ROWS.reshape(-1)[3:9],
                             "k": ROWS.reshape(-1)[9:15], "xs": ROWS}]),
    "nested": (nested(), [{"h": ROWS[0], "xs": ROWS, "k": ZERO}]),
}


def module(graph: Graph) -> Module:
    free = {"n": N} if any("n" in str(v.type) for v in graph.inputs) else {}
    made = Module(graph, tuple(f"out{i}" for i in range(len(graph.outputs))), free)
    verify_module(made)
    return made


@pytest.mark.part(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("prepare", [lambda m: m, optimised], ids=["plain", "optimised"])
def test_compiled_code_equals_the_evaluator(name: str, prepare: Any, tmp_path: Path) -> None:
    graph, inputs = CASES[name]
    m = module(graph)
    model = compiled(prepare(m), tmp_path, target=named("native", threads=3), eager=True)
    model.threads = 3
    for given in inputs:
        assert faults(model.run(given), interp.run(m, given)) == []


@pytest.mark.parametrize("name", CASES)
def test_the_program_is_sound_and_survives_its_file(name: str) -> None:
    graph, inputs = CASES[name]
    program = lower(module(graph), named("native"))
    verify(program)
    text = serial.dumps(program)
    again = serial.loads(text)
    assert serial.dumps(again) == text
    for given in inputs:
        assert faults(loops.run(again, given, {}), interp.run(module(graph), given)) == []
