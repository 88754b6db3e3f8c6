"""Class probabilities from the probabilities of all pairs of classes, as libsvm iterates them.

With r[i, j] the probability of class i given i or j, p minimises ½·Σᵢⱼ (r[j, i]·pᵢ − r[i, j]·pⱼ)²
under Σp = 1 (Wu, Lin and Weng 2004, "Probability estimates for multi-class classification by
pairwise coupling", the second method). Q is the matrix of that form; an optimum has Q·p = (pᵀQp)·1.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace

SWEEPS, CLOSE, LEAST = 100, 0.005, 1e-7  # libsvm's, and onnxruntime's


def coupled(shares: Any, classes: int) -> Any:
    """The class probabilities [N, classes] as a `while`, from `shares` [N, pairs]: the probability
    of the first class of each pair."""
    rows, k = shares.shape[0], classes
    held = o.clamp(shares, LEAST, 1.0 - LEAST)
    mine, other = (_placed(classes, side) for side in ("first", "second"))
    r = o.linear(held, held.builder.constant(mine)) + o.linear(1.0 - held,
        held.builder.constant(other))
    r = r.reshape((rows, k, k))  # r[i, j]; the diagonal is 0
    back = r.transpose((0, 2, 1))
    eye = np.eye(k, dtype=np.float32)
    own = held.builder.constant(eye) * o.reduce_sum(back * back, axes=(2,))
    q = own - r * back
    lines = q.transpose((1, 0, 2))  # [k, N, k]
    start = o.broadcast(held.builder.constant(np.full((1, 1), 1 / k, np.float32)), shape=(rows, k))
    moving = o.broadcast(held.builder.constant(np.ones((1, 1), np.bool_)), shape=(rows, 1))
    units = held.builder.constant(eye.reshape(k, 1, k))
    given = [start, moving, q, lines, units]
    types = [x.type for x in given]
    moving = moving & ~_settled(start, q)[2]
    return o.while_(start, moving, *given[2:], cond=trace(_goes_on, types),
                    body=trace(_sweep, types), carries=2, bound=SWEEPS)[0]


def _placed(classes: int, side: str) -> Any:
    """A matrix that writes the shares of pairs to [i, j], or to [j, i] for the second class."""
    pairs = list(itertools.combinations(range(classes), 2))
    out = np.zeros((classes * classes, len(pairs)), np.float32)
    for n, (i, j) in enumerate(pairs):
        out[i * classes + j if side == "first" else j * classes + i, n] = 1
    return out


def _settled(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Q·p [N, k], pᵀQp [N, 1], and whether p has converged, [N, 1]."""
    rows, k = p.shape
    qp = o.reduce_sum(q * p.reshape((rows, 1, k)), axes=(2,)).reshape((rows, k))
    pqp = o.reduce_sum(p * qp, axes=(1,))
    far = o.reduce_max(abs(qp - pqp), axes=(1,))
    return qp, pqp, far < CLOSE / k


def _goes_on(p: Any, moving: Any, *_: Any) -> Any:
    return o.reduce_or(moving, axes=(0, 1)).reshape(())


def _sweep(p: Any, moving: Any, q: Any, lines: Any, units: Any) -> Any:
    """One update of each pₜ in turn; rows that have converged are kept."""
    qp, pqp, _ = _settled(p, q)
    rows, k = p.shape
    row = TensorType(dtypes.float32, (1, k))
    types = [p.type, qp.type, pqp.type, TensorType(dtypes.float32, (rows, k)), row]
    new, _, _ = o.scan(p, qp, pqp, lines, units, body=trace(_step, types), carries=3, xs=2,
                       length=k)
    new = o.select(moving, new, p)
    return new, moving & ~_settled(new, q)[2]


def _step(p: Any, qp: Any, pqp: Any, line: Any, unit: Any) -> Any:
    """The update of one coordinate, where `line` is its row of Q; then p is divided by its sum."""
    own = o.reduce_sum(line * unit, axes=(1,))
    there = o.reduce_sum(qp * unit, axes=(1,))
    by = (pqp - there) / own
    whole = by + 1.0
    pqp = (pqp + by * (by * own + there * 2.0)) / whole / whole
    return ((p + unit * by) / whole, (qp + line * by) / whole, pqp)
