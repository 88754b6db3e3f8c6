"""Rules of arithmetic, logic, select and cast. Exact means equal under ==, and NaN where NaN was.

`x + 0` may change the sign of a zero; no other exact rule here changes a bit of a float.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import TABLE, DType, float32
from graphtool.ir.facets import Trait
from graphtool.ops.common import broadcast_shapes
from graphtool.rewrite.engine import (
    array_of,
    family_rule,
    is_number,
    number_of,
    rule,
    stated,
    with_trait,
)

# ---- constants --------------------------------------------------------------------------------

@family_rule(*(n for n in with_trait(Trait.ELEMENTWISE) if n not in (o.cast, o.bitcast)))
def constant_to_literal(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """f(x, c) = f(x, number), if all elements of c are that number and x gives the shape"""
    numbers = [_number(x) for x in xs]
    if op in (o.select, o.clamp):
        numbers[0] = None
    for i, number in enumerate(numbers):
        rest = [x for j, x in enumerate(xs) if j != i and hasattr(x, "shape")]
        typed = rest[op.alike[0]:] if op.alike else rest  # one tensor must give the type
        if number is None or not typed or broadcast_shapes(*(x.shape for x in rest)) != type.shape:
            continue
        return op(*xs[:i], number, *xs[i + 1:], **attrs)
    return None


def _number(x: Any) -> Any:
    array = array_of(x)
    if array is None or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    flat = array.reshape(-1)
    if flat[0] != flat[-1] or flat[0] != flat[array.size // 2]:  # most weights, without a copy
        return None
    same = array.size == 1 or flat.tobytes() == flat[:1].tobytes() * flat.size
    return flat[0].item() if same else None


# ---- neutral elements --------------------------------------------------------------------------


@rule(lambda x: x + 0)
def add_zero(x: Any) -> Any:
    """x + 0 = x"""
    return x


@rule(lambda x: x - 0)
def sub_zero(x: Any) -> Any:
    """x − 0 = x"""
    return x


@rule(lambda x: x * 1)
def mul_one(x: Any) -> Any:
    """x · 1 = x"""
    return x


@rule(lambda x: x / 1)
def div_one(x: Any) -> Any:
    """x / 1 = x"""
    return x


@rule(lambda x: x * -1)
def mul_minus_one(x: Any) -> Any:
    """x · −1 = −x"""
    return o.neg(x)


@rule(lambda x: x * 0)
def mul_zero(x: Any) -> Any:
    """n · 0 = 0 for integers; a float may be NaN or infinite"""
    if is_number(x) or x.dtype.is_float:
        return None
    return x.builder.constant(np.zeros((), x.dtype.numpy))


@rule(lambda x: o.pow(x, 1))
def pow_one(x: Any) -> Any:
    """x¹ = x"""
    return x


@rule(lambda x: o.pow(x, 2))
def pow_two(x: Any) -> Any:
    """x² = x · x; both sides round once"""
    return x * x


@rule(lambda x: o.pow(x, 3), needs="reassociated")
def pow_three(x: Any) -> Any:
    """x³ = x · x · x"""
    return x * x * x


@rule(lambda x: o.div(1, o.sqrt(x)))
def reciprocal_root(x: Any) -> Any:
    """1 / √x = rsqrt x, by its definition"""
    return o.rsqrt(x)


@rule(lambda x, c: x / c)
def div_by_power_of_two(x: Any, c: Any) -> Any:
    """x / 2ⁿ = x · 2⁻ⁿ, if x's type holds both powers"""
    if not is_number(c) or not x.dtype.is_float or c == 0 or not math.isfinite(c):
        return None
    mantissa, exponent = math.frexp(c)
    if abs(mantissa) != 0.5 or abs(exponent) >= 100:
        return None
    with np.errstate(over="ignore"):
        held = all(float(x.dtype.numpy.type(n)) == n for n in (c, 1 / c))
    return x * (1 / c) if held else None


# ---- signs -------------------------------------------------------------------------------------

@rule(lambda x: o.neg(o.neg(x)))
def neg_neg(x: Any) -> Any:
    """−(−x) = x"""
    return x


