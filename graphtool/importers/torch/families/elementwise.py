"""Elementwise ATen ops and activations: rows of `front.names`, and ops that follow rules of torch,
such as its three divisions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.front.names import Word, read
from graphtool.importers.torch.driver.context import result_type
from graphtool.importers.torch.driver.table import Handler, aten
from graphtool.importers.torch.kit import Array, Context, axis_of, dtypes, o
from graphtool.importers.torch.narrow import unrounded
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
    if word.types == "booleans":  # torch has a tensor of rank 0 in the type of the others first
        narrowed = c.promoted(*xs) if word.count == 2 and _narrows(c, xs) else xs
        return tuple(c.cast(x, dtypes.bool_) for x in narrowed)
    if word.types == "floats":
        return tuple(xs)
    if word.compares:
        return c.promoted(*xs)
    if len(xs) == 1:
        return (c.cast(xs[0], c.out.dtype),)
    return tuple(c.as_operand(x, c.out.dtype) for x in xs)


def _narrows(c: Context, xs: list[Any]) -> bool:
    """Whether an operand has a wider type than torch promotes the operands to."""
    known = [x for x in xs if isinstance(x, Array)]
    return bool(known) and any(x.dtype.bits > result_type(*xs).bits for x in known)


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
    if c.out.dtype is dtypes.bool_:
        return o.and_(*operands(c, self, other))
    return unrounded(c, o.mul, self, other)


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


@aten("nextafter")
def next_after(c: Context, self: Any, other: Any) -> Any:
    """The next number after a towards b; of 16 bits by the bits of a, whose order is that of |a|.
    """
    a, b = operands(c, self, other)
    if not c.out.dtype.is_narrow:
        return o.next_after(a, b)
    away = o.eq(a > 0.0, b > a)  # from 0
    step = o.select(away, c.full((), 1, dtypes.int16), c.full((), -1, dtypes.int16))
    moved = o.bitcast(o.bitcast(a, dtype=dtypes.int16) + step, dtype=c.out.dtype)
    least = o.bitcast(o.select(b > 0.0, c.full((), 1, dtypes.int16), c.full(
        (), -32767, dtypes.int16)), dtype=c.out.dtype)
    there = o.select(o.eq(a, b), b, o.select(o.eq(a, 0.0), least, moved))
    return o.select(o.is_nan(a), a, o.select(o.is_nan(b), b, there))


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


# ---- activations --------------------------------------------------------------------------------

@aten("log_sigmoid_forward")
def log_sigmoid_forward(c: Context, self: Array) -> Any:
    """log_sigmoid(x); the second result, a buffer for the gradient, is not needed."""
    return o.log_sigmoid(self), None


@aten("hardtanh")
def hardtanh(c: Context, self: Array, min_val: Any = -1, max_val: Any = 1) -> Any:
    """hardtanh(x, lo, hi) of floats; clamp(x, min_val, max_val) of integers."""
    if self.dtype.is_float:
        return o.hardtanh(self, lo=float(min_val), hi=float(max_val))
    return o.clamp(self, c.literal(min_val, self.dtype), c.literal(max_val, self.dtype))


@aten("relu6")
def relu6(c: Context, self: Array) -> Any:
    """hardtanh(x, 0, 6)."""
    return hardtanh(c, self, 0, 6)


@aten("elu")
def elu(c: Context, self: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    """scale·elu(x, α); with an input scale s, α·(exp(s·x) − 1) where x ≤ 0."""
    if input_scale == 1:
        y = o.elu(self, alpha=float(alpha))
    else:
        negative = o.expm1(o.min(self, 0.0) * float(input_scale)) * float(alpha)
        y = o.select(self > 0.0, self, negative)
    return y if scale == 1 else y * float(scale)


@aten("prelu", "_prelu_kernel")
def prelu(c: Context, self: Array, weight: Array) -> Any:
    """prelu(x, w) with one slope for each channel (axis 1), or one for all elements."""
    if weight.ndim == 1 and self.ndim > 1:  # one slope a channel, axis 1
        weight = weight.reshape((weight.shape[0], *(1,) * (self.ndim - 2)))
    return o.prelu(self, weight)


@aten("threshold")
def threshold(c: Context, self: Array, threshold: Any, value: Any) -> Any:
    """select(x > threshold, x, value)."""
    return o.select(self > c.literal(threshold, self.dtype), self, c.literal(value, self.dtype))


@aten("hardshrink")
def hardshrink(c: Context, self: Array, lambd: Any = 0.5) -> Any:
    """select(|x| ≤ λ, 0, x)."""
    return o.select(abs(self) <= float(lambd), 0.0, self)


@aten("softshrink")
def softshrink(c: Context, self: Array, lambd: Any = 0.5) -> Any:
    """0 where |x| ≤ λ, else x − λ·sign(x), which NaN and its gradient pass."""
    bound = float(lambd)
    return o.select(abs(self) <= bound, 0.0, self - o.sign(self) * bound)


@aten("glu")
def glu(c: Context, self: Array, dim: int = -1) -> Any:
    """a·sigmoid(b), where a and b are the two halves of x along `dim`."""
    axis = axis_of(dim, self.ndim)
    n = self.shape[axis]
    return self.take(axis, 0, n // 2) * o.sigmoid(self.take(axis, n // 2, n))


def _normalised(word: Word) -> Handler:
    def handler(c: Context, self: Array, dim: int, dtype: Any = None) -> Any:
        """Along one axis, in the dtype of the result; a rank-0 tensor counts as one element."""
        x = self.cast(c.out.dtype)
        x = x if x.ndim else x.flat()
        return word.fn(x, axis=axis_of(dim, x.ndim)).reshape(self.shape)
    return handler


for _name, (_word, *_) in read("aten", "axis").items():
    aten(_name)(_normalised(_word))


# ---- divisions ----------------------------------------------------------------------------------

@aten("div", "divide", "true_divide")
def div(c: Context, self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """a / b; `rounding_mode` "trunc" rounds towards 0, "floor" downwards."""
    if rounding_mode == "floor":
        return floor_divide(c, self, other)
    whole = rounding_mode == "trunc" and c.out.dtype.is_float
    return unrounded(c, lambda a, b: o.trunc(a / b) if whole else a / b, self, other)


@aten("floor_divide")
def floor_divide(c: Context, self: Any, other: Any) -> Any:
    """a / b rounded downwards; of 16-bit floats in float32."""
    inner = c.out.dtype.computes
    a, b = (c.cast(c.as_operand(x, c.out.dtype) if isinstance(x, Array) else x, inner)
            for x in (self, other)) if inner is not c.out.dtype else operands(c, self, other)
    if isinstance(b, float):
        with np.errstate(all="ignore"):
            b = float(np.asarray(b, inner.numpy))  # 0 below the least number of the type
    return c.cast(_floor_div(inner, a, b), c.out.dtype)


def _floor_div(dtype: DType, a: Any, b: Any) -> Any:
    """The quotient cut towards 0, and one less where the remainder has not the sign of b.

    The quotient of floats is (a − rem(a, b)) / b: ⌊a / b⌋ would give 10 for 1 / 0.1, not 9.
    """
    if dtype.kind == "uint":
        return a / b
    rest = o.rem(a, b)
    if isinstance(b, Array):
        below = (rest < 0) & (b > 0) | (rest > 0) & (b < 0)
    else:
        below = rest > 0 if b < 0 else rest < 0
    whole = o.round((a - rest) / b) if dtype.is_float else a / b
    floor = o.select(below, whole - 1, whole)
    if not dtype.is_float:
        return floor
    return o.select(o.eq(b, 0.0), a / b, floor) if isinstance(b, Array) else (floor if b
        else a / b)
