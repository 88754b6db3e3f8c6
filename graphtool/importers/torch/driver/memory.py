"""`as_strided` reads the memory of its operand, whatever view of it the operand is.

A graph has values and no memory: the operand has to be a value whose elements lie in memory in
their order, the first one at 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from graphtool.importers.torch.driver.captured import Opaque

_READS, _WRITES = ("aten.as_strided", "aten.as_strided_copy"), ("aten.as_strided_scatter",)


def arguments(target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[
        tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call; those of an as_strided name the value whose memory it is.

    The operand is Opaque where no such value is known.
    """
    name = target.rpartition(".")[0]
    if name not in _READS + _WRITES:
        return args, kwargs
    first = 2 if name in _WRITES else 1
    view, others, layout = args[0], args[1:first], args[first:]
    begin = view.meta["val"].storage_offset()
    given = layout[2] if len(layout) > 2 else kwargs.get("storage_offset")
    offset, size, stride = begin if given is None else given, layout[0], layout[1]
    numbers = (*size, *stride, offset, begin, view.meta["val"].numel())
    fixed = all(isinstance(n, int) for n in numbers)
    if in_order(view) and (_within(size, stride, offset - begin, numbers[-1]) if fixed else
                           isinstance(begin, int) and begin == 0):
        return (view, *others, size, stride, offset - begin), _rest(kwargs)
    base = _base(view)
    if fixed and name in _READS and in_order(base) and base.meta["val"].storage_offset() == 0:
        return (base, size, stride, offset), _rest(kwargs)
    return (Opaque("as_strided of a view, which reads memory in another order"), *args[1:]), kwargs


def _rest(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if k != "storage_offset"}


def in_order(node: fx.Node) -> bool:
    """Whether the elements of a value lie in memory one after the other, in their order."""
    return bool(node.meta["val"].is_contiguous())


def _within(size: Any, stride: Any, offset: int, count: int) -> bool:
    """Whether all elements at these strides are among the first `count` elements."""
    return offset >= 0 and offset + sum(
        (n - 1) * s for n, s in zip(size, stride, strict=True)) < count


def _base(node: fx.Node) -> fx.Node:
    """The value whose view, or view of a view, this is."""
    while isinstance(node.target, torch._ops.OpOverload) and node.target.is_view and isinstance(
            node.args[0], fx.Node):
        node = node.args[0]
    return node
