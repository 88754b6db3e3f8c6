"""Elementwise operations: rows of `front.names`, and functions for the others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.front.names import Word, meaning, read
from graphtool.importers.stablehlo.driver.registry import add, stablehlo
from graphtool.importers.stablehlo.kit import Array, Context, Refused, dtypes, o
from graphtool.ir.op import OPS
from graphtool.symbolic import Poly

_NEUTRAL = {"max": -math.inf, "min": math.inf}


def _named(name: str, words: tuple[Word, ...]) -> None:
    """Register what the table of names says of an operation."""
    truths = any(word.takes(dtypes.bool_) for word in words)

    def handler(ctx: Context, *xs: Array) -> Any:
        if xs[0].dtype is dtypes.bool_ and not truths:
            raise Refused("it is not supported on booleans")
        word = meaning(words, xs[0].dtype)
        if word.op in _NEUTRAL and xs[0].dtype.is_float:  # JAX's softmax has max(−∞, x)
            for x, other in (xs, xs[::-1]):
                if x.literal == _NEUTRAL[word.op] and x.shape == other.shape:
                    return other
        result = word.fn(*xs)
        if word.op in ("div", "rem") and xs[0].dtype.is_integer and not (
                result.symbolic or xs[1].literal):
            return _by_zero(word.op, result, *xs)
        return result
    handler.__signature__ = words[0].signature("ctx")  # type: ignore[attr-defined]
    add(name, handler, elementwise=True)


def _by_zero(op: str, result: Array, a: Array, b: Array) -> Any:
    """What XLA gives where an integer is divided by 0: all bits 1, and the remainder a."""
    ones = -1 if a.dtype.kind == "int" else a.dtype.high
    return o.select(o.eq(b, 0), ones if op == "div" else a, result)


for _name, _words in read("hlo").items():
    if not _name.startswith("compare."):
        _named(_name, _words)


@stablehlo("compare", elementwise=True)
def compare(ctx: Context, a: Array, b: Array, *, comparison_direction: str) -> Any:
    """A comparison. In the total order of floats −0 is below 0, and NaN beyond the infinities."""
    if ctx.op.attrs.get("compare_type") == "TOTALORDER" and a.dtype.is_float:
        a, b = total_order(a), total_order(b)
    (word,) = read("hlo")[f"compare.{comparison_direction}"]
    return word.fn(a, b)


def total_order(x: Array) -> Array:
    """Integers in the order of the bits of floats: those of negative numbers are turned around."""
    whole = dtypes.BY_NAME[f"int{x.dtype.bits}"]
    bits = x.bits_as(whole)
    return bits ^ ((bits >> (whole.bits - 1)) & whole.high)


@stablehlo("select", elementwise=True)
def select(ctx: Context, pred: Array, a: Array, b: Array) -> Any:
    """a where pred is true, else b; of a constant predicate the value that it chooses."""
    chosen = pred.literal
    if chosen is not None and a.shape == b.shape:
        return a if chosen else b
    return o.select(pred, a, b)


@stablehlo("clamp", elementwise=True)
def clamp(ctx: Context, lo: Array, x: Array, hi: Array) -> Array:
    """min(max(x, lo), hi)."""
    return (x | lo) & hi if x.dtype is dtypes.bool_ else o.clamp(x, lo, hi)


@stablehlo("convert", elementwise=True)
def convert(ctx: Context, x: Array) -> Array:
    """A cast; a number that is not 0 is true. Of the number of a size it is the size itself."""
    maker = x.maker
    if maker is not None and maker.op is OPS["size"] and isinstance(maker.attrs["size"], Poly):
        return ctx.builder.number(maker.attrs["size"], ctx.dtype)
    return cast(x, ctx.dtype)


def cast(x: Array, to: DType) -> Array:
    """x in another element type."""
    if x.dtype.is_packed and to.is_packed and x.dtype is not to:
        x = x.cast(dtypes.int8)
    narrow = to.is_float and to.bits <= 8  # of others `saturate` says nothing
    return x.cast(to, saturate=not narrow)


@stablehlo("bitcast_convert")
def bitcast_convert(ctx: Context, x: Array) -> Any:
    """The same bits as another type. A wider type takes the last axis of x, a narrower one adds
    one."""
    to, source = ctx.dtype, x.dtype
    if to.bits == source.bits:
        return x.bits_as(to)
    if dtypes.bool_ in (to, source):
        raise Refused(f"from {source.short} to {to.short} it is not supported")
    big, small = (to, source) if to.bits > source.bits else (source, to)
    whole, part = dtypes.BY_NAME[f"uint{big.bits}"], dtypes.BY_NAME[f"uint{small.bits}"]
    steps = np.arange(big.bits // small.bits).astype(whole.numpy) * whole.numpy.type(small.bits)
    if to is small:
        column = x.bits_as(whole).reshape((*x.shape, 1))
        return ((column >> steps) & part.high).cast(part).bits_as(to)
    moved = x.bits_as(part).cast(whole) << steps
    return moved.reduce("sum", (moved.ndim - 1,)).bits_as(to)


# ---- shifts and bits ---------------------------------------------------------------------------

def _as_kind(x: Array, kind: str) -> Array:
    return x.bits_as(dtypes.BY_NAME[f"{kind}{x.dtype.bits}"])


@stablehlo("shift_right_logical", elementwise=True)
def shift_right_logical(ctx: Context, a: Array, b: Array) -> Array:
    """A shift that fills with 0: that of the unsigned type."""
    return _shifted(a, b, "uint")


@stablehlo("shift_right_arithmetic", elementwise=True)
def shift_right_arithmetic(ctx: Context, a: Array, b: Array) -> Array:
    """A shift that repeats the sign: that of the signed type."""
    return _shifted(a, b, "int")


def _shifted(a: Array, b: Array, kind: str) -> Array:
    if a.dtype.is_packed:
        return _shifted_packed(a, b, kind)
    return (_as_kind(a, kind) >> _as_kind(b, kind)).bits_as(a.dtype)


def _shifted_packed(a: Array, b: Array, kind: str) -> Array:
    """The shift of a type below 8 bits, in 16: its bits under 0, or under copies of the sign."""
    row, wide = a.dtype, dtypes.int16
    rest, mask = wide.bits - row.bits, (1 << row.bits) - 1
    by, bits = cast(b, wide) & mask, cast(a, wide)
    moved = (((bits << rest) >> rest) if kind == "int" else (bits & mask)) >> by
    # as the type has it: with the sign of the lower bits, or without one
    return cast((moved << rest) >> rest if row.kind == "int" else moved & row.high, row)


@stablehlo("popcnt", elementwise=True)
def popcnt(ctx: Context, x: Array) -> Array:
    """The number of bits that are 1: sums of neighbours of 1, 2, 4, … bits."""
    bits, width = _as_kind(x, "uint"), 1
    while width < x.dtype.bits:
        mask = sum(((1 << width) - 1) << at for at in range(0, x.dtype.bits, 2 * width))
        bits, width = (bits & mask) + ((bits >> width) & mask), 2 * width
    return bits.bits_as(x.dtype)


@stablehlo("count_leading_zeros", elementwise=True)
def count_leading_zeros(ctx: Context, x: Array) -> Any:
    """The number of bits above the highest 1: fill all bits below it, invert, and count."""
    bits, width = _as_kind(x, "uint"), 1
    while width < x.dtype.bits:
        bits, width = bits | (bits >> width), 2 * width
    return popcnt(ctx, (~bits).bits_as(x.dtype))


# ---- rounding and roots ------------------------------------------------------------------------

@stablehlo("round_nearest_afz", elementwise=True)
def round_nearest_afz(ctx: Context, x: Array) -> Any:
    """The nearest whole number, of two equally near ones the one away from 0: x is cut, and moved
    by 1 where half or more was cut off."""
    whole = o.trunc(x)
    return o.select(abs(x - whole) >= 0.5, whole + o.sign(x), whole)  # −0.3 becomes −0


@stablehlo("cbrt", elementwise=True)
def cbrt(ctx: Context, x: Array) -> Any:
    """sign(x)·|x|^⅓, followed by a step of Newton's method, as ⅓ itself is rounded; ±0 and the
    infinities are their own roots."""
    size = abs(x)
    root = size ** (1 / 3)
    better = root - (root - size / (root * root)) / 3.0
    return o.sign(x) * o.select(o.eq(size, 0) | o.is_inf(size), size, better)


# (bits of the exponent, of the mantissa) that a float has
_FORMATS = {dtypes.float16: (5, 10), dtypes.bfloat16: (8, 7), dtypes.float32: (8, 23),
            dtypes.float64: (11, 52)}


@stablehlo("reduce_precision", elementwise=True)
def reduce_precision(ctx: Context, x: Array, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """x rounded to a format of fewer bits: halves to even, too great numbers to infinity, too
    small ones to 0."""
    row = x.dtype
    if row not in _FORMATS:
        return cast(reduce_precision(ctx, cast(x, dtypes.float32), exponent_bits=exponent_bits,
                                     mantissa_bits=mantissa_bits), row)
    exponent, mantissa = _FORMATS[row]
    top = row.bits - 1
    bits = x.bits_as(dtypes.BY_NAME[f"uint{row.bits}"])
    out = size = bits & ((1 << top) - 1)
    if mantissa_bits < mantissa:
        cut = mantissa - mantissa_bits
        moved = size + (((size >> cut) & 1) + ((1 << (cut - 1)) - 1))
        out = moved & (((1 << row.bits) - 1) ^ ((1 << cut) - 1))
    if exponent_bits < exponent:
        middle, reach = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        least, most = (middle - reach + 1) << mantissa, (middle + reach + 1) << mantissa
        out = o.select(out >= most, ((1 << exponent) - 1) << mantissa, out)
        out = o.select(out < least, 0, out)
    return o.select(o.is_nan(x), x, (out | (bits & (1 << top))).bits_as(row))
