"""Arithmetic on sizes: what JAX computes from `get_dimension_size` is done at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.importers.stablehlo.driver.values import Array, Asked, Sizes, dtype_of
from graphtool.symbolic import Dim, Poly, floordiv, known, maximum, minimum, mod, single_call

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
        signs = _signs(arrays[0]) if name == "sign" else None
        return None if signs is None else Sizes(signs, dtype_of(xs[0]))
    fn = _ARITHMETIC.get(name)
    if fn is None and name in ("divide", "remainder") and dtype_of(xs[0]).is_integer:
        fn = _truncating(floordiv if name == "divide" else mod, *arrays)
    return None if fn is None else Sizes(_each(fn, *arrays), dtype_of(xs[0]))


def _signs(a: Array) -> Array | None:
    """min(a, 1) of sizes that are not negative, max(a, −1) of those that are not positive."""
    flat = a.reshape(-1)
    if all(known(0, "<=", d) is True for d in flat):
        return _each(lambda d: minimum(d, 1), a)
    if all(known(d, "<=", 0) is True for d in flat):
        return _each(lambda d: maximum(d, -1), a)
    return None


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
        if direction in ("EQ", "NE") and b_ == 1 and known(0, "<=", a_) and known(a_, "<=", 1):
            # the sign of a size beside that of a divisor: it is another one for 0 only
            return Asked("!=" if direction == "EQ" else "==", _signed(a_), 0)
        return Asked(sign, b_, a_) if turned else Asked(sign, a_, b_)
    return np.array(found, np.bool_).reshape(left.shape)


def _signed(sign: Dim) -> Dim:
    """The size of which this is the sign."""
    call = single_call(sign, "min") if isinstance(sign, Poly) else None
    return sign if call is None or 1 not in (call.a, call.b) else (
        call.b if call.a == 1 else call.a)


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
        if isinstance(x, Asked) and isinstance(other, Asked) and name == "and":
            found = _both(x, other)
            if found is not None:
                return found
    return None


def _both(x: Asked, y: Asked) -> Any:
    """Whether both hold: what is below is not equal, and the remainder of 0 is 0."""
    if y.sign != "!=" or x.b != y.b:
        return None
    if x.sign == "<" and x.a == y.a:
        return x
    rest = single_call(y.a, "%") if isinstance(y.a, Poly) else None
    if x.sign == "==" and (x.a == y.a or (
            x.b == 0 and rest is not None and mod(x.a, rest.b) == y.a)):
        return np.zeros((), np.bool_)
    return None


def equal_truths(direction: str, a: Any, b: Any) -> Any:
    """EQ or NE of what is asked and a known truth value; None for anything else."""
    for x, other in ((a, b), (b, a)):
        if isinstance(x, Asked) and isinstance(other, np.ndarray) and other.ndim == 0 and (
                direction in ("EQ", "NE")):
            return x if bool(other) is (direction == "EQ") else logical("not", (x,))
    return None


def chosen(asked: Asked, a: Any, b: Any) -> Sizes | None:
    """`select` of two sizes by whether a remainder is 0, which is how JAX divides towards −∞: the
    lesser one and a multiple of ⌈p / k⌉ − ⌊p / k⌋, which is 0 or 1. None for another question."""
    rest = _remainder(asked)
    if rest is None or not (_whole(a) and _whole(b)):
        return None
    p, k = rest
    down = floordiv(p, k)
    left_over, exact = mod(p, k), p - k * down

    def one(x: Dim, y: Dim) -> Dim:
        found = y + (x - y) * (floordiv(p + k - 1, k) - down)
        sign = next((c for c in (1, -1) if y == c * left_over), 0)
        return found + sign * (exact - left_over)
    return Sizes(_each(one, objects(a), objects(b)), dtype_of(a))


def _remainder(asked: Asked) -> tuple[Poly, int] | None:
    """(p, k) where the question is whether p mod k is not 0."""
    gaps = {"!=": (asked.a - asked.b, asked.b - asked.a), "<": (asked.b - asked.a,)}
    for gap in gaps.get(asked.sign, ()):
        call = single_call(gap, "%") if isinstance(gap, Poly) else None
        if call is not None and isinstance(call.a, Poly) and isinstance(call.b, int):
            return call.a, call.b
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
