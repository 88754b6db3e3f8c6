"""Elementwise ATen ops: those that `front.names` has a row for, and those with rules of torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array
from graphtool.front.names import Word, read
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import Handler, aten
from graphtool.symbolic import Poly

# ---- one operand -------------------------------------------------------------------------------

_WITHOUT_FLOATS = {"is_nan": False, "is_inf": False, "is_finite": True}  # of integers and bools


def _named(word: Word) -> Handler:
    """The handler of a word of the table of names; see `_operands`.

    Of types that the word does not take, the result is known: they are rounded already, and never
    negative, infinite or NaN.
    """
    def handler(c: Context, *args: Any, **given: Any) -> Any:
        xs = [*args, *(given.pop(p) for p in ("self", "other") if p in given)]
        xs, attrs = xs[:word.count], xs[word.count:]
        x = xs[0]
        if isinstance(x, Array) and word.types != "booleans" and not word.takes(x.dtype):
            whole = _WITHOUT_FLOATS.get(word.op)
            return x if whole is None else c.full(x.shape, whole, dtypes.bool_)
        given |= {a.theirs: v for a, v in zip(word.attributes, attrs, strict=False)}
        return word.fn(*_operands(c, word, xs), **word.ours(given))
    return handler


def _operands(c: Context, word: Word, xs: list[Any]) -> tuple[Any, ...]:
    """The operands of a call in one type: bools for a word of bools, the type that torch promotes
    them to for a comparison, else the type of the result."""
    if word.types == "booleans":
        return tuple(c.cast(x, dtypes.bool_) for x in xs)
    if word.types == "floats":
        return tuple(xs)
    if word.compares:
        return c.promoted(*xs)
    if len(xs) == 1:
        return (c.cast(xs[0], c.out.dtype),)
    return tuple(c.as_operand(x, c.out.dtype) for x in xs)


for _name, _words in read("aten").items():
    aten(_name)(_named(_words[0]))


@aten("sign", "sgn")
def sign(c: Context, self: Array) -> Any:
    """−1, 0 or 1; 0 for NaN, whose sign numpy and ours leave NaN."""
    if self.dtype is dtypes.bool_:
        return self
    return o.sign(o.select(o.eq(self, self), self, 0.0) if self.dtype.is_float else self)


@aten("round.decimals")
def round_decimals(c: Context, self: Array, *, decimals: int = 0) -> Any:
    """round(x·10ᵈ) / 10ᵈ; for d < 0, round(x / 10⁻ᵈ)·10⁻ᵈ."""
    scale = 10.0 ** abs(decimals)
    if decimals >= 0:
        return o.round(self * scale) / scale
    return o.round(self / scale) * scale


# ---- two operands ------------------------------------------------------------------------------

def operands(c: Context, a: Any, b: Any) -> tuple[Any, Any]:
    """Both operands cast to the dtype of the result; numbers become literals."""
    return c.as_operand(a, c.out.dtype), c.as_operand(b, c.out.dtype)


@aten("add")
def add(c: Context, self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """a + alpha·b; of bools a or b."""
    a, b = operands(c, self, other)
    if c.out.dtype is dtypes.bool_:
        return o.or_(a, b) if alpha else a
    return a + _scaled(c, b, alpha)


@aten("sub", "subtract")
def sub(c: Context, self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """a − alpha·b."""
    a, b = operands(c, self, other)
    return a - _scaled(c, b, alpha)


@aten("rsub")
def rsub(c: Context, self: Any, other: Any, alpha: Any = 1) -> Any:
    """b − alpha·a."""
    a, b = operands(c, self, other)
    return b - _scaled(c, a, alpha)


def _scaled(c: Context, x: Any, alpha: Any) -> Any:
    if alpha == 1 and not isinstance(alpha, Poly):
        return x
    factor = c.cast(alpha, c.out.dtype)
    if isinstance(x, Array) or isinstance(factor, Array):
        return x * factor
    return c.as_operand(x * factor, c.out.dtype)


@aten("mul", "multiply")
def mul(c: Context, self: Any, other: Any) -> Any:
    """a·b; of bools a and b."""
    a, b = operands(c, self, other)
    return o.and_(a, b) if c.out.dtype is dtypes.bool_ else in_range(c, o.mul, a, b)


def in_range(c: Context, fn: Any, a: Any, b: Any) -> Any:
    """fn(a, b), in float32 if a number is infinite or 0 in the 16-bit type of the result.

    So does torch: in a mask (1 − m)·−1e9 of float16, 0·−1e9 is 0, and 0·−∞ would be NaN.
    """
    dtype = c.out.dtype
    if dtype.is_narrow:
        for x in (v for v in (a, b) if isinstance(v, float) and math.isfinite(v) and v):
            with np.errstate(all="ignore"):
                rounded = float(np.asarray(x, dtype.numpy))
            if not rounded or math.isinf(rounded):
                return c.cast(fn(*(c.cast(v, dtype.computes) for v in (a, b))), dtype)
    return fn(a, b)


@aten("pow")
def pow(c: Context, self: Any, exponent: Any) -> Any:
    """pow(a, b) in the dtype of the result; the powers ±½ as torch's roots: NaN of −∞, not ∞."""
    if isinstance(exponent, float) and abs(exponent) == 0.5:
        root = o.sqrt if exponent > 0 else o.rsqrt
        return root(c.cast(self, c.out.dtype))
    return o.pow(*operands(c, self, exponent))


