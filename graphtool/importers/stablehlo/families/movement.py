"""Operations that move elements: broadcast, reshape, transpose, slice, pad, concatenate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver import values
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.sizes import objects
from graphtool.importers.stablehlo.driver.values import (
    FOLD_LIMIT,
    Sizes,
    Spread,
    compact,
    dims_of,
    dtype_of,
    literal,
    shape_of,
    spread,
)
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, product


def ints(x: Any) -> tuple[int, ...]:
    """A list of integers as an attribute writes it: `[1, 2]`, `array<…>` or `dense<…>`."""
    if isinstance(x, Dense):
        flat = x.elements if isinstance(x.elements, list) else [x.elements]
        count = x.kind.shape[0] if x.kind and x.kind.shape else len(flat)
        return tuple(int(v) for v in (flat if len(flat) == count else flat * int(count or 0)))
    return tuple(int(v) for v in x)


# ---- broadcast, reshape, transpose -------------------------------------------------------------

@stablehlo("broadcast_in_dim")
def broadcast_in_dim(ctx: Context, x: Any, *, broadcast_dimensions: Any) -> Any:
    """Axis i of x becomes axis dims[i]; other axes, and those of size 1, are repeated."""
    return placed(ctx, x, ints(broadcast_dimensions), ctx.result().shape)


@stablehlo("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(ctx: Context, x: Any, shape: Any, *, broadcast_dimensions: Any,
                             known_expanding_dimensions: Any = None,
                             known_nonexpanding_dimensions: Any = None) -> Any:
    """`broadcast_in_dim` to a computed shape."""
    return placed(ctx, x, ints(broadcast_dimensions), dims_of(shape, "the shape"))


def placed(ctx: Context, x: Any, dims: Sequence[int], shape: tuple[Dim, ...]) -> Any:
    """x with its axes at `dims` of the shape, which need not be in order."""
    if len(dims) != len(shape_of(x)) or any(not 0 <= d < len(shape) for d in dims):
        raise ValueError(f"axes {list(dims)} of rank {len(shape)} for an operand of rank "
                         f"{len(shape_of(x))}")
    whole = values.before_reshape(x, shape)
    if whole is not None:
        return whole
    if isinstance(x, Sizes) and x.array.size == 1 and any(d != 1 for d in shape):
        return spread(values.reshape(ctx.tensor(x), ()), shape)
    if isinstance(x, Sizes):
        if tuple(dims) == tuple(range(len(dims))) == tuple(range(len(shape))):
            return x
        return Sizes(np.broadcast_to(x.array.reshape([
            x.array.shape[dims.index(a)] if a in dims else 1 for a in range(len(shape))]),
            tuple(int(d) for d in shape if isinstance(d, int))), x.dtype)
    if list(dims) != sorted(dims):
        order = sorted(range(len(dims)), key=dims.__getitem__)
        x, dims = transposed(ctx, x, order), sorted(dims)
    base = x.base if isinstance(x, Spread) else compact(x) if isinstance(x, np.ndarray) else x
    have = shape_of(base)
    places = list(dims)[len(dims) - len(have):]  # of the axes that the base has
    first = min(places, default=len(shape))
    wide: list[Dim] = [1] * (len(shape) - first)
    for at, d in zip(places, have, strict=True):
        wide[at - first] = d
    if tuple(wide) != have:
        base = values.reshape(base, tuple(wide))
    return spread(base, shape)


@stablehlo("reshape")
def reshape(ctx: Context, x: Any) -> Any:
    """The same elements under another shape."""
    return reshaped(ctx, x, ctx.result().shape)


@stablehlo("dynamic_reshape")
def dynamic_reshape(ctx: Context, x: Any, shape: Any) -> Any:
    """`reshape` to a computed shape."""
    return reshaped(ctx, x, dims_of(shape, "the shape"))


def reshaped(ctx: Context, x: Any, shape: tuple[Dim, ...]) -> Any:
    """x under another shape of as many elements."""
    if shape_of(x) == shape:
        return x
    if isinstance(x, Sizes):
        return Sizes(x.array.reshape([int(d) for d in shape if isinstance(d, int)]), x.dtype)
    if isinstance(x, np.ndarray) and literal(x) is not None and all(
            isinstance(d, int) for d in shape):
        return np.broadcast_to(compact(x).reshape(()), [int(d) for d in shape
                                                        if isinstance(d, int)])
    if isinstance(x, Spread) and all(d == 1 for d in shape_of(x.base)) and product(
            x.shape) == product(shape):
        return spread(values.reshape(x.base, ()), shape)
    (y,) = ctx.ready(x)
    return values.reshape(y, shape)


@stablehlo("transpose")
def transpose(ctx: Context, x: Any, *, permutation: Any) -> Any:
    """Axis k of the result is axis permutation[k] of x."""
    return transposed(ctx, x, ints(permutation))


def transposed(ctx: Context, x: Any, perm: Sequence[int]) -> Any:
    """x with its axes in another order."""
    if list(perm) == list(range(len(perm))):
        return x
    if isinstance(x, np.ndarray):
        return x.transpose(perm)
    return o.transpose(ctx.tensor(x), perm=tuple(perm))


# ---- slices ------------------------------------------------------------------------------------

@stablehlo("slice")
def slice_(ctx: Context, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    """x[start:limit:stride] on every axis."""
    return sliced(ctx, x, ints(start_indices), ints(limit_indices), ints(strides))


def sliced(ctx: Context, x: Any, start: Sequence[Dim], limit: Sequence[Dim],
           strides: Sequence[int]) -> Any:
    """A slice; of a constant, and along repeated axes, without an op."""
    if isinstance(x, Sizes):
        return Sizes(x.array[tuple(slice(*row) for row in zip(
            start, limit, strides, strict=True))], x.dtype)
    if isinstance(x, np.ndarray):
        return np.asarray(o.slice(x, start=tuple(start), limit=tuple(limit),
                                  strides=tuple(strides))) if compact(x).size <= FOLD_LIMIT else (
            x[tuple(slice(*row) for row in zip(start, limit, strides, strict=True))])
    whole = all(a == 0 and b == d and s == 1 for a, b, s, d in zip(
        start, limit, strides, shape_of(x), strict=True))
    return x if whole else o.slice(ctx.tensor(x), start=tuple(start), limit=tuple(limit),
                                   strides=tuple(strides))


@stablehlo("real_dynamic_slice")
def real_dynamic_slice(ctx: Context, x: Any, start: Any, limit: Any, strides: Any) -> Any:
    """`slice` with computed bounds: sizes, or a start that the run computes and the start plus
    sizes, which is a window."""
    steps = dims_of(strides, "the strides")
    if not all(isinstance(s, int) for s in steps):
        raise Refused("strides must be numbers, not open sizes")
    sizes = _beyond(ctx, start, limit)
    if sizes is not None and set(steps) <= {1}:
        return o.dynamic_slice(ctx.tensor(x), *_elements(start), sizes=sizes)
    return sliced(ctx, x, dims_of(start, "the start"), dims_of(limit, "the limit"),
                  [s for s in steps if isinstance(s, int)])


def _beyond(ctx: Context, start: Any, limit: Any) -> tuple[Dim, ...] | None:
    """The sizes that the limit adds to a start which the run computes."""
    node = ctx.builder.made.get(limit.value) if isinstance(limit, Tracer) else None
    if node is None or node.op is not o.add or not isinstance(start, Tracer):
        return None
    rest = [x for x in node.inputs if x is not start.value]
    if len(rest) != 1:
        return None
    dims = _dims_in(ctx, rest[0])
    count = start.shape[0]
    return dims * count if dims is not None and len(dims) == 1 and isinstance(count, int) else dims


def _dims_in(ctx: Context, x: Any) -> tuple[Dim, ...] | None:
    """The sizes that a number or a tensor of the graph holds; None if it holds data."""
    if isinstance(x, int):
        return (x,)
    node = ctx.builder.made.get(x)
    if node is None:
        return None
    if node.op is o.dim:
        return (node.attrs["of"],)
    if node.op is o.constant:
        return tuple(int(d) for d in node.attrs["data"].array().reshape(-1))
    if node.op not in (o.reshape, o.cast, o.concat):
        return None
    parts = [_dims_in(ctx, y) for y in node.inputs]
    return None if None in parts else tuple(d for p in parts for d in p or ())


def _elements(line: Tracer) -> list[Any]:
    """The elements of a line of known length, as scalars."""
    return [o.reshape(o.slice(line, start=(i,), limit=(i + 1,), strides=(1,)), shape=())
            for i in range(int(line.shape[0]))]  # type: ignore[arg-type]


@stablehlo("reverse")
def reverse(ctx: Context, x: Any, *, dimensions: Any) -> Any:
    """x read backwards along the axes."""
    if isinstance(x, np.ndarray):
        return np.flip(x, ints(dimensions))
    return o.reverse(ctx.tensor(x), axes=ints(dimensions))


# ---- pad and concatenate -----------------------------------------------------------------------

@stablehlo("pad")
def pad(ctx: Context, x: Any, value: Any, *, edge_padding_low: Any, edge_padding_high: Any,
        interior_padding: Any) -> Any:
    """x with `value` around it and between its elements; negative amounts cut elements off."""
    return padded(ctx, x, value, ints(edge_padding_low), ints(edge_padding_high),
                  ints(interior_padding))


@stablehlo("dynamic_pad")
def dynamic_pad(ctx: Context, x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    """`pad` by computed sizes."""
    inner = dims_of(interior, "the padding")
    if not all(isinstance(d, int) for d in inner):
        raise Refused("interior padding must be a number, not an open size")
    return padded(ctx, x, value, dims_of(low, "the padding"), dims_of(high, "the padding"),
                  [d for d in inner if isinstance(d, int)])


def padded(ctx: Context, x: Any, value: Any, lo: Sequence[Dim], hi: Sequence[Dim],
           interior: Sequence[int]) -> Any:
    """A pad. A value that the run computes is added: a `select` puts it where a mask is padded."""
    if all(isinstance(d, int) and d == 0 for d in (*lo, *hi, *interior)):
        return x
    how: dict[str, Any] = {"lo": tuple(lo), "hi": tuple(hi),
                           "interior": tuple(interior) if any(interior) else None}
    number = literal(value)
    if number is not None:
        (y,) = ctx.ready(x)
        return o.pad(y, **how, value=number)
    full = ctx.tensor(x)
    inside = ctx.builder.constant(np.ones((1,) * full.ndim, np.bool_))
    mask = o.pad(o.broadcast(inside, shape=full.shape), **how)
    return o.select(mask, o.pad(full, **how), ctx.tensor(value))


@stablehlo("concatenate")
def concatenate(ctx: Context, *xs: Any, dimension: int) -> Any:
    """The operands one behind the other along an axis."""
    if any(isinstance(x, Sizes) for x in xs) and all(
            isinstance(x, (Sizes, np.ndarray)) for x in xs):
        return Sizes(np.concatenate([objects(x) for x in xs], dimension), dtype_of(xs[0]))
    parts = [x for x in xs if 0 not in shape_of(x)] or list(xs[:1])
    if len(parts) == 1:
        return parts[0]
    return o.concat(*ctx.ready(*parts), axis=dimension)
