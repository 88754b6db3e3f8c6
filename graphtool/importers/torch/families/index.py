"""Indexing by data: every form of torch becomes one gather or one scatter, also by several tensors
at once or by a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.importers.torch.families.shape import strided
from graphtool.importers.torch.families.sized import columns
from graphtool.importers.torch.kit import Array, Context, Refused, aten, axis_of, dtypes, o
from graphtool.ops.common import broadcast_shapes
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, product

# ---- along one axis ----------------------------------------------------------------------------


@aten("embedding")
def embedding(c: Context, weight: Array, indices: Array, padding_idx: Any = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """embedding(table, indices); the row `padding_idx` gets no gradient."""
    rows = by_frequency(o.embedding(weight, indices), scale_grad_by_freq)
    if not isinstance(padding_idx, int) or padding_idx < 0:
        return rows
    padding = o.eq(indices.unsqueeze(), padding_idx)
    return o.select(padding, o.stop_gradient(rows), rows)


def by_frequency(rows: Any, scaled: bool) -> Any:
    """Rows of a table; with `scale_grad_by_freq` their gradient is refused."""
    why = "scale_grad_by_freq of an embedding is not supported: train with scale_grad_by_freq=False"
    return o.unknown_gradient(rows, reason=why) if scaled else rows


@aten("index_select")
def index_select(c: Context, self: Array, dim: int, index: Array) -> Any:
    """gather of whole slices along one axis."""
    index = index.cast(dtypes.int64).flat()
    return self.at(index, axis_of(dim, self.ndim)) if self.ndim else self


@aten("take")
def take(c: Context, self: Array, index: Array) -> Any:
    """gather from the flat elements; the result has the shape of the index."""
    return self.flat().at(c.wrap(index, product(self.shape)), 0)


def back(perm: list[int]) -> list[int]:
    """The inverse of a permutation."""
    return [perm.index(i) for i in range(len(perm))]


def _cropped(x: Array, like: tuple[Dim, ...], axis: int | None) -> Array:
    """x cut to the sizes of `like` on all axes but one."""
    for i, d in enumerate(like):
        if i != axis and x.shape[i] != d:
            x = x.take(i, 0, d)
    return x


@aten("gather")
def gather(c: Context, self: Array, dim: int, index: Array, *,
           sparse_grad: bool = False) -> Any:
    """out[i][j] = self[i][index[i][j]]: a gather along the axis, all others are batch axes."""
    if not self.ndim or not index.ndim:
        return self.reshape(c.out.shape)
    if index.ndim != self.ndim:  # torch lets an empty index have any rank
        return c.full(c.out.shape, 0, self.dtype)
    axis, n = axis_of(dim, self.ndim), self.ndim - 1
    x = _cropped(self, index.shape, axis).moveaxis(axis, n)
    at = index.cast(dtypes.int64).moveaxis(axis, n)
    return o.gather(x, at.unsqueeze(), axes=(n,), batch=n).moveaxis(n, axis)


@aten("take_along_dim")
def take_along_dim(c: Context, self: Array, indices: Array, dim: int | None = None) -> Any:
    """torch's gather after both operands are broadcast to each other; negative indices wrap."""
    if dim is None:
        return take(c, self, indices)
    axis = axis_of(dim, self.ndim)
    lead = broadcast_shapes((*self.shape[:axis], 1, *self.shape[axis + 1:]),
                            (*indices.shape[:axis], 1, *indices.shape[axis + 1:]))
    def to(x: Array) -> Array:
        return x.broadcast((*lead[:axis], x.shape[axis], *lead[axis + 1:]))
    return gather(c, to(self), axis, c.wrap(to(indices), self.shape[axis]))


# ---- scatter along one axis --------------------------------------------------------------------

Write = Callable[[Context, Array, int, Array, Array, str], Any]


def _of_any_kind(write: Write) -> Write:
    """`write` of tensors, extended to scalars and to sums and products of truths."""
    def whole(c: Context, x: Array, dim: int, index: Array, src: Array, kind: str) -> Any:
        if x.dtype is dtypes.bool_ and kind != "set":
            numbers = x.cast(dtypes.int32), dim, index, src.cast(dtypes.int32)
            return whole(c, *numbers, kind).cast(dtypes.bool_)
        if not x.ndim:
            return src.reshape(()) if kind == "set" else getattr(o, kind)(x, src.reshape(()))
        return write(c, x, dim, index, src, kind)
    return whole


@_of_any_kind
def _scatter(c: Context, x: Array, dim: int, index: Array, src: Array, kind: str) -> Any:
    """x[i][index[i][j]] ∘= src[i][j]; a smaller index uses only that part of x and src."""
    index = index.reshape(index.shape or (1,))
    axis = axis_of(dim, x.ndim)
    src = _cropped(src.reshape(src.shape or (1,)), index.shape, None)
    at = index.cast(dtypes.int64)
    if all(a == b for i, (a, b) in enumerate(zip(x.shape, at.shape, strict=True)) if i != axis):
        n = x.ndim - 1
        x, at, src = (v.moveaxis(axis, n) for v in (x, at, src))
        y = o.scatter(x, at.unsqueeze(), src, axes=(n,), batch=n, kind=kind)
        return y.moveaxis(n, axis)
    full = [(at if i == axis else c.iota(at.shape, i)).unsqueeze() for i in range(x.ndim)]
    where = o.concat(*full, axis=x.ndim)
    return o.scatter(x, where, src, axes=tuple(range(x.ndim)), kind=kind)


