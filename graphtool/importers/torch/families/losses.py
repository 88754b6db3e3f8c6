"""Losses that are single ATen ops: binary cross entropy, and connectionist temporal classification
(CTC), which sums over all alignments of a target with the time steps by a scan in logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from graphtool.importers.torch.kit import Array, Context, Dim, Refused, TensorType, aten, dtypes, o
from graphtool.ir.trace import trace

_NONE = float("-inf")
_REDUCTIONS = ("none", "mean", "sum")


@aten("binary_cross_entropy")
def binary_cross_entropy(c: Context, self: Array, target: Array, weight: Array | None = None,
                         reduction: int = 1) -> Any:
    """bce_loss: −(t·log p + (1 − t)·log(1 − p)), with logarithms of at least −100."""
    return o.bce_loss(self, target, weight, reduction=_REDUCTIONS[reduction])


@aten("huber_loss")
def huber_loss(c: Context, self: Array, target: Array, reduction: int = 1,
               delta: float = 1.0) -> Any:
    """½·d² where |d| <= delta, else delta·(|d| − ½·delta); d = self − target."""
    return _reduced(_huber(self - target, delta), reduction)


@aten("smooth_l1_loss")
def smooth_l1_loss(c: Context, self: Array, target: Array, reduction: int = 1,
                   beta: float = 1.0) -> Any:
    """huber_loss / beta, and |d| where beta = 0."""
    gap = self - target
    return _reduced(_huber(gap, beta) * (1 / beta) if beta else abs(gap), reduction)


def _huber(gap: Any, delta: float) -> Any:
    """near·(d − ½·near) with `near`, d cut to ±delta: no product of 0 and ∞ for an infinite d."""
    near = o.clamp(gap, -delta, delta)
    return near * (gap - near * 0.5)


def _reduced(loss: Any, reduction: int) -> Any:
    """The losses, their mean or their sum, as torch's number of a reduction says."""
    if not (reduction and loss.ndim):
        return loss
    return loss.reduce(_REDUCTIONS[reduction], range(loss.ndim))


@aten("_ctc_loss")
def ctc_loss(c: Context, log_probs: Array, targets: Array, input_lengths: Any,
             target_lengths: Any, blank: int = 0, zero_infinity: bool = False) -> Any:
    """[batch]: −log of the sum over all alignments, by a scan over time; the caller reduces."""
    if log_probs.ndim != 3 or 0 in (*log_probs.shape, *targets.shape) or not isinstance(
            log_probs.shape[2], int):
        raise Refused("log_probs must be [time, batch, classes] with a fixed number of classes, "
                      "and no size of log_probs or targets may be 0")
    steps, n = log_probs.shape[:2]
    lengths, ends = (_lengths(c, x, n) for x in (input_lengths, target_lengths))
    if targets.ndim == 1:
        targets = _in_rows(c, targets, ends, target_lengths)
    states, jump = _states(c, targets, blank)
    width = states.shape[1]
    at = c.iota((1, width), 1)
    classes = o.clamp(states, 0, log_probs.shape[2] - 1).reshape((1, n, width, 1))
    picked = o.gather(log_probs, classes.broadcast((steps, n, width, 1)), axes=(2,), batch=2)
    first = o.select(at <= 1, picked.entry(0, 0), _NONE)

    def step(a: Any, score: Any, i: Any, lengths: Any, jump: Any) -> Any:
        sources = (a, _shifted(a, 1), o.select(jump, _shifted(a, 2), _NONE))
        new = _log_sum(sources) + score
        return (o.select(i < lengths, new, a),)
    rest, numbers = picked.take(0, 1, steps), c.iota((steps - 1,), 0) + 1
    given = (first, rest, numbers, lengths, jump)
    types = [x.type if i not in (1, 2) else TensorType(x.dtype, x.shape[1:])
             for i, x in enumerate(given)]
    last = o.scan(*given, body=trace(step, types), carries=1, xs=2, length=steps - 1)
    last = last[0] if isinstance(last, tuple) else last
    final = o.eq(at, ends * 2) | o.eq(at, ends * 2 - 1)
    loss = -_log_sum([o.select(final, last, _NONE)], axis=1)
    return loss.reshape((n,)), None


def _log_sum(xs: Sequence[Any], axis: int | None = None) -> Any:
    """log Σ exp x over the operands, and over an axis, which becomes 1. The numbers may all be −∞;
    gradients are numbers there too."""
    most = reduce(o.max, xs)
    most = most if axis is None else o.reduce_max(most, axes=(axis,))
    none = o.eq(most, _NONE)
    base = o.stop_gradient(o.select(none, 0.0, most))
    total = reduce(o.add, [_exp(x, base) for x in xs])
    total = total if axis is None else o.reduce_sum(total, axes=(axis,))
    return o.select(none, _NONE, base + o.log(o.select(none, 1.0, total)))


def _exp(x: Any, base: Any) -> Any:
    """exp(x − base); 0 at −∞, with a gradient of 0."""
    empty = o.eq(x, _NONE)
    return o.select(empty, 0.0, o.exp(o.select(empty, 0.0, x) - base))


def _lengths(c: Context, x: Any, n: Any) -> Array:
    """[n, 1]"""
    whole = x if isinstance(x, Array) else c.sizes(x)
    return whole.cast(dtypes.int64).reshape((n, 1))


def _in_rows(c: Context, targets: Array, ends: Array, lengths: Any) -> Array:
    """The targets of a batch, one after the other, as a row for each; what follows the end of a row
    is not read."""
    size = targets.shape[0]
    whole = isinstance(lengths, Sequence) and all(isinstance(n, int) for n in lengths)
    width = max((1, *lengths)) if whole else size
    starts = o.cumulative(ends, kind="sum", axis=0, exclusive=True)
    at: Array = o.min(starts + c.iota((1, width), 1), c.sizes([size]) - 1)
    rows: Array = o.gather(targets, at.reshape((*at.shape, 1)), axes=(0,))
    return rows


def _states(c: Context, targets: Array, blank: int) -> tuple[Array, Array]:
    """The target with blanks between and around, and where a path may jump over one of them:
    between two classes that differ."""
    def blanks(count: Dim) -> Array:
        return c.full((n, count), blank, dtypes.int64)
    n, size = targets.shape
    pairs = o.stack(blanks(size), targets.cast(dtypes.int64), axis=2).reshape((n, size * 2))
    states = o.concat(pairs, blanks(1), axis=1)
    before = o.concat(blanks(2), states.take(1, 0, size * 2 - 1), axis=1)
    return states, o.ne(states, before)


def _shifted(a: Any, by: int) -> Any:
    """a[s − by], where nothing comes before the first."""
    n, width = a.shape
    return o.concat(a.number(_NONE).broadcast((n, by)), a.take(1, 0, width - by), axis=1)
