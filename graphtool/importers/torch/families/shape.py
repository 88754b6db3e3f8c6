"""Movement of elements: reshape, slices, concatenation. A view becomes a new value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from graphtool.front.array import concat
from graphtool.importers.torch.driver.context import Context, axes_of, axis_of
from graphtool.importers.torch.kit import Array, Refused, aten, dtypes, o
from graphtool.symbolic import Dim, floordiv, known, maximum, minimum, product

_END = (1 << 62)  # beyond: torch's way to say "to the end"

# ---- the same elements under another shape: torch has worked out the shape ---------------------


@aten("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias", "_reshape_copy", "flatten",
      "unflatten", "squeeze", "unsqueeze", "squeeze_copy", "unsqueeze_copy", "view_as",
      "reshape_as", "ravel", "atleast_1d", "atleast_2d", "atleast_3d")
def reshape(c: Context, self: Array, *_: Any, **__: Any) -> Any:
    """reshape to the shape torch has worked out; a view in another dtype is a bitcast."""
    if c.out.dtype is not self.dtype:  # view.dtype
        return o.bitcast(self, dtype=c.out.dtype)
    return self.reshape(c.out.shape)


@aten("expand", "expand_copy", "expand_as", "broadcast_to")
def expand(c: Context, self: Array, *_: Any, **__: Any) -> Any:
    """broadcast to the shape torch has worked out."""
    return self.broadcast(c.out.shape)


@aten("permute", "permute_copy")
def permute(c: Context, self: Array, dims: tuple[int, ...]) -> Any:
    """transpose by a permutation."""
    return self.transpose([axis_of(d, self.ndim) for d in dims])


@aten("transpose", "swapaxes", "transpose_copy")
def transpose(c: Context, self: Array, dim0: int, dim1: int) -> Any:
    """transpose that exchanges two axes."""
    perm = list(range(self.ndim))
    if perm:
        a, b = axis_of(dim0, self.ndim), axis_of(dim1, self.ndim)
        perm[a], perm[b] = perm[b], perm[a]
    return self.transpose(perm)


@aten("t", "mT", "t_copy")
def t(c: Context, self: Array) -> Any:
    """The last two axes exchanged; a vector stays as it is."""
    return transpose(c, self, -1, -2) if self.ndim > 1 else self


@aten("movedim")
def movedim(c: Context, self: Array, source: Any, destination: Any) -> Any:
    """transpose that moves axes `source` to `destination`; the others keep their order."""
    pairs = [(x,) if isinstance(x, int) else x for x in (source, destination)]
    src, dst = ([axis_of(d, self.ndim) for d in p] for p in pairs)
    rest = iter(i for i in range(self.ndim) if i not in src)
    perm = [src[dst.index(i)] if i in dst else next(rest) for i in range(self.ndim)]
    return self.transpose(perm)


# ---- parts -------------------------------------------------------------------------------------

def bound(x: Any, size: Dim, default: Dim) -> Dim:
    """A slice's start or end as in Python: a negative one counts from the end; both are clamped."""
    if x is None or (isinstance(x, int) and x >= _END):
        return default
    if isinstance(x, int) and x < 0:
        return maximum(size + x, 0)
    return minimum(x, size)


@aten("slice", "slice_copy")
def slice(c: Context, self: Array, dim: int = 0, start: Any = None, end: Any = None,
          step: int = 1) -> Any:
    """x[start:end:step] along one axis."""
    axis = axis_of(dim, self.ndim)
    size = self.shape[axis]
    first = bound(start, size, 0)
    return self.take(axis, first, maximum(bound(end, size, size), first), step)


@aten("narrow", "narrow_copy")
def narrow(c: Context, self: Array, dim: int, start: Any, length: Dim) -> Any:
    """x[start:start + length] along one axis."""
    if isinstance(start, Array):
        raise Refused("narrow at a start that is a tensor is not supported; use index_select")
    axis = axis_of(dim, self.ndim)
    first = from_front(start, self.shape[axis])
    return self.take(axis, first, first + length)


def from_front(at: Any, size: Dim) -> Any:
    """An index in which a negative one counts from the end."""
    return at + size if isinstance(at, int) and at < 0 else at


@aten("select", "select_copy")
def select(c: Context, self: Array, dim: int, index: Any) -> Any:
    """x[index] along one axis, which the result does not have."""
    axis = axis_of(dim, self.ndim)
    return self.entry(axis, from_front(index, self.shape[axis]))


