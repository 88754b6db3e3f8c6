"""Sizes that data decide: evaluator, interpreter of programs and compiled C agree on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool import ops as o
from graphtool.dtypes import float32, int64
from graphtool.errors import InputError
from graphtool.ir import serial as graphs
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.run_sizes import at_most
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify_module
from graphtool.loops import interp as loops
from graphtool.loops import serial
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.symbolic import Dim, Symbol, floordiv, maximum, minimum, symbol, symbol_of
from graphtool.target import named
from tests.lower.compiling import compiled, faults, optimised

B = Symbol("B", 0, 64)
COUNT = TensorType(int64, ())


def f32(*shape: Any) -> TensorType:
    return TensorType(float32, shape)


def head(x: Any, n: Dim, columns: int = 1) -> Any:
    """The first rows of coordinates."""
    return o.slice(x, start=(0, 0), limit=(n, columns), strides=(1, 1))


def kept_rows(rows: Dim) -> Graph:
    """The rows with a positive sum, through a product and a softmax."""
    n = symbol("kept", 0, 64)

    def body(x: Any, w: Any) -> Any:
        total = o.reshape(o.reduce_sum(x, axes=(1,)), shape=(rows,))
        at = o.nonzero(o.gt(total, 0.0), size=n)
        y = o.softmax(o.matmul(o.gather(x, at, axes=(0,)), w), axis=1)
        return o.add(y, 1.0), o.reduce_sum(y, axes=(0,)), at
    return trace(body, [f32(rows, 4), f32(4, 4)], ["x", "w"])


def counting() -> Graph:
    """0, 2, 4, … of a computed length, beside a matrix of two computed sizes."""
    n, m = symbol("n", 0, 9), symbol("m", 0, 5)

    def body(a: Any, b: Any) -> Any:
        o.size(a, size=n, most=9)
        o.size(b, size=m, most=5)
        line = a.builder.emit(o.iota, (), {"shape": (n,), "axis": 0, "dtype": int64})
        table = o.broadcast(o.reshape(line, shape=(n, 1)), shape=(n, m))
        return o.mul(line, 2), o.transpose(o.add(table, a), perm=(1, 0))
    return trace(body, [COUNT, COUNT], ["a", "b"])


def in_a_loop() -> Graph:
    """Each iteration keeps what is above its bound, and adds that up."""
    types = [COUNT, TensorType(float32, (1,)), f32(6)]
    n = symbol("above", 0, 6)

    def step(k: Any, s: Any, x: Any) -> Any:
        at = o.nonzero(o.gt(x, o.cast(k, dtype=float32)), size=n)
        return o.sub(k, 1), o.add(s, o.reduce_sum(o.gather(x, at, axes=(0,)), axes=(0,)))
    cond = trace(lambda k, s, x: o.gt(k, -3), types)
    body = trace(step, types)
    return trace(lambda k, s, x: o.while_(k, s, x, cond=cond, body=body, carries=2), types,
                 ["k", "s", "x"])


def parted() -> Graph:
    """A reshape by computed numbers: the last is what the others leave."""
    a, b = symbol("a", 1, 24), symbol("b", 1, 24)

    def body(x: Any, n: Any, m: Any) -> Any:
        o.size(n, size=a, most=24)
        o.size(m, size=b, most=24)
        y = o.reshape(x, shape=(a, b, floordiv(24, a * b)))
        return o.mul(y, 2.0), o.transpose(y, perm=(2, 0, 1))
    return trace(body, [f32(2, 3, 4), COUNT, COUNT], ["x", "n", "m"])


X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)[[3, 0, 5, 1, 4, 2]]
W = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(4, 4)
CASES: dict[str, tuple[Graph, list[dict[str, Any]]]] = {
    "rows": (kept_rows(6), [{"x": x, "w": W} for x in (X, abs(X), -abs(X))]),
    "rows of an open batch": (kept_rows(symbol_of(B)), [
        {"x": x, "w": W} for x in (X, X[:1], X[:0], abs(X))]),
    "counted": (counting(), [{"a": np.asarray(a), "b": np.asarray(b)}
                             for a, b in ((9, 5), (0, 3), (4, 0), (7, 1))]),
    "a loop": (in_a_loop(), [{"k": np.asarray(2), "s": np.zeros(1, np.float32),
                              "x": X.reshape(-1)[:6] * k} for k in (1, 3)]),
    "parted": (parted(), [{"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
                           "n": np.asarray(n), "m": np.asarray(m)}
                          for n, m in ((2, 3), (24, 1), (1, 1), (4, 6))]),
}


def module(graph: Graph) -> Module:
    free = {"B": B} if any("B" in str(v.type) for v in graph.inputs) else {}
    made = Module(graph, tuple(f"out{i}" for i in range(len(graph.outputs))), free)
    verify_module(made)
    return made


@pytest.mark.part(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 3])
def test_compiled_code_equals_the_evaluator(name: str, threads: int, tmp_path: Path) -> None:
    graph, inputs = CASES[name]
    m = module(graph)
    model = compiled(optimised(m), tmp_path, target=named("native", threads=threads),
                     eager=threads > 1)
    model.threads = threads
    for given in inputs:
        assert faults(model.run(given), interp.run(m, given)) == []


@pytest.mark.parametrize("name", CASES)
def test_the_files_say_the_same(name: str) -> None:
    graph, inputs = CASES[name]
    text = graphs.dumps(module(graph), embed=True)
    again = graphs.loads(text)
    assert graphs.dumps(again, embed=True) == text
    m = optimised(again)
    program = lower(m, named("native"))
    verify(program)
    written = serial.dumps(program)
    assert serial.dumps(serial.loads(written)) == written
    held = {w.digest: w for w in graphs.collect_all(m.graph)}
    if not any(k.body and "template" in str(type(k.body[0])).lower() for k in program.kernels):
        for given in inputs:
            got = loops.run(serial.loads(written), given, held)
            assert faults(got, interp.run(module(graph), given)) == []


def test_a_size_beyond_its_bound_is_refused(tmp_path: Path) -> None:
    m = module(counting())
    given = {"a": np.asarray(10), "b": np.asarray(0)}
    with pytest.raises(InputError, match=r"n = 10|is 10"):
        interp.run(m, given)
    model = compiled(optimised(m), tmp_path)
    with pytest.raises(InputError, match=r"GT2221.*\n.*n_? = 10"):
        model.run(given)
    assert model.run({"a": np.asarray(2), "b": np.asarray(1)})["out0"].tolist() == [0, 2]


def test_a_size_without_a_bound_runs_in_the_evaluator_only() -> None:
    n = symbol("n", 0)

    def body(a: Any) -> Any:
        o.size(a, size=n)
        return a.builder.emit(o.iota, (), {"shape": (n,), "axis": 0, "dtype": int64})
    m = module(trace(body, [COUNT], ["a"]))
    assert interp.run(m, {"a": np.asarray(3)})["out0"].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"GT2005.*n_? has no upper bound"):
        lower(m, named("native"))


def test_a_constant_size_is_a_number() -> None:
    def body(x: Any) -> Any:
        mask = x.builder.constant(np.array([True, False, True, True]))
        return o.gather(x, o.nonzero(mask, size=symbol("n", 0, 4)), axes=(0,))
    m = optimised(module(trace(body, [f32(4)], ["x"])))
    assert m.graph.outputs[0].type == f32(3)
    assert "size" not in {n.op.name for n in m.graph.nodes}


N, M = symbol("n", 0), symbol("m", 1)
BOUNDS = [  # where n is at most 2·B and m at most 8
    (N + M, 2 * symbol_of(B) + 8), (N * M, 16 * symbol_of(B)), (floordiv(N, 2), symbol_of(B)),
    (N * floordiv(24, N), 24), (N * M * floordiv(24, N * M), 24),
    (N * floordiv(24, maximum(N, 1)), 24), (minimum(N, 3), 3),
    (maximum(M, 9), 9), (10 - N, 10), (N * -1 + M, 8), (N % M, 7)]


@pytest.mark.parametrize(("d", "most"), BOUNDS)
def test_bounds_of_sizes(d: Dim, most: Dim) -> None:
    found = at_most(d, {"n": 2 * symbol_of(B), "m": 8})
    assert found == most or (found == minimum(2 * symbol_of(B), 3) and most == 3)


def test_what_nothing_bounds() -> None:
    assert at_most(N + 1, {"n": None}) is None
    assert at_most(minimum(N, 7), {"n": None}) == 7
