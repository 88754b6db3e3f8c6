"""Elementwise ops: by the table of names; forms, bodies and definitions for the ops that it
lacks."""

from __future__ import annotations

import math
from typing import Any

from graphtool.dtypes import DType
from graphtool.exporters.stablehlo.kit import Ref, Writer, body, definition, dtypes, form, o, takes
from graphtool.exporters.stablehlo.operands import compared, dtype_of, logical, repeated, scalar
from graphtool.exporters.stablehlo.registry import named
from graphtool.exporters.stablehlo.text import tensor
from graphtool.front.names import written
from graphtool.ir.graph import Node
from graphtool.ops.elementwise import saturation

_BOOLEAN = {"max": "or", "min": "and"}
_NEUTRAL = {"max": -math.inf, "min": math.inf}


@form(*written("hlo"))
def by_name(w: Writer, node: Node, *xs: Any) -> Ref:
    """The operation that the table of names has, on operands of the result's shape. Declined where
    an operand is neutral, which a reader leaves out."""
    to, dtype = node.outputs[0].type, dtype_of(xs)
    takes(_NEUTRAL.get(node.op.name) not in xs or not to.dtype.is_float)
    there = named(node.op.name, dtype)
    operands = [repeated(w, x, dtype, to.shape) for x in xs]
    dialect, _, name = there.name.rpartition(".")
    if dialect == "compare":
        return compared(w, name, operands[0], operands[1], node.op.name)
    if not dialect:
        return w(name, *operands, to=to)
    types = ", ".join(tensor(x.type) for x in operands)
    return w.put(f"{there.name} {', '.join(x.name for x in operands)} : {types} -> "
                 f"{tensor(to)}", to, name)


@body(*_NEUTRAL)
def extreme(w: Writer, node: Node, *xs: Any) -> Ref:
    """The operation, also where an operand is neutral. The maximum of truth values is `or`, their
    minimum `and`."""
    to, op = node.outputs[0].type, node.op.name
    there = named(_BOOLEAN[op] if to.dtype is dtypes.bool_ else op, to.dtype)
    return w(there.name, *(repeated(w, x, to.dtype, to.shape) for x in xs), to=to)


@definition("abs")
def _abs_of_unsigned(x: Any) -> Any:
    return x


@definition("sign")
def _sign_of_unsigned(x: Any) -> Any:
    return o.min(x, 1)


@definition("is_nan")
def _is_nan(x: Any) -> Any:
    return o.ne(x, x)


@definition("is_inf")
def _is_inf(x: Any) -> Any:
    return o.eq(o.abs(x), float("inf"))


# ---- division, powers, shifts ------------------------------------------------------------------

_DIVISION = {"div": "divide", "rem": "remainder"}


@form(*_DIVISION)
def divide(w: Writer, node: Node, *xs: Any) -> Ref:
    """Division, where the divisor cannot be an integer 0, which StableHLO does not define."""
    to = node.outputs[0].type
    takes(to.dtype.is_float or (not isinstance(xs[1], Ref) and xs[1] != 0))
    return w(_DIVISION[node.op.name], *(repeated(w, x, to.dtype, to.shape) for x in xs), to=to)


@body(*_DIVISION)
def divide_integers(w: Writer, node: Node, *xs: Any) -> Ref:
    """Division of integers: 0 where the divisor is 0."""
    to = node.outputs[0].type
    a, b = (repeated(w, x, to.dtype, to.shape) for x in xs)
    zero, one = (repeated(w, v, to.dtype, to.shape) for v in (0, 1))
    no = compared(w, "EQ", b, zero, "zero")
    safe = w("select", no, one, b, to=to)
    return w("select", no, zero, w(_DIVISION[node.op.name], a, safe, to=to), to=to)


@definition("mod")
def _mod(a: Any, b: Any) -> Any:
    """The remainder, plus b where it has the other sign than b."""
    rest = o.rem(a, b)
    if rest.dtype.kind == "uint":
        return rest
    other = o.ne(o.lt(rest, 0), o.lt(b, 0) if not isinstance(b, (int, float)) else b < 0)
    return o.select(o.and_(o.ne(rest, 0), other), rest + b, rest)


@form("pow")
def power(w: Writer, node: Node, *xs: Any) -> Ref:
    """A power of floats, or of integers with an exponent that is not negative."""
    to = node.outputs[0].type
    literal = not isinstance(xs[1], Ref)
    takes(to.dtype.is_float or to.dtype.kind == "uint" or (literal and xs[1] >= 0))
    return w("power", *(repeated(w, x, to.dtype, to.shape) for x in xs), to=to)


@definition("pow")
def _power_of_integers(a: Any, b: Any) -> Any:
    """With a negative exponent 1 and −1 are left, and everything else is cut to 0."""
    one = a if not isinstance(a, (int, float)) else o.add(o.mul(b, 0), a)
    odd = o.ne(o.rem(b, 2), 0)
    below = o.select(o.eq(one, 1), 1, o.select(o.eq(one, -1), o.select(
        odd, -1, o.add(o.mul(b, 0), 1)), 0))
    return o.select(o.lt(b, 0), below, _unsigned_power(one, o.max(b, 0)))


