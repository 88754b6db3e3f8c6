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
from graphtool.plan import Choice
from graphtool.symbolic import Dim


def recurrence(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """Recurrent weights in panels: every step reads all of them, one behind the other."""
    p, r, *rest = operands
    if node.attrs["packed"] or p.dtype is not dtypes.float32:
        return None
    _, hidden, wide = r.shape
    # the last gate of a GRU is a product of its own, and begins a panel
    n, parts = (hidden, 3) if node.attrs["kind"] == "gru" else (wide, 1)
    nr, made = panel(goal, p.shape, n, hidden, parts)
    if parts > 1 and hidden % nr:
        return None
    return planned(goal, made, node, [p, OPS["pack"](r, nr=nr), *rest], nr)


def recurrence_grad(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The same weights transposed: each step's gradients go back through all of them."""
    r, y, *rest = operands
    if node.attrs["packed"] or y.dtype is not dtypes.float32:
        return None
    nr, made = panel(goal, y.shape, y.shape[3], r.shape[2])
    return planned(goal, made, node, [OPS["pack"](r, nr=nr, transpose=True), y, *rest], nr)


def planned(goal: Goal, made: Choice | None, node: Node, operands: Sequence[Any],
            nr: int) -> Sequence[Any]:
    """The node's op on weights in panels of nr columns, as chosen."""
    attrs = {k: v for k, v in node.attrs.items() if k not in ("packed", "plan")}
    results: Sequence[Any] = (node.op(*operands, **attrs, packed=nr) if made is None else
                              goal.planned(made, node.op, *operands, **attrs, packed=nr))
    return results


def panel(goal: Goal, shape: tuple[Dim, ...], n: Dim, k: Dim,
          parts: int = 1) -> tuple[int, Choice | None]:
    """Columns of a panel of recurrent weights [k, n], and over what they were chosen; `shape`
    begins with steps, directions and batch. Where n is open there is nothing to choose by.
    """
    steps, directions, batch = shape[:3]
    if not isinstance(n, int):
        return 3 * goal.target.lanes, None
    site = Recurrence(cost_size(steps), cost_size(batch), n, cost_size(k), cost_size(directions),
                      parts, isinstance(batch, int))
    made = choose(site, goal.target, goal.rules)
    return made.plan.get("nv", 1) * goal.target.lanes, made
