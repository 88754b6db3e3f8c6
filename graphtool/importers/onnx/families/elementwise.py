"""Elementwise operators and activations that `front.names` has no row for, and the registration of
the operators that it has."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from graphtool.front import Array
from graphtool.front.names import Word, read
from graphtool.importers.onnx.driver.values import (
    array_of,
    finite,
)
from graphtool.importers.onnx.kit import OPS, DType, add, dtypes, element_type, o, onnx_op
from graphtool.importers.wrapping import wrapped


def _named(name: str, word: Word) -> None:
    """Register what the table of names says of an operator."""
    def handler(*xs: Any, **attrs: Any) -> Any:
        return word.fn(*xs, **word.ours(attrs))
    handler.__signature__ = word.signature()  # type: ignore[attr-defined]
    domain, _, operator = name.rpartition(".")
    add([operator], handler, word.since, domain)


for _name, _words in read("onnx").items():
    _named(_name, _words[0])


def variadic(op: str, xs: tuple[Any, ...]) -> Any:
    """All operands joined by a binary op, from left to right."""
    return functools.reduce(lambda a, b: OPS[op](a, b), xs)


add(["Max"], lambda *xs: variadic("max", xs), since=1)
add(["Min"], lambda *xs: variadic("min", xs), since=1)
add(["Sum"], lambda *xs: variadic("add", xs), since=1)


@onnx_op("Mean")
def mean(*xs: Any) -> Any:
    """The sum of all operands by `add`, divided by their number."""
    total = variadic("add", xs)
    return total / float(len(xs)) if len(xs) > 1 else total


@onnx_op("Identity", sequences=True)
def identity(x: Any) -> Any:
    """x itself; no op."""
    return x


@onnx_op("Pow", since=7)
def power(x: Any, y: Any) -> Any:
    """`pow`, with the dtype of the base whatever dtype the exponent has."""
    base, exponent = x.dtype, y.dtype
    if base is exponent:
        return x ** y
    if base.is_float:
        return x ** (y.cast(base) if array_of(y) is None else _as(y, base))
    wide = dtypes.float64 if exponent.is_float else max(base, exponent, key=lambda d: d.bits)
    return (x.cast(wide) ** y.cast(wide)).cast(base)


def _as(y: Any, to: Any) -> Any:
    """A constant exponent in another dtype, which stays a constant."""
    array = np.asarray(array_of(y)).astype(to.numpy)
    return y.builder.constant(array, y.hint) if isinstance(y, Array) else array


@onnx_op("Mod")
def modulo(a: Any, b: Any, *, fmod: int = 0) -> Any:
    """`rem` (sign of a) with `fmod`, else `mod` (sign of b)."""
    return (o.rem if fmod else o.mod)(a, b)


@onnx_op("BitShift")
def bit_shift(x: Any, y: Any, *, direction: str) -> Any:
    """`shift_left` or `shift_right` by `direction`."""
    return (o.shift_left if direction == "LEFT" else o.shift_right)(x, y)


@onnx_op("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """`is_inf`, or a comparison with +∞ or −∞ if only one sign counts."""
    if detect_negative and detect_positive:
        return o.is_inf(x)
    if not detect_negative and not detect_positive:
        return o.is_inf(x) & ~o.is_inf(x)
    return o.eq(x, math.inf if detect_positive else -math.inf)


# ---- casts -------------------------------------------------------------------------------------

@onnx_op("Cast", since=6)
def cast_to(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """x as the ONNX element type `to`; see `converted`."""
    return converted(x, element_type(to), bool(saturate), round_mode)


@onnx_op("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """x in the dtype of `like`; see `converted`."""
    return converted(x, like.dtype, bool(saturate), round_mode)


def converted(x: Any, row: DType, saturate: bool, round_mode: str) -> Any:
    """x cast as ONNX does: short integers wrap around, float8e8m0 has a rounding mode."""
    if row.is_integer and row.is_packed and x.dtype is not dtypes.bool_:
        return _wrapped(x.cast(dtypes.int32), row)
    if row is dtypes.float8e8m0 and x.dtype.is_float:
        return _power_of_two(x.cast(dtypes.float32), round_mode).cast(row, saturate)
    if x.dtype.is_float and row.is_integer:
        return wrapped(x, x.dtype, row)
    return x.cast(row, saturate)


def _wrapped(x: Any, row: DType) -> Any:
    """The low bits of an int32 as an integer of fewer than 8 bits."""
    low = x & 2 ** row.bits - 1
    half = 2**(row.bits - 1)
    return (low if row.kind == "uint" else (low ^ half) - half).cast(row)


def _power_of_two(x: Any, round_mode: str) -> Any:
    """x rounded up or down to a power of two, in float32; `nearest` is left to the cast."""
    if round_mode == "nearest":
        return x
    bits = o.bitcast(x, dtype=dtypes.int32)
    bits = bits + 0x7FFFFF if round_mode == "up" else bits
    even = o.bitcast(bits & 0x7F800000, dtype=dtypes.float32)
    return o.select(o.is_finite(x), even, x)


@onnx_op("BitCast")
def bit_cast(x: Any, *, to: int) -> Any:
    """`bitcast`: the same bits as the element type `to`."""
    return o.bitcast(x, dtype=element_type(to))


# ---- clipping ----------------------------------------------------------------------------------

@onnx_op("Clip")
def clip_6(x: Any, *, min: float = -3.4028234663852886e38, max: float = 3.4028234663852886e38
           ) -> Any:
    """`clamp` between bounds that are attributes."""
    return o.clamp(x, min, max)


@onnx_op("Clip", since=11)
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """`clamp` between bounds that are inputs; x itself without any."""
    return x if low is None and high is None else o.clamp(x, low, high)


# ---- activations -------------------------------------------------------------------------------

@onnx_op("Softplus")
def softplus(x: Any) -> Any:
    """`softplus` with threshold 40: above it, log(1 + eˣ) equals x even in float64."""
    return o.softplus(x, threshold=40.0)


@onnx_op("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    """`celu` with its alpha; for 0 the formula's own quotients, which are infinite."""
    if alpha == 0:
        tail = o.expm1(x / 0.0) * 0.0
        return o.max(x, 0.0) + o.min(tail, 0.0)
    return o.celu(x, alpha=alpha)


