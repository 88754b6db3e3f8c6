"""The nodes of a unit as pulls: each value as an expression of what the unit reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.dtypes import float32, int32, int64
from graphtool.errors import InternalError
from graphtool.ir.graph import Node, Operand, Value
from graphtool.loops.pull import Names, Pull, const
from graphtool.loops.view import View, pull_of
from graphtool.lower.storage import Storage
from graphtool.lower.units import Unit

WRITTEN = (float32, int32, int64)  # of which a number in C is the same number


def pulls(nodes: tuple[Node, ...], known: Mapping[Value, Pull], names: Names) -> dict[Value, Pull]:
    """The pull of every value of the nodes, given the pulls of their inputs from outside."""
    env = dict(known)

    def operand(x: Operand) -> Any:
        return env[x] if isinstance(x, Value) else x
    for node in nodes:
        if node.outputs[0] in env:
            continue
        if node.op.lower is None:
            raise InternalError("GT7202", f"{node.op.name} has no lowering")
        made = node.op.lower(names, *map(operand, node.inputs), **node.attrs)
        made = made if isinstance(made, tuple) else (made,)
        env.update(zip(node.outputs, made, strict=True))
    return env


def pull_from(buffers: Mapping[str, Storage], view: View) -> Pull:
    """The elements of a view. The one number of a constant is written into the code, since a load
    under a condition keeps compilers from vectorising."""
    held = buffers[view.buffer].weight
    if held is None or held.size != 1 or held.absent or (
            view.dtype not in WRITTEN):
        return pull_of(view)
    number = const(held.stored.item(), view.dtype)
    return Pull(view.dtype, view.shape, lambda _: number)


def read_values(unit: Unit) -> list[Value]:
    """The values that the unit reads from outside, in order of first use."""
    own = {v for n in unit.nodes for v in n.outputs}
    return list(dict.fromkeys(x for n in unit.nodes for x in n.inputs
                              if isinstance(x, Value) and x not in own))
