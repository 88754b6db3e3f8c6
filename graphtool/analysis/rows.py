"""Which rows of an operand a row of a result needs, where a node computes all rows along an axis
alike. A row is what lies at one index of that axis: a line of an image, a frame of a signal.

The facts are those of the ops' records: what their attributes mean to axes, and their windows. A
composite is what its definition is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphtool.ir.facets import Align, Movement, Trait
from graphtool.ir.graph import Node, Operand, Value
from graphtool.ir.trace import trace
from graphtool.symbolic import product

PADDED_WINDOWS = {"window", "strides", "dilation", "padding", "zero"}  # convolutions of bytes


@dataclass(frozen=True)
class Seen:
    """The rows that row r of a result sees: from stride·r − above, `reach` of them."""

    stride: int = 1
    above: int = 0
    reach: int = 1

    def first(self, row: int) -> int:
        """The first row that this row of the result sees."""
        return self.stride * row - self.above

    def count(self, rows: int) -> int:
        """How many rows so many rows of the result see."""
        return (rows - 1) * self.stride + self.reach

    def least_late(self, late: int) -> int:
        """How late a result is at least whose operand is so late."""
        return -(-(late + self.reach - self.stride - self.above) // self.stride)

    def most_late(self, late: int) -> int:
        """How late the operand may be of a result that is so late."""
        return self.stride * late + self.stride + self.above - self.reach

    def of(self, inner: Seen) -> Seen:
        """What the result sees through an operand that itself sees rows: self ∘ inner."""
        return Seen(self.stride * inner.stride, self.above * inner.stride + inner.above,
                    (self.reach - 1) * inner.stride + inner.reach)

    def joined(self, other: Seen) -> Seen | None:
        """What is seen in both ways together; None if the strides differ."""
        above = max(self.above, other.above)
        end = max(s.reach - s.above for s in (self, other))
        return Seen(self.stride, above, above + end) if self.stride == other.stride else None


@dataclass(frozen=True)
class ByRows:
    """A node that computes its rows alike: the axis of rows of its result, and what it sees of
    each operand that has rows, by number."""

    axis: int
    seen: dict[int, Seen]


def seen(node: Node, axis: int) -> Seen | None:
    """What the windows of a node see along an axis of its first operand, one row each where it has
    none there; None if there are zeros between the elements of the operand."""
    a = node.attrs
    spatial = axis - 1 if a.get("channels_last", True) else axis - 2
    if node.op.weighing and node.op.weighing.kind == "conv":
        entries = (node.inputs[1].type.shape[2:], "strides",  # type: ignore[union-attr]
                   "rhs_dilation", "padding", "lhs_dilation")
    elif a.keys() >= PADDED_WINDOWS:
        entries = (a["window"], "strides", "dilation", "padding", "")
    elif Trait.WINDOWED in node.op.traits and node.op.axes is not None:
        entries, spatial = (a["window"], "strides", "window_dilation", "padding",
                            "base_dilation"), axis
    else:
        return Seen()

    def entry(name: str, alone: Any) -> Any:
        return a[name][spatial] if a.get(name) else alone
    window, strides, apart, padding, between = entries
    if not 0 <= spatial < len(window) or entry(between, 1) != 1:
        return None
    reach = (window[spatial] - 1) * entry(apart, 1) + 1
    return Seen(entry(strides, 1), entry(padding, (0, 0))[0], reach)


def by_rows(node: Node, axes: Sequence[int | None]) -> ByRows | None:
    """How the node computes rows, whose axis in each operand `axes` has (None: an operand without
    rows); None if a row of the result can need any row, or what it needs is unknown."""
    if len(node.outputs) != 1 or node.op.traits & (Trait.RANDOM | Trait.WORLD):
        return None
    found = _derived(node, axes)
    return found or (_defined(node, axes) if Trait.COMPOSITE in node.op.traits else None)


def for_rows(node: Node, axis: int, rows: int, given: int) -> dict[str, Any]:
    """The attributes of a node that computes so many rows from `given` rows of its operand."""
    attrs = dict(node.attrs)
    for name in node.op.axes.sizes if node.op.axes else ():
        count = given if Movement.TAKES in node.op.movement else rows
        attrs[name] = (*attrs[name][:axis], count, *attrs[name][axis + 1:])
    if "start" in attrs:
        attrs["start"] = (*attrs["start"][:axis], 0, *attrs["start"][axis + 1:])
    return attrs


def _rank(x: Operand) -> int:
    return x.type.rank if isinstance(x, Value) else 0


def _derived(node: Node, axes: Sequence[int | None]) -> ByRows | None:
    """How the node computes rows, from what its op's record says of attributes and axes."""
    op, (axis, *others) = node.op, axes
    if axis is not None and others.count(None) == len(others):
        if op.weighing and op.weighing.kind == "conv":
            s = seen(node, axis) if axis else None
            return ByRows(axis, {0: s}) if s and node.attrs["batch_groups"] == 1 else None
        if Movement.KEEPS in op.movement and "shape" in node.attrs:
            return _reshaped(node, axis)
    if op.axes is None or op.axes.align is Align.NONE:
        return None
    if op.axes.align is Align.SAME:
        return _same_axes(node, axes)
    of_matrices = op.axes.align is Align.MATRICES
    rank = node.outputs[0].type.rank
    at = {rank - _rank(x) + a for x, a in zip(node.inputs, axes, strict=True) if a is not None}
    if len(at) != 1 or (of_matrices and not _rows_of_matrices(node, axes)):
        return None
    (result,) = at
    alike = all(a is not None or _one_row(x, rank, result, of_matrices and i)
                for i, (x, a) in enumerate(zip(node.inputs, axes, strict=True)))
    return ByRows(result, {i: Seen() for i, a in enumerate(axes) if a is not None}) if (
        alike and all(_size(x, a) == node.outputs[0].type.shape[result]
                      for x, a in zip(node.inputs, axes, strict=True) if a is not None)) else None


