"""Losses in numerically stable forms, with torch's reductions: mean, sum or none. Labels are
integers."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Indexing
from graphtool.ops.common import composite, count, equal_dims, need


def _reduce(loss: Any, reduction: str) -> Any:
    """The scalar (rank 0) mean or sum, or the losses themselves."""
    need(reduction in ("mean", "sum", "none"),
         f"reduction must be mean, sum or none, not {reduction!r}")
    if reduction == "none":
        return loss
    axes = tuple(range(loss.ndim))
    total = o.reshape(o.reduce_sum(loss, axes=axes), shape=())
    return total if reduction == "sum" else total / count(loss, axes)


@composite
def mse_loss(x: Any, y: Any, *, reduction: str = "mean") -> Any:
    """(x − y)²"""
    d = x - y
    return _reduce(d * d, reduction)


@composite
def huber_loss(x: Any, y: Any, *, delta: float = 1.0, reduction: str = "mean") -> Any:
    """½·d² where |d| ≤ δ, else δ·(|d| − ½·δ), with d = x − y."""
    d = o.abs(x - y)
    quadratic = d * d * 0.5
    return _reduce(o.select(o.le(d, delta), quadratic, (d - 0.5 * delta) * delta), reduction)


def _cross_entropy_vjp(g: Any, loss: Any, x: Any, y: Any) -> Any:
    """The gradient as torch defines it: finite where p is 0 or 1, because p·(1 − p) is at least
    1e-12 and logarithms at least −100."""
    by_x = g * (x - y) / o.max((1.0 - x) * x, 1e-12)
    return by_x, g * (o.max(o.log1p(-x), -100.0) - o.max(o.log(x), -100.0))


@composite(vjp=_cross_entropy_vjp)
def binary_cross_entropy(x: Any, y: Any) -> Any:
    """−(y·log x + (1 − y)·log(1 − x)) for each probability x; logarithms are at least −100."""
    return (y - 1.0) * o.max(o.log1p(-x), -100) - y * o.max(o.log(x), -100)


@composite
def bce_loss(x: Any, y: Any, weight: Any = None, *, from_logits: bool = False,
             reduction: str = "mean") -> Any:
    """−(y·log p + (1 − y)·log(1 − p)); p = x, or sigmoid(x) with `from_logits`. Logarithms are
    at least −100."""
    if from_logits:
        loss = o.max(x, 0) - x * y + o.log1p(o.exp(-o.abs(x)))
    else:
        loss = o.binary_cross_entropy(x, y)
    return _reduce(loss if weight is None else loss * weight, reduction)


@composite
def kl_div(x: Any, y: Any, *, log_target: bool = False, reduction: str = "mean") -> Any:
    """y·(log y − x) with x = log q; the target is y, or log y with `log_target`. 0·log 0 is 0.

    `reduction` may also be batchmean: the sum divided by the size of axis 0.
    """
    if log_target:
        loss = o.exp(y) * (y - x)
    else:
        positive = o.gt(y, 0)
        loss = o.select(positive, y * o.log(o.select(positive, y, 1.0)), 0.0) - y * x
    if reduction == "batchmean":
        return _reduce(loss, "sum") / count(x, (0,))
    return _reduce(loss, reduction)


def _picked(x: Any, labels: Any, axis: int) -> Any:
    """The element of x at the label along an axis; the axis is removed."""
    last = o.transpose(x, perm=(*(a for a in range(x.ndim) if a != axis), axis))
    picked = o.gather(last, o.reshape(labels, shape=(*labels.shape, 1)), axes=(x.ndim - 1,),
                      batch=x.ndim - 1)
    return picked


@composite(indexing=Indexing("axis"))
def nll_loss(x: Any, labels: Any, weight: Any = None, *, axis: int = 1, reduction: str = "mean",
             ignore_index: int = -100) -> Any:
    """−x[label]·weight[label] with x = log p along an axis; the mean is divided by the sum of
    the weights."""
    return _nll(x, labels, weight, axis % x.ndim, reduction, ignore_index)


def _nll(x: Any, labels: Any, weight: Any, axis: int, reduction: str, ignore_index: int) -> Any:
    need(labels.dtype.is_integer, "the labels must be integers")
    equal_dims(labels.shape, (*x.shape[:axis], *x.shape[axis + 1:]),
               "x without the class axis and the labels must have the same shape")
    need(reduction in ("mean", "sum", "none"),
         f"reduction must be mean, sum or none, not {reduction!r}")
    kept = o.ne(labels, ignore_index)
    safe = o.select(kept, labels, 0)
    w = o.cast(kept, dtype=x.dtype)
    if weight is not None:
        w = w * o.embedding(weight, safe)
    # an ignored label picks class 0, whose x may be infinite
    loss = o.select(kept, -_picked(x, safe, axis), 0.0) * w
    if reduction != "mean":
        return _reduce(loss, reduction)
    return _reduce(loss, "sum") / _reduce(w, "sum")


def _smooth(x: Any, labels: Any, weight: Any, axis: int, reduction: str, ignore_index: int) -> Any:
    """The loss against the uniform distribution, with the same reduction as the main loss."""
    kept = o.cast(o.ne(labels, ignore_index), dtype=x.dtype)
    if weight is not None:
        x = x * o.reshape(weight, shape=(weight.shape[0], *(1,) * (x.ndim - 1 - axis)))
    loss = o.reshape(o.reduce_sum(-x, axes=(axis,)), shape=labels.shape) * kept
    if reduction != "mean":
        return _reduce(loss, reduction)
    if weight is not None:
        safe = o.select(o.ne(labels, ignore_index), labels, 0)
        kept = kept * o.embedding(weight, safe)
    return _reduce(loss, "sum") / _reduce(kept, "sum")


@composite(indexing=Indexing("axis"))
def cross_entropy(x: Any, labels: Any, weight: Any = None, *, axis: int = 1,
                  reduction: str = "mean", ignore_index: int = -100,
                  label_smoothing: float = 0.0) -> Any:
    """nll_loss of log_softmax(x) along an axis; float labels are probabilities of x's shape."""
    axis = axis % x.ndim
    log_p = o.log_softmax(x, axis=axis)
    if not labels.dtype.is_float:
        loss = _nll(log_p, labels, weight, axis, reduction, ignore_index)
        if not label_smoothing:
            return loss
        uniform = _smooth(log_p, labels, weight, axis, reduction, ignore_index)
        return loss * (1 - label_smoothing) + uniform * (label_smoothing / count(x, (axis,)))
    if label_smoothing:
        labels = labels * (1 - label_smoothing) + label_smoothing / count(x, (axis,))
    if weight is not None:
        log_p = log_p * o.reshape(weight, shape=(weight.shape[0], *(1,) * (x.ndim - 1 - axis)))
    loss = -o.reduce_sum(log_p * labels, axes=(axis,))
    loss = o.reshape(loss, shape=(*x.shape[:axis], *x.shape[axis + 1:]))
    return _reduce(loss, reduction)
