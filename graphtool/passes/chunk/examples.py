"""Which nodes compute each example of a batch separately, and the same node for fewer examples.

Examples are blocks along axis 0. A node may mix them unless the op's record or a rule here says
that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Align, leaves_first
from graphtool.ir.graph import Node, Operand, Value
from graphtool.ir.op import Op

Attrs = Mapping[str, Any]
Rule = Callable[[Node, Sequence[bool]], bool]


def apart(node: Node, batched: Sequence[bool]) -> bool:
    """Whether the node computes each example separately; `batched` says which operands hold
    examples."""
    return _RULES.get(node.op, _derived)(node, batched)


def for_fewer(node: Node, fewer: int, batch: int) -> Attrs:
    """The attributes of the node for `fewer` of its examples."""
    def sized(shape: tuple[Any, ...]) -> tuple[Any, ...]:
        return (shape[0] // batch * fewer, *shape[1:])
    names = node.op.axes.sizes if node.op.axes else ()
    return {**node.attrs, **{name: sized(node.attrs[name]) for name in names}}


def _rank(x: Operand) -> int:
    return x.type.rank if isinstance(x, Value) else 0


def _same_for_all(x: Operand, rank: int) -> bool:
    """Whether an operand without examples broadcasts over axis 0 of a result of this rank."""
    return not isinstance(x, Value) or x.type.rank < rank or x.type.shape[0] == 1


def _derived(node: Node, batched: Sequence[bool]) -> bool:
    """Whether examples stay separate, derived from what the op's record says about attributes
    and axes."""
    axes, rank = node.op.axes, node.outputs[0].type.rank
    if axes is None or axes.align not in (Align.SAME, Align.TRAILING):
        return False
    fits = all(_rank(x) == rank if of else (axes.align is Align.TRAILING and _same_for_all(x, rank))
               for x, of in zip(node.inputs, batched, strict=True))
    first = node.inputs[0]
    count = first.type.shape[0] if isinstance(first, Value) and first.type.rank else 1
    return fits and leaves_first(axes, node.attrs, rank, count)


def _conv(node: Node, batched: Sequence[bool]) -> bool:
    return list(batched) == [True, False] and node.attrs["batch_groups"] == 1


def _matmul(node: Node, batched: Sequence[bool]) -> bool:
    a, b = node.inputs
    if all(batched):
        return _rank(a) == _rank(b) > 2
    rows = _rank(a) > 2 or not node.attrs["transpose_a"]
    return batched[0] and rows and (_rank(b) == 2 or _same_for_all(b, _rank(a)))


def _attention(node: Node, batched: Sequence[bool]) -> bool:
    rank = _rank(node.inputs[0])
    mask = all(of or _same_for_all(x, rank)
               for x, of in zip(node.inputs[3:], batched[3:], strict=True))
    return all(batched[:3]) and rank > 3 and mask


_RULES: dict[Op, Rule] = {
    o.conv: _conv, o.matmul: _matmul, o.attention: _attention,
    o.reshape: lambda node, _: node.outputs[0].type.rank > 0,
    o.gather: lambda node, of: list(of) == [False, True] and node.attrs["batch"] == 0}