def _pieces(c: Context, x: Array, dim: int, sizes: Any) -> tuple[Any, ...]:
    axis, start, out = axis_of(dim, x.ndim), 0, []
    for i, n in enumerate(sizes):
        out.append(x.take(axis, start, start + n) if c.used(i) else None)
        start = start + n
    return tuple(out)


@aten("split_with_sizes", "split_with_sizes_copy", "split.sizes")
def split_with_sizes(c: Context, self: Array, split_sizes: tuple[Dim, ...],
                     dim: int = 0) -> Any:
    """One slice for each size along one axis; unused ones are none."""
    return _pieces(c, self, dim, split_sizes)


@aten("split", "split_copy", "unsafe_split")
def split(c: Context, self: Array, split_size: Any, dim: int = 0) -> Any:
    """Slices of `split_size` along one axis, the last one shorter; or of a list of sizes."""
    if isinstance(split_size, tuple):
        return _pieces(c, self, dim, split_size)
    whole, size = [split_size] * (len(c.outs) - 1), self.shape[axis_of(dim, self.ndim)]
    return _pieces(c, self, dim, [*whole, size - split_size * len(whole)])


@aten("chunk", "unsafe_chunk")
def chunk(c: Context, self: Array, chunks: int, dim: int = 0) -> Any:
    """split into slices of ⌈size / chunks⌉."""
    size = self.shape[axis_of(dim, self.ndim)]
    return split(c, self, -floordiv(-size, chunks), dim)


@aten("tensor_split")
def tensor_split(c: Context, self: Array, how: Any, dim: int = 0) -> Any:
    """`how` slices of almost equal size, or slices between the given indices."""
    size = self.shape[axis_of(dim, self.ndim)]
    if isinstance(how, int):
        base, more = size // how, size % how
        sizes = [base + (1 if known(i, "<", more) else 0) for i in range(how)]
    else:
        edges = [0, *(bound(i, size, size) for i in how), size]
        sizes = [maximum(b - a, 0) for a, b in pairwise(edges)]
    return _pieces(c, self, dim, sizes)


@aten("unbind", "unbind_copy")
def unbind(c: Context, self: Array, dim: int = 0) -> Any:
    """x[0], x[1], … along one axis, which the results do not have."""
    return tuple(select(c, self, dim, i) if c.used(i) else None for i in range(len(c.outs)))