def _unsigned_power(a: Any, b: Any) -> Any:
    """aᵇ for b ≥ 0, by the squares of a for the bits of b: the bits of the result are right."""
    out, square = None, a
    for bit in range(a.dtype.bits - 1):
        factor = o.select(o.eq(o.and_(o.shift_right(b, bit), 1), 1), square, 1)
        out = factor if out is None else o.mul(out, factor)
        square = o.mul(square, square)
    return out


_SHIFT = {"shift_left": "shift_left", "shift_right": "shift_right_arithmetic"}


@form(*_SHIFT)
def shift(w: Writer, node: Node, *xs: Any) -> Ref:
    """A shift by a literal below the width of the type."""
    to = node.outputs[0].type
    takes(not isinstance(xs[1], Ref) and 0 <= xs[1] < to.dtype.bits)
    return w(_shift_of(node, to.dtype), *(repeated(w, x, to.dtype, to.shape) for x in xs), to=to)


def _shift_of(node: Node, dtype: DType) -> str:
    name = _SHIFT[node.op.name]
    return "shift_right_logical" if name != "shift_left" and dtype.kind == "uint" else name


@body(*_SHIFT)
def shift_by_any(w: Writer, node: Node, *xs: Any) -> Ref:
    """A shift that is defined for every count: by all bits where it is negative or too large."""
    to = node.outputs[0].type
    a, b = (repeated(w, x, to.dtype, to.shape) for x in xs)
    last = repeated(w, to.dtype.bits - 1, to.dtype, to.shape)
    zero = repeated(w, 0, to.dtype, to.shape)
    beyond = logical(w, "or", compared(w, "LT", b, zero), compared(w, "LT", last, b))
    count = w("select", beyond, last, b, to=to)
    moved = w(_shift_of(node, to.dtype), a, count, to=to)
    if _shift_of(node, to.dtype) == "shift_right_arithmetic":
        return moved
    return w("select", beyond, zero, moved, to=to)


# ---- select, clamp, casts ----------------------------------------------------------------------

@form("select")
def select(w: Writer, node: Node, cond: Ref, a: Any, b: Any) -> Ref:
    """A choice; the condition may be a scalar."""
    to = node.outputs[0].type
    cond = cond if not cond.shape else repeated(w, cond, dtypes.bool_, to.shape)
    return w("select", cond, *(repeated(w, x, to.dtype, to.shape) for x in (a, b)), to=to)


@form("clamp")
def clamp(w: Writer, node: Node, x: Ref, lo: Any, hi: Any) -> Ref:
    """A clamp with both bounds; scalars and literals stay scalars."""
    takes(lo is not None and hi is not None)
    to = node.outputs[0].type
    ends = [scalar(w, v, to.dtype) for v in (lo, hi)]
    if any(v.shape for v in ends):
        ends = [repeated(w, v, to.dtype, to.shape) for v in ends]
    return w("clamp", ends[0], repeated(w, x, to.dtype, to.shape), ends[1], to=to)


@definition("clamp")
def _clamp_on_one_side(x: Any, lo: Any, hi: Any) -> Any:
    return o.max(x, lo) if hi is None else o.min(x, hi) if lo is None else x


@form("cast")
def cast(w: Writer, node: Node, x: Ref) -> Ref:
    """A conversion to another type, in one step; only to narrow floats it does not saturate."""
    to = node.outputs[0].type.dtype
    takes(to is not x.dtype and not (to.is_packed and x.dtype.is_packed)
          and node.attrs["saturate"] is not _is_narrow(to))
    return converted(w, node, x)


@body("cast")
def converted(w: Writer, node: Node, x: Ref) -> Ref:
    """A conversion."""
    to = node.outputs[0].type
    takes(not (_is_narrow(to.dtype) and node.attrs["saturate"]))
    return x if x.type == to else w("convert", x, to=to)


def _is_narrow(dtype: DType) -> bool:
    """Whether a type is a float of at most 8 bits, a cast to which may saturate."""
    return dtype.is_float and dtype.bits <= 8


@definition("cast")
def _saturating(x: Any, *, dtype: DType, saturate: bool) -> Any:
    wide = x if x.dtype.is_float and x.dtype.bits > 8 else o.cast(x, dtype=dtypes.float32)
    lo, hi = saturation(dtype)
    return o.cast(o.clamp(wide, lo, hi), dtype=dtype, saturate=False)


@form("bitcast")
def bitcast(w: Writer, node: Node, x: Ref) -> Ref:
    """The same bits as another type."""
    takes(x.dtype is not node.outputs[0].type.dtype)
    return w("bitcast_convert", x, to=node.outputs[0].type)
