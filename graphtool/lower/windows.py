"""Views for movement ops: the view of each result, and the windows of concat and pad."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool import ops as o
from graphtool.ir.graph import Node, Value
from graphtool.loops.view import View
from graphtool.lower.views import broadcast_view, reshape_view, slice_view, transpose_view
from graphtool.ops.indexing import inverse
from graphtool.symbolic import Dim


def view_of(node: Node, v: View) -> View | None:
    """The view of a movement op's result within its operand's buffer; None if a copy is needed."""
    a = node.attrs
    match node.op:
        case o.transpose:
            return transpose_view(v, a["perm"])
        case o.slice:
            return slice_view(v, a["start"], node.outputs[0].type.shape, a["strides"])
        case o.broadcast:
            return broadcast_view(v, a["shape"])
        case o.size | o.barrier | o.checkpoint:
            return v
        case o.assume:
            return View(v.buffer, v.dtype, a["shape"], v.strides, v.offset)
        case _:
            return reshape_view(v, a["shape"])


def unview(node: Node, view: View, x: Value) -> View | None:
    """The view in which x must be stored so that transpose or reshape gives `view`.

    None for other ops, and where strides cannot express it.
    """
    match node.op:
        case o.transpose:
            return transpose_view(view, inverse(node.attrs["perm"]))
        case o.reshape:
            return reshape_view(view, x.type.shape)
        case _:
            return None


def windows_of(node: Node, whole: View) -> Iterator[tuple[Value | float, View]]:
    """The windows of a concat's operands, or of a pad's operand and its edges."""
    rank = len(whole.shape)
    ones = (1,) * rank
    if node.op is o.concat:
        axis = node.attrs["axis"] % rank
        start: Dim = 0
        for x in node.inputs:
            assert isinstance(x, Value)
            at = tuple(start if i == axis else 0 for i in range(rank))
            yield x, slice_view(whole, at, x.type.shape, ones)
            start = start + x.type.shape[axis]
        return
    (x,) = node.inputs
    assert isinstance(x, Value)
    lo, hi = node.attrs["lo"], node.attrs["hi"]
    yield x, slice_view(whole, lo, x.type.shape, ones)
    inner_lo: list[Dim] = [0] * rank
    inner = list(whole.shape)
    for axis in range(rank):  # slabs: each axis between the slabs of the axes before it
        for edge, size in ((0, lo[axis]), (lo[axis] + x.type.shape[axis], hi[axis])):
            if size != 0:
                corner, shape = list(inner_lo), list(inner)
                corner[axis], shape[axis] = edge, size
                yield node.attrs["value"], slice_view(whole, tuple(corner), tuple(shape), ones)
        inner_lo[axis], inner[axis] = lo[axis], x.type.shape[axis]


def windowable(node: Node) -> bool:
    """Whether windows suffice for a concat or pad: edges, no interior padding, nothing cropped."""
    if node.op is o.concat:
        return True
    interior = node.attrs["interior"]
    return (not interior or not any(interior)) and all(
        isinstance(p, int) and p >= 0 for p in (*node.attrs["lo"], *node.attrs["hi"]))
