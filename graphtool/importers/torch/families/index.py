"""Indexing by data: every form of torch becomes our one gather or our one scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.driver.context import Context, axis_of
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.shape import strided
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, product

# ---- along one axis ----------------------------------------------------------------------------


@aten("embedding")
def embedding(c: Context, weight: Tracer, indices: Tracer, padding_idx: Any = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """embedding(table, indices); the row `padding_idx` gets no gradient."""
    rows = by_frequency(o.embedding(weight, indices), scale_grad_by_freq)
    if not isinstance(padding_idx, int) or padding_idx < 0:
        return rows
    padding = o.eq(c.reshape(indices, (*indices.shape, 1)), padding_idx)
    return o.select(padding, o.stop_gradient(rows), rows)


def by_frequency(rows: Any, scaled: bool) -> Any:
    """Rows of a table; with `scale_grad_by_freq` their gradient is refused."""
    why = "scale_grad_by_freq of an embedding is not supported: train with scale_grad_by_freq=False"
    return o.unknown_gradient(rows, reason=why) if scaled else rows


@aten("index_select")
def index_select(c: Context, self: Tracer, dim: int, index: Tracer) -> Any:
    """gather of whole slices along one axis."""
    if not self.ndim:
        return self
    axis = axis_of(dim, self.ndim)
    count = product(index.shape)
    picked = o.gather(self, c.reshape(c.cast(index, dtypes.int64), (count, 1)), axes=(axis,))
    return c.transpose(picked, [*range(1, axis + 1), 0, *range(axis + 1, self.ndim)])


@aten("take")
def take(c: Context, self: Tracer, index: Tracer) -> Any:
    """gather from the flat elements; the result has the shape of the index."""
    flat = c.reshape(self, (product(self.shape),))
    at = c.wrap(index, flat.shape[0])
    return o.gather(flat, c.reshape(at, (*index.shape, 1)), axes=(0,))


def _last(x: Tracer, axis: int) -> list[int]:
    """The permutation that puts one axis last."""
    return [*(i for i in range(x.ndim) if i != axis), axis]


def back(perm: list[int]) -> list[int]:
    """The inverse of a permutation."""
    return [perm.index(i) for i in range(len(perm))]


def _cropped(c: Context, x: Tracer, like: tuple[Dim, ...], axis: int | None) -> Tracer:
    """x cut to the sizes of `like` on all axes but one."""
    for i, d in enumerate(like):
        if i != axis and x.shape[i] != d:
            x = c.window(x, i, 0, d)
    return x


@aten("gather")
def gather(c: Context, self: Tracer, dim: int, index: Tracer, *,
           sparse_grad: bool = False) -> Any:
    """out[i][j] = self[i][index[i][j]]: a gather along the axis, all others are batch axes."""
    if not self.ndim or not index.ndim:
        return c.reshape(self, c.out.shape)
    if index.ndim != self.ndim:  # torch lets an empty index have any rank
        return c.full(c.out.shape, 0, self.dtype)
    axis = axis_of(dim, self.ndim)
    perm = _last(self, axis)
    x = c.transpose(_cropped(c, self, index.shape, axis), perm)
    at = c.transpose(c.cast(index, dtypes.int64), perm)
    n = self.ndim - 1
    picked = o.gather(x, c.reshape(at, (*at.shape, 1)), axes=(n,), batch=n)
    return c.transpose(picked, back(perm))


@aten("take_along_dim")
def take_along_dim(c: Context, self: Tracer, indices: Tracer, dim: int | None = None) -> Any:
    """torch's gather after both operands are broadcast to each other; negative indices wrap."""
    if dim is None:
        return take(c, self, indices)
    axis = axis_of(dim, self.ndim)
    lead = broadcast_shapes((*self.shape[:axis], 1, *self.shape[axis + 1:]),
                            (*indices.shape[:axis], 1, *indices.shape[axis + 1:]))
    def to(x: Tracer) -> Tracer:
        return c.broadcast(x, (*lead[:axis], x.shape[axis], *lead[axis + 1:]))
    return gather(c, to(self), axis, c.wrap(to(indices), self.shape[axis]))


# ---- scatter along one axis --------------------------------------------------------------------