@rule(lambda x, y: x + o.neg(y))
def add_neg(x: Any, y: Any) -> Any:
    """x + (−y) = x − y"""
    return o.sub(x, y)


@rule(lambda x, y: x - o.neg(y))
def sub_neg(x: Any, y: Any) -> Any:
    """x − (−y) = x + y"""
    return o.add(x, y)


@rule(lambda x: o.abs(o.neg(x)))
def abs_neg(x: Any) -> Any:
    """|−x| = |x| for numbers with a sign; without one −x is 2ⁿ − x"""
    signed = x.dtype.is_float or (x.dtype.is_integer and x.dtype.low < 0)
    return o.abs(x) if signed else None


@rule(lambda x: o.abs(o.abs(x)))
def abs_abs(x: Any) -> Any:
    """||x|| = |x|"""
    return o.abs(x)


# ---- logic and choice --------------------------------------------------------------------------

@rule(lambda x: o.not_(o.not_(x)))
def not_not(x: Any) -> Any:
    """¬¬x = x"""
    return x


@rule(lambda x, y: o.not_(o.eq(x, y)))
def not_eq(x: Any, y: Any) -> Any:
    """¬(x = y) = (x ≠ y), also for NaN"""
    return o.ne(x, y)


@rule(lambda x, y: o.not_(o.ne(x, y)))
def not_ne(x: Any, y: Any) -> Any:
    """¬(x ≠ y) = (x = y), also for NaN"""
    return o.eq(x, y)


@rule(lambda x, a, b: o.gt(o.max(x, a), b))
def gt_max(x: Any, a: Any, b: Any) -> Any:
    """(max(x, a) > b) = (x > b) for floats a ≤ b, also for NaN"""
    first, second = number_of(a), number_of(b)
    if first is None or second is None or is_number(x) or not x.dtype.is_float:
        return None
    return o.gt(x, b) if first <= second else None


