"""Arithmetic on constant vectors that hold symbolic dimensions, so that shape computations fold.

`ARITHMETIC` holds the operators that need a rule of their own for dimensions. Those in `MOVEMENT`
only rearrange entries and use their ordinary handler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.registry import Refused
from graphtool.io.weights import Array
from graphtool.symbolic import Dim, Poly, bounds, known, maximum, minimum

MOVEMENT = frozenset((
    "Gather", "Slice", "Concat", "Squeeze", "Unsqueeze", "Reshape", "Identity", "Transpose",
    "Flatten", "Split", "Expand", "Tile", "GatherND", "GatherElements", "Shape", "Size"))


def _each(f: Callable[..., Any], kind: type = object) -> Callable[..., Array]:
    vector = np.frompyfunc(f, 2, 1)
    return lambda a, b: np.asarray(vector(a, b)).astype(kind)


def _positive(fn: Callable[[Any, Any], Any]) -> Callable[[Dim, Dim], Any]:
    """A division that refuses negative numbers: without them floor and truncation agree."""
    def divide(a: Dim, b: Dim) -> Any:
        least = bounds(a)[0]
        if least is None or least < 0 or (bounds(b)[0] or 0) < 1:
            raise Refused("the division of a dimension that may be negative is not supported")
        return fn(a, b)
    return divide


def _truth(relation: Any, swap: bool = False, negate: bool = False) -> Callable[[Dim, Dim], bool]:
    def compare(a: Dim, b: Dim) -> bool:
        answer = known(b, relation, a) if swap else known(a, relation, b)
        if answer is None:
            raise Refused("the comparison of two dimensions must be decided at import; give "
                          "bounds or sizes with --dynamic")
        return answer != negate
    return compare


def _fold(start: Dim, step: Callable[[Dim, Dim], Any]) -> Callable[..., Array]:
    def reduce(x: Array, axes: Array | None = None, **attrs: Any) -> Array:
        if x.ndim > 1:
            raise Refused("a reduction over a matrix of dimensions is not supported")
        if attrs.get("noop_with_empty_axes") and (axes is None or not np.size(axes)):
            return x
        total = start
        for d in x.reshape(-1):
            total = step(total, d)
        shape = (1,) * x.ndim if attrs.get("keepdims", 1) else ()
        return np.array([total], object).reshape(shape)
    return reduce


def _cast(x: Array, *, to: int, **_: Any) -> Array:
    if to not in (6, 7):  # INT32, INT64
        raise Refused("a cast of a symbolic dimension is supported to int32 and int64 only")
    return x


def _where(cond: Array, a: Array, b: Array) -> Array:
    if cond.dtype == object:
        raise Refused("a choice by a symbolic condition is not supported; fix the sizes with "
                      "--dynamic NAME=SIZE")
    return np.where(cond, a, b)


ARITHMETIC: dict[str, Callable[..., Array]] = {
    "Add": _each(lambda a, b: a + b),
    "Sub": _each(lambda a, b: a - b),
    "Mul": _each(lambda a, b: a * b),
    "Div": _each(_positive(lambda a, b: a // b)),
    "Mod": _each(_positive(lambda a, b: a % b)),
    "Max": _each(maximum),
    "Min": _each(minimum),
    "Neg": lambda x: x * -1,
    "Equal": _each(_truth("=="), bool),
    "Less": _each(_truth("<"), bool),
    "LessOrEqual": _each(_truth("<="), bool),
    "Greater": _each(_truth("<", swap=True), bool),
    "GreaterOrEqual": _each(_truth("<=", swap=True), bool),
    "Where": _where,
    "Cast": _cast,
    "ReduceProd": _fold(1, lambda a, b: a * b),
    "ReduceSum": _fold(0, lambda a, b: a + b),
    "ReduceMax": _fold(-(1 << 62), maximum),
    "ReduceMin": _fold(1 << 62, minimum),
}


def has_symbols(x: Any) -> bool:
    """Whether any entry of a number or array is a symbolic dimension."""
    return any(isinstance(d, Poly) for d in np.asarray(x, object).reshape(-1))
