"""Helpers that recurrences and their gradients share: parts of arrays, directions, scans over
steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import DType, of_numpy
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.ops.common import check_axis
from graphtool.symbolic import Dim

COUNT = {"forward": 1, "reverse": 1, "bidirectional": 2}
GATES = {"lstm": 4, "gru": 3, "gru_linear": 3, "tanh": 1, "relu": 1}
# what a step keeps for its gradient, in units of H values: the gates after their activation; the
# state c of an LSTM; the recurrent product of a GRU that resets after it; the state of a plain RNN
KEPT = {"lstm": 5, "gru": 3, "gru_linear": 4, "tanh": 1, "relu": 1}
State = tuple[Any, ...]


def at(x: Any, i: int) -> Any:
    """x[i]; the first axis is removed."""
    rest = x.shape[1:]
    row = o.slice(x, start=(i, *(0,) * len(rest)), limit=(i + 1, *rest), strides=(1,) * x.ndim)
    return o.reshape(row, shape=rest)


def between(x: Any, axis: int, start: Dim, limit: Dim) -> Any:
    """x[start:limit] along one axis."""
    axis = check_axis(axis, x.ndim)
    before, behind = x.shape[:axis], x.shape[axis + 1:]
    return o.slice(x, start=(*(0,) * axis, start, *(0,) * len(behind)),
                   limit=(*before, limit, *behind), strides=(1,) * x.ndim)


def parts(x: Any, n: int) -> list[Any]:
    """Divide the last axis into n equal parts."""
    size = x.shape[-1] // n
    return [between(x, -1, k * size, (k + 1) * size) for k in range(n)]


def halves(x: Any, n: int) -> tuple[Any, Any]:
    """Divide the last axis into n equal parts: the first n − 1 of them together, and the last."""
    cut = x.shape[-1] // n * (n - 1)
    return between(x, -1, 0, cut), between(x, -1, cut, x.shape[-1])


def plus(x: Any, bias: Any) -> Any:
    """x + bias, or x where there is no bias."""
    return x if bias is None else x + bias


def scan(step: Callable[..., tuple[Any, ...]], states: Sequence[Any], rows: Sequence[Any],
          fixed: Sequence[Any], backwards: bool) -> tuple[Any, ...]:
    """Scan `step(states, rows, fixed)`, which gives the new states, then the results. An operand
    may be None."""
    given = [*states, *rows, *fixed]
    operands = [x for x in given if x is not None]
    cut = len(states) + len(rows)

    def body(*xs: Any) -> tuple[Any, ...]:
        rest = iter(xs)
        all_ = [None if x is None else next(rest) for x in given]
        return step(all_[:len(states)], all_[len(states):cut], all_[cut:])
    types = [TensorType(_dtype(x), x.shape[1:] if len(states) <= i < cut else x.shape)
             for i, x in enumerate(given) if x is not None]
    scanned = [x for x in rows if x is not None]
    return tuple(o.scan(*operands, body=trace(body, types), carries=len(states), xs=len(scanned),
                        length=scanned[0].shape[0], reverse=backwards))


def _dtype(x: Any) -> DType:
    return of_numpy(x.dtype) if isinstance(x, np.ndarray) else x.dtype


def directions(direction: str) -> list[tuple[int, bool]]:
    """For each direction its number, and whether it runs from the end to the beginning."""
    return [(d, d == 1 or direction == "reverse") for d in range(COUNT[direction])]


def one_direction(x: Any, d: int) -> Any:
    """x of direction d: x[:, d]."""
    row = between(x, 1, d, d + 1)
    return o.reshape(row, shape=(x.shape[0], *x.shape[2:]))


def unpacked(r: Any, wide: Dim, packed: int) -> Any:
    """[D, panels, K, packed] as [D, K, wide]."""
    if not packed:
        return r
    count, panels, depth, nr = r.shape
    rows = o.reshape(o.transpose(r, perm=(0, 2, 1, 3)), shape=(count, depth, panels * nr))
    return between(rows, 2, 0, wide)
