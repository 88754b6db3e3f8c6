"""Movement of elements: shapes, slices, pads, gather, scatter. A no-op writes no node."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.exporters.onnx.elementwise import cast
from graphtool.exporters.onnx.kit import Node, Ref, Writer, dtypes, form, o, takes
from graphtool.exporters.onnx.sizes import shape, size
from graphtool.ops.shape import pad_value
from graphtool.symbolic import Dim, Poly, bounds, text

_TABLE = 1 << 10  # numbers of a line that stand in the model; longer ones are computed
_END = np.iinfo(np.int64).min


@form("reshape")
def reshape(w: Writer, node: Node, x: Ref) -> Any:
    """Reshape; a single symbolic size is written as −1. For several ones Squeeze or Unsqueeze if
    these say it, else a size that is that of the same axis of x as 0."""
    to = node.attrs["shape"]
    if to == x.shape:
        return x
    opened = [i for i, d in enumerate(to) if isinstance(d, Poly)]
    if len(opened) == 1 and 0 not in to:  # the one size that is not known follows from the rest
        return w("Reshape", x, w.array([-1 if isinstance(d, Poly) else d for d in to]))
    if len(opened) > 1 and (ones := _ones(x.shape, to)) is not None:
        return w("Squeeze" if len(to) < len(x.shape) else "Unsqueeze", x, w.array(ones))
    others = [i for i in opened if x.shape[i:i + 1] != (to[i],)]
    if len(opened) == 0 or 0 in to or len(others) > 1 or (others and any(
            (bounds(to[i])[0] or 0) < 1 for i in opened if i not in others)):
        return w("Reshape", x, shape(w, to), allowzero=1 if 0 in to else None)
    return w("Reshape", x, w.array([d if isinstance(d, int) else -1 if i in others else 0
                                    for i, d in enumerate(to)]))


def _ones(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> list[int] | None:
    """The axes of size 1 that the longer shape has and the shorter one lacks; None if they differ
    in another way."""
    long, rest = (list(a), list(b)) if len(a) > len(b) else (list(b), list(a))
    ones = []
    for i, d in enumerate(long):
        if rest and rest[0] == d:
            rest.pop(0)
        elif d == 1:
            ones.append(i)
        else:
            return None
    return None if rest or not ones else ones


@form("assume")
def assume(w: Writer, node: Node, x: Ref) -> Any:
    """The operand: ONNX checks sizes where they are used."""
    return x


@form("transpose")
def transpose(w: Writer, node: Node, x: Ref) -> Any:
    """Transpose."""
    perm = node.attrs["perm"]
    return x if perm == tuple(range(len(perm))) else w("Transpose", x, perm=perm)


@form("broadcast", "spread")
def broadcast(w: Writer, node: Node, x: Ref) -> Any:
    """Expand."""
    to = node.attrs["shape"]
    return x if to == x.shape else w("Expand", x, shape(w, to))


@form("slice")
def slice_(w: Writer, node: Node, x: Ref) -> Any:
    """Slice along the axes that change."""
    start, limit, strides = (node.attrs[k] for k in ("start", "limit", "strides"))
    axes = [a for a, d in enumerate(x.shape) if (start[a], limit[a], strides[a]) != (0, d, 1)]
    if not axes:
        return x
    return w("Slice", x, shape(w, [start[a] for a in axes]), shape(w, [limit[a] for a in axes]),
             w.array(axes), w.array([strides[a] for a in axes]))


@form("reverse")
def reverse(w: Writer, node: Node, x: Ref) -> Any:
    """Slice with step −1 along the axes."""
    axes = [a % len(x.shape) for a in node.attrs["axes"]]
    if not axes:
        return x
    line = [-1] * len(axes)
    return w("Slice", x, w.array(line), w.array([_END] * len(axes)), w.array(axes), w.array(line))


@form("concat")
def concat(w: Writer, node: Node, *xs: Ref) -> Any:
    """Concat."""
    return xs[0] if len(xs) == 1 else w("Concat", *xs, axis=node.attrs["axis"])


@form("stop_gradient", "checkpoint", "unknown_gradient", "gradient")
def stop_gradient(w: Writer, node: Node, x: Ref) -> Any:
    """The operand: these ops matter only for gradients."""
    return x


@form("pad")
def pad(w: Writer, node: Node, x: Ref) -> Any:
    """Pad at the edges; interior gaps are a pad of a new axis. Negative pads are sliced off
    first, since onnxruntime cannot crop more than an axis has."""
    lo, hi, value = (node.attrs[k] for k in ("lo", "hi", "value"))
    interior = node.attrs["interior"] or (0,) * len(lo)
    if any(interior):
        return w.restate(lambda x: _spread(x, lo, hi, interior, value), [x])
    negative = [any(isinstance(d, int) and d < 0 for d in pair)
                for pair in zip(lo, hi, strict=True)]
    if any(n and isinstance(d, int) for n, d in zip(negative, x.shape, strict=True)):
        return w.restate(lambda x: _cropped(x, lo, hi, negative, value), [x])
    if all(d == 0 for d in (*lo, *hi)):
        return x
    dtype = x.type.dtype
    pads = shape(w, [*lo, *hi])  # of all axes: onnxruntime moves transposes through no other
    fill = w.array(np.asarray(pad_value(value, dtype), dtype.numpy))
    if dtype.short in ("i16", "u16"):
        wide = w("Pad", cast(w, x, dtypes.int32), pads, cast(w, fill, dtypes.int32))
        return cast(w, wide, dtype)
    return w("Pad", x, pads, fill)


def _spread(x: Any, lo: Any, hi: Any, interior: Any, value: float) -> Any:
    """pad with `interior` fills between elements: [d] as [d, 1], padded to [d, gap + 1], flat."""
    hi = list(hi)
    for axis, gap in enumerate(interior):
        d: Dim = x.shape[axis]
        if not gap or d == 0:
            continue
        apart = o.reshape(x, shape=(*x.shape[:axis + 1], 1, *x.shape[axis + 1:]))
        wide = o.pad(apart, lo=(0,) * apart.ndim, value=value,
                     hi=tuple(gap if a == axis + 1 else 0 for a in range(apart.ndim)))
        x = o.reshape(wide, shape=(*x.shape[:axis], d * (gap + 1), *x.shape[axis + 1:]))
        hi[axis] = hi[axis] - gap
    return o.pad(x, lo=tuple(lo), hi=tuple(hi), value=value)


def _cropped(x: Any, lo: Any, hi: Any, negative: Any, value: float) -> Any:
    lo, hi = list(lo), list(hi)
    start, limit = [0] * x.ndim, list(x.shape)
    for a, crop in enumerate(negative):
        n = x.shape[a]
        if not crop or not isinstance(n, int):
            continue
        out = max(n + lo[a] + hi[a], 0)
        first = min(max(-lo[a], 0), n)
        last = max(first, min(n, out - lo[a]))
        start[a], limit[a] = first, last
        lo[a] = max(lo[a], 0) if last > first else 0
        hi[a] = out - lo[a] - (last - first)
    kept = o.slice(x, start=tuple(start), limit=tuple(limit), strides=(1,) * x.ndim)
    return o.pad(kept, lo=tuple(lo), hi=tuple(hi), value=value)


# ---- values from sizes -------------------------------------------------------------------------

@form("iota")
def iota(w: Writer, node: Node) -> Any:
    """A constant if at most 1024 numbers, else Range; then Expand."""
    to, axis, dtype = (node.attrs[k] for k in ("shape", "axis", "dtype"))
    n = to[axis]
    line: Any = tuple(n if a == axis else 1 for a in range(len(to)))
    if isinstance(n, int) and n <= _TABLE:
        row = w.array(np.arange(n).astype(dtype.numpy).reshape(line))
    else:
        count = w("Squeeze", size(w, n), w.array([0]))
        numbers = w("Range", w.array(0, dtypes.int64), count, w.array(1, dtypes.int64))
        row = numbers if len(to) == 1 else w("Reshape", numbers, w.array(
            [-1 if a == axis else 1 for a in range(len(to))]))
        row = row if dtype is dtypes.int64 else cast(w, row, dtype)
    return row if line == to else w("Expand", row, shape(w, to))


@form("dim")
def dim(w: Writer, node: Node) -> Any:
    """A symbolic size as a scalar, from Shape of an input."""
    of, dtype = node.attrs["of"], node.attrs["dtype"]
    if isinstance(of, int):
        return w.array(np.asarray(of).astype(dtype.numpy))
    scalar = w("Squeeze", size(w, of), w.array([0]))
    return scalar if dtype is dtypes.int64 else cast(w, scalar, dtype)


@form("size")
def defined(w: Writer, node: Node, n: Ref) -> Any:
    """The number itself; from here on the symbolic size is read from it."""
    to = node.attrs["size"]
    if isinstance(to, Poly):
        w.sizes[text(to)] = w("Reshape", n, w.array([1]))
    return n


@form("nonzero")
def nonzero(w: Writer, node: Node, x: Ref) -> Any:
    """Transpose of NonZero: i64[size, rank]."""
    takes(bool(x.shape))
    return w("Transpose", w("NonZero", x), perm=(1, 0))


# ---- indexing ----------------------------------------------------------------------------------

@form("embedding")
def embedding(w: Writer, node: Node, table: Ref, ids: Ref) -> Any:
    """Gather of rows of the table."""
    return w("Gather", table, _index(w, ids), axis=0)


def _index(w: Writer, x: Ref) -> Any:
    """Indices as int64, or unchanged if they are int32."""
    return x if x.type.dtype in (dtypes.int64, dtypes.int32) else cast(w, x, dtypes.int64)


@form("gather")
def gather(w: Writer, node: Node, x: Ref, indices: Ref) -> Any:
    """Gather along one axis; else GatherND, after a transpose that puts the axes first."""
    axes, batch = node.attrs["axes"], node.attrs["batch"]
    if len(axes) == 1 and not batch:
        last = len(indices.shape) - 1
        flat = w("Squeeze", _index(w, indices), w.array([last]))
        y = w("Gather", x, flat, axis=axes[0])
        before = axes[0]
        if not before or not last:
            return y
        rank = last + len(x.shape) - 1
        return w("Transpose", y, perm=(*range(before, before + last), *range(before),
                                       *range(before + last, rank)))
    perm = _axes_first(len(x.shape), axes, batch)
    moved = x if perm == tuple(range(len(perm))) else w("Transpose", x, perm=perm)
    at = indices if indices.type.dtype is dtypes.int64 else cast(w, indices, dtypes.int64)
    return w("GatherND", moved, at, batch_dims=batch or None)


def _axes_first(rank: int, axes: tuple[int, ...], batch: int) -> tuple[int, ...]:
    lead = (*range(batch), *axes)
    return (*lead, *(a for a in range(rank) if a not in lead))


@form("scatter")
def scatter(w: Writer, node: Node, x: Ref, indices: Ref, updates: Ref) -> Any:
    """ScatterND, after a transpose that puts the axes first; batch axes become index columns."""
    axes, batch, kind = (node.attrs[k] for k in ("axes", "batch", "kind"))
    perm = _axes_first(len(x.shape), axes, batch)
    plain = perm == tuple(range(len(perm)))
    if not plain or batch or indices.type.dtype is not dtypes.int64:
        return w.restate(lambda *xs: _moved(*xs, perm=perm, count=len(axes), batch=batch,
                                            kind=kind), [x, indices, updates])
    takes(axes == tuple(range(len(axes))))
    return w("ScatterND", x, indices, updates, reduction=None if kind == "set" else kind)


def _moved(x: Any, indices: Any, updates: Any, *, perm: Any, count: int, batch: int,
           kind: str) -> Any:
    at = o.cast(indices, dtype=dtypes.int64) if indices.dtype is not dtypes.int64 else indices
    for axis in reversed(range(batch)):
        column = (*at.shape[:-1], 1)
        row = x.builder.emit(o.iota, (), {"shape": column, "axis": axis, "dtype": dtypes.int64})
        at = o.concat(row, at, axis=-1)
    y = o.scatter(o.transpose(x, perm=perm), at, updates, axes=tuple(range(batch + count)),
                  kind=kind)
    return o.transpose(y, perm=tuple(perm.index(a) for a in range(len(perm))))


@form("dynamic_slice")
def dynamic_slice(w: Writer, node: Node, x: Ref, *start: Any) -> Any:
    """Slice from starts that are tensors, clamped as our op does."""
    sizes = node.attrs["sizes"]
    axes = [a for a, (n, d) in enumerate(zip(sizes, x.shape, strict=True)) if n != d]
    if not axes:
        return x
    at = _starts(w, x, start, sizes, axes)
    end = w("Add", at, shape(w, [sizes[a] for a in axes]))
    return w("Slice", x, at, end, w.array(axes))


def _starts(w: Writer, x: Ref, start: Any, sizes: Any, axes: list[int]) -> Any:
    """The starts along these axes as a vector, clamped so that the window lies inside x."""
    parts = []
    for a in axes:
        s = start[a]
        s = w.array([s]) if isinstance(s, int) else w(
            "Reshape", s if s.type.dtype is dtypes.int64 else cast(w, s, dtypes.int64),
            w.array([1]))
        parts.append(s)
    most = w("Sub", shape(w, [x.shape[a] for a in axes]), shape(w, [sizes[a] for a in axes]))
    at = parts[0] if len(parts) == 1 else w("Concat", *parts, axis=0)
    return w("Max", w("Min", at, most), w.array([0]))


@form("dynamic_update_slice")
def dynamic_update_slice(w: Writer, node: Node, x: Ref, update: Ref, *start: Any) -> Any:
    """Concat of the part before, the update and the part after it, along each axis in turn."""
    axes = [a for a, (n, d) in enumerate(zip(update.shape, x.shape, strict=True)) if n != d]
    if not axes:
        return update
    at = _starts(w, x, start, update.shape, axes)
    wholes: list[Any] = [x]
    edges = []
    for k, a in enumerate(axes):
        first = w("Slice", at, w.array([k]), w.array([k + 1]), w.array([0]))
        last = w("Add", first, size(w, update.shape[a]))
        edges.append((first, last))
        wholes.append(w("Slice", wholes[-1], first, last, w.array([a])))
    y: Any = update
    for a, (first, last), whole in reversed(list(zip(axes, edges, wholes[:-1], strict=True))):
        before = w("Slice", whole, w.array([0]), first, w.array([a]))
        behind = w("Slice", whole, last, size(w, x.shape[a]), w.array([a]))
        y = w("Concat", before, y, behind, axis=a)
    return y
