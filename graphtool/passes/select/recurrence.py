"""select's recurrences: their weights in panels, as wide as suits the rows of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool.ir.graph import Node
from graphtool.ir.op import OPS
from graphtool.kernels.choice import Recurrence
from graphtool.kernels.choice.candidates import choose
from graphtool.passes.select.product import Goal, cost_size
from graphtool.symbolic import Dim


def recurrence(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """Recurrent weights in panels: every step reads all of them, one behind the other."""
    p, r, *rest = operands
    if node.attrs["packed"] or p.dtype is not dtypes.float32:
        return None
    _, hidden, wide = r.shape
    # the last gate of a GRU is a product of its own, and begins a panel
    n, parts = (hidden, 3) if node.attrs["kind"] == "gru" else (wide, 1)
    nr, chosen = panel(goal, p.shape, n, hidden, parts)
    if parts > 1 and hidden % nr:
        return None
    results: Sequence[Any] = node.op(p, OPS["pack"](r, nr=nr), *rest,
                                     **{**node.attrs, "packed": nr, "choice": chosen})
    return results


def recurrence_grad(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The same weights transposed: each step's gradients go back through all of them."""
    r, y, *rest = operands
    if node.attrs["packed"] or y.dtype is not dtypes.float32:
        return None
    nr, chosen = panel(goal, y.shape, y.shape[3], r.shape[2])
    results: Sequence[Any] = node.op(OPS["pack"](r, nr=nr, transpose=True), y, *rest,
                                     **{**node.attrs, "packed": nr, "choice": chosen})
    return results


def panel(goal: Goal, shape: tuple[Dim, ...], n: Dim, k: Dim, parts: int = 1) -> tuple[int, str]:
    """Columns of a panel of recurrent weights [k, n], and the record of the choice; `shape` begins
    with steps, directions and batch. Where n is open there is nothing to choose by.
    """
    turns, directions, batch = shape[:3]
    if not isinstance(n, int):
        return 3 * goal.target.lanes, ""
    site = Recurrence(cost_size(turns), cost_size(batch), n, cost_size(k), cost_size(directions),
                      parts, isinstance(batch, int))
    chosen = choose(site, goal.target, goal.rules)
    return chosen.candidate.get("nv", 1) * goal.target.lanes, str(chosen)
