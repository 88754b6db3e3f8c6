"""Operations that make values or move elements: constant, iota, broadcast, reshape, transpose,
slice, pad, concatenate; and the same operations as our exporter marks them, which are read as they
are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.front import FOLD_LIMIT, Array, Refused
from graphtool.front.array import compact, concat
from graphtool.importers.stablehlo.driver.registry import NODE, node, stablehlo
from graphtool.importers.stablehlo.driver.values import array_of, element_type
from graphtool.importers.stablehlo.kit import Context, Dense, Dim, o
from graphtool.io.weights import weight
from graphtool.ir.decode_values import split_dims
from graphtool.ir.graph import Value, is_constant
from graphtool.ir.op import OPS
from graphtool.symbolic.parse import parse


def ints(x: Any) -> tuple[int, ...]:
    """A list of integers as an attribute writes it: `[1, 2]`, `array<…>` or `dense<…>`."""
    if isinstance(x, Dense):
        flat = x.elements if isinstance(x.elements, list) else [x.elements]
        count = x.kind.shape[0] if x.kind and x.kind.shape else len(flat)
        return tuple(int(v) for v in (flat if len(flat) == count else flat * int(count or 0)))
    return tuple(int(v) for v in x)


# ---- constants, iota, sizes --------------------------------------------------------------------

@stablehlo("constant", elementwise=True)
def constant(ctx: Context, *, value: Any) -> Array:
    """The array that the text says; of our own text, a parameter with its name."""
    if not isinstance(value, Dense):
        raise Refused("only dense constants are supported")
    kind = ctx.op.signature.results[0]
    array = array_of(value, element_type(kind), tuple(d or 0 for d in kind.shape or ()))
    name = ctx.op.attrs.get("graphtool.parameter")
    if name is None:
        return ctx.builder.constant(array)
    ctx.driver.wanted.add(parameter := ctx.builder.constant(array, str(name), True).value)
    return ctx.builder.traced(parameter)


@stablehlo("iota")
def iota(ctx: Context, *, iota_dimension: int) -> Array:
    """0, 1, 2, … along an axis, repeated along the others."""
    return line(ctx, ctx.result().dtype, ctx.result().shape, iota_dimension)


@stablehlo("dynamic_iota")
def dynamic_iota(ctx: Context, shape: Array, *, iota_dimension: int) -> Array:
    """`iota` of a computed shape."""
    return line(ctx, ctx.dtype, shape.sizes("the shape"), iota_dimension)


def line(ctx: Context, dtype: DType, shape: tuple[Dim, ...], axis: int) -> Array:
    """0, 1, 2, … along one axis of a shape: stored for that axis only."""
    if not 0 <= axis < len(shape):
        raise ValueError(f"there is no axis {axis} of {len(shape)}")
    n, rest = shape[axis], (1,) * (len(shape) - axis - 1)
    row = ctx.builder.constant(np.arange(n).astype(dtype.numpy).reshape((n, *rest))) if isinstance(
        n, int) and n <= FOLD_LIMIT else ctx.builder.emit(
            o.iota, (), {"shape": (n, *rest), "axis": 0, "dtype": dtype})
    return row.broadcast(shape)


@stablehlo("get_dimension_size")
def get_dimension_size(ctx: Context, x: Array, *, dimension: int) -> Array:
    """The size of one axis, known at import or an open size."""
    return ctx.builder.number(x.shape[dimension], ctx.dtype)


# ---- broadcast, reshape, transpose -------------------------------------------------------------

@stablehlo("broadcast_in_dim")
def broadcast_in_dim(ctx: Context, x: Array, *, broadcast_dimensions: Any) -> Array:
    """Axis i of x becomes axis dims[i]; other axes, and those of size 1, are repeated."""
    return placed(x, ints(broadcast_dimensions), ctx.result().shape)


@stablehlo("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(ctx: Context, x: Array, shape: Array, *, broadcast_dimensions: Any,
                             known_expanding_dimensions: Any = None,
                             known_nonexpanding_dimensions: Any = None) -> Array:
    """`broadcast_in_dim` to a computed shape."""
    return placed(x, ints(broadcast_dimensions), shape.sizes("the shape"))


def placed(x: Array, dims: Sequence[int], shape: tuple[Dim, ...]) -> Array:
    """x with its axes at `dims` of the shape, which need not be in order."""
    if len(dims) != x.ndim or any(not 0 <= d < len(shape) for d in dims):
        raise ValueError(f"axes {list(dims)} of rank {len(shape)} for an operand of rank {x.ndim}")
    node, before = x.maker, x.before_reshape()
    if node is not None and node.op is o.reshape and before is not None and before.shape == shape:
        return before
    if list(dims) != sorted(dims):
        x, dims = x.transpose(np.argsort(dims).tolist()), sorted(dims)
    base = x if x.base is None else x.base
    if base.numbers is not None:
        base = base.builder.constant(compact(base.numbers))
    places = list(dims)[len(dims) - base.ndim:]  # of the axes that the base has
    first = min(places, default=len(shape))
    wide: list[Dim] = [1] * (len(shape) - first)
    for at, d in zip(places, base.shape, strict=True):
        wide[at - first] = d
    return base.reshape(wide).broadcast(shape)


@stablehlo("reshape")
def reshape(ctx: Context, x: Array) -> Array:
    """The same elements under another shape."""
    return x.reshape(ctx.result().shape)


@stablehlo("dynamic_reshape")
def dynamic_reshape(ctx: Context, x: Array, shape: Array) -> Array:
    """`reshape` to a computed shape."""
    return x.reshape(shape.sizes("the shape"))


@stablehlo("transpose")
def transpose(ctx: Context, x: Array, *, permutation: Any) -> Array:
    """Axis k of the result is axis permutation[k] of x."""
    return x.transpose(ints(permutation))


# ---- slices ------------------------------------------------------------------------------------

@stablehlo("slice")
def slice_(ctx: Context, x: Array, *, start_indices: Any, limit_indices: Any, strides: Any
           ) -> Array:
    """x[start:limit:stride] on every axis."""
    return x.slice(ints(start_indices), ints(limit_indices), ints(strides))


@stablehlo("real_dynamic_slice")
def real_dynamic_slice(ctx: Context, x: Array, start: Array, limit: Array, strides: Array) -> Any:
    """`slice` with computed bounds: sizes, or a start that the run computes and the start plus
    sizes, which is a window."""
    steps = strides.sizes("the strides")
    if not all(isinstance(s, int) for s in steps):
        raise Refused("strides must be numbers, not open sizes")
    sizes = _beyond(start, limit)
    if sizes is not None and set(steps) <= {1}:
        ends = [start.take(0, i, i + 1).reshape(()) for i in range(len(steps))]
        return o.dynamic_slice(x, *ends, sizes=sizes)
    return x.slice(start.sizes("the start"), limit.sizes("the limit"),
                   [s for s in steps if isinstance(s, int)])


def _beyond(start: Array, limit: Array) -> tuple[Dim, ...] | None:
    """The sizes that the limit adds to a start which the run computes."""
    node = limit.maker
    if node is None or node.op is not o.add or start.known is not None:
        return None
    rest = [x for x in node.inputs if x is not start.value]
    dims = _dims_in(limit, rest[0]) if len(rest) == 1 else None
    count = start.shape[0]
    return dims * count if dims is not None and len(dims) == 1 and isinstance(count, int) else dims


def _dims_in(near: Array, x: Any) -> tuple[Dim, ...] | None:
    """The sizes that a number or a tensor of the graph holds; None if it holds data."""
    if isinstance(x, int):
        return (x,)
    node = near.builder.made_by.get(x) if isinstance(x, Value) else None
    if node is None:
        return None
    if node.op is o.dim:
        return (node.attrs["of"],)
    if is_constant(node):
        return tuple(int(d) for d in node.attrs["data"].array().reshape(-1))
    if node.op not in (o.reshape, o.cast, o.concat):
        return None
    parts = [_dims_in(near, y) for y in node.inputs]
    return None if None in parts else tuple(d for p in parts for d in p or ())


@stablehlo("reverse")
def reverse(ctx: Context, x: Array, *, dimensions: Any) -> Any:
    """x read backwards along the axes."""
    return o.reverse(x, axes=ints(dimensions))


# ---- pad and concatenate -----------------------------------------------------------------------

@stablehlo("pad")
def pad(ctx: Context, x: Array, value: Array, *, edge_padding_low: Any, edge_padding_high: Any,
        interior_padding: Any) -> Any:
    """x with `value` around it and between its elements; negative amounts cut elements off."""
    return padded(x, value, ints(edge_padding_low), ints(edge_padding_high), ints(interior_padding))


@stablehlo("dynamic_pad")
def dynamic_pad(ctx: Context, x: Array, value: Array, low: Array, high: Array, interior: Array
                ) -> Any:
    """`pad` by computed sizes."""
    inner = interior.sizes("the padding")
    if not all(isinstance(d, int) for d in inner):
        raise Refused("interior padding must be a number, not an open size")
    return padded(x, value, low.sizes("the padding"), high.sizes("the padding"), inner)


def padded(x: Array, value: Array, lo: Sequence[Dim], hi: Sequence[Dim],
           interior: Sequence[Any]) -> Any:
    """A pad. A value that the run computes is added: a `select` puts it where a mask is padded."""
    number = value.literal
    if number is not None:
        return x.pad(lo, hi, number, interior)
    inside = x.builder.constant(np.ones((1,) * x.ndim, np.bool_)).broadcast(x.shape)
    return o.select(inside.pad(lo, hi, interior=interior), x.pad(lo, hi, interior=interior), value)


@stablehlo("concatenate")
def concatenate(ctx: Context, *xs: Array, dimension: int) -> Array:
    """The operands one behind the other along an axis."""
    return concat(xs, dimension)


@node("constant")
def node_of_constant(ctx: Context, *, value: Any) -> Any:
    """A constant of its own, also where there are equal ones."""
    shape = tuple(d or 0 for d in ctx.op.signature.results[0].shape or ())
    data = weight(np.array(array_of(value, ctx.dtype, shape)))
    return ctx.builder.record(OPS["constant"], (), {"data": data, "param": False}, "constant")


def _noted_shape(ctx: Context) -> tuple[Dim, ...]:
    """The sizes that the mark names, if they are open; else those of the result."""
    node_attrs = ctx.op.attrs[NODE]
    if not isinstance(node_attrs, str):
        return ctx.result().shape
    return tuple(parse(d.strip(), ctx.driver.sizes) for d in split_dims(node_attrs))


@node("broadcast_in_dim", "dynamic_broadcast_in_dim")
def broadcast(ctx: Context, x: Array, *shape: Array, **_: Any) -> Any:
    """`broadcast`, even if the next op would repeat its operand itself."""
    return ctx.builder.record(o.broadcast, (x,), {"shape": _noted_shape(ctx)})


@node("reshape", "dynamic_reshape")
def node_of_reshape(ctx: Context, x: Array, *shape: Array) -> Any:
    """`reshape`; a reshape of a reshape becomes one."""
    return ctx.builder.record(o.reshape, (x,), {"shape": _noted_shape(ctx)})


@node("iota", "dynamic_iota")
def node_of_iota(ctx: Context, *shape: Array, iota_dimension: int) -> Any:
    """`iota`, however few elements it has."""
    return ctx.builder.record(o.iota, (), {"shape": _noted_shape(ctx), "axis": iota_dimension,
                                           "dtype": ctx.dtype})


@node("convert")
def dim(ctx: Context, x: Array) -> Any:
    """`dim`: a size as a number, with which no further sizes are computed."""
    node_attrs = ctx.op.attrs[NODE]
    (of,) = _noted_shape(ctx) if isinstance(node_attrs, str) else x.sizes("the size")
    return ctx.builder.record(o.dim, (), {"of": of, "dtype": ctx.dtype})


@node("dot_general")
def matmul(ctx: Context, a: Array, b: Array, *, lhs_contracting_dimensions: Any,
           rhs_contracting_dimensions: Any, **_: Any) -> Any:
    """`matmul`, whose contracted axes are among the last two of each operand."""
    (i,), (j,) = ints(lhs_contracting_dimensions), ints(rhs_contracting_dimensions)
    return ctx.builder.record(o.matmul, (a, b), {"transpose_a": i != a.ndim - 1,
                                                 "transpose_b": j == b.ndim - 1})
