"""What movement ops mean for views: the view each gives, and the windows of concat and pad."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.ir.graph import Node, Value
from graphtool.lower.views import View, broadcast_view, reshape_view, slice_view, transpose_view
from graphtool.ops.bfloat16_pairs import whole_rows
from graphtool.ops.indexing import inverse
from graphtool.symbolic import Dim


def view_of(node: Node, v: View) -> View | None:
    """The view that a movement op gives of its operand's view; None where a copy is needed."""
    a = node.attrs
    match node.op.name:
        case "transpose":
            return transpose_view(v, a["perm"])
        case "slice":
            return slice_view(v, a["start"], node.outputs[0].type.shape, a["strides"])
        case "broadcast":
            return broadcast_view(v, a["shape"])
        case "size" | "barrier" | "checkpoint":
            return v
        case _:
            return reshape_view(v, a["shape"])


def suits(reader: Node, x: Value, view: View) -> bool:
    """Whether a template can read x there: rows of adjacent elements, packed weights dense."""
    if reader.op.name != "attend" and any(w is x for w in reader.inputs[1:]):
        return view.contiguous
    if reader.op.name in ("matmul_packed", "matmul_bf16") and transposed(view):
        return True
    if reader.op.name == "conv_bf16" and _odd_rows(reader) and view.strides[2] != view.shape[3]:
        return False
    if reader.op.name == "conv_int" and reader.attrs["joined"] and (
            view.strides[2] != view.shape[3]):
        return False
    if reader.op.name == "depthwise" and _neighbours(reader) and (
            view.strides[2] != view.shape[3]):
        return False
    return view.shape[-1] == 1 or view.strides[-1] == 1


def _neighbours(reader: Node) -> bool:
    """Whether several pixels are one, and must have no gap between them."""
    x, w = (v.type.shape for v in reader.inputs if isinstance(v, Value))
    return x[3] != w[2]


def _odd_rows(reader: Node) -> bool:
    """Whether pairs of a kernel row reach from a pixel into the next."""
    x, w = (v.type.shape for v in reader.inputs if isinstance(v, Value))
    return w[0] == 1 and whole_rows(1, reader.attrs["dilation"]) and x[3] % 2 != 0


def transposed(view: View) -> bool:
    """A matrix whose columns are adjacent, as the product's left side may be."""
    return len(view.shape) >= 2 and view.strides[-2] == 1 and view.shape[-2] != 1 and (
        view.strides[-1] != 1 and view.shape[-1] != 1)


def unview(node: Node, view: View, x: Value) -> View | None:
    match node.op.name:
        case "transpose":
            return transpose_view(view, inverse(node.attrs["perm"]))
        case "reshape":
            return reshape_view(view, x.type.shape)
        case _:
            return None


def windows_of(node: Node, whole: View) -> Iterator[tuple[Value | float, View]]:
    """The windows of a concat's operands; of a pad's operand and its edges."""
    rank = len(whole.shape)
    ones = (1,) * rank
    if node.op.name == "concat":
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
    """Whether a concat or pad can be built from windows: edges, no interior, nothing cropped."""
    if node.op.name == "concat":
        return True
    interior = node.attrs["interior"]
    return (not interior or not any(interior)) and all(
        isinstance(p, int) and p >= 0 for p in (*node.attrs["lo"], *node.attrs["hi"]))
