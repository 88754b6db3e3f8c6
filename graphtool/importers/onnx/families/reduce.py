"""Reductions, arg-reductions, running sums, softmax, TopK, losses, Det."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.front.names import Word, meaning, read
from graphtool.importers.onnx.driver.claims import agreed
from graphtool.importers.onnx.driver.values import (
    array_of,
    axes_of,
    axis_of,
    dims,
    ints,
    one,
)
from graphtool.importers.onnx.families import computed_axes
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Dim, Refused, add, dtypes, o, onnx_op, product

# ---- reductions --------------------------------------------------------------------------------

Body = Callable[[Any, tuple[int, ...]], Any]


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    return o.reduce_sum(x, axes=axes)


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    if x.dtype.is_float:
        return o.reduce_mean(x, axes=axes)
    count = product(x.shape[a] for a in axes)
    if not isinstance(count, int):
        raise Refused("the mean of integers over a symbolic size is not supported; cast to float "
                      "first")
    return _sum(x, axes) / count


def _as_float(body: Body) -> Body:
    """The same reduction for integers too: computed in float64 and truncated back."""
    def run(x: Any, axes: tuple[int, ...]) -> Any:
        row = x.dtype
        return body(x, axes) if row.is_float else body(x.cast(dtypes.float64), axes).cast(row)
    return run


_OTHERS: dict[str, Body] = {
    "ReduceL1": lambda x, axes: _sum(abs(x), axes),
    "ReduceL2": _as_float(lambda x, axes: o.sqrt(_sum(x * x, axes))),
    "ReduceSumSquare": lambda x, axes: _sum(x * x, axes),
    "ReduceLogSum": _as_float(lambda x, axes: o.log(_sum(x, axes)))}
_WITH_RULES = {"reduce_mean": _mean,
               "logsumexp": _as_float(lambda x, axes: o.logsumexp(x, axes=axes))}


def _named(words: tuple[Word, ...]) -> Body:
    return lambda x, axes: meaning(words, x.dtype).fn(x, axes=axes)


def _reduction(body: Body) -> Callable[..., Any]:
    def handler(x: Any, at: Any = None, *, axes: Any = None, keepdims: int = 1,
                noop_with_empty_axes: int = 0, ctx: Any) -> Any:
        if at is not None and array_of(at) is None and product(at.shape) != 0:
            return computed_axes.reduced(x, at, body, bool(keepdims), bool(noop_with_empty_axes),
                                         ctx)
        axes = ints(at, "the axes") if at is not None else axes
        if not axes:
            if noop_with_empty_axes:  # what is done to each element is done, nothing is reduced
                return body(x, ()) if body is not _mean else x
            axes = range(x.ndim)
        over = axes_of(axes, x.ndim) if x.ndim else ()
        y = body(x, over)
        return y if keepdims else dropped(y, over)
    return handler


def dropped(x: Any, axes: tuple[int, ...]) -> Any:
    """x reshaped without the given axes, which have size 1."""
    return x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in axes))


for _name, _words in read("onnx", "axes").items():
    add([_name], _reduction(_WITH_RULES.get(_words[0].op) or _named(_words)))
for _name, _body in _OTHERS.items():
    add([_name], _reduction(_body))


def _arg(kind: str) -> Callable[..., Any]:
    def handler(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis = axis_of(axis, x.ndim)
        y = o.arg_reduce(x, kind=kind, axis=axis, last=bool(select_last_index))
        return y if keepdims else dropped(y, (axis,))
    return handler


add(["ArgMax"], _arg("max"))
add(["ArgMin"], _arg("min"))


def _cumulative(kind: str) -> Callable[..., Any]:
    def handler(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
        def along(at: int) -> Any:
            return o.cumulative(x, kind=kind, axis=at, reverse=bool(reverse),
                                exclusive=bool(exclusive))
        if array_of(axis) is None:
            return computed_axes.along_computed(axis, x.ndim, along)
        return along(axis_of(one(axis, "the axis"), x.ndim))
    return handler


add(["CumSum"], _cumulative("sum"))
add(["CumProd"], _cumulative("prod"))


# ---- softmax -----------------------------------------------------------------------------------

def _flattened(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The form before opset 13: x as a matrix, in which all axes from `axis` on are one. Of the
    last axis alone it is the form of later opsets, in which attention is recognised."""
    def handler(x: Any, *, axis: int = 1) -> Any:
        at = axis_of(axis, x.ndim) if axis != x.ndim else axis
        if at == x.ndim - 1:
            return fn(x, axis=at)
        flat = x.reshape((product(x.shape[:at]), product(x.shape[at:])))
        return fn(flat, axis=1).reshape(tuple(x.shape))
    return handler


def _axiswise(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *, axis=-1: fn(x, axis=axis_of(axis, x.ndim))


def _hardmax(x: Any, axis: int) -> Any:
    """1 at the first greatest element along the axis, else 0."""
    best = o.arg_reduce(x, kind="max", axis=axis)
    shape = tuple(d if i == axis else 1 for i, d in enumerate(x.shape))
    return o.eq(iota(x, shape, axis), best).cast(x.dtype)


for _name, _fn in (("Hardmax", _hardmax), *(
        (name, word.fn) for name, (word,) in read("onnx", "axis").items())):
    add([_name], _flattened(_fn), since=1)
    add([_name], _axiswise(_fn), since=13)


# ---- top k -------------------------------------------------------------------------------------

@onnx_op("TopK")
def top_k_1(x: Any, *, axis: int = -1, k: int) -> Any:
    """`top_k` with a constant k: values and indices, greatest first."""
    return _top_k(x, axis_of(axis, x.ndim), k, True)


@onnx_op("TopK", since=10)
def top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1,
          ctx: Any) -> Any:
    """`top_k`: values and indices. ONNX allows any order for unsorted output, so it is sorted."""
    at = axis_of(axis, x.ndim)
    most = ctx.most(at) if array_of(k) is None else None
    count = dims(k, "k", 0, x.shape[at] if x.ndim else 1)[0] if most is None else agreed(
        k, most, "k")
    return _top_k(x, at, count, bool(largest))


