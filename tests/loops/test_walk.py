"""Equal expressions are one object, and one walker visits and rebuilds them."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from graphtool.dtypes import float32, int64
from graphtool.loops import interned, walk
from graphtool.loops.ir import Apply, Const, Expr, For, If, Let, Load, Name, Store
from graphtool.loops.program import Run, Times, runs
from graphtool.loops.pull import iterator
from graphtool.symbolic import Symbol, symbol_of

I = iterator("i", 8)  # noqa: E741
X = Load("x", symbol_of(I), float32)
SQUARE = Apply("mul", (X, X), float32)
BODY = (For(I, 8, "simd", (Let("v", SQUARE), Store("y", symbol_of(I), Name("v", float32)))),)


def test_equal_expressions_are_one_object() -> None:
    again = Load("x", symbol_of(iterator("i", 8)), float32)
    assert again is X
    assert Apply("mul", (again, again), float32) is SQUARE
    assert replace(SQUARE, fn="add") is Apply("add", (X, X), float32)
    assert Load("x", 0, float32) is not X


def test_numbers_that_compare_equal_are_not_one() -> None:
    made = [Const(x, float32) for x in (1, 1.0, True, 0.0, -0.0, float("nan"))]
    assert len(set(made)) == len(made)
    assert Const(float("nan"), float32) is made[-1]
    assert Const(1, int64) is not made[0]


@pytest.mark.long
def test_the_table_forgets_what_nothing_holds() -> None:
    gc.collect()
    before = len(interned._MADE)
    many: list[Expr] = [Const(n, int64) for n in range(10_000, 11_000)]
    assert len(interned._MADE) == before + len(many)
    many.clear()
    gc.collect()
    assert len(interned._MADE) == before


def test_threads_make_the_same_objects() -> None:
    def chain(_: int) -> Expr:
        x: Expr = Const(0.5, float32)
        for n in range(200):
            x = Apply("add", (x, Const(n, float32)), float32)
        return x
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(chain, range(32)))) == 1


def test_each_expression_is_visited_once_operands_first() -> None:
    x: Expr = X
    for _ in range(60):  # as a tree this would be 2⁶⁰ visits
        x = Apply("add", (x, x), float32)
    assert walk.each([x])[0] is X
    assert len(walk.each([x])) == 61
    assert walk.use_counts([x])[X] == 2


def test_what_does_not_change_stays_itself() -> None:
    assert walk.mapped(SQUARE, lambda e: e) is SQUARE
    assert walk.renamed(BODY, lambda b: b) == BODY
    assert walk.mapped(SQUARE, lambda e: e, {X: Name("v", float32)}) is Apply(
        "mul", (Name("v", float32), Name("v", float32)), float32)


def test_operands_that_are_left_out_stay() -> None:
    chosen = Apply("select", (Name("c", float32), X, X), float32)
    new = walk.mapped(chosen, lambda e: Name("seen", float32) if not walk.operands(e) else e,
                      below=lambda e: walk.operands(e)[:1])
    assert new is Apply("select", (Name("seen", float32), X, X), float32)


def test_buffers_in_order_of_the_text_and_under_other_names() -> None:
    assert walk.accesses(BODY) == [("x", False), ("y", True)]
    other = walk.renamed((If(X, BODY),), str.upper)
    assert walk.accesses(other) == [("X", False), ("Y", True)]
    assert [type(s).__name__ for s in walk.statements(other)] == ["If", "For", "Let", "Store"]


def test_steps_inside_loops_are_found() -> None:
    inner = Run("k0", ())
    assert list(runs([Times(Symbol("t", 0, 3), 4, (inner,)), inner])) == [inner, inner]