@aten("diagonal", "diagonal_copy")
def diagonal(c: Context, self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """gather at (i, i + offset) of two axes; the diagonal becomes the last axis."""
    a, b = axis_of(dim1, self.ndim), axis_of(dim2, self.ndim)
    rest = [i for i in range(self.ndim) if i not in (a, b)]
    x = self.transpose([a, b, *rest])
    line = c.iota((c.out.shape[-1], 1), 0)
    places = [line + more if more else line for more in (max(-offset, 0), max(offset, 0))]
    picked = o.gather(x, o.concat(*places, axis=1), axes=(0, 1))
    return picked.transpose([*range(1, picked.ndim), 0])


@aten("as_strided", "as_strided_copy")
def as_strided(c: Context, self: Array, size: tuple[Dim, ...], stride: tuple[Dim, ...],
               storage_offset: Any = None) -> Any:
    """gather from the flat elements at offset + Σ index·stride; self counts as contiguous."""
    return self.flat().at(strided(c, size, stride, storage_offset), 0)


def strided(c: Context, size: tuple[Dim, ...], stride: tuple[Dim, ...], offset: Any) -> Array:
    """i64[size]: the flat position of each element of a strided view."""
    index = c.full((), offset or 0, dtypes.int64)
    for axis, (n, s) in enumerate(zip(size, stride, strict=True)):
        line = c.iota([n if i == axis else 1 for i in range(len(size))], axis)
        index = index + line * c.number(s, dtypes.int64)
    return index.broadcast(size)


@aten("unfold", "unfold_copy")
def unfold(c: Context, self: Array, dimension: int, size: int, step: int) -> Any:
    """Windows along one axis by gather at step·i + k; the axis of k is the last one."""
    if not self.ndim:
        return c.full(c.out.shape, 0, self.dtype) if 0 in c.out.shape else (
            self.reshape(c.out.shape))
    axis = axis_of(dimension, self.ndim)
    each = (c.out.shape[axis], size)
    picked = self.at(c.iota(each, 0) * step + c.iota(each, 1), axis)
    return picked.transpose([i for i in range(picked.ndim) if i != axis + 1] + [axis + 1])


@aten("resize")
def resize(c: Context, self: Array, size: tuple[Dim, ...], **_: Any) -> Any:
    """The first elements in another shape; refuses a shape with more elements than self has."""
    wanted = product(c.out.shape)
    if known(wanted, "<=", product(self.shape)) is not True:
        raise Refused("resize is supported only to a shape that surely has no more elements than "
                      "the tensor, because further elements would have no value")
    return self.flat().take(0, 0, wanted).reshape(c.out.shape)


# ---- joined, repeated, turned ------------------------------------------------------------------

@aten("cat", "concat", "concatenate")
def cat(c: Context, tensors: tuple[Array, ...], dim: int = 0) -> Any:
    """concat along one axis in the dtype of the result; operands of shape [0] are left out."""
    kept = [x for x in tensors if x.shape != (0,) or len(c.out.shape) == 1]
    if not kept:
        return tensors[0]
    return o.concat(*(c.cast(x, c.out.dtype) for x in kept), axis=axis_of(dim, kept[0].ndim))


@aten("stack")
def stack(c: Context, tensors: tuple[Array, ...], dim: int = 0) -> Any:
    """concat along a new axis."""
    axis = axis_of(dim, len(c.out.shape))
    return o.concat(*(c.cast(x, c.out.dtype).unsqueeze(axis) for x in tensors), axis=axis)


@aten("repeat", "tile")
def repeat(c: Context, self: Array, repeats: tuple[Dim, ...]) -> Any:
    """reshape(broadcast): [2, 3] repeated (3, 1) times is [1, 2, 1, 3] → [3, 2, 1, 3] → [6, 3]."""
    rank = max(len(repeats), self.ndim)
    times = (1,) * (rank - len(repeats)) + tuple(repeats)
    dims = (1,) * (rank - self.ndim) + self.shape
    if all(r == 1 for r in times):
        return self.reshape(dims)
    wide = [d for pair in zip(times, dims, strict=True) for d in pair]
    return self.reshape([d for n in dims for d in (1, n)]).broadcast(wide).reshape(c.out.shape)


@aten("repeat_interleave.self_int")
def repeat_interleave(c: Context, self: Array, repeats: Dim, dim: int | None = None, *,
                      output_size: Any = None) -> Any:
    """Each element `repeats` times in a row: reshape(broadcast) with a new axis."""
    x, at = (self.flat(), 1) if dim is None else (self, axis_of(dim, self.ndim) + 1)
    wide = (*x.shape[:at], repeats, *x.shape[at:])
    return x.unsqueeze(at).broadcast(wide).reshape(c.out.shape)


@aten("flip")
def flip(c: Context, self: Array, dims: tuple[int, ...]) -> Any:
    """reverse along the given axes."""
    axes = axes_of(dims, self.ndim) if dims else ()
    return o.reverse(self, axes=axes) if axes else self


@aten("roll")
def roll(c: Context, self: Array, shifts: Any, dims: Any = ()) -> Any:
    """x moved by `shift` along an axis, cyclically: concat of its two parts."""
    if dims in ((), None):
        by = shifts[0] if isinstance(shifts, tuple) else shifts
        return _rolled(self.flat(), by, 0).reshape(self.shape)
    shifts, dims = ((x,) if isinstance(x, int) else x for x in (shifts, dims))
    x = self
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(x, shift, axis_of(dim, x.ndim))
    return x


def _rolled(x: Array, shift: Dim, axis: int) -> Array:
    size = x.shape[axis]
    if size == 0 or shift % size == 0:
        return x
    cut = size - shift % size
    return concat([x.take(axis, cut, size), x.take(axis, 0, cut)], axis)


@aten("rot90")
def rot90(c: Context, self: Array, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> Any:
    """k quarter turns in the plane of two axes: reverse and transpose."""
    a, b = (axis_of(d, self.ndim) for d in dims)
    match k % 4:
        case 0:
            return self
        case 1:
            return transpose(c, o.reverse(self, axes=(b,)), a, b)
        case 2:
            return o.reverse(self, axes=(a, b))
        case _:
            return o.reverse(transpose(c, self, a, b), axes=(b,))