@family_rule(o.and_, o.or_, o.max, o.min)
def idempotent(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """f(x, x) = x"""
    return xs[0] if getattr(xs[0], "value", 0) is getattr(xs[1], "value", 1) else None


@rule(lambda c, x: o.select(c, x, x))
def select_same(c: Any, x: Any) -> Any:
    """select(c, x, x) = x"""
    return None if isinstance(x, (int, float)) else x


@rule(lambda c, x, y: o.select(o.not_(c), x, y))
def select_not(c: Any, x: Any, y: Any) -> Any:
    """select(¬c, x, y) = select(c, y, x)"""
    return o.select(c, y, x)


@rule(lambda a, x, b, z, y: o.select(a, x, o.select(b, z, y)), once=True)
def select_select(a: Any, x: Any, b: Any, z: Any, y: Any) -> Any:
    """select(a, x, select(b, x, y)) = select(a ∨ b, x, y)"""
    # 0 and -0 are different numbers; compilers make a branch of choices in each other's arms
    same = x.value is z.value if hasattr(x, "value") and hasattr(z, "value") else (
        repr(x) == repr(z))
    return o.select(o.or_(a, b), x, y) if same else None


@family_rule(o.select)
def select_known(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """select(c, x, y) = x or y, if the constant c is true everywhere or false everywhere"""
    cond = array_of(xs[0])
    if cond is None or not cond.size or not (cond.all() or not cond.any()):
        return None
    chosen = xs[1] if cond.flat[0] else xs[2]
    return None if isinstance(chosen, (int, float)) else chosen


# ---- literals ----------------------------------------------------------------------------------

@rule(lambda x, a, b: (x + a) + b)
def add_add(x: Any, a: Any, b: Any) -> Any:
    """(n + a) + b = n + (a + b) for integers"""
    first, second = array_of(a), array_of(b)
    if first is None or second is None or not x.dtype.is_integer:
        return _chain(x, a, b, o.add, np.add, False)
    with np.errstate(all="ignore"):
        both = x.builder.constant(first + second)
    return o.add(x, both) if array_of(x) is None else None


@rule(lambda x, a, b: (x * a) * b)
def mul_mul(x: Any, a: Any, b: Any) -> Any:
    """(n · a) · b = n · (a · b) for integers"""
    return _chain(x, a, b, o.mul, np.multiply, False)


@rule(lambda x, a, b: (x + a) + b, needs="reassociated")
def add_add_float(x: Any, a: Any, b: Any) -> Any:
    """(x + a) + b = x + (a + b)"""
    return _chain(x, a, b, o.add, np.add, True)


@rule(lambda x, a, b: (x * a) * b, needs="reassociated")
def mul_mul_float(x: Any, a: Any, b: Any) -> Any:
    """(x · a) · b = x · (a · b)"""
    return _chain(x, a, b, o.mul, np.multiply, True)


def _chain(x: Any, a: Any, b: Any, op: Any, fn: Any, floats: bool) -> Any:
    if not (is_number(a) and is_number(b)) or is_number(x) or x.dtype.is_float is not floats:
        return None
    with np.errstate(all="ignore"):
        both = fn(np.asarray(a, x.dtype.numpy), np.asarray(b, x.dtype.numpy)).item()
    return op(x, both) if math.isfinite(both) else None


@rule(lambda x, a, b: o.max(o.max(x, a), b))
def max_max(x: Any, a: Any, b: Any) -> Any:
    """max(max(x, a), b) = max(x, max(a, b))"""
    return o.max(x, max(a, b)) if _ordered(a, b) else None


@rule(lambda x, a, b: o.min(o.min(x, a), b))
def min_min(x: Any, a: Any, b: Any) -> Any:
    """min(min(x, a), b) = min(x, min(a, b))"""
    return o.min(x, min(a, b)) if _ordered(a, b) else None


def _ordered(a: Any, b: Any) -> bool:
    return is_number(a) and is_number(b) and not (math.isnan(a) or math.isnan(b))


# ---- cast --------------------------------------------------------------------------------------

@family_rule(o.cast)
def cast_same(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """cast(x, t) = x, if x has the type t"""
    return xs[0] if xs[0].dtype is attrs["dtype"] else None


@rule(lambda x, a, b, s, t: o.cast(o.cast(x, dtype=a, saturate=s), dtype=b, saturate=t))
def cast_cast(x: Any, a: Any, b: Any, s: Any, t: Any) -> Any:
    """cast(cast(x, a), b) = cast(x, b), if a holds every value of x's type"""
    return o.cast(x, dtype=b, saturate=t) if _holds(a, x.dtype) else None


@rule(lambda x, lo, hi, a, b, s, t: o.cast(o.cast(o.clamp(x, lo, hi), dtype=a, saturate=s),
                                           dtype=b, saturate=t))
def cast_cast_clamp(x: Any, lo: Any, hi: Any, a: Any, b: Any, s: Any, t: Any) -> Any:
    """cast(cast(clamp(x, lo, hi), a), b) = cast(clamp(x, lo, hi), b), if the integer types a and b
    hold all of [lo, hi]"""
    least, most = number_of(lo), number_of(hi)
    if least is None or most is None or not (x.dtype.is_float and a.is_integer and b.is_integer):
        return None
    fits = max(a.low, b.low) <= least and most <= min(a.high, b.high)
    return o.cast(o.clamp(x, lo, hi), dtype=b, saturate=t) if fits else None


@rule(lambda x, lo, hi, d, s: o.cast(o.clamp(x, lo, hi), dtype=d, saturate=s))
def cast_clamp(x: Any, lo: Any, hi: Any, d: Any, s: Any) -> Any:
    """cast(clamp(x, lo, hi)) = cast(x), if [lo, hi] holds all values of a short integer type"""
    if not x.dtype.is_float or not d.is_integer or d.bits > 16:
        return None
    least, most = number_of(lo), number_of(hi)
    fits = least is not None and most is not None and least <= d.low and d.high <= most
    return o.cast(x, dtype=d, saturate=s) if fits else None


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is a value of `wide`."""
    if wide.name not in _PLAIN or narrow.name not in _PLAIN:
        return wide is narrow
    return bool(np.can_cast(narrow.numpy, wide.numpy, "safe")) and wide.kind != "bool" and (
        not wide.is_float or narrow.is_float or narrow.bits <= (24 if wide is float32 else 53))


_PLAIN = {row.name for row in TABLE
          if not isinstance(row.source, str) and row.source.kind in "fiub"}

ALGEBRA = stated(__name__)
