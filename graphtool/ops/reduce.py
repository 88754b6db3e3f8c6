"""Reductions over axes, the index of an extreme, and running sums, products, maxima and minima.

Reduced axes stay with size 1.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import ALONG, OVER, Lowering, Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ir.trace import like
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, apply, const, index, iterator
from graphtool.ops.common import (
    Array,
    check_axis,
    composite,
    fail,
    filled,
    in_float32,
    iota_like,
    need,
    took,
)
from graphtool.ops.costs import per_operand
from graphtool.symbolic import Dim, maximum, minimum, product, symbol_of
from graphtool.symbolic.spans import Span, hull, multiplied

Kind = Literal["sum", "prod", "max", "min", "and", "or"]
FN = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}
_NUMPY = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "and": np.all, "or": np.any}

_WORDS = {"sum": "sum", "prod": "product", "max": "maximum", "min": "minimum",
          "and": "logical and", "or": "logical or"}


def identity(kind: str, dtype: DType) -> float | int | bool:
    """The neutral element of a reduction: 0, 1, the least or greatest value, true, false."""
    match kind:
        case "sum":
            return False if dtype is dtypes.bool_ else 0
        case "prod":
            return 1
        case "and":
            return True
        case "or":
            return False
    if dtype is dtypes.bool_:
        return kind == "min"
    if dtype.is_float:
        return -np.inf if kind == "max" else np.inf
    return dtype.low if kind == "max" else dtype.high


def kept_dims(shape: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The shape after a reduction: the reduced axes have size 1.

    Raises TypeMismatch GT0412 if an axis is out of range or given twice.
    """
    axes = tuple(check_axis(a, len(shape)) for a in axes)
    if len(set(axes)) != len(axes):
        raise fail(f"axes {axes} name an axis twice")
    return tuple(1 if i in axes else d for i, d in enumerate(shape))


