"""Loops as people read them: operators with few parentheses, kinds of loops, templates."""

from __future__ import annotations

import pytest

from graphtool import dtypes
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
from graphtool.loops.text import expression, statements
from graphtool.symbolic import Symbol, symbol_of

F, B, H = dtypes.float32, dtypes.bool_, dtypes.float16
ITER = Symbol("i", 0, None)
i = symbol_of(ITER)
x, a, b = Load("x", 4 * i + 1, F), Name("a", F), Name("b", F)


def call(fn: str, *args: Expr, to: dtypes.DType = F) -> Apply:
    return Apply(fn, args, to)


EXPRESSIONS = [
    (Const(0.1, F), "0.1"), (Const(-float("inf"), F), "-inf"), (Const(True, B), "True"),
    (Const(3, dtypes.int64), "3"), (x, "x[4*i + 1]"), (Index(i + 1, dtypes.int64), "i + 1"),
    (call("mul", call("add", a, b), x), "(a + b) * x[4*i + 1]"),
    (call("sub", a, call("sub", b, x)), "a - (b - x[4*i + 1])"),
    (call("sub", call("sub", a, b), x), "a - b - x[4*i + 1]"),
    (call("mul", Index(i + 1, F), a), "(i + 1) * a"),
    (call("exp", call("neg", a)), "exp(-a)"), (call("max", a, b), "max(a, b)"),
    (call("select", call("le", a, b, to=B), a, b), "a <= b ? a : b"),
    (call("add", call("select", a, a, b), b), "(a ? a : b) + b"),
    (call("cast", a, to=H), "f16(a)"), (call("bitcast", a, to=dtypes.int32), "bits_as_i32(a)"),
]


@pytest.mark.parametrize(("e", "text"), EXPRESSIONS, ids=[t for _, t in EXPRESSIONS])
def test_expressions(e: Expr, text: str) -> None:
    assert expression(e) == text


def test_chained_values_stay_linear() -> None:
    """A value that is used twice at each level is printed twice, but visited once."""
    e: Expr = a
    for _ in range(12):
        e = call("add", e, e)
    assert expression(e).count("a") == 2**12


HOOK = Hook("EPILOGUE", (Symbol("m", 0, None),), (Store("y", i, a),))
BLOCKS: list[tuple[Stmt, list[str]]] = [
    (For(ITER, 4, "serial", (Store("y", i, x),)), ["for i < 4", "  y[i] = x[4*i + 1]"]),
    (For(ITER, 8, "parallel simd", (), (("acc", "add"),)), ["parallel simd for i < 8, acc by add"]),
    (Let("v", a), ["v = a"]), (Let("v", a, mutable=True), ["var v = a"]),
    (Accumulate("acc", "max", a), ["acc = max(acc, a)"]), (Accumulate("acc", None, a), ["acc = a"]),
    (Accumulate("acc", "add", call("mul", a, b)), ["acc = acc + a * b"]),
    (If(Name("c", B), (Let("v", a),)), ["if c", "  v = a"]),
    (If(Name("c", B), (Let("v", a),), (Let("v", b),)), ["if c", "  v = a", "else", "  v = b"]),
    (Template("gemm", (("M", i), ("ROWS", True), ("SCALE", 0.5), ("TYPE", F), ("KEYS", "all")),
              (("A", "x", 0), ("WORK", "s", 16 * i)), ("x",), ("s",), (HOOK,)),
     ["template gemm(M=i, ROWS=true, SCALE=0.5, TYPE=f32, KEYS=all)", "  A is x, read",
      "  WORK is s + 16*i, written", "  epilogue of a row at m: acc[count], f32",
      "    y[i] = a"]),
]


@pytest.mark.parametrize(("statement", "lines"), BLOCKS, ids=[t[0] for _, t in BLOCKS])
def test_statements(statement: Stmt, lines: list[str]) -> None:
    assert list(statements((statement,))) == lines
    assert list(statements((statement,), "  ")) == [f"  {one}" for one in lines]