def _top_k(x: Any, axis: int, k: Dim, largest: bool) -> Any:
    if isinstance(k, int) and k < 0:
        raise ValueError(f"k must be 0 or more, but is {k}")
    values, indices = o.top_k(x, k=k, axis=axis, largest=largest)
    return values, indices


# ---- losses ------------------------------------------------------------------------------------

@onnx_op("NegativeLogLikelihoodLoss")
def nll_loss(x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None,
             reduction: str = "mean") -> Any:
    """−w[t] · x[n, t, …], as a `gather` from log-probabilities, then the reduction."""
    return _nll(x, target, weight, ignore_index, reduction)


@onnx_op("SoftmaxCrossEntropyLoss")
def cross_entropy(x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None,
                  reduction: str = "mean", ctx: Any) -> Any:
    """The NegativeLogLikelihoodLoss of a `log_softmax` over axis 1; output 1 is the latter."""
    scores = o.log_softmax(x, axis=1)
    loss = _nll(scores, target, weight, ignore_index, reduction)
    return (loss, scores) if ctx.outputs > 1 else loss


def _nll(x: Any, target: Any, weight: Any, ignore: int | None, reduction: str) -> Any:
    """−w[t] · x[n, t, …], reduced; ignored targets count neither in the sum nor in the mean."""
    index = target.cast(dtypes.int64)
    used = None
    if ignore is not None:
        used = o.ne(index, ignore)
        index = o.select(used, index, 0)
    picked = _pick_class(x, index)
    scale: Any = None
    if weight is not None:
        scale = o.gather(weight, index.unsqueeze(), axes=(0,))
    if used is not None:
        scale = used.cast(x.dtype) if scale is None else o.select(used, scale, 0.0)
    loss = -(picked if scale is None else picked * scale)
    if used is not None:
        loss = o.select(used, loss, 0.0)
    return _reduced(loss, scale, reduction)


def _reduced(loss: Any, scale: Any, reduction: str) -> Any:
    axes = tuple(range(loss.ndim))
    if reduction == "none":
        return loss
    total = o.reduce_sum(loss, axes=axes).reshape(())
    if reduction == "sum":
        return total
    if scale is None:
        return o.reduce_mean(loss, axes=axes).reshape(())
    weight = o.broadcast(scale, shape=tuple(loss.shape)) if scale.shape != loss.shape else scale
    return total / o.reduce_sum(weight, axes=axes).reshape(())


def _pick_class(x: Any, index: Any) -> Any:
    """x[n, index[n, …], …]: axis 1 is moved to the end, and a batched `gather` reads it."""
    last = x.transpose((0, *range(2, x.ndim), 1))
    return o.gather(last, index.unsqueeze(), axes=(x.ndim - 1,), batch=x.ndim - 1)


# ---- norms of vectors --------------------------------------------------------------------------

@onnx_op("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """x divided by its 1-norm or 2-norm along an axis; 0 where the norm is 0."""
    over = (axis_of(axis, x.ndim),)
    size = _sum(abs(x), over) if p == 1 else o.sqrt(_sum(x * x, over))
    zero = o.eq(size, 0.0)
    return o.select(zero, x * 0.0, x / o.select(zero, 1.0, size))


@onnx_op("Det")
def det(x: Any) -> Any:
    """The determinant by Gaussian elimination with partial pivoting, unrolled for a known size."""
    n = ints(np.asarray(x.shape[-1:], object), "the matrix size")[0]
    if n > 16:
        raise Refused(f"the determinant of a matrix of {n} rows is not supported; the most is 16")
    lead = tuple(x.shape[:-2])
    sign = None
    factors = []
    for _ in range(n):
        pivot_row, rest, flip = _pivot(x)
        head = pivot_row.take(x.ndim - 1, 0, 1)
        factors.append(head)
        sign = flip if sign is None else sign * flip
        safe = o.select(o.eq(head, 0.0), 1.0, head)
        below = rest - rest.take(x.ndim - 1, 0, 1) * (pivot_row / safe)
        x = below.take(x.ndim - 1, 1, below.shape[-1])
    out = sign
    for f in factors:
        out = f if out is None else out * f
    return out.reshape(lead) if out is not None else x.number(1)


def _pivot(x: Any) -> tuple[Any, Any, Any]:
    """The row with the greatest first entry, the other rows with row 0 in its place, and the
    sign."""
    rows, rank = x.shape[-2], x.ndim
    column = x.take(rank - 1, 0, 1)
    best = o.arg_reduce(abs(column), kind="max", axis=rank - 2)
    mine = o.eq(iota(x, (*[1] * (rank - 2), rows, 1), rank - 2), best)
    row = o.reduce_sum(o.select(mine, x, 0.0), axes=(rank - 2,))
    first = x.take(rank - 2, 0, 1)
    rest = o.select(mine, first, x).take(rank - 2, 1, rows)
    flip = o.select(o.eq(best, 0), x.number(1), x.number(-1))
    return row, rest, flip