def _past_nan(extreme: Any, first: Any) -> Any:
    def handler(c: Context, self: Any, other: Any) -> Any:
        """The extreme by a select; NaN only if both are NaN. Of equals the first."""
        a, b = operands(c, self, other)
        return o.select(first(a, b) | o.is_nan(b), a, b) if c.out.dtype.is_float else (
            extreme(a, b))
    return handler


aten("fmax")(_past_nan(o.max, o.ge))
aten("fmin")(_past_nan(o.min, o.le))


@aten("hypot")
def hypot(c: Context, self: Any, other: Any) -> Any:
    """√(a² + b²) as big·√(1 + (small / big)²), which does not overflow; ∞ if one of them is."""
    a, b = (abs(x) for x in operands(c, self, other))
    big = o.max(a, b)
    scaled = (big > 0.0) & (big < math.inf)
    ratio = o.select(scaled, o.min(a, b) / o.select(scaled, big, 1.0), 0.0)
    length = big * o.sqrt(ratio * ratio + 1.0)
    return o.select(o.is_inf(a) | o.is_inf(b), math.inf, length)


@aten("copysign")
def copysign(c: Context, self: Any, other: Any) -> Any:
    """|a| with the sign of b; −0.0 counts as negative."""
    a, b = operands(c, self, other)
    size = abs(a)
    if isinstance(b, float):
        return -size if math.copysign(1.0, b) < 0 else size
    negative = (b < 0.0) | (1.0 / b < 0.0)  # −0.0 has the sign of 1/−0.0
    return o.select(negative, -size, size)


@aten("sinc")
def sinc(c: Context, self: Array) -> Any:
    """sin(πx) / (πx), and 1 at 0; the divisor is never 0, so that gradients stay finite."""
    angle = c.cast(self, c.out.dtype) * math.pi
    origin = o.eq(angle, 0.0)
    divisor = o.select(origin, 1.0, angle)
    return o.select(origin, 1.0, o.sin(divisor) / divisor)


@aten("lerp")
def lerp(c: Context, self: Array, end: Array, weight: Any) -> Any:
    """a + w·(b − a)."""
    return self + c.cast(weight, c.out.dtype) * (end - self)


def _added(ours: Any) -> Any:
    def handler(c: Context, self: Array, tensor1: Array, tensor2: Array, *,
                value: Any = 1) -> Any:
        """a + value·(b·d), or a + value·(b / d)."""
        a, b, d = (x.cast(c.out.dtype) for x in (self, tensor1, tensor2))
        return a + _scaled(c, ours(b, d), value)
    return handler


aten("addcmul")(_added(o.mul))
aten("addcdiv")(_added(o.div))