Write = Callable[[Context, Tracer, int, Tracer, Tracer, str], Any]


def _of_any_kind(write: Write) -> Write:
    """`write` of tensors, extended to scalars and to sums and products of truths."""
    def whole(c: Context, x: Tracer, dim: int, index: Tracer, src: Tracer, kind: str) -> Any:
        if x.dtype is dtypes.bool_ and kind != "set":
            numbers = c.cast(x, dtypes.int32), dim, index, c.cast(src, dtypes.int32)
            return c.cast(whole(c, *numbers, kind), dtypes.bool_)
        if not x.ndim:
            return _combined(c, x, c.reshape(src, ()), kind)
        return write(c, x, dim, index, src, kind)
    return whole


@_of_any_kind
def _scatter(c: Context, x: Tracer, dim: int, index: Tracer, src: Tracer, kind: str) -> Any:
    """x[i][index[i][j]] ∘= src[i][j]; a smaller index uses only that part of x and src."""
    index = c.reshape(index, index.shape or (1,))
    axis = axis_of(dim, x.ndim)
    src = _cropped(c, c.reshape(src, src.shape or (1,)), index.shape, None)
    at = c.cast(index, dtypes.int64)
    if all(a == b for i, (a, b) in enumerate(zip(x.shape, at.shape, strict=True)) if i != axis):
        perm, n = _last(x, axis), x.ndim - 1
        at, src = c.transpose(at, perm), c.transpose(src, perm)
        y = o.scatter(c.transpose(x, perm), c.reshape(at, (*at.shape, 1)), src, axes=(n,),
                      batch=n, kind=kind)
        return c.transpose(y, back(perm))
    full = [c.reshape(at if i == axis else c.iota(at.shape, i), (*at.shape, 1))
            for i in range(x.ndim)]
    where = full[0] if len(full) == 1 else o.concat(*full, axis=x.ndim)
    return o.scatter(x, where, src, axes=tuple(range(x.ndim)), kind=kind)


def _combined(c: Context, x: Tracer, y: Tracer, kind: str) -> Any:
    return y if kind == "set" else getattr(o, kind)(x, y)


@aten("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(c: Context, self: Tracer, dim: int, index: Tracer, src: Any = None, *,
            value: Any = None, reduce: str | None = None) -> Any:
    """x[index[i]] = src[i] along one axis by scatter; `reduce` adds or multiplies instead."""
    src = value if src is None else src
    if not isinstance(src, Tracer):
        src = c.full(index.shape, src, self.dtype)
    kind = {None: "set", "add": "add", "multiply": "mul"}[reduce]
    return _scatter(c, self, dim, index, src, kind)


@aten("scatter_add")
def scatter_add(c: Context, self: Tracer, dim: int, index: Tracer, src: Tracer) -> Any:
    """x[index[i]] += src[i] along one axis by scatter."""
    return _scatter(c, self, dim, index, src, "add")


_REDUCE = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}
_NEUTRAL = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


@aten("scatter_reduce")
def scatter_reduce(c: Context, self: Tracer, dim: int, index: Tracer, src: Tracer, reduce: str,
                   *, include_self: bool = True) -> Any:
    """scatter with sum, product, max or min; "mean" divides the sum by a scattered count."""
    return _reduced(_scatter, c, self, dim, index, src, index.shape, reduce, include_self)


def _reduced(write: Write, c: Context, x: Tracer, dim: int, index: Tracer, src: Tracer,
             shape: tuple[Dim, ...], reduce: str, include_self: bool) -> Any:
    """x with elements of `src` reduced into it by `write`; `shape` is that of what is written."""
    kind, start = _REDUCE[reduce], x
    if not include_self:  # what will be hit starts from the neutral element
        neutral = c.full(shape, identity(_NEUTRAL[kind], x.dtype), x.dtype)
        start = write(c, x, dim, index, neutral, "set")
    total = write(c, start, dim, index, src, kind)
    if reduce != "mean":
        return total
    ones, counts = c.full(shape, 1, x.dtype), c.full(x.shape, int(include_self), x.dtype)
    count = write(c, counts, dim, index, ones, "add")
    return _mean(total, o.max(count, c.literal(1, x.dtype)))