@onnx_op("PRelu", since=7)
def prelu(x: Any, slope: Any) -> Any:
    """`prelu`; the slope broadcasts to x as in NumPy.

    The operator's text gives x at 0, where `prelu` has slope·x: NaN if the slope is infinite. So a
    slope that is computed, or not finite, is multiplied below 0 only.
    """
    return o.prelu(x, slope) if finite(slope) else o.select(x < 0, x * slope, x)


@onnx_op("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    """x · `sigmoid`(alpha · x), which is `silu` for alpha 1."""
    return o.silu(x) if alpha == 1.0 else x * o.sigmoid(x * alpha)


@onnx_op("SwiGLU")
def swiglu(gate: Any, x: Any, *, alpha: float = 1.0) -> Any:
    """Swish of the gate, times x."""
    return swish(gate, alpha=alpha) * x


@onnx_op("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    """x moved towards 0 by the bias where |x| is above `lambd`, else 0 (NaN as well), as two
    `select`.

    Integers are compared, and moved by a bias that is not 0, in float64.
    """
    wide = x if x.dtype.is_float else x.cast(dtypes.float64)

    def moved(by: float) -> Any:
        return (wide + by).cast(x.dtype) if by else x
    return o.select(wide < -lambd, moved(bias), o.select(wide > lambd, moved(-bias), 0))


@onnx_op("Dropout", since=7)
def dropout_6(x: Any, *, ratio: float = 0.5, ctx: Any) -> Any:
    """`dropout_10` with a mask of x's own type."""
    return (x, kept(x, ctx)[1].cast(x.dtype)) if ctx.wanted(1) else x


@onnx_op("Dropout", since=10)
def dropout_10(x: Any, *, ratio: float = 0.5, ctx: Any) -> Any:
    """x itself, as dropout is at inference, with a mask of ones if the node has one."""
    return kept(x, ctx)


def kept(x: Any, ctx: Any) -> Any:
    """x itself, with a mask of ones if the node's second output is wanted."""
    if not ctx.wanted(1):
        return x
    mask = o.broadcast(_as_bool(x).number(True).reshape(()), shape=tuple(x.shape))
    return (x, mask) if ctx.outputs > 1 else x


def _as_bool(x: Any) -> Any:
    return o.is_nan(x) if x.dtype.is_float else o.ne(x, 0)
