"""select's recurrences: packs their weights in panels of the best width for the rows of the
batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Node
from graphtool.kernels.choice.sites import Recurrence
from graphtool.passes.select.goal import Goal
from graphtool.symbolic import Dim, typical_size


def recurrence(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """Pack the recurrent weights in panels, because every step reads all of them in order."""
    p, r, *_ = operands
    if node.attrs["packed"] or p.dtype is not dtypes.float32:
        return None
    _, hidden, wide = r.shape
    # the last gate of a GRU is a separate product, so it begins a panel
    n, parts = (hidden, 3) if node.attrs["kind"] == "gru" else (wide, 1)
    return _packed(goal, node, operands, 1, p.shape, Weights(n, hidden, parts))


def recurrence_grad(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The same weights transposed: the gradients of each step are multiplied by all of them."""
    r, y, *_ = operands
    if node.attrs["packed"] or y.dtype is not dtypes.float32:
        return None
    return _packed(goal, node, operands, 0, y.shape, Weights(y.shape[3], r.shape[2]))


@dataclass(frozen=True)
class Weights:
    """Recurrent weights of n columns and k rows; each of `parts` parts begins a panel."""

    n: Dim
    k: Dim
    parts: int = 1


def _packed(goal: Goal, node: Node, operands: Sequence[Any], at: int, shape: tuple[Dim, ...],
            w: Weights) -> Sequence[Any] | None:
    """The node with its operand number `at` in panels of the best width.

    `shape` begins with steps, directions and batch. If n is symbolic, nothing can be chosen.
    """
    steps, directions, batch = shape[:3]
    attrs = {k: v for k, v in node.attrs.items() if k not in ("packed", "plan")}
    results: Sequence[Any] | None
    if isinstance(w.n, int):
        site = Recurrence(typical_size(steps), typical_size(batch), w.n, typical_size(w.k),
                          typical_size(directions), w.parts, isinstance(batch, int))
        results = goal.best(site, *operands, op=node.op, weights=at, transpose=at == 0, **attrs)
        return results
    if w.parts > 1:
        return None
    nr = 3 * goal.target.lanes
    given = list(operands)
    given[at] = o.pack(operands[at], nr=nr, transpose=at == 0)
    results = node.op(*given, **attrs, packed=nr)
    return results