def _mean(total: Any, count: Any) -> Any:
    if total.dtype.is_float:
        return o.div(total, count)
    return o.div(o.sub(total, o.mod(total, count)), count)  # integers round down


@_of_any_kind
def _along(c: Context, x: Tracer, dim: int, index: Tracer, source: Tracer, kind: str) -> Any:
    """x[:, index[k]] ∘= source[:, k]"""
    axis = axis_of(dim, x.ndim)
    count = product(index.shape)
    source = c.reshape(source, (*x.shape[:axis], count, *x.shape[axis + 1:]))
    front = c.transpose(source, [axis, *(i for i in range(x.ndim) if i != axis)])
    at = c.reshape(c.wrap(index, x.shape[axis]), (count, 1))
    return o.scatter(x, at, front, axes=(axis,), kind=kind)


@aten("index_add")
def index_add(c: Context, self: Tracer, dim: int, index: Tracer, source: Tracer, *,
              alpha: Any = 1) -> Any:
    """x[:, index[k]] += alpha·source[:, k] by scatter."""
    if self.dtype is dtypes.bool_:
        source = source if alpha else c.full(source.shape, False, dtypes.bool_)
        alpha = 1
    scaled = source if alpha == 1 else o.mul(source, c.cast(alpha, source.dtype))
    return _along(c, self, dim, index, scaled, "add")


@aten("index_copy")
def index_copy(c: Context, self: Tracer, dim: int, index: Tracer, source: Tracer) -> Any:
    """x[:, index[k]] = source[:, k] by scatter."""
    return _along(c, self, dim, index, source, "set")


@aten("index_reduce")
def index_reduce(c: Context, self: Tracer, dim: int, index: Tracer, source: Tracer, reduce: str,
                 *, include_self: bool = True) -> Any:
    """index_add with product, max or min; "mean" divides the sum by a scattered count."""
    return _reduced(_along, c, self, dim, index, source, source.shape, reduce, include_self)


@aten("put")
def put(c: Context, self: Tracer, index: Tracer, source: Tracer, accumulate: bool = False) -> Any:
    """scatter into the flat elements; sets, or adds with `accumulate`."""
    n = product(self.shape)
    at = c.reshape(c.wrap(index, n), (product(index.shape), 1))
    y = o.scatter(c.reshape(self, (n,)), at, c.reshape(source, at.shape[:1]), axes=(0,),
                  kind="add" if accumulate else "set")
    return c.reshape(y, self.shape)


@aten("as_strided_scatter")
def as_strided_scatter(c: Context, self: Tracer, src: Tracer, size: tuple[Dim, ...],
                       stride: tuple[Dim, ...], storage_offset: Any = None) -> Any:
    """scatter of src at the flat positions of a strided view."""
    at = strided(c, size, stride, storage_offset)
    n = product(src.shape)
    y = o.scatter(c.reshape(self, (product(self.shape),)), c.reshape(at, (n, 1)),
                  c.reshape(src, (n,)), axes=(0,))
    return c.reshape(y, self.shape)


@aten("embedding_renorm")
def embedding_renorm(c: Context, self: Tracer, indices: Tracer, max_norm: float,
                     norm_type: float) -> Any:
    """The table, in which the rows that `indices` names have a norm of at most `max_norm`."""
    n = product(indices.shape)
    hit = o.scatter(c.full((self.shape[0], 1), False, dtypes.bool_),
                    c.reshape(c.cast(indices, dtypes.int64), (n, 1)),
                    c.full((n, 1), True, dtypes.bool_), axes=(0,))
    length = o.norm(self, axes=(1,), order=float(norm_type))
    scale = o.div(float(max_norm), o.add(length, 1e-7))
    return o.select(o.and_(hit, o.gt(length, float(max_norm))), o.mul(self, scale), self)


@aten("index_fill")
def index_fill(c: Context, self: Tracer, dim: int, index: Tracer, value: Any) -> Any:
    """x[:, index[k]] = value by scatter."""
    axis = axis_of(dim, self.ndim)
    shape = (*self.shape[:axis], product(index.shape), *self.shape[axis + 1:])
    return _along(c, self, dim, index, c.full(shape, c.cast(value, self.dtype), self.dtype), "set")