@aten("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(c: Context, self: Array, dim: int, index: Array, src: Any = None, *,
            value: Any = None, reduce: str | None = None) -> Any:
    """x[index[i]] = src[i] along one axis by scatter; `reduce` adds or multiplies instead."""
    src = value if src is None else src
    if not isinstance(src, Array):
        src = c.full(index.shape, src, self.dtype)
    kind = {None: "set", "add": "add", "multiply": "mul"}[reduce]
    return _scatter(c, self, dim, index, src, kind)


@aten("scatter_add")
def scatter_add(c: Context, self: Array, dim: int, index: Array, src: Array) -> Any:
    """x[index[i]] += src[i] along one axis by scatter."""
    return _scatter(c, self, dim, index, src, "add")


_REDUCE = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}
_NEUTRAL = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


@aten("scatter_reduce")
def scatter_reduce(c: Context, self: Array, dim: int, index: Array, src: Array, reduce: str,
                   *, include_self: bool = True) -> Any:
    """scatter with sum, product, max or min; "mean" divides the sum by a scattered count."""
    return _reduced(_scatter, c, self, dim, index, src, index.shape, reduce, include_self)


def _reduced(write: Write, c: Context, x: Array, dim: int, index: Array, src: Array,
             shape: tuple[Dim, ...], reduce: str, include_self: bool) -> Any:
    """x with elements of `src` reduced into it by `write`; `shape` is the shape of the written
    values."""
    kind, start = _REDUCE[reduce], x
    if not include_self:  # what will be hit starts from the neutral element
        neutral = c.full(shape, identity(_NEUTRAL[kind], x.dtype), x.dtype)
        start = write(c, x, dim, index, neutral, "set")
    total = write(c, start, dim, index, src, kind)
    if reduce != "mean":
        return total
    ones, counts = c.full(shape, 1, x.dtype), c.full(x.shape, int(include_self), x.dtype)
    count = write(c, counts, dim, index, ones, "add")
    count = o.max(count, 1)
    return (total if x.dtype.is_float else total - o.mod(total, count)) / count  # rounded down


@_of_any_kind
def _along(c: Context, x: Array, dim: int, index: Array, source: Array, kind: str) -> Any:
    """x[:, index[k]] ∘= source[:, k]"""
    axis, count = axis_of(dim, x.ndim), product(index.shape)
    source = source.reshape((*x.shape[:axis], count, *x.shape[axis + 1:])).moveaxis(axis, 0)
    at = c.wrap(index, x.shape[axis]).reshape((count, 1))
    return o.scatter(x, at, source, axes=(axis,), kind=kind)


@aten("index_add")
def index_add(c: Context, self: Array, dim: int, index: Array, source: Array, *,
              alpha: Any = 1) -> Any:
    """x[:, index[k]] += alpha·source[:, k] by scatter."""
    if self.dtype is dtypes.bool_:
        source = source if alpha else c.full(source.shape, False, dtypes.bool_)
        alpha = 1
    scaled = source if alpha == 1 else source * c.cast(alpha, source.dtype)
    return _along(c, self, dim, index, scaled, "add")


@aten("index_copy")
def index_copy(c: Context, self: Array, dim: int, index: Array, source: Array) -> Any:
    """x[:, index[k]] = source[:, k] by scatter."""
    return _along(c, self, dim, index, source, "set")


@aten("index_reduce")
def index_reduce(c: Context, self: Array, dim: int, index: Array, source: Array, reduce: str,
                 *, include_self: bool = True) -> Any:
    """index_add with product, max or min; "mean" divides the sum by a scattered count."""
    return _reduced(_along, c, self, dim, index, source, source.shape, reduce, include_self)


@aten("put")
def put(c: Context, self: Array, index: Array, source: Array, accumulate: bool = False) -> Any:
    """scatter into the flat elements; sets, or adds with `accumulate`."""
    n = product(self.shape)
    at = c.wrap(index, n).reshape((product(index.shape), 1))
    y = o.scatter(self.flat(), at, source.flat(), axes=(0,), kind="add" if accumulate else "set")
    return y.reshape(self.shape)


@aten("as_strided_scatter")
def as_strided_scatter(c: Context, self: Array, src: Array, size: tuple[Dim, ...],
                       stride: tuple[Dim, ...], storage_offset: Any = None) -> Any:
    """scatter of src at the flat positions of a strided view."""
    at = strided(c, size, stride, storage_offset).flat().unsqueeze()
    return o.scatter(self.flat(), at, src.flat(), axes=(0,)).reshape(self.shape)