def _infer(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    return TensorType(x.dtype, kept_dims(x.shape, axes))


_ON_SIZES: dict[str, Callable[[Dim, Dim], Dim]] = {
    "sum": operator.add, "prod": operator.mul, "max": maximum, "min": minimum}
_EMPTY = {"sum": 0, "prod": 1}
_SPANS: dict[str, Callable[..., Span]] = {
    "sum": lambda kinds, x, *, axes: multiplied(
        (0, product(kinds[0].shape[a] for a in axes)), hull((0, 0), x)),
    "max": lambda _, x, *, axes: x, "min": lambda _, x, *, axes: x}


def _declare(kind: Kind) -> None:
    def infer(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
        logical = kind in ("and", "or")
        need(x.dtype is dtypes.bool_ or not logical, "is defined on bool only")
        need(not (x.dtype is dtypes.bool_ and kind in ("sum", "prod")), "is not defined on bool")
        need(x.dtype is not dtypes.string, "is not defined on str")
        return _infer(x, axes=axes)

    @in_float32
    def evaluate(x: Array, *, axes: tuple[int, ...]) -> Array:
        if not axes:
            return x
        axes = tuple(a % x.ndim for a in axes)
        row = dtypes.of_numpy(x.dtype)
        start = identity(kind, row)
        more = {} if kind in ("and", "or") else {"initial": start}
        out = _NUMPY[kind](x, axis=axes, keepdims=True, **more)  # type: ignore[operator]
        return np.asarray(out).astype(x.dtype, copy=False)

    def lower(k: Names, x: Pull, *, axes: tuple[int, ...]) -> Pull:
        return lower_reduce(k, FN[kind], identity(kind, x.dtype), x, axes)

    def vjp(g: Any, y: Any, x: Any, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
        return _gradient(kind, g, y, x, axes)

    def known(_: Any, x: Array, *, axes: tuple[int, ...]) -> Array | None:
        if kind not in _ON_SIZES or (kind not in _EMPTY and not x.size):
            return None
        flat = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim)).reshape(
            *(n for i, n in enumerate(x.shape) if i not in axes), -1)
        out = np.empty(flat.shape[:-1], object)
        for at in np.ndindex(out.shape):
            start = [_EMPTY[kind]] if kind in _EMPTY else []
            out[at] = functools.reduce(_ON_SIZES[kind], [*start, *flat[at]])
        return out.reshape(kept_dims(x.shape, axes))

    register(Op(f"reduce_{kind}", infer, evaluate, vjp if kind not in ("and", "or") else None,
                lower, cost=per_operand, axes=OVER, traits=Trait.REDUCTION | (
                    Trait.LARGEST if kind == "max" else Trait.NONE) | (
                    Trait.NONE if kind in ("sum", "prod") else Trait.EXACT),
                precision=Precision.FOLLOW if kind in ("max", "min") else Precision.HIGH,
                known=known, span=_SPANS.get(kind),
                doc=f"the {_WORDS[kind]} over axes, which stay with size 1"))


def _gradient(kind: str, g: Any, y: Any, x: Any, axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The gradient of reduce_sum, prod, max and min; equal extremes share it in equal parts."""
    axes = tuple(sorted({a % x.ndim for a in axes})) if x.ndim else ()
    if kind == "sum":
        return (o.broadcast(g, shape=x.shape),)
    if kind == "prod":
        return (g * _others(x, axes),)
    share = o.cast(took(x, y), dtype=x.dtype)
    return (g * share / o.reduce_sum(share, axes=axes),)


def _others(x: Any, axes: tuple[int, ...]) -> Any:
    """For each element the product of all others: of those before it times of those after it."""
    if not axes:
        return filled(x, 1.0, x.shape)
    perm = (*(a for a in range(x.ndim) if a not in axes), *axes)
    last = o.transpose(x, perm=perm)
    lead = last.shape[:x.ndim - len(axes)]
    flat = o.reshape(last, shape=(*lead, product(last.shape[len(lead):])))
    before, behind = (o.cumulative(flat, kind="prod", axis=len(lead), exclusive=True, reverse=r)
                      for r in (False, True))
    out = o.reshape(before * behind, shape=last.shape)
    return o.transpose(out, perm=tuple(perm.index(a) for a in range(x.ndim)))


def lower_reduce(k: Names, fn: str, init: Any, x: Pull, axes: tuple[int, ...]) -> Pull:
    """The pull that runs `fn` over the axes of x."""
    shape = kept_dims(x.shape, axes)
    over = [a % len(x.shape) for a in axes if x.shape[a % len(x.shape)] != 1]
    if not over:
        return Pull(x.dtype, shape, x.at)

    def at(idx: Any) -> Reduce:
        iters = tuple((iterator(k.new("r"), x.shape[a]), x.shape[a]) for a in sorted(over))
        full = list(idx)
        for a, (s, _) in zip(sorted(over), iters, strict=True):
            full[a] = symbol_of(s)
        return Reduce(fn, Const(init, x.dtype), iters, x.at(tuple(full)), x.dtype)
    return Pull(x.dtype, shape, at)


for _kind in ("sum", "prod", "max", "min", "and", "or"):
    _declare(_kind)


# ---- arg_reduce --------------------------------------------------------------------------------

def _arg_infer(x: TensorType, *, kind: str, axis: int, last: bool = False) -> TensorType:
    need(kind in ("max", "min"), "kind must be max or min")
    need(x.rank > 0, "is not defined on scalars")
    return TensorType(dtypes.int64, kept_dims(x.shape, (axis,)))


def _arg_eval(x: Array, *, kind: str, axis: int, last: bool) -> Array:
    find = np.argmax if kind == "max" else np.argmin
    if last:
        index = x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=True)
    else:
        index = find(x, axis=axis, keepdims=True)
    return np.asarray(index).astype(np.int64)


def _arg_lower(k: Names, x: Pull, *, kind: str, axis: int, last: bool) -> Pull:
    """First the extreme, then the least (or greatest) index that holds it; NaN counts as an
    extreme."""
    axis %= len(x.shape)
    n = x.shape[axis]
    best = lower_reduce(k, kind, identity(kind, x.dtype), x, (axis,))

    def hit(idx: Any) -> Any:
        value = x.at(idx)
        top = best.at((*idx[:axis], 0, *idx[axis + 1:]))
        equal = apply("eq", value, top, dtype=dtypes.bool_)
        if x.dtype.is_float:
            equal = apply("or", equal, apply("is_nan", value, dtype=dtypes.bool_))
        miss = const(-1, dtypes.int64) if last else index(n)
        return apply("select", equal, index(idx[axis]), miss, dtype=dtypes.int64)

    hits = Pull(dtypes.int64, x.shape, hit)
    init = -1 if last else np.iinfo(np.int64).max
    return lower_reduce(k, "max" if last else "min", int(init), hits, (axis,))


register(Op("arg_reduce", _arg_infer, _arg_eval, None, _arg_lower,
            traits=Trait.REDUCTION, cost=per_operand, axes=ALONG,
            filled=lambda x, *, axis, **_: (x.shape[axis],),
            span=lambda kinds, _, *, axis, **__: (0, kinds[0].shape[axis] - 1),
            doc="the index of the maximum or minimum along an axis, which stays with size 1; the "
                "first of equal elements, or the last with `last`"))


# ---- extreme -----------------------------------------------------------------------------------

def _extreme_vjp(g: Any, y: Any, x: Any, *, kind: str, axis: int) -> Any:
    at = o.arg_reduce(x, kind=kind, axis=axis)
    here = o.eq(iota_like(x, x.shape, axis % x.ndim), at)
    return (o.select(here, o.broadcast(g, shape=x.shape), 0.0),)


@composite(vjp=_extreme_vjp, axes=ALONG, traits=Trait.EXACT)
def extreme(x: Any, *, kind: str, axis: int) -> Any:
    """The greatest or least element along an axis, which stays with size 1; `kind` is max or min.

    The gradient goes to its first position. (That of reduce_max goes to all its positions in equal
    parts.)
    """
    need(kind in ("max", "min"), f"unknown kind {kind!r}")
    return (o.reduce_max if kind == "max" else o.reduce_min)(x, axes=(axis,))


def _cumulative_infer(x: TensorType, *, kind: str, axis: int, reverse: bool = False,
                      exclusive: bool = False) -> TensorType:
    need(kind in ("sum", "prod", "max", "min"), f"unknown kind {kind!r}")
    need(x.rank > 0, "is not defined on scalars")
    check_axis(axis, x.rank)
    return x


@in_float32
def _cumulative_eval(x: Array, *, kind: str, axis: int, reverse: bool,
                     exclusive: bool) -> Array:
    ufunc = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    x = np.flip(x, axis) if reverse else x
    out = np.asarray(ufunc.accumulate(x, axis=axis), x.dtype)
    if exclusive and x.shape[axis]:
        start = np.full_like(np.take(x, [0], axis), identity(kind, dtypes.of_numpy(x.dtype)))
        kept = np.take(out, range(x.shape[axis] - 1), axis)
        out = np.concatenate([start, kept], axis)
    return np.flip(out, axis) if reverse else out


def _cumulative_vjp(g: Any, y: Any, x: Any, *, kind: str, axis: int, reverse: bool,
                    exclusive: bool) -> tuple[Any, ...]:
    """A sum's gradient is a sum in the other direction. Products and extremes use all pairs (i,
    j) for which x[i] contributes to y[j]."""
    axis %= x.ndim
    if kind == "sum":
        return (o.cumulative(g, kind="sum", axis=axis, reverse=not reverse, exclusive=exclusive),)
    perm = (*(a for a in range(x.ndim) if a != axis), axis)
    back = tuple(perm.index(a) for a in range(x.ndim))
    gt, yt, xt = (o.transpose(v, perm=perm) for v in (g, y, x))
    lead, n = xt.shape[:-1], xt.shape[-1]
    column, row = (iota_like(x, (n, 1), 0), iota_like(x, (1, n), 1))  # i and j
    seen = _in_prefix(column, row, reverse, exclusive)
    across = o.reshape(gt, shape=(*lead, 1, n))
    if kind == "prod":
        wide = o.broadcast(o.reshape(xt, shape=(*lead, 1, n)), shape=(*lead, n, n))
        others = o.cumulative(o.select(o.eq(column, row), 1.0, wide), kind="prod",
                              axis=len(lead) + 1, reverse=reverse, exclusive=exclusive)
        pairs = o.select(seen, others * across, 0.0)
    else:
        pairs = o.select(_latest(xt, yt, lead, n, column, seen, reverse), across, 0.0)
    total = o.reduce_sum(pairs, axes=(len(lead) + 1,))
    return (o.transpose(o.reshape(total, shape=xt.shape), perm=back),)


def _in_prefix(i: Any, j: Any, reverse: bool, exclusive: bool) -> Any:
    if reverse:
        return o.gt(i, j) if exclusive else o.ge(i, j)
    return o.lt(i, j) if exclusive else o.le(i, j)


def _latest(x: Any, y: Any, lead: tuple[Dim, ...], n: Dim, column: Any, seen: Any,
            reverse: bool) -> Any:
    """Which x[i] each running extreme y[j] is: the last of equal ones so far, as in torch."""
    at_i, at_j = o.reshape(x, shape=(*lead, n, 1)), o.reshape(y, shape=(*lead, 1, n))
    hit = o.and_(took(at_i, at_j), seen)
    place = o.select(hit, column, n if isinstance(n, int) and reverse else -1)
    if reverse:
        size = like(x, o.dim, of=n, dtype=dtypes.int64)
        best = o.reduce_min(o.select(hit, column, size), axes=(len(lead),))
    else:
        best = o.reduce_max(place, axes=(len(lead),))
    return o.and_(hit, o.eq(column, best))


def _cumulative_lower(k: Names, x: Pull, *, kind: str, axis: int, reverse: bool,
                      exclusive: bool) -> Pull:
    """Each element reduces its own prefix (or suffix)."""
    axis %= len(x.shape)
    n = x.shape[axis]

    def at(idx: Any) -> Reduce:
        i = idx[axis]
        length = (n - i if reverse else i + 1) - int(exclusive)
        r = iterator(k.new("r"), length)
        first = i + int(exclusive) if reverse else 0
        full = (*idx[:axis], first + symbol_of(r), *idx[axis + 1:])
        return Reduce(FN[kind], Const(identity(kind, x.dtype), x.dtype), ((r, length),),
                      x.at(full), x.dtype)
    return Pull(x.dtype, x.shape, at)


register(Op("cumulative", _cumulative_infer, _cumulative_eval, _cumulative_vjp, _cumulative_lower,
            lowering=Lowering.STATEMENTS, cost=per_operand, axes=ALONG,
            doc="the running sum, product, maximum or minimum along an axis; with `exclusive` an "
                "element does not count for its own result, `reverse` starts at the end"))
