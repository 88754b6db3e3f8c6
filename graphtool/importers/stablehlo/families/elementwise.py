"""Elementwise operations: rows for those that are one op, functions for the others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.importers.stablehlo.driver import sizes
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, add, stablehlo
from graphtool.importers.stablehlo.driver.values import (
    Asked,
    Sizes,
    dtype_of,
    element_type,
    literal,
    shape_of,
)
from graphtool.importers.stablehlo.text.types import Kind
from graphtool.ir.op import OPS
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Poly

# operation → (op on numbers, op on booleans)
_ROWS: dict[str, tuple[str, str]] = {
    "add": ("add", "or_"), "subtract": ("sub", "xor"), "multiply": ("mul", "and_"),
    "divide": ("div", ""), "remainder": ("rem", ""), "power": ("pow", ""),
    "maximum": ("max", "or_"), "minimum": ("min", "and_"), "atan2": ("atan2", ""),
    "negate": ("neg", ""), "abs": ("abs", ""), "sign": ("sign", ""), "floor": ("floor", ""),
    "ceil": ("ceil", ""), "round_nearest_even": ("round", ""), "exponential": ("exp", ""),
    "exponential_minus_one": ("expm1", ""), "log": ("log", ""), "log_plus_one": ("log1p", ""),
    "sqrt": ("sqrt", ""), "rsqrt": ("rsqrt", ""), "logistic": ("sigmoid", ""),
    "sine": ("sin", ""), "cosine": ("cos", ""), "tan": ("tan", ""), "tanh": ("tanh", ""),
    "is_finite": ("is_finite", ""), "and": ("and_", "and_"), "or": ("or_", "or_"),
    "xor": ("xor", "xor"), "not": ("not_", "not_"), "shift_left": ("shift_left", ""),
}
_ARITY = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "remainder": 2, "power": 2,
          "maximum": 2, "minimum": 2, "atan2": 2, "and": 2, "or": 2, "xor": 2, "shift_left": 2}


def _row(name: str, number: str, boolean: str) -> None:
    def of(ctx: Context, xs: tuple[Any, ...]) -> Any:
        if any(isinstance(x, Sizes) for x in xs):
            found = sizes.computed(name, xs)
            if found is not None:
                return found
        if any(isinstance(x, Asked) for x in xs) and name in ("and", "or", "not"):
            found = sizes.logical(name, xs)
            if found is not None:
                return found
        op = boolean if dtype_of(xs[0]) is dtypes.bool_ else number
        if not op:
            raise Refused("it is not supported on booleans")
        if name in _NEUTRAL and dtype_of(xs[0]).is_float:  # JAX's softmax has max(−∞, x)
            for x, other in (xs, xs[::-1]):
                if literal(x) == _NEUTRAL[name] and shape_of(x) == shape_of(other):
                    return other
        found = ctx.apply(getattr(o, op), *xs)
        whole = name in _BY_ZERO and dtype_of(xs[0]).is_integer
        return _by_zero(ctx, name, found, *xs) if whole and not literal(xs[1]) else found

    def one(ctx: Context, x: Any) -> Any:
        return of(ctx, (x,))

    def two(ctx: Context, a: Any, b: Any) -> Any:
        return of(ctx, (a, b))
    add(name, two if _ARITY.get(name) == 2 else one, elementwise=True)


for _name, (_number, _boolean) in _ROWS.items():
    _row(_name, _number, _boolean)


_BY_ZERO = ("divide", "remainder")


def _by_zero(ctx: Context, name: str, found: Any, a: Any, b: Any) -> Any:
    """What XLA gives where an integer is divided by 0: all bits 1, and the remainder a."""
    row = dtype_of(a)
    zero, ones = np.zeros((), row.numpy), np.array(-1 if row.kind == "int" else row.high
                                                   ).astype(row.numpy)
    return ctx.apply(o.select, ctx.apply(o.eq, b, zero), ones if name == "divide" else a, found,
                     kept=(0,))


_NEUTRAL = {"maximum": -math.inf, "minimum": math.inf}
_COMPARE = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


@stablehlo("compare", elementwise=True)
def compare(ctx: Context, a: Any, b: Any, *, comparison_direction: str) -> Any:
    """A comparison. In the total order of floats −0 is below 0, and NaN beyond the infinities."""
    if isinstance(a, Sizes) or isinstance(b, Sizes):
        found = sizes.compared(comparison_direction, a, b)
        if found is not None:
            return found
    if isinstance(a, Asked) or isinstance(b, Asked):
        found = sizes.equal_truths(comparison_direction, a, b)
        if found is not None:
            return found
    if ctx.op.attrs.get("compare_type") == "TOTALORDER" and dtype_of(a).is_float:
        a, b = total_order(ctx, a), total_order(ctx, b)
    return ctx.apply(getattr(o, _COMPARE[comparison_direction]), a, b)


def total_order(ctx: Context, x: Any) -> Any:
    """Integers in the order of the bits of floats: those of negative numbers are turned around."""
    row = dtype_of(x)
    whole = dtypes.BY_NAME[f"int{row.bits}"]
    bits = bits_as(ctx, x, whole)
    mask = ctx.apply(o.and_, ctx.apply(o.shift_right, bits, np.full((), row.bits - 1, whole.numpy)),
                     np.full((), whole.high, whole.numpy))
    return ctx.apply(o.xor, bits, mask)


@stablehlo("select", elementwise=True)
def select(ctx: Context, pred: Any, a: Any, b: Any) -> Any:
    """a where pred is true, else b; of a constant predicate the value that it chooses."""
    chosen = literal(pred)
    if chosen is not None and shape_of(a) == shape_of(b):
        return a if chosen else b
    if isinstance(pred, Asked) and (isinstance(a, Sizes) or isinstance(b, Sizes)):
        found = sizes.chosen(pred, a, b)
        if found is not None:
            return found
    both = literal(a) is not None and literal(b) is not None
    return ctx.apply(o.select, pred, a, b, kept=(0, 1) if both else (0,))


@stablehlo("clamp", elementwise=True)
def clamp(ctx: Context, lo: Any, x: Any, hi: Any) -> Any:
    """min(max(x, lo), hi)."""
    if dtype_of(x) is dtypes.bool_:
        return ctx.apply(o.and_, ctx.apply(o.or_, x, lo), hi)
    if all(isinstance(v, np.ndarray) for v in (lo, x, hi)):
        return ctx.apply(o.min, ctx.apply(o.max, x, lo), hi)
    return ctx.apply(o.clamp, x, lo, hi, kept=(0,))


@stablehlo("convert", elementwise=True)
def convert(ctx: Context, x: Any) -> Any:
    """A cast; a number that is not 0 is true. Of the number of a size it is the size itself."""
    maker = ctx.builder.made.get(x.value) if isinstance(x, Tracer) else None
    if maker is not None and maker.op is OPS["size"] and isinstance(maker.attrs["size"], Poly):
        return Sizes(np.array(maker.attrs["size"], object), ctx.dtype)
    return cast(ctx, x, ctx.dtype)


def cast(ctx: Context, x: Any, to: DType) -> Any:
    """x in another element type."""
    if isinstance(x, Sizes):
        return Sizes(x.array, to)
    if dtype_of(x).is_packed and to.is_packed and dtype_of(x) is not to:
        x = ctx.apply(o.cast, x, dtype=dtypes.int8)
    narrow = to.is_float and to.bits <= 8  # of others `saturate` says nothing
    return x if dtype_of(x) is to else ctx.apply(o.cast, x, dtype=to, saturate=not narrow)


@stablehlo("bitcast_convert")
def bitcast_convert(ctx: Context, x: Any) -> Any:
    """The same bits as another type. A wider type takes the last axis of x, a narrower one adds
    one."""
    to, source = ctx.dtype, dtype_of(x)
    if to.bits == source.bits:
        return bits_as(ctx, x, to)
    if dtypes.bool_ in (to, source):
        raise Refused(f"from {source.short} to {to.short} it is not supported")
    big, small = (to, source) if to.bits > source.bits else (source, to)
    whole, part = dtypes.BY_NAME[f"uint{big.bits}"], dtypes.BY_NAME[f"uint{small.bits}"]
    count = big.bits // small.bits
    steps = np.arange(count, dtype=whole.numpy) * whole.numpy.type(small.bits)
    if to is small:
        bits = bits_as(ctx, ctx.tensor(x), whole)
        column = o.reshape(bits, shape=(*bits.shape, 1))
        moved = o.shift_right(column, bits.builder.constant(steps))
        low = o.and_(moved, part.high)
        return bits_as(ctx, o.cast(low, dtype=part), to)
    bits = o.cast(bits_as(ctx, ctx.tensor(x), part), dtype=whole)
    moved = o.shift_left(bits, bits.builder.constant(steps))
    joined = o.reduce_sum(moved, axes=(moved.ndim - 1,))
    return bits_as(ctx, o.reshape(joined, shape=moved.shape[:-1]), to)


def bits_as(ctx: Context, x: Any, to: DType) -> Any:
    """The bits of x as another type of as many bits."""
    return x if dtype_of(x) is to else ctx.apply(o.bitcast, x, dtype=to)


# ---- shifts and bits ---------------------------------------------------------------------------

def _as_kind(ctx: Context, x: Any, kind: str) -> Any:
    return bits_as(ctx, x, dtypes.BY_NAME[f"{kind}{dtype_of(x).bits}"])


@stablehlo("shift_right_logical", elementwise=True)
def shift_right_logical(ctx: Context, a: Any, b: Any) -> Any:
    """A shift that fills with 0: that of the unsigned type."""
    return _shifted(ctx, a, b, "uint")


@stablehlo("shift_right_arithmetic", elementwise=True)
def shift_right_arithmetic(ctx: Context, a: Any, b: Any) -> Any:
    """A shift that repeats the sign: that of the signed type."""
    return _shifted(ctx, a, b, "int")


def _shifted(ctx: Context, a: Any, b: Any, kind: str) -> Any:
    row = dtype_of(a)
    if row.is_packed:
        return _shifted_packed(ctx, a, b, kind)
    if row.kind == kind:
        return ctx.apply(o.shift_right, a, b)
    moved = ctx.apply(o.shift_right, _as_kind(ctx, a, kind), _as_kind(ctx, b, kind))
    return bits_as(ctx, moved, row)


def _shifted_packed(ctx: Context, a: Any, b: Any, kind: str) -> Any:
    """The shift of a type below 8 bits, in 16: its bits under 0, or under copies of the sign."""
    row, wide = dtype_of(a), dtypes.int16
    rest = np.full((), wide.bits - row.bits, wide.numpy)
    up = ctx.apply(o.shift_left, cast(ctx, a, wide), rest)
    low = cast(ctx, b, wide)
    low = ctx.apply(o.and_, low, np.full((), (1 << row.bits) - 1, wide.numpy))
    if kind == "int":
        moved = ctx.apply(o.shift_right, ctx.apply(o.shift_right, up, rest), low)
    else:
        bits = ctx.apply(o.and_, cast(ctx, a, wide), np.full((), (1 << row.bits) - 1, wide.numpy))
        moved = ctx.apply(o.shift_right, bits, low)
    if row.kind == "int":  # the sign of the lower bits
        moved = ctx.apply(o.shift_right, ctx.apply(o.shift_left, moved, rest), rest)
    else:
        moved = ctx.apply(o.and_, moved, np.full((), row.high, wide.numpy))
    return cast(ctx, moved, row)


@stablehlo("popcnt", elementwise=True)
def popcnt(ctx: Context, x: Any) -> Any:
    """The number of bits that are 1: sums of neighbours of 1, 2, 4, … bits."""
    row = dtype_of(x)
    bits = _as_kind(ctx, x, "uint")
    unsigned = dtype_of(bits)
    width = 1
    while width < row.bits:
        mask = sum(((1 << width) - 1) << at for at in range(0, row.bits, 2 * width))
        even = ctx.apply(o.and_, bits, np.full((), mask, unsigned.numpy))
        odd = ctx.apply(o.and_, ctx.apply(o.shift_right, bits, np.full((), width, unsigned.numpy)),
                        np.full((), mask, unsigned.numpy))
        bits, width = ctx.apply(o.add, even, odd), 2 * width
    return bits_as(ctx, bits, row)


@stablehlo("count_leading_zeros", elementwise=True)
def count_leading_zeros(ctx: Context, x: Any) -> Any:
    """The number of bits above the highest 1: the bits of what is filled below it, inverted."""
    row = dtype_of(x)
    bits = _as_kind(ctx, x, "uint")
    width = 1
    while width < row.bits:
        moved = ctx.apply(o.shift_right, bits, np.full((), width, dtype_of(bits).numpy))
        bits, width = ctx.apply(o.or_, bits, moved), 2 * width
    return popcnt(ctx, bits_as(ctx, ctx.apply(o.not_, bits), row))


# ---- rounding and roots ------------------------------------------------------------------------

@stablehlo("round_nearest_afz", elementwise=True)
def round_nearest_afz(ctx: Context, x: Any) -> Any:
    """The nearest whole number, of two equally near ones the one away from 0: x is cut, and moved
    by 1 where half or more was cut off."""
    whole = ctx.apply(o.trunc, x)
    rest = ctx.apply(o.abs, ctx.apply(o.sub, x, whole))
    half = np.full((), 0.5, dtype_of(x).numpy)
    beyond = ctx.apply(o.add, whole, ctx.apply(o.sign, x))
    return ctx.apply(o.select, ctx.apply(o.ge, rest, half), beyond, whole)  # −0.3 becomes −0


@stablehlo("cbrt", elementwise=True)
def cbrt(ctx: Context, x: Any) -> Any:
    """sign(x)·|x|^⅓, followed by a step of Newton's method, as ⅓ itself is rounded; ±0 and the
    infinities are their own roots."""
    row = dtype_of(x).numpy
    size = ctx.apply(o.abs, x)
    root = ctx.apply(o.pow, size, np.full((), 1 / 3, row))
    square = ctx.apply(o.mul, root, root)
    better = ctx.apply(o.div, ctx.apply(o.sub, root, ctx.apply(o.div, size, square)),
                       np.full((), 3.0, row))
    odd = ctx.apply(o.or_, ctx.apply(o.eq, size, np.zeros((), row)),
                    ctx.apply(o.is_inf, size))
    exact = ctx.apply(o.select, odd, size, ctx.apply(o.sub, root, better))
    return ctx.apply(o.mul, ctx.apply(o.sign, x), exact)


# (bits of the exponent, of the mantissa) that a float has
_FORMATS = {dtypes.float16: (5, 10), dtypes.bfloat16: (8, 7), dtypes.float32: (8, 23),
            dtypes.float64: (11, 52)}


@stablehlo("reduce_precision", elementwise=True)
def reduce_precision(ctx: Context, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """x rounded to a format of fewer bits: halves to even, too great numbers to infinity, too
    small ones to 0."""
    row = dtype_of(x)
    if row not in _FORMATS:
        return cast(ctx, reduce_precision(ctx, cast(ctx, x, dtypes.float32),
                                          exponent_bits=exponent_bits,
                                          mantissa_bits=mantissa_bits), row)
    exponent, mantissa = _FORMATS[row]
    whole = dtypes.BY_NAME[f"uint{row.bits}"]

    def number(v: int) -> Any:
        return np.full((), v, whole.numpy)
    bits = bits_as(ctx, x, whole)
    sign = ctx.apply(o.and_, bits, number(1 << (row.bits - 1)))
    size = ctx.apply(o.and_, bits, number((1 << (row.bits - 1)) - 1))
    infinite = number(((1 << exponent) - 1) << mantissa)
    out = size
    if mantissa_bits < mantissa:
        cut = mantissa - mantissa_bits
        last = ctx.apply(o.and_, ctx.apply(o.shift_right, size, number(cut)), number(1))
        moved = ctx.apply(o.add, size, ctx.apply(o.add, last, number((1 << (cut - 1)) - 1)))
        out = ctx.apply(o.and_, moved, number(((1 << row.bits) - 1) ^ ((1 << cut) - 1)))
    if exponent_bits < exponent:
        middle, reach = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        least, most = (middle - reach + 1) << mantissa, (middle + reach + 1) << mantissa
        out = ctx.apply(o.select, ctx.apply(o.ge, out, number(most)), infinite, out, kept=(0, 1))
        out = ctx.apply(o.select, ctx.apply(o.lt, out, number(least)), number(0), out, kept=(0, 1))
    made = bits_as(ctx, ctx.apply(o.or_, out, sign), row)
    nan = ctx.apply(o.is_nan, x)
    return ctx.apply(o.select, nan, x, made, kept=(0, 1, 2))


def element(text: str) -> DType:
    """The row of an element type such as `f32`, `i1`, `ui8`. Raises Refused for others."""
    return element_type(Kind(text, ()))
