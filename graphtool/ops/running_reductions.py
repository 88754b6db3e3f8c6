"""Running sums, products, maxima and minima along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.axes import ALONG
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ir.trace import like
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, iterator
from graphtool.ops.common import Array, check_axis, in_float32, iota_like, need, took
from graphtool.ops.costs import per_operand
from graphtool.ops.reduce import FN, identity
from graphtool.symbolic import Dim, symbol_of


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
