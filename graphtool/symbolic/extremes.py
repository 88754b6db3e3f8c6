"""Minimum and maximum of two sizes, and division that rounds up."""

from __future__ import annotations

from typing import Literal

from graphtool.symbolic.intervals import bounds
from graphtool.symbolic.poly import Call, Dim, below, floordiv, single_call, symbol_of
from graphtool.symbolic.text import text


def ceildiv(a: Dim, b: Dim) -> Dim:
    """⌈a / b⌉ for b > 0."""
    return -floordiv(-a, b) if isinstance(a, int) else floordiv(a + b - 1, b)


def minimum(a: Dim, b: Dim) -> Dim:
    """min(a, b): a or b if their bounds decide, else an irreducible Call."""
    return _extreme("min", a, b)


def maximum(a: Dim, b: Dim) -> Dim:
    """max(a, b): a or b if their bounds decide, else an irreducible Call."""
    return _extreme("max", a, b)


def _extreme(fn: Literal["min", "max"], a: Dim, b: Dim) -> Dim:
    lo, hi = bounds(a - b)
    if hi is not None and hi <= 0:
        return a if fn == "min" else b
    if lo is not None and lo >= 0:
        return b if fn == "min" else a
    for whole, part in ((a, b), (b, a)):  # max(max(a, b), b)
        if part in _operands(fn, whole):
            return whole
    for least, most in ((a, b), (b, a)):
        if least != 0 and below(least, most + 1):  # an iterator and the end of its own range
            return least if fn == "min" else most
    first, second = sorted((a, b), key=text)
    return symbol_of(Call(fn, first, second))


def _operands(fn: Literal["min", "max"], d: Dim) -> list[Dim]:
    """What a minimum or a maximum is one of, those inside it too."""
    call = None if isinstance(d, int) else single_call(d, fn)
    return [] if call is None else [x for e in (call.a, call.b) for x in (e, *_operands(fn, e))]
