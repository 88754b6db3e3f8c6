"""select's products with packed weights: unpacked to float32, or with activations of 8 bits where
the model or the user asks for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool.ir.graph import Node
from graphtool.kernels.choice.choose import plans
from graphtool.kernels.choice.sites import Packed
from graphtool.passes.select.goal import Goal, is_constant
from graphtool.symbolic import typical_size


def packed(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The product by the best kernel; its definition where no kernel may compute it."""
    x, w, scales, *rest = operands
    zeros = rest[0] if rest else None
    tables = [v for v in (w, scales, zeros) if v is not None]
    m, n, k = x.shape[0], w.shape[0], x.shape[1]
    if x.dtype is dtypes.float32 and isinstance(n, int) and isinstance(k, int) and n and k:
        asked = node.attrs["activations"] == "q8" and goal.rules.activations != "exact"
        site = Packed(typical_size(m), n, k, node.attrs["bits"], node.attrs["block"],
                      zeros is not None, all(map(is_constant, tables)), asked, isinstance(m, int))
        if plans(site, goal.target, goal.rules):
            return (goal.best(site, x, w, scales, zeros),)
        goal.note(x, "in its parts: kernels assume finite numbers, or sum in another order")
    assert node.op.decompose is not None
    return (node.op.decompose(*operands, **node.attrs),)
