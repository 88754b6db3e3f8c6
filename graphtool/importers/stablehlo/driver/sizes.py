"""Arithmetic on sizes: what JAX computes from `get_dimension_size` is done at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.importers.stablehlo.driver.values import Array, Sizes, dtype_of
from graphtool.symbolic import Dim, floordiv, known, maximum, minimum, mod

_ARITHMETIC: dict[str, Callable[[Any, Any], Dim]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": maximum, "minimum": minimum,
}


def computed(name: str, xs: tuple[Any, ...]) -> Sizes | None:
    """The result of an operation on sizes and constants, or None if it has none of that kind."""
    if not all(isinstance(x, (Sizes, np.ndarray)) for x in xs):
        return None
    arrays = [objects(x) for x in xs]
    if len(arrays) == 1:
        if name == "negate":
            return Sizes(_each(lambda a: -a, *arrays), dtype_of(xs[0]))
        return None
    fn = _ARITHMETIC.get(name)
    if fn is None and name in ("divide", "remainder"):  # both cut towards 0, ours go down
        fn = (floordiv if name == "divide" else mod) if _natural(*arrays) else None
    return None if fn is None else Sizes(_each(fn, *arrays), dtype_of(xs[0]))


def _natural(a: Array, b: Array) -> bool:
    return all(known(0, "<=", i) is True for i in a.reshape(-1)) and all(
        known(0, "<", i) is True for i in b.reshape(-1))


def compared(direction: str, a: Any, b: Any) -> Array | None:
    """A comparison of sizes that holds, or fails, for all of them; None if that is not known."""
    if not all(isinstance(x, (Sizes, np.ndarray)) for x in (a, b)):
        return None
    left, right = np.broadcast_arrays(objects(a), objects(b))
    found = [_compared(direction, i, j)
             for i, j in zip(left.reshape(-1), right.reshape(-1), strict=True)]
    if any(f is None for f in found):
        return None
    return np.array(found, np.bool_).reshape(left.shape)


def _compared(direction: str, a: Dim, b: Dim) -> bool | None:
    match direction:
        case "EQ":
            return known(a, "==", b)
        case "NE":
            same = known(a, "==", b)
            return None if same is None else not same
        case "LT":
            return known(a, "<", b)
        case "LE":
            return known(a, "<=", b)
        case "GT":
            return known(b, "<", a)
    return known(b, "<=", a)


def objects(x: Any) -> Array:
    """Sizes, or constants, as an array of ints and polynomials."""
    if isinstance(x, Sizes):
        return x.array
    out = np.empty(x.shape, object)
    flat = out.reshape(-1)
    flat[:] = [int(v) for v in x.reshape(-1)]
    return flat.reshape(x.shape)


def _each(fn: Callable[..., Dim], *arrays: Array) -> Array:
    wide = np.broadcast_arrays(*arrays)
    out = np.empty(wide[0].shape, object)
    flat = out.reshape(-1)
    for i, parts in enumerate(zip(*(w.reshape(-1) for w in wide), strict=True)):
        flat[i] = fn(*parts)
    return flat.reshape(wide[0].shape)
