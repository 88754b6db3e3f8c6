"""Arithmetic on sizes: what JAX computes from `get_dimension_size` is done at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.importers.stablehlo.driver.values import Array, Asked, Sizes, dtype_of
from graphtool.symbolic import Dim, floordiv, known, maximum, minimum, mod

_ARITHMETIC: dict[str, Callable[[Any, Any], Dim]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": maximum, "minimum": minimum,
}


def computed(name: str, xs: tuple[Any, ...]) -> Sizes | None:
    """The result of an operation on sizes and constants, or None if it has none of that kind."""
    if not all(map(_whole, xs)):
        return None
    arrays = [objects(x) for x in xs]
    if len(arrays) == 1:
        if name == "negate":
            return Sizes(_each(lambda a: -a, *arrays), dtype_of(xs[0]))
        if name == "sign" and all(known(0, "<", a) is True for a in arrays[0].reshape(-1)):
            return Sizes(np.full(arrays[0].shape, 1, object), dtype_of(xs[0]))
        return None
    fn = _ARITHMETIC.get(name)
    if fn is None and name in ("divide", "remainder") and dtype_of(xs[0]).is_integer:
        fn = _truncating(floordiv if name == "divide" else mod, *arrays)
    return None if fn is None else Sizes(_each(fn, *arrays), dtype_of(xs[0]))


def _whole(x: Any) -> bool:
    """Whether a value is sizes, or a constant of whole numbers; sizes may be floats as well."""
    if isinstance(x, np.ndarray) and dtype_of(x).is_float:
        wide = x.astype(np.float64)
        return bool(np.isfinite(wide).all()) and bool((wide == np.trunc(wide)).all())
    return isinstance(x, (Sizes, np.ndarray))


def _truncating(down: Callable[[Any, Any], Dim], a: Array, b: Array
                ) -> Callable[[Any, Any], Dim] | None:
    """A division that cuts towards 0, by one that goes down; None if a sign is not known."""
    if not all(known(0, "<", i) is True for i in b.reshape(-1)):
        return None
    if all(known(0, "<=", i) is True for i in a.reshape(-1)):
        return down
    if all(known(i, "<=", 0) is True for i in a.reshape(-1)):
        return lambda x, y: -down(-x, y)
    return None


def compared(direction: str, a: Any, b: Any) -> Array | Asked | None:
    """A comparison of sizes: whether it holds, or what is asked if that is not known. None if the
    values are not sizes, or are several."""
    if not (_whole(a) and _whole(b)):
        return None
    left, right = np.broadcast_arrays(objects(a), objects(b))
    found = [_compared(direction, i, j)
             for i, j in zip(left.reshape(-1), right.reshape(-1), strict=True)]
    if any(f is None for f in found):
        if left.size != 1 or left.ndim:
            return None
        sign, turned = _ASKED[direction]
        a_, b_ = left.item(), right.item()
        return Asked(sign, b_, a_) if turned else Asked(sign, a_, b_)
    return np.array(found, np.bool_).reshape(left.shape)


_ASKED = {"EQ": ("==", False), "NE": ("!=", False), "LT": ("<", False), "LE": ("<=", False),
          "GT": ("<", True), "GE": ("<=", True)}


def logical(name: str, xs: tuple[Any, ...]) -> Any:
    """`and`, `or` or `not` of what is asked of sizes beside what is known; None if it is not known
    either."""
    if name == "not":
        (x,) = xs
        opposite = {"==": ("!=", x.a, x.b), "!=": ("==", x.a, x.b), "<": ("<=", x.b, x.a),
                    "<=": ("<", x.b, x.a)}
        return Asked(*opposite[x.sign])
    for x, other in (xs, xs[::-1]):
        if isinstance(x, np.ndarray) and x.ndim == 0:
            return other if bool(x) is (name == "and") else x
    return None


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
