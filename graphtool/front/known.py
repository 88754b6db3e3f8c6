"""What is known at import: what an op computes of known numbers (`eval`) and of sizes (`known`),
and single elements of traced values: sizes, and the least and the most."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphtool.dtypes import of_numpy
from graphtool.front.array import Array, Numbers, compact
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Node, Operand, TensorType, Value, is_constant
from graphtool.ir.op import Op, evaluate
from graphtool.symbolic import Dim, Poly, maximum, product
from graphtool.symbolic.spans import OPEN, Span, hull, whole

FOLD_LIMIT = 1 << 16  # elements of operands, or of a result, that is computed at import
_PRODUCTS = 1 << 24  # of the sizes of two operands: more is too much work at import
_READ = 1 << 24  # elements that an op reads, however many of them are one number in memory
_GROWN = 1 << 12  # elements of a result that has more than its operands
_ENTRIES = 1 << 10  # sizes in one array that is computed at import
_NEVER = Trait.RANDOM | Trait.WORLD | Trait.SIZE
_VIEWS = Movement.PERMUTES | Movement.TAKES | Movement.REVERSES | Movement.REPEATS
_MOVES = _VIEWS | Movement.KEEPS | Movement.SEVERAL


def evaluated(op: Op, xs: Sequence[Any], attrs: dict[str, Any], types: Any
               ) -> tuple[Numbers, ...] | None:
    """The results on known numbers; None if that is too much work, or more than data."""
    arrays = [x.known for x in xs if isinstance(x, Array) and x.known is not None]
    if op.traits & _NEVER or op.category in ("control", "memory") or (
            op.eval is None and op.decompose is None):
        return None
    several = types if isinstance(types, tuple) else (types,)
    operands = [x.known if isinstance(x, Array) else x for x in xs]
    if Trait.ELEMENTWISE in op.traits:
        parts = [compact(x) if isinstance(x, np.ndarray) else x for x in operands]
        if np.broadcast(*(p for p in parts if isinstance(p, np.ndarray))).size > FOLD_LIMIT:
            return None
        return (np.broadcast_to(evaluate(op, parts, attrs), several[0].shape),)
    if not all(isinstance(d, int) for t in several for d in t.shape):
        return None
    if Movement.KEEPS in op.movement and compact(arrays[0]).size == 1:
        return (np.broadcast_to(compact(arrays[0]).reshape(()), several[0].shape),)
    if not (op.movement & _VIEWS or _is_little_work(arrays, several)):
        return None
    out = evaluate(op, operands, attrs)
    return out if isinstance(out, tuple) else (out,)


def _is_little_work(arrays: Sequence[Numbers], types: Sequence[Any]) -> bool:
    """Whether an op that is no view can compute results of these types at import."""
    whole = sorted(compact(a).size for a in arrays)
    return sum(whole) <= FOLD_LIMIT and math.prod(whole[-2:]) <= _PRODUCTS and all(
        a.size <= _READ for a in arrays) and all(
        math.prod(t.shape) <= max(_GROWN, *whole) for t in types)


def of_entries(op: Op, xs: Sequence[Any], arrays: Sequence[Array], attrs: dict[str, Any]
                ) -> Numbers | None:
    """The result on sizes and conditions; None if it is neither."""
    dtype = arrays[0].dtype if arrays else None
    if op.traits & _NEVER:
        return None
    moves = op.movement & _MOVES and Movement.REPEATS not in op.movement
    if (op.known is None and not (moves or op.indexing)) or any(
            compact(x.known).size > _ENTRIES for x in arrays):  # type: ignore[arg-type]
        return None
    into = {op.indexing.into} if op.indexing and op.indexing.draws else range(len(xs))
    known = [_as_entries(x) if i in into else x.numbers if isinstance(x, Array) else x
             for i, x in enumerate(xs)]
    if any(k is None and x is not None for k, x in zip(known, xs, strict=True)):
        return None
    if op.known is None:
        return np.asarray(op.eval(*known, **attrs))  # type: ignore[misc]
    if Trait.ELEMENTWISE not in op.traits:
        return op.known(dtype, *known, **attrs)  # type: ignore[no-any-return]
    wide = np.broadcast_arrays(*(compact(k) for k in known if k is not None))
    out = np.empty(wide[0].shape, object)
    flat = out.reshape(-1)
    for i, row in enumerate(zip(*(w.reshape(-1) for w in wide), strict=True)):
        flat[i] = op.known(dtype, *row, **attrs)
        if flat[i] is None:
            return None
    return flat.reshape(wide[0].shape)


def _as_entries(x: Any) -> Numbers | None:
    """Known elements as sizes and truth values; None for numbers that are not whole."""
    if isinstance(x, Array) and x.symbolic:
        return x.known
    array = x.known if isinstance(x, Array) else np.asarray(x)
    if array is None or (array.dtype.kind not in "biuf" and not of_numpy(array.dtype).is_float):
        return None
    if array.dtype.kind == "b":
        return array.astype(object)
    if of_numpy(array.dtype).is_float:
        wide = array.astype(np.float64)
        if not (np.isfinite(wide).all() and (wide == np.trunc(wide)).all()):
            return None
        array = wide
    out = np.empty(array.shape, object)
    flat = out.reshape(-1)
    flat[:] = [int(v) for v in array.reshape(-1)]
    return flat.reshape(array.shape)


# ---- single elements of traced values -----------------------------------------------------------

_LOOKED = 16  # nodes that are looked through for a size
_SPANNED = 24  # nodes that are looked through for a span
_SCANNED = 1 << 20  # elements of a constant that are looked at
_SMALL = 1 << 10  # elements of a tensor that is moved
_EXACT = ("int", "uint", "bool")
_MOVED = Movement.ONCE | Movement.REPEATS | Movement.SEVERAL
Maker = Callable[[Value], Node | None]


@dataclass(frozen=True)
class Elements:
    """The elements of values: `maker` gives the node of a value; `bound` has the values that are
    already known as sizes."""

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
            source = self._source(node, at, depth)
            return None if source is None else self.size(node.inputs[source[0]], source[1], depth)
        if op.known is None:
            return None
        first = next((x.type.dtype for x in node.inputs if isinstance(x, Value)), None)
        if Trait.ELEMENTWISE in op.traits:
            xs = [self.size(x, _place(x, at), depth) for x in node.inputs]
            return None if None in xs else op.known(first, *xs, **node.attrs)
        arrays = [self._all(x, depth) for x in node.inputs]
        size = None if any(a is None for a in arrays) else op.known(first, *arrays, **node.attrs)
        return None if size is None else size.reshape(-1)[at]

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
        if op.eval is None or not draws or (op.indexing is None and not op.movement & _MOVED):
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
        index = int(np.asarray(op.eval(*xs, **node.attrs)).reshape(-1)[at])
        which = max(i for i in moved if starts[i] <= index)
        return which, index - starts[which]

    # ---- the least and the most ----------------------------------------------------------------

    def most(self, x: Value) -> Dim | None:
        """An upper bound of the elements of x, as a size of at least 0, or None."""
        bound = whole(self.span(x, 0 if product(x.type.shape) == 1 else None)[1], True)
        return None if bound is None else maximum(bound, 0)

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
        span = OPEN if node is None else self._of_node(node, at, depth + 1)
        low, high = _of_type(x)
        inside = all(isinstance(v, (int, float)) and low <= v <= high for v in span) if (
            isinstance(low, int) and isinstance(high, int)) else True
        return span if inside else (low, high)

    def _of_node(self, node: Node, at: int | None, depth: int) -> Span:
        op = node.op
        if is_constant(node):
            return _constant(node, at)
        if op.movement & _MOVED or (op.indexing and op.indexing.draws):
            source = None if at is None else self._source(node, at, depth)
            if source is not None:
                return self.span(node.inputs[source[0]], source[1], depth)
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