def _size(x: Operand, axis: int) -> Any:
    return x.type.shape[axis] if isinstance(x, Value) else 1


def _one_row(x: Operand, rank: int, axis: int, matrix: bool | int) -> bool:
    """Whether an operand without rows is the same for all of them; the last two axes of the second
    matrix of a product are not those of the result."""
    at = axis - rank + _rank(x)
    return at < 0 or (bool(matrix) and at >= _rank(x) - 2) or _size(x, at) == 1


def _rows_of_matrices(node: Node, axes: Sequence[int | None]) -> bool:
    """Whether the axis is one of many matrices, or that of the rows of the first one."""
    (a, b), (x, y) = node.inputs[:2], axes[:2]
    if y is not None and (x is None or y >= _rank(b) - 2):
        return False
    return x is not None and (x < _rank(a) - 2 or (
        x == _rank(a) - 2 and not node.attrs["transpose_a"] and y is None))


def _same_axes(node: Node, axes: Sequence[int | None]) -> ByRows | None:
    """How a node computes rows whose operands and result have the same axes."""
    facets, a, (axis, *_) = node.op.axes, node.attrs, axes
    assert facets is not None
    if axis is None or any(other != axis for other in axes):
        return None
    rank = _rank(node.inputs[0])
    named = [n for name in facets.names for n in (
        a[name] if isinstance(a[name], tuple) else (a[name],))]
    spans = [s and (s[axis], s[axis + rank]) for s in (a[name] for name in facets.spans)]
    if any(n % rank == axis for n in named) or any(s and s != (0, 1) for s in spans):
        return None
    s = seen(node, axis)
    if "start" in facets.each:
        s = Seen(a["strides"][axis] if a["strides"] else 1, -a["start"][axis], 1)
    elif Trait.WINDOWED not in node.op.traits and any(
            a[name] and a[name][axis] != alone for name, alone in facets.each.items()):
        return None
    result = a[facets.order].index(axis) if facets.order else axis
    return ByRows(result, dict.fromkeys(range(len(axes)), s)) if s else None


def _reshaped(node: Node, axis: int) -> ByRows | None:
    """How a reshape keeps rows: an axis of as many, with as many elements before it."""
    (x,), shape = node.inputs, node.outputs[0].type.shape
    assert isinstance(x, Value)
    before, rows = product(x.type.shape[:axis]), x.type.shape[axis]
    at = next((i for i, d in enumerate(shape) if d == rows and product(shape[:i]) == before), None)
    return None if at is None else ByRows(at, {0: Seen()})


def _defined(node: Node, axes: Sequence[int | None]) -> ByRows | None:
    """How a composite computes rows, from its definition."""
    given = [i for i, x in enumerate(node.inputs) if isinstance(x, Value)]

    def definition(*xs: Any) -> Any:
        of = dict(zip(given, xs, strict=True))
        return node.op.decompose(  # type: ignore[misc]
            *(of.get(i, x) for i, x in enumerate(node.inputs)), **node.attrs)
    graph = trace(definition, [node.inputs[i].type for i in given])  # type: ignore[union-attr]
    known: dict[Value, ByRows] = {
        v: ByRows(axes[i], {i: Seen()})  # type: ignore[arg-type]
        for v, i in zip(graph.inputs, given, strict=True) if axes[i] is not None}
    for inner in graph.nodes:
        of = [known.get(x) if isinstance(x, Value) else None for x in inner.inputs]
        if not any(of):
            continue
        found = by_rows(inner, [None if x is None else x.axis for x in of])
        through = found and _through(found, of)
        if through is None:
            return None
        known[inner.outputs[0]] = through
    return known.get(graph.outputs[0]) if len(graph.outputs) == 1 else None


def _through(found: ByRows, of: Sequence[ByRows | None]) -> ByRows | None:
    """What a node of a definition sees of the operands of the definition."""
    out: dict[int, Seen] = {}
    for i, s in found.seen.items():
        for outer, inner in of[i].seen.items():  # type: ignore[union-attr]
            more = s.of(inner)
            both = out[outer].joined(more) if outer in out else more
            if both is None:
                return None
            out[outer] = both
    return ByRows(found.axis, out)
