"""Where values are in memory: views of the results of movement ops, and what buffers values get.

The result of a reshape, transpose, slice or broadcast is not copied if strides can express it. The
operands of concat and pad are written into windows of the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Node, Value
from graphtool.loops.program import packs
from graphtool.loops.pull import View, dense_strides
from graphtool.ops.indexing import inverse, reshape_blocks
from graphtool.symbolic import Dim, bounds, known, maximum, product, typical

SIDE = 16  # from this extent on, rows and columns are exchanged in square blocks
LEAST = 1 << 12  # from this number of elements on, that is worth a separate kernel


def transpose_view(v: View, perm: tuple[int, ...]) -> View:
    """The view with its axes in the order `perm`."""
    return View(v.buffer, v.dtype, tuple(v.shape[p] for p in perm),
                tuple(v.strides[p] for p in perm), v.offset)


def slice_view(v: View, start: tuple[Dim, ...], shape: tuple[Dim, ...],
               steps: tuple[int, ...]) -> View:
    """The view of `shape` elements from `start`, with a step along each axis."""
    return View(v.buffer, v.dtype, shape,
                tuple(s * k for s, k in zip(v.strides, steps, strict=True)), v.index(start))


def broadcast_view(v: View, shape: tuple[Dim, ...]) -> View:
    """The view as `shape`; the stride is 0 along new axes and along axes of size 1 that grow."""
    skip = len(shape) - len(v.shape)
    strides = tuple(0 if i < skip or v.shape[i - skip] != shape[i] else v.strides[i - skip]
                    for i in range(len(shape)))
    return View(v.buffer, v.dtype, shape, strides, v.offset)


def reshape_view(v: View, shape: tuple[Dim, ...]) -> View | None:
    """The same elements in row-major order under another shape; None if strides cannot express
    it."""
    if any(d == 0 for d in shape):
        return View(v.buffer, v.dtype, shape, dense_strides(shape), v.offset)
    if v.contiguous:
        return View(v.buffer, v.dtype, shape, dense_strides(shape), v.offset)
    strides: list[Dim] = []
    for xs, ys in reshape_blocks(v.shape, shape):
        run = [(d, s) for d, s in zip(v.shape[xs], v.strides[xs], strict=True) if d != 1]
        for (_, s0), (d1, s1) in pairwise(run):
            if s0 != d1 * s1:
                return None
        step: Dim = run[-1][1] if run else 1
        block: list[Dim] = []
        for d in reversed(shape[ys]):
            block.append(step)
            step = step * d
        strides += reversed(block)
    if product(v.shape) != product(shape):
        return None
    return View(v.buffer, v.dtype, shape, tuple(strides), v.offset)


def scattered(v: View) -> bool:
    """Whether rows stored in the view would be written one number at a time, far apart, though
    enough of the rows are adjacent to be moved in square blocks instead."""
    if v.strides[-1:] in ((1,), (0,)) or not (long(v.shape[-1:], SIDE) and long(v.shape, LEAST)):
        return False
    run: Dim = 1  # the elements that the other axes cover without a gap
    for d, s in sorted(zip(v.shape[:-1], v.strides[:-1], strict=True),
                       key=lambda axis: typical(axis[1])):
        run = run * d if s == run else run
    return long((run,), SIDE)


def long(dims: tuple[Dim, ...], least: int) -> bool:
    """Whether the number of elements can be `least` or more."""
    most = bounds(product(dims))[1]
    return most is None or most >= least


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
    if Movement.JOINS in node.op.movement:
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
    if Movement.JOINS in node.op.movement:
        return True
    interior = node.attrs["interior"]
    return (not interior or not any(interior)) and all(
        isinstance(p, int) and p >= 0 for p in (*node.attrs["lo"], *node.attrs["hi"]))


@dataclass
class Storage:
    """One buffer before the arena is planned."""

    name: str
    dtype: DType
    size: Dim
    space: Literal["input", "output", "weight", "arena", "check"]
    slot: int = 0
    weight: Weight | None = None
    label: str = ""

    def __post_init__(self) -> None:
        """A buffer of a branch that a run does not take may have a size below 0 there; it must not
        move those behind it."""
        if known(self.size, "<", 0) is not False:
            self.size = maximum(self.size, 0)

    @property
    def packed(self) -> bool:
        """Whether elements of less than a byte share bytes, so that only single loads read it."""
        return packs(self.space, self.dtype)


@dataclass
class Copy:
    """A window to fill from a value, from the result of a movement op, or with a number."""

    source: Value | Node | float
    target: View
    label: str


@dataclass
class Assignment:
    """The result: a view for each value, all buffers, and the copies to make before each node."""

    views: dict[Value, View] = field(default_factory=dict)
    buffers: dict[str, Storage] = field(default_factory=dict)
    copies: dict[Node | None, list[Copy]] = field(default_factory=dict)  # None: at the very end


@dataclass
class Edge:
    """The views of a region's inputs, and those required for its outputs, in the buffers outside
    it."""

    inputs: tuple[View, ...]
    outputs: tuple[View | None, ...]
    buffers: dict[str, Storage]
