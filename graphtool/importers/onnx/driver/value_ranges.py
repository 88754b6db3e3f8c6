"""Value ranges: bounds of a computed number, derived from the nodes that compute it.

Bounds are numbers or dimensions; None means unknown. They are used for memory plans only: the node
that computes a tensor's size also checks it against its bound, so a wrong bound is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from graphtool.ir.graph import Node, Operand, Value
from graphtool.symbolic import Dim, Poly, bounds, floordiv, maximum, minimum, product

Bound = int | float | Poly | None
Span = tuple[Bound, Bound]  # the least and the most
Exact = Callable[[Value, int], Dim | None]
OPEN: Span = (None, None)
_DEPTH = 24  # nodes that are looked through
_SCANNED = 1 << 20  # elements of a constant that are looked at
_LETTING_THROUGH = frozenset({
    "size", "transpose", "broadcast", "reverse", "gather", "reduce_max", "reduce_min"})


def most_of(x: Value, made: Callable[[Value], Node | None], exact: Exact) -> Dim | None:
    """An upper bound of the numbers of x, as a dimension of at least 0, or None."""
    found = _whole(_Looker(made, exact).span(x, 0 if product(x.type.shape) == 1 else None)[1], True)
    return None if found is None else maximum(found, 0)


@dataclass(frozen=True)
class _Looker:
    made: Callable[[Value], Node | None]
    exact: Exact
    seen: dict[tuple[Value, int | None, int], Span] = field(default_factory=dict)

    def span(self, x: Operand, at: int | None, depth: int = 0) -> Span:
        """The range of element `at` of x; of all its elements if `at` is None."""
        if not isinstance(x, Value):
            return (x, x) if isinstance(x, (int, float)) and x == x else OPEN
        if (x, at, depth) not in self.seen:  # a value may be used twice at each level
            self.seen[x, at, depth] = self.value(x, at, depth)
        return self.seen[x, at, depth]

    def value(self, x: Value, at: int | None, depth: int) -> Span:
        """As `span`, of a value that was not looked at from this depth."""
        known = self.exact(x, at) if at is not None and x.type.dtype.is_integer else None
        if known is not None:
            return known, known
        node = self.made(x) if depth < _DEPTH else None
        found = OPEN if node is None else self.node(node, at, depth + 1)
        small = _of_type(x)
        ends = _numbers(small)
        inside = ends and _numbers(found) and all(
            ends[0] <= v <= ends[1] for v in _numbers(found))
        return found if inside or not ends else small

    def node(self, node: Node, at: int | None, depth: int) -> Span:
        def see(i: int) -> Span:
            x, out = node.inputs[i], node.outputs[0].type.shape
            same = isinstance(x, Value) and x.type.shape == out
            one = isinstance(x, Value) and product(x.type.shape) == 1
            return self.span(x, 0 if one else at if same else None, depth)
        match node.op.name:
            case "constant":
                return _constant(node, at)
            case "dim":
                return node.attrs["of"], node.attrs["of"]
            case "iota":
                return 0, node.attrs["shape"][node.attrs["axis"]] - 1
            case "arg_reduce":
                return 0, _axis(node, node.attrs["axis"]) - 1
            case "reshape":
                return self.span(node.inputs[0], at, depth)
            case "slice" | "concat":
                return self.part(node, at, depth)
            case "select":
                return _hull(see(1), see(2))
            case "clamp":
                return self.clamped(node, see)
            case "reduce_sum":
                return _product((0, product(map(_axis, repeat(node), node.attrs["axes"]))),
                                _hull((0, 0), see(0)))
            case "cast":
                return see(0) if node.outputs[0].type.dtype.is_float else _rounded(see(0))
            case name if name in _LETTING_THROUGH:
                return see(0)
            case name if name in _ONE:
                return _ONE[name](see(0))
            case name if name in _TWO:
                whole = node.outputs[0].type.dtype.is_integer
                return _TWO[name](see(0), see(1), whole)
        return OPEN

    def part(self, node: Node, at: int | None, depth: int) -> Span:
        """The range of one element of a sliced or joined vector; of all for higher ranks."""
        if at is not None and node.outputs[0].type.rank == 1:
            if node.op.name == "slice" and isinstance(node.attrs["start"][0], int):
                at = node.attrs["start"][0] + at * node.attrs["strides"][0]
                return self.span(node.inputs[0], at, depth)
            for x in node.inputs if node.op.name == "concat" else ():
                n = x.type.shape[0] if isinstance(x, Value) else None
                if not isinstance(n, int):
                    break
                if at < n:
                    return self.span(x, at, depth)
                at -= n
        return _hull(*(self.span(x, None, depth) for x in node.inputs))

    def clamped(self, node: Node, see: Callable[[int], Span]) -> Span:
        span = see(0)
        if node.inputs[1] is not None:
            span = _larger(span, see(1), True)
        return span if node.inputs[2] is None else _smaller(span, see(2), True)


def _of_type(x: Value) -> Span:
    """The range that a dtype of at most 16 bits implies."""
    d = x.type.dtype
    if d.kind == "bool":
        return 0, 1
    if not d.is_integer or d.bits > 16:
        return OPEN
    return d.low, d.high


def _constant(node: Node, at: int | None) -> Span:
    data = node.attrs["data"]
    if not 0 < data.size <= _SCANNED or data.dtype.kind == "string":
        return OPEN
    flat = np.asarray(data.source).reshape(-1).astype(
        np.float64 if data.dtype.is_float else np.int64)
    part = flat if at is None else flat[at:at + 1]
    return OPEN if np.isnan(part).any() else (part.min().item(), part.max().item())


def _axis(node: Node, axis: int) -> Dim:
    x = node.inputs[0]
    assert isinstance(x, Value)
    return x.type.shape[axis]


# ---- arithmetic of bounds ----------------------------------------------------------------------

def _whole(v: Bound, up: bool) -> Dim | None:
    """The bound rounded outwards to an integer."""
    if isinstance(v, float):
        return None if not math.isfinite(v) else math.ceil(v) if up else math.floor(v)
    return v


def _join(fn: Callable[[Any, Any], Any], a: Bound, b: Bound, up: bool) -> Bound:
    if isinstance(a, Poly) or isinstance(b, Poly):
        a, b = _whole(a, up), _whole(b, up)
    return None if a is None or b is None else fn(a, b)


def _least(a: Any, b: Any) -> Any:
    return minimum(a, b) if isinstance(a, Poly) or isinstance(b, Poly) else min(a, b)


def _most(a: Any, b: Any) -> Any:
    return maximum(a, b) if isinstance(a, Poly) or isinstance(b, Poly) else max(a, b)


def _hull(*spans: Span) -> Span:
    low, high = spans[0]
    for a, b in spans[1:]:
        low, high = _join(_least, low, a, False), _join(_most, high, b, True)
    return low, high


def _sum(a: Span, b: Span, _: bool) -> Span:
    return (_join(lambda x, y: x + y, a[0], b[0], False),
            _join(lambda x, y: x + y, a[1], b[1], True))


def _negative(a: Span) -> Span:
    return (None if a[1] is None else -a[1]), (None if a[0] is None else -a[0])


def _smaller(a: Span, b: Span, _: bool) -> Span:
    high = b[1] if a[1] is None else a[1] if b[1] is None else _join(_least, a[1], b[1], True)
    return _join(_least, a[0], b[0], False), high


def _larger(a: Span, b: Span, _: bool) -> Span:
    low = b[0] if a[0] is None else a[0] if b[0] is None else _join(_most, a[0], b[0], False)
    return low, _join(_most, a[1], b[1], True)


def _numbers(a: Span) -> tuple[int | float, ...]:
    """Both bounds if they are numbers, else ()."""
    both = tuple(v for v in a if isinstance(v, (int, float)))
    return both if len(both) == 2 else ()


def _positive(a: Span) -> bool:
    """Whether no number of the range is below 0."""
    least = bounds(a[0])[0] if isinstance(a[0], Poly) else a[0]
    return least is not None and least >= 0


def _product(a: Span, b: Span, _: bool = True) -> Span:
    left, right = _numbers(a), _numbers(b)
    if left and right:
        ends = [x * y for x in left for y in right]
        return (min(ends), max(ends)) if not any(e != e for e in ends) else OPEN
    for x, y in ((a, b), (b, a)):
        if _positive(x) and not _positive(y):  # at most as far from 0 on either side
            far = _join(_most, y[1], 0, True)
            return None, _join(lambda p, q: p * q, x[1], far, True)
    if not (_positive(a) and _positive(b)):
        return OPEN
    return 0, _join(lambda p, q: p * q, a[1], b[1], True)


def _quotient(a: Span, b: Span, whole: bool) -> Span:
    """The range of a quotient; integers truncate towards 0."""
    if whole:
        return _integer_quotient(a, b)
    match b:
        case (int() | float() as low, int() | float() as high) if low > 0 or high < 0:
            return _product(a, (1 / high, 1 / low))
    return OPEN


def _integer_quotient(a: Span, b: Span) -> Span:
    if not _positive(b):
        far = _join(_most, a[1], _negative(a)[1], True)
        return _negative(_integer_quotient(a, _negative(b))) if _positive(_negative(b)) else (
            _negative((None, far))[0], far)
    least = b[0] if isinstance(b[0], int) and b[0] > 0 else 1

    def share(v: Bound) -> Bound:
        whole = _whole(v, True)
        return None if whole is None else floordiv(maximum(whole, 0), least)
    return _negative((None, share(_negative(a)[1])))[0], share(a[1])


def _remainder(a: Span, b: Span, whole: bool) -> Span:
    high = _whole(b[1], True)
    if not whole or high is None or not _positive(b):
        return OPEN
    return (0 if _positive(a) else 1 - high), high - 1


def _modulo(a: Span, b: Span, whole: bool) -> Span:
    return (0, _remainder(a, b, whole)[1]) if _positive(b) else OPEN


def _rounded(a: Span) -> Span:
    return _whole(a[0], False), _whole(a[1], True)


def _distance(a: Span) -> Span:
    return 0, _join(_most, a[1], _negative(a)[1], True)


_ONE: dict[str, Callable[[Span], Span]] = {
    "neg": _negative, "abs": _distance, "floor": _rounded, "ceil": _rounded, "round": _rounded,
    "trunc": _rounded, "sigmoid": lambda _: (0, 1), "tanh": lambda _: (-1, 1)}
_TWO: dict[str, Callable[[Span, Span, bool], Span]] = {
    "add": _sum, "sub": lambda a, b, w: _sum(a, _negative(b), w), "mul": _product,
    "div": _quotient, "min": _smaller, "max": _larger, "rem": _remainder, "mod": _modulo}
