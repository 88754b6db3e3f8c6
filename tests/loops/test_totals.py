"""Totals of programs worked out by hand."""

from __future__ import annotations

import pytest

from graphtool import dtypes
from graphtool.loops.ir import Const, Store
from graphtool.loops.program import Buffer, Kernel, Param, Program, Repeat, Run, Step, Times
from graphtool.loops.totals import Totals, totals
from graphtool.symbolic import Symbol, symbol, symbol_of

F = dtypes.float32
N = Symbol("n", 1, None)


def buffer(name: str, size: int, label: str = "") -> Buffer:
    return Buffer(name, F, size, "arena", label=label)


def store(number: int) -> Kernel:
    """A kernel that writes one element."""
    return Kernel(f"k{number}", (Param("y", F, False),), (Store("y", 0, Const(0.0, F)),))


def program(*steps: Step) -> Program:
    return Program("p", (N,), (), (), (buffer("a", 4), buffer("s", 8, "scratch of a")),
                   (store(0), store(1)), steps, 48)


RUN, OTHER, SCRATCH = Run("k0", ("a",)), Run("k1", ("a",)), Run("k0", ("s",))
INNER = Symbol("i", 0, None)
n = symbol_of(N)
CASES: list[tuple[tuple[Step, ...], Totals]] = [
    ((), Totals(0, 0, 0, 48, 0)),
    ((RUN, RUN, OTHER), Totals(3, 2, 12, 48, 0)),
    ((SCRATCH,), Totals(1, 1, 4, 48, 32)),
    ((Times(INNER, 5, (RUN,)),), Totals(1, 1, 20, 48, 0)),
    ((Times(INNER, n, (RUN, OTHER)),), Totals(2, 2, 8 * n, 48, 0)),
    ((Repeat("a", (OTHER,), (RUN,)),), Totals(2, 2, 8, 48, 0)),
    ((Times(INNER, symbol("found", 0, None), (RUN,)),), Totals(1, 1, 4, 48, 0)),
]


@pytest.mark.parametrize(("steps", "expected"), CASES)
def test_totals(steps: tuple[Step, ...], expected: Totals) -> None:
    assert totals(program(*steps)) == expected
