"""Losses that are single ATen ops: binary cross entropy, and connectionist temporal classification
(CTC), which sums over all alignments of a target with the time steps by a scan in logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import Tracer, trace

_NONE = float("-inf")
_REDUCTIONS = ("none", "mean", "sum")


@aten("binary_cross_entropy")
def binary_cross_entropy(c: Context, self: Tracer, target: Tracer, weight: Tracer | None = None,
                         reduction: int = 1) -> Any:
    """bce_loss: −(t·log p + (1 − t)·log(1 − p)), with logarithms of at least −100."""
    return o.bce_loss(self, target, weight, reduction=_REDUCTIONS[reduction])


@aten("huber_loss")
def huber_loss(c: Context, self: Tracer, target: Tracer, reduction: int = 1,
               delta: float = 1.0) -> Any:
    """½·d² where |d| <= delta, else delta·(|d| − ½·delta); d = self − target."""
    return _reduced(_huber(o.sub(self, target), delta), reduction)


@aten("smooth_l1_loss")
def smooth_l1_loss(c: Context, self: Tracer, target: Tracer, reduction: int = 1,
                   beta: float = 1.0) -> Any:
    """huber_loss / beta, and |d| where beta = 0."""
    gap = o.sub(self, target)
    return _reduced(o.mul(_huber(gap, beta), 1 / beta) if beta else o.abs(gap), reduction)


def _huber(gap: Any, delta: float) -> Any:
    """near·(d − ½·near) with `near`, d cut to ±delta: no product of 0 and ∞ for an infinite d."""
    near = o.clamp(gap, -delta, delta)
    return o.mul(near, o.sub(gap, o.mul(near, 0.5)))


def _reduced(loss: Any, reduction: int) -> Any:
    """The losses, their mean or their sum, as torch's number of a reduction says."""
    if not (reduction and loss.ndim):
        return loss
    reduce = (o.reduce_mean, o.reduce_sum)[reduction - 1]
    return o.reshape(reduce(loss, axes=tuple(range(loss.ndim))), shape=())


@aten("_ctc_loss")
def ctc_loss(c: Context, log_probs: Tracer, targets: Tracer, input_lengths: Any,
             target_lengths: Any, blank: int = 0, zero_infinity: bool = False) -> Any:
    """[batch]: −log of the sum over all alignments, by a scan over time; the caller reduces."""
    if targets.ndim != 2:
        raise Refused("targets of a whole batch in one vector are not supported; give a padded "
                      "matrix [batch, length]")
    if log_probs.ndim != 3 or 0 in (*log_probs.shape, *targets.shape) or not isinstance(
            log_probs.shape[2], int):
        raise Refused("log_probs must be [time, batch, classes] with a fixed number of classes, "
                      "and no size of log_probs or targets may be 0")
    steps, n = log_probs.shape[:2]
    lengths, ends = (_lengths(c, x, n) for x in (input_lengths, target_lengths))
    states, jump = _states(c, targets, blank)
    width = states.shape[1]
    at = c.iota((1, width), 1)
    classes = c.reshape(o.clamp(states, 0, log_probs.shape[2] - 1), (1, n, width, 1))
    picked = o.gather(log_probs, c.broadcast(classes, (steps, n, width, 1)), axes=(2,), batch=2)
    first = o.select(o.le(at, 1), c.reshape(c.window(picked, 0, 0, 1), (n, width)), _NONE)

    def step(a: Tracer, score: Tracer, i: Tracer, lengths: Tracer, jump: Tracer) -> Any:
        sources = (a, _shifted(a, 1), o.select(jump, _shifted(a, 2), _NONE))
        new = o.add(_log_sum(sources), score)
        return (o.select(o.lt(i, lengths), new, a),)
    rest, numbers = c.window(picked, 0, 1, steps), o.add(c.iota((steps - 1,), 0), 1)
    given = (first, rest, numbers, lengths, jump)
    types = [x.type if i not in (1, 2) else TensorType(x.dtype, x.shape[1:])
             for i, x in enumerate(given)]
    last = o.scan(*given, body=trace(step, types), carries=1, xs=2, length=steps - 1)
    last = last[0] if isinstance(last, tuple) else last
    final = o.or_(o.eq(at, o.mul(ends, 2)), o.eq(at, o.sub(o.mul(ends, 2), 1)))
    loss = o.neg(_log_sum([o.select(final, last, _NONE)], axis=1))
    return c.reshape(loss, (n,)), None


def _log_sum(xs: Sequence[Tracer], axis: int | None = None) -> Tracer:
    """log Σ exp x over the operands, and over an axis, which becomes 1. The numbers may all be −∞;
    gradients are numbers there too."""
    most = _folded(o.max, xs)
    most = most if axis is None else o.reduce_max(most, axes=(axis,))
    none = o.eq(most, _NONE)
    base = o.stop_gradient(o.select(none, 0.0, most))
    total = _folded(o.add, [_exp(x, base) for x in xs])
    total = total if axis is None else o.reduce_sum(total, axes=(axis,))
    found = o.add(base, o.log(o.select(none, 1.0, total)))
    return o.select(none, _NONE, found)  # type: ignore[no-any-return]


def _exp(x: Tracer, base: Tracer) -> Any:
    """exp(x − base); 0 at −∞, with a gradient of 0."""
    empty = o.eq(x, _NONE)
    return o.select(empty, 0.0, o.exp(o.sub(o.select(empty, 0.0, x), base)))


def _folded(op: Any, xs: Sequence[Any]) -> Any:
    out = xs[0]
    for x in xs[1:]:
        out = op(out, x)
    return out


def _lengths(c: Context, x: Any, n: Any) -> Tracer:
    """[n, 1]"""
    whole = c.cast(x, dtypes.int64) if isinstance(x, Tracer) else c.constant(x, dtypes.int64)
    return c.reshape(whole, (n, 1))


def _states(c: Context, targets: Tracer, blank: int) -> tuple[Tracer, Tracer]:
    """The target with blanks between and around, and where a path may jump over a blank: between
    two classes that differ."""
    n, size = targets.shape
    targets = c.cast(targets, dtypes.int64)
    blanks = c.full((n, size), blank, dtypes.int64)
    pairs = c.reshape(o.stack(blanks, targets, axis=2), (n, size * 2))
    states = o.concat(pairs, c.full((n, 1), blank, dtypes.int64), axis=1)
    before = o.concat(c.full((n, 2), blank, dtypes.int64), c.window(
        states, 1, 0, size * 2 - 1), axis=1)
    return states, o.and_(o.ne(states, blank), o.ne(states, before))


def _shifted(a: Tracer, by: int) -> Tracer:
    """a[s − by], where nothing comes before the first."""
    n, width = a.shape
    moved: Tracer = o.slice(a, start=(0, 0), limit=(n, width - by), strides=(1, 1))
    empty = o.broadcast(a.builder.constant(_lowest(a)), shape=(n, by))
    return o.concat(empty, moved, axis=1)  # type: ignore[no-any-return]


def _lowest(a: Tracer) -> Any:
    return a.dtype.numpy.type(_NONE).reshape(1, 1)
