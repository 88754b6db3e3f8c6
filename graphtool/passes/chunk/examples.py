"""Which ops treat the examples of a batch, blocks of axis 0, each by itself: and the same node for
fewer of them. What is in no row of the table may mix examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphtool.ir.facets import Trait
from graphtool.ir.graph import Node, Operand, Value

Attrs = Mapping[str, Any]
Rule = Callable[[Node, Sequence[bool]], bool]


def apart(node: Node, batched: Sequence[bool]) -> bool:
    """Whether the node maps the examples one by one; `batched` says which operands hold them."""
    rule = _elementwise if Trait.ELEMENTWISE in node.op.traits else (
        _reduction if Trait.REDUCTION in node.op.traits else _RULES.get(node.op.name))
    return rule is not None and rule(node, batched)


def for_fewer(node: Node, fewer: int, batch: int) -> Attrs:
    """The attributes of the node on `fewer` of its examples."""
    def sized(shape: tuple[Any, ...]) -> tuple[Any, ...]:
        return (shape[0] // batch * fewer, *shape[1:])
    name = next((a for a in ("shape", "sizes", "limit") if a in node.attrs), None)
    return node.attrs if name is None else {**node.attrs, name: sized(node.attrs[name])}


def _rank(x: Operand) -> int:
    return x.type.rank if isinstance(x, Value) else 0


def _same_for_all(x: Operand, rank: int) -> bool:
    """Whether an operand without examples is broadcast over axis 0 of a result of that rank."""
    return not isinstance(x, Value) or x.type.rank < rank or x.type.shape[0] == 1


def _elementwise(node: Node, batched: Sequence[bool]) -> bool:
    rank = node.outputs[0].type.rank
    return all(_rank(x) == rank if of else _same_for_all(x, rank)
               for x, of in zip(node.inputs, batched, strict=True))


def _reduction(node: Node, _: Sequence[bool]) -> bool:
    rank = _rank(node.inputs[0])
    axes = node.attrs["axes"] if "axes" in node.attrs else (node.attrs["axis"],)
    return all(a % rank for a in axes)


def _conv(node: Node, batched: Sequence[bool]) -> bool:
    return list(batched) == [True, False] and node.attrs["batch_groups"] == 1


def _matmul(node: Node, batched: Sequence[bool]) -> bool:
    a, b = node.inputs
    if all(batched):
        return _rank(a) == _rank(b) > 2
    rows = _rank(a) > 2 or not node.attrs["transpose_a"]
    return batched[0] and rows and (_rank(b) == 2 or _same_for_all(b, _rank(a)))


def _window(node: Node, _: Sequence[bool]) -> bool:
    alone = {"window": 1, "strides": 1, "padding": (0, 0), "base_dilation": 1, "window_dilation": 1}
    return all(not node.attrs[k] or node.attrs[k][0] == v for k, v in alone.items())


def _attention(node: Node, batched: Sequence[bool]) -> bool:
    rank = _rank(node.inputs[0])
    mask = all(of or _same_for_all(x, rank)
               for x, of in zip(node.inputs[3:], batched[3:], strict=True))
    return all(batched[:3]) and rank > 3 and mask


def _slice(node: Node, _: Sequence[bool]) -> bool:
    a, x = node.attrs, node.inputs[0]
    assert isinstance(x, Value)
    return bool(a["start"][0] == 0 and a["limit"][0] == x.type.shape[0] and a["strides"][0] == 1)


def _pad(node: Node, _: Sequence[bool]) -> bool:
    a = node.attrs
    return bool(a["lo"][0] == a["hi"][0] == 0 and not (a["interior"] or (0,))[0])


def _same_count(node: Node, _: Sequence[bool]) -> bool:
    x = node.inputs[0]
    assert isinstance(x, Value)
    shape = node.outputs[0].type.shape
    return len(shape) == x.type.rank and shape[0] == x.type.shape[0]


_RULES: dict[str, Rule] = {
    "conv": _conv, "matmul": _matmul, "reduce_window": _window, "attention": _attention,
    "slice": _slice, "pad": _pad, "broadcast": _same_count, "resize": _same_count,
    "reshape": lambda node, _: node.outputs[0].type.rank > 0,
    "transpose": lambda node, _: node.attrs["perm"][0] == 0,
    "reverse": lambda node, _: all(a % _rank(node.inputs[0]) for a in node.attrs["axes"]),
    "concat": lambda node, of: all(of) and node.attrs["axis"] % _rank(node.inputs[0]) != 0,
    "gather": lambda node, of: list(of) == [False, True] and node.attrs["batch"] == 0}
