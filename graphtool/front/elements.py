"""What is known of single elements of traced values: sizes, and the least and the most.

Both are derived from the nodes before a value, by the records of their ops. Bounds are used for
plans of memory only: the node that defines a size also checks it against its bound, so that a
wrong bound is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Node, Operand, TensorType, Value, is_constant
from graphtool.symbolic import Dim, Poly, maximum, product
from graphtool.symbolic.spans import OPEN, Span, hull, whole

_LOOKED = 16  # nodes that are looked through for a size
_SPANNED = 24  # nodes that are looked through for a span
_SCANNED = 1 << 20  # elements of a constant that are looked at
_SMALL = 1 << 10  # elements of a tensor that is moved
_EXACT = ("int", "uint", "bool")
_MOVES = Movement.ONCE | Movement.REPEATS | Movement.JOINS
Maker = Callable[[Value], Node | None]


@dataclass(frozen=True)
class Elements:
    """The elements of values: `maker` gives the node that makes one, `bound` has those that are
    known as sizes already."""

    maker: Maker
    bound: Mapping[tuple[Value, int], Dim] = field(default_factory=dict)
    seen: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    # ---- sizes ---------------------------------------------------------------------------------

    def size(self, x: Operand, at: int, depth: int = 0) -> Any:
        """Element `at` of integers as a size, of truth values as a truth or a condition, if the
        nodes before it determine it."""
        if isinstance(x, int):
            return x
        if not isinstance(x, Value) or x.type.dtype.kind not in _EXACT or depth > _LOOKED:
            return None
        if (x, at) in self.bound:
            return self.bound[x, at]
        key = "size", x, at, depth
        if key not in self.seen:  # a value may be used twice at each level
            node = self.maker(x)
            self.seen[key] = None if node is None else self._size(node, at, depth + 1)
        return self.seen[key]

    def _size(self, node: Node, at: int, depth: int) -> Any:
        op = node.op
        if is_constant(node):
            return node.attrs["data"].source.reshape(-1)[at].item()
        if op.movement or op.indexing:
            found = self._source(node, at, depth)
            return None if found is None else self.size(node.inputs[found[0]], found[1], depth)
        if op.known is None:
            return None
        first = next((x.type.dtype for x in node.inputs if isinstance(x, Value)), None)
        if Trait.ELEMENTWISE in op.traits:
            xs = [self.size(x, _place(x, at), depth) for x in node.inputs]
            return None if None in xs else op.known(first, *xs, **node.attrs)
        arrays = [self._all(x, depth) for x in node.inputs]
        made = None if any(a is None for a in arrays) else op.known(first, *arrays, **node.attrs)
        return None if made is None else made.reshape(-1)[at]

    def _all(self, x: Operand, depth: int) -> Any:
        """All elements of a small value as sizes."""
        if not isinstance(x, Value) or not _is_small(x.type):
            return None
        shape = [int(d) for d in x.type.shape if isinstance(d, int)]
        flat = [self.size(x, i, depth) for i in range(math.prod(shape))]
        out = np.empty(len(flat), object)
        out[:] = flat
        return None if any(d is None for d in flat) else out.reshape(shape)

    def _source(self, node: Node, at: int, depth: int) -> tuple[int, int] | None:
        """Which operand, and which element of it, a node moves to its element `at`: the op on the
        numbers of all elements says it."""
        op = node.op
        moved = [i for i in range(len(node.inputs)) if op.indexing is None or i == op.indexing.into]
        draws = op.indexing is None or op.indexing.draws
        if op.eval is None or not draws or (op.indexing is None and not op.movement & _MOVES):
            return None
        xs: list[Any] = []
        first = 0
        starts: list[int] = []
        for i, x in enumerate(node.inputs):
            if not isinstance(x, Value) or not _is_small(x.type):
                return None
            shape = [int(d) for d in x.type.shape if isinstance(d, int)]
            numbers = np.arange(first, first + math.prod(shape))
            starts.append(first)
            if i in moved:
                first += numbers.size
                xs.append(numbers.reshape(shape))
            else:
                places = self._all(x, depth)
                if places is None or any(isinstance(p, Poly) for p in places.reshape(-1)):
                    return None
                xs.append(places.astype(np.int64))
        if _is_open(node.attrs) or not _is_small(node.outputs[0].type):
            return None
        found = int(np.asarray(op.eval(*xs, **node.attrs)).reshape(-1)[at])
        which = max(i for i in moved if starts[i] <= found)
        return which, found - starts[which]

    # ---- the least and the most ----------------------------------------------------------------

    def most(self, x: Value) -> Dim | None:
        """An upper bound of the elements of x, as a size of at least 0, or None."""
        found = whole(self.span(x, 0 if product(x.type.shape) == 1 else None)[1], True)
        return None if found is None else maximum(found, 0)

    def span(self, x: Operand, at: int | None, depth: int = 0) -> Span:
        """The span of element `at` of x; of all its elements if `at` is None."""
        if not isinstance(x, Value):
            return (x, x) if isinstance(x, (int, float)) and x == x else OPEN
        key = "span", x, at, depth
        if key not in self.seen:
            self.seen[key] = self._span(x, at, depth)
        return self.seen[key]  # type: ignore[no-any-return]

    def _span(self, x: Value, at: int | None, depth: int) -> Span:
        known = self.size(x, at) if at is not None else None
        if isinstance(known, (int, Poly)) and not isinstance(known, bool):
            return known, known
        node = self.maker(x) if depth < _SPANNED else None
        found = OPEN if node is None else self._of_node(node, at, depth + 1)
        low, high = _of_type(x)
        inside = all(isinstance(v, (int, float)) and low <= v <= high for v in found) if (
            isinstance(low, int) and isinstance(high, int)) else True
        return found if inside else (low, high)

    def _of_node(self, node: Node, at: int | None, depth: int) -> Span:
        op = node.op
        if is_constant(node):
            return _constant(node, at)
        if op.movement & _MOVES or (op.indexing and op.indexing.draws):
            found = None if at is None else self._source(node, at, depth)
            if found is not None:
                return self.span(node.inputs[found[0]], found[1], depth)
            into = node.inputs if op.indexing is None else [node.inputs[op.indexing.into]]
            return hull(*(self.span(x, None, depth) for x in into))
        if op.span is None:
            return OPEN
        kinds = tuple(x.type if isinstance(x, Value) else x for x in node.inputs)
        spans = [self.span(x, None if at is None or not _same(x, node) else _place(x, at), depth)
                 for x in node.inputs]
        return op.span(kinds, *spans, **node.attrs)


def _same(x: Operand, node: Node) -> bool:
    """Whether element i of the result comes from element i of x, or from its only one."""
    return isinstance(x, Value) and (
        x.type.shape == node.outputs[0].type.shape or product(x.type.shape) == 1)


def _place(x: Operand, at: int) -> int:
    return 0 if isinstance(x, Value) and product(x.type.shape) == 1 else at


def _is_small(kind: TensorType) -> bool:
    count = product(kind.shape)
    return isinstance(count, int) and count <= _SMALL and all(
        isinstance(d, int) for d in kind.shape)


def _is_open(attrs: Mapping[str, Any]) -> bool:
    return any(isinstance(d, Poly) for v in attrs.values()
               for d in (v if isinstance(v, tuple) else (v,)))


def _of_type(x: Value) -> Span:
    """The span of a type of at most 16 bits."""
    d = x.type.dtype
    if d.kind == "bool":
        return 0, 1
    return (d.low, d.high) if d.is_integer and d.bits <= 16 else OPEN


def _constant(node: Node, at: int | None) -> Span:
    data = node.attrs["data"]
    if not 0 < data.size <= _SCANNED or data.dtype.kind == "string":
        return OPEN
    flat = np.asarray(data.source).reshape(-1).astype(
        np.float64 if data.dtype.is_float else np.int64)
    part = flat if at is None else flat[at:at + 1]
    return OPEN if np.isnan(part).any() else (part.min().item(), part.max().item())
