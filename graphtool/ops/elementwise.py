"""Elementwise ops: one op for each row of the scalars table; then select, clamp, cast and bitcast.

They broadcast as in NumPy and need equal element types; an operand may be a Python number.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, PExpr, Pull, apply, cast, const, decided
from graphtool.ops.common import (
    Array,
    as_array,
    as_pull,
    broadcast_shapes,
    fail,
    literal_fits,
    need,
    tensors,
)
from graphtool.ops.costs import nothing, per_result
from graphtool.ops.strings import as_text, from_text
from graphtool.scalars.table import FLOAT, TABLE, Scalar
from graphtool.symbolic import Entry, Poly, compared
from graphtool.symbolic.conditions import chosen
from graphtool.symbolic.spans import Span, hull, larger, rounded, smaller

_KIND = {"float": "float", "int": "int", "uint": "int", "bool": "bool", "string": "string"}


def common_dtype(xs: tuple[Any, ...]) -> DType:
    """The element type that all tensor operands have; literals must fit it."""
    types = tensors(xs)
    need(bool(types), "at least one operand must be a tensor")
    first = types[0].dtype
    for t in types[1:]:
        need(t.dtype is first, f"element types differ: {first.short} and {t.dtype.short}")
    for x in xs:
        if not isinstance(x, TensorType):
            need(literal_fits(x, first), f"the literal {x!r} does not fit {first.short}")
    return first


def declare(row: Scalar) -> Op:
    """Register the elementwise op of a scalar function."""
    def infer(*xs: Any) -> TensorType:
        need(len(xs) == row.arity, f"takes {row.arity} operands, got {len(xs)}")
        dtype = common_dtype(xs)
        need(_KIND[dtype.kind] in row.kinds and not (row.bits and dtype.is_narrow),
             f"is not defined on {dtype.short}")
        shape = broadcast_shapes(*(t.shape for t in tensors(xs)))
        return TensorType(dtypes.bool_ if row.result == "bool" else dtype, shape)

    def evaluate(*xs: Any) -> Array:
        dtype = next(x.dtype for x in xs if not isinstance(x, (bool, int, float)))
        out = np.asarray(row.numpy(*(as_array(x, dtype) for x in xs)))
        return out if row.result == "bool" else out.astype(dtype, copy=False)

    def lower(_: Names, *xs: Any) -> Pull:
        dtype = next(x.dtype for x in xs if isinstance(x, Pull))
        pulls = [as_pull(x, dtype) for x in xs]
        result = dtypes.bool_ if row.result == "bool" else dtype

        def at(idx: Any) -> PExpr:
            args = [p.at_broadcast(idx) for p in pulls]
            known = decided(row.name, *args) if row.arity == 2 else None
            return apply(row.name, *args, dtype=result) if known is None else const(known, result)
        return Pull(result, broadcast_shapes(*(p.shape for p in pulls)), at)

    def vjp(g: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return row.derivative(o, g, y, *xs)  # type: ignore[misc]

    def decompose(*xs: Any) -> Any:
        return row.decompose(o, *xs)  # type: ignore[misc]

    def span(kinds: tuple[Any, ...], *xs: Span) -> Span:
        integers = any(t.dtype.is_integer for t in tensors(kinds))
        return row.span(*xs, integers) if row.arity > 1 else row.span(*xs)  # type: ignore[misc]

    return register(Op(row.name, infer, evaluate, vjp if row.derivative else None, lower,
                       traits=Trait.ELEMENTWISE | _traits(row),
                       cost=per_result(row.flops), doc=row.doc, known=row.known,
                       span=span if row.span else None,
                       decompose=decompose if row.decompose else None,
                       precision=Precision.HIGH if row.wide else Precision.FOLLOW))


def _traits(row: Scalar) -> Trait:
    one_instruction = row.prec and row.flops == 1 and FLOAT in row.kinds
    picks = row.name in ("max", "min")
    return ((Trait.COMMUTATIVE if row.commutative else Trait.NONE)
            | (Trait.LIGHT if one_instruction else Trait.NONE)
            | (Trait.EXACT if row.exact else Trait.NONE)
            | (Trait.ADDS if row.adds else Trait.NONE)
            | (Trait.BITS if row.bits else Trait.NONE)
            | (Trait.PICKS if picks else Trait.NONE))


for _row in TABLE:
    declare(_row)


# ---- select ------------------------------------------------------------------------------------

def _select_infer(cond: Any, a: Any, b: Any) -> TensorType:
    need(isinstance(cond, TensorType) and cond.dtype is dtypes.bool_, "the condition must be bool")
    return TensorType(common_dtype((a, b)),
                      broadcast_shapes(cond.shape, *(t.shape for t in tensors((a, b)))))


def _select_eval(cond: Array, a: Any, b: Any) -> Array:
    dtype = next(x.dtype for x in (a, b) if not isinstance(x, (bool, int, float)))
    out = np.where(cond, as_array(a, dtype), as_array(b, dtype))
    return np.asarray(out).astype(dtype, copy=False)


def _select_lower(_: Names, cond: Pull, a: Any, b: Any) -> Pull:
    dtype = next(x.dtype for x in (a, b) if isinstance(x, Pull))
    pulls = (cond, as_pull(a, dtype), as_pull(b, dtype))
    return Pull(dtype, broadcast_shapes(*(p.shape for p in pulls)), lambda idx: apply(
        "select", *(p.at_broadcast(idx) for p in pulls), dtype=dtype))


def _select_vjp(g: Any, _y: Any, cond: Any, _a: Any, _b: Any) -> tuple[Any, ...]:
    return None, o.select(cond, g, 0.0), o.select(cond, 0.0, g)


register(Op("select", _select_infer, _select_eval, _select_vjp, _select_lower,
            traits=Trait.ELEMENTWISE | Trait.LIGHT | Trait.PICKS, cost=per_result(),
            precision=Precision.FOLLOW, alike=(1, 2),
            known=lambda _, cond, a, b: chosen(cond, a, b),
            span=lambda _, cond, a, b: hull(a, b), doc="a where cond is true, else b"))


# ---- clamp: min(max(x, lo), hi), NaN stays ------------------------------------------------------

def _clamp_infer(x: TensorType, lo: Any, hi: Any) -> TensorType:
    need(isinstance(x, TensorType), f"what is clamped must be a tensor, got {x}")
    types = tensors((x, lo, hi))
    dtype = common_dtype(tuple(v for v in (x, lo, hi) if v is not None))
    return TensorType(dtype, broadcast_shapes(*(t.shape for t in types)))


def _clamp(x: Any, lo: Any, hi: Any) -> Any:
    x = x if lo is None else o.max(x, lo)
    return x if hi is None else o.min(x, hi)


def _clamp_lower(_: Names, x: Pull, lo: Any, hi: Any) -> Pull:
    parts = [(fn, as_pull(v, x.dtype)) for fn, v in (("max", lo), ("min", hi)) if v is not None]
    shape = broadcast_shapes(x.shape, *(p.shape for _, p in parts))

    def at(idx: Any) -> Any:
        out = x.at_broadcast(idx)
        for fn, p in parts:
            out = apply(fn, out, p.at_broadcast(idx))
        return out
    return Pull(x.dtype, shape, at)


def _clamp_vjp(g: Any, _y: Any, x: Any, lo: Any, hi: Any) -> tuple[Any, ...]:
    # at the bounds themselves the gradient is that of x, as in torch; hi wins over lo
    over = None if hi is None else o.gt(x if lo is None else o.max(x, lo), hi)
    inner = g if over is None else o.select(over, 0.0, g)
    gx = inner if lo is None else o.select(o.lt(x, lo), 0.0, inner)
    glo = None if lo is None else o.select(o.lt(x, lo), inner, 0.0)
    ghi = None if over is None else o.select(over, g, 0.0)
    return gx, glo, ghi


def _clamp_span(kinds: tuple[Any, ...], x: Span, lo: Span, hi: Span) -> Span:
    x = x if kinds[1] is None else larger(x, lo)
    return x if kinds[2] is None else smaller(x, hi)


register(Op("clamp", _clamp_infer,
            lambda x, lo, hi: np.asarray(_clamp(x, lo, hi)), _clamp_vjp, _clamp_lower,
            traits=Trait.ELEMENTWISE | Trait.PICKS, cost=per_result(2), span=_clamp_span,
            precision=Precision.FOLLOW, doc="min(max(x, lo), hi); a bound may be left out"))


# ---- cast and bitcast --------------------------------------------------------------------------

def cast_array(x: Array, to: DType, saturate: bool = True) -> Array:
    """numpy's cast, defined for all values: floats outside an integer type's range are clamped
    to it, NaN becomes 0."""
    source = dtypes.of_numpy(x.dtype)
    if to is dtypes.string or source is dtypes.string:
        return as_text(x) if to is dtypes.string else from_text(x, to)
    with np.errstate(all="ignore"):
        if to is dtypes.bool_:
            return np.asarray(x != 0)
        if source.is_float and to.is_integer:
            wide = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0)
            inside = np.clip(wide, float(to.low), float(to.high))
            if to.is_packed:
                return np.asarray(inside).astype(np.int8).astype(to.numpy)
            return np.where(wide >= float(to.high), np.asarray(to.high, to.numpy),
                            inside.astype(to.numpy))
        if to.is_float and to.bits <= 8 and saturate:
            x = np.clip(x, *saturation(to))  # NaN stays
        return np.asarray(x.astype(to.numpy))


def saturation(to: DType) -> tuple[float, float]:
    """The range to which a saturating cast to a narrow float clamps."""
    info = ml_dtypes.finfo(to.numpy)
    return float(info.min), float(info.max)


def _cast_lower(_: Names, x: Pull, *, dtype: DType, saturate: bool) -> Pull:
    if not (dtype.is_float and dtype.bits <= 8 and saturate):
        return Pull(dtype, x.shape, lambda idx: cast(x.at(idx), dtype))
    lo, hi = (const(v, x.dtype if x.dtype.bits > 8 and x.dtype.is_float else dtypes.float32)
              for v in saturation(dtype))
    return Pull(dtype, x.shape, lambda idx: cast(
        apply("min", apply("max", cast(x.at(idx), lo.dtype), lo), hi), dtype))


def _cast_vjp(g: Any, _y: Any, x: Any, *, dtype: DType, saturate: bool) -> tuple[Any, ...]:
    return (o.cast(g, dtype=x.dtype) if dtype.is_float and x.dtype.is_float else None,)


def _cast_known(_: DType, x: Entry, *, dtype: DType, saturate: bool) -> Entry | None:
    """A size stays the same number in a type that is wide enough; as a bool it is whether it is
    not 0."""
    if dtype is dtypes.bool_:
        return compared("!=", x, 0) if isinstance(x, (int, Poly)) else x
    wide = dtype.bits >= 32 and (dtype.is_integer or dtype.is_float)
    return x if wide and isinstance(x, (int, Poly)) and not isinstance(x, bool) else None


def _cast_infer(x: TensorType, *, dtype: DType, saturate: bool = True) -> TensorType:
    return TensorType(dtype, x.shape)


register(Op("cast", _cast_infer, lambda x, *, dtype, saturate: cast_array(x, dtype, saturate),
            _cast_vjp, _cast_lower,
            traits=Trait.ELEMENTWISE | Trait.CONVERTS, category="data", cost=per_result(),
            precision=Precision.FOLLOW, known=_cast_known,
            span=lambda _, x, *, dtype, saturate: x if dtype.is_float else rounded(x),
            doc="x converted to another element type; float to integer truncates and clamps, NaN "
                "gives 0"))


def _bitcast_infer(x: TensorType, *, dtype: DType) -> TensorType:
    if x.dtype.bits != dtype.bits:
        raise fail(f"{x.dtype.short} and {dtype.short} must have the same size")
    return TensorType(dtype, x.shape)


register(Op("bitcast", _bitcast_infer, lambda x, *, dtype: dtypes.read_bits(x, dtype), None,
            lambda _, x, *, dtype: Pull(
                dtype, x.shape, lambda idx: apply("bitcast", x.at(idx), dtype=dtype)),
            traits=Trait.ELEMENTWISE | Trait.BITS, category="data",
            cost=nothing, traffic=nothing, precision=Precision.FOLLOW,
            doc="the bits of x read as another element type of the same size"))