@aten("embedding_renorm")
def embedding_renorm(c: Context, self: Array, indices: Array, max_norm: float,
                     norm_type: float) -> Any:
    """The table, in which the rows that `indices` names have a norm of at most `max_norm`."""
    at = indices.cast(dtypes.int64).flat().unsqueeze()
    hit = o.scatter(c.full((self.shape[0], 1), False, dtypes.bool_), at,
                    c.full(at.shape, True, dtypes.bool_), axes=(0,))
    length = o.norm(self, axes=(1,), order=float(norm_type))
    scale = float(max_norm) / (length + 1e-7)
    return o.select(hit & (length > float(max_norm)), self * scale, self)


@aten("index_fill")
def index_fill(c: Context, self: Array, dim: int, index: Array, value: Any) -> Any:
    """x[:, index[k]] = value by scatter."""
    axis = axis_of(dim, self.ndim)
    shape = (*self.shape[:axis], product(index.shape), *self.shape[axis + 1:])
    return _along(c, self, dim, index, c.full(shape, c.cast(value, self.dtype), self.dtype), "set")


# ---- several tensors, or a mask -----------------------------------------------------------------

def _advanced(c: Context, x: Array, indices: tuple[Any, ...]) -> tuple[tuple[int, ...], Array,
                                                                       list[int]]:
    """(indexed axes, joint index [..., n], order of the result's axes). Our gather puts the index
    dims first; torch puts them at the first indexed axis if the indexed axes are neighbours."""
    indices = tuple(i for x in indices for i in (
        columns(c, x) if x is not None and x.dtype is dtypes.bool_ else (x,)))
    axes = tuple(a for a, i in enumerate(indices) if i is not None)
    shape = broadcast_shapes(*(indices[a].shape for a in axes))
    parts = [c.wrap(indices[a], x.shape[a]).broadcast(shape).unsqueeze() for a in axes]
    joint = o.concat(*parts, axis=len(shape))
    rest = [a for a in range(x.ndim) if a not in axes]
    lead, tail = range(len(shape)), range(len(shape), len(shape) + len(rest))
    first = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    return axes, joint, [*tail[:first], *lead, *tail[first:]]


@aten("index", "_unsafe_index")
def index(c: Context, self: Array, indices: tuple[Any, ...]) -> Any:
    """x[i, :, j, …]: one gather at the joint index, then a transpose to torch's order."""
    axes, joint, order = _advanced(c, self, indices)
    return o.gather(self, joint, axes=axes).transpose(order)


@aten("index_put", "_unsafe_index_put")
def index_put(c: Context, self: Array, indices: tuple[Any, ...], values: Array,
              accumulate: bool = False) -> Any:
    """x[i, :, j, …] = values by one scatter (+= with `accumulate`); masks by select."""
    if any(i is not None and i.dtype is dtypes.bool_ for i in indices):
        return _masked_put(c, self, indices, values, accumulate)
    if self.dtype is dtypes.bool_ and accumulate:
        return index_put(c, self.cast(dtypes.int32), indices, values, True).cast(dtypes.bool_)
    axes, joint, order = _advanced(c, self, indices)
    rest = [self.shape[a] for a in range(self.ndim) if a not in axes]
    ours = (*joint.shape[:-1], *rest)
    updates = c.cast(values, self.dtype).broadcast(tuple(ours[i] for i in order))
    return o.scatter(self, joint, updates.transpose(back(order)), axes=axes,
                     kind="add" if accumulate else "set")


def _masked_put(c: Context, x: Array, indices: tuple[Any, ...], values: Array,
                accumulate: bool) -> Any:
    """Writes under one mask: one value everywhere, or row k of the values at true place k."""
    masks = [(a, i) for a, i in enumerate(indices) if i is not None]
    if len(masks) != 1:
        raise Refused("writing under a mask and at another index in one assignment is not "
                      "supported; use the mask alone")
    axis, mask = masks[0]
    rest = x.shape[axis + mask.ndim:]
    values = c.cast(values, x.dtype)
    if values.ndim <= len(rest) or values.shape[-len(rest) - 1] == 1:
        new = values.reshape(values.shape[-len(rest):] if rest else ())
    elif axis:
        raise Refused("writing several rows under a mask is supported only if the mask covers "
                      "the first axes")
    else:
        last = o.max(c.number(values.shape[0], dtypes.int64) - 1, 0)
        new = values.at(o.min(_before(mask), last), 0)
    wide = mask.reshape((*mask.shape, *(1,) * len(rest)))
    if accumulate:
        new = x | new if x.dtype is dtypes.bool_ else x + new
    return o.select(wide, new, x)


def _before(mask: Array) -> Array:
    """The number of true places before each place."""
    flags = mask.flat().cast(dtypes.int64)
    counts: Array = o.cumulative(flags, kind="sum", axis=0, exclusive=True)
    return counts.reshape(mask.shape)


@aten("masked_scatter")
def masked_scatter(c: Context, self: Array, mask: Array, source: Array) -> Any:
    """The k-th true place takes the k-th element of the source: a gather by running sums."""
    shape = broadcast_shapes(self.shape, mask.shape)
    mask = mask.broadcast(shape)
    last = c.number(product(source.shape) - 1, dtypes.int64)
    picked = source.flat().at(o.min(_before(mask), last), 0)
    return o.select(mask, picked, self.broadcast(shape))
