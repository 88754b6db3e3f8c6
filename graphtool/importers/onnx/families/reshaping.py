"""Other shapes for the same elements, or for repeated ones: Reshape, Squeeze, Expand, Tile."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.errors import Undecided
from graphtool.front import Refused
from graphtool.importers.onnx.driver.claims import agreed_entries, agreed_truth
from graphtool.importers.onnx.driver.computed import entry, known_element
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.families.computed_axes import agreed_axes
from graphtool.importers.onnx.families.shape import need_vector
from graphtool.importers.onnx.kit import array_of, axes_of, count_of, dim_tensor, dims, dtypes, ints
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import (
    Dim,
    bounds,
    exact_quotient,
    floordiv,
    known,
    maximum,
    product,
)


@onnx_op("Reshape", since=5)
def reshape_op(x: Any, shape: Any, *, allowzero: int = 0, ctx: Any) -> Any:
    """`reshape`; 0 is x's own size on that axis, −1 is what the other sizes leave."""
    need_vector(shape, "the shape")
    if array_of(shape) is None:
        return x.reshape(_computed_shape(x, shape, allowzero, ctx.room()))
    wanted = list(dims(shape, "the shape"))
    for i, d in enumerate(wanted):
        if isinstance(d, int) and d == 0 and not allowzero:
            wanted[i] = x.shape[i]
    open_axes = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if len(open_axes) > 1:
        raise ValueError(f"{len(open_axes)} entries of the shape are -1, one at most is allowed")
    if open_axes:
        wanted[open_axes[0]] = 1
        have, rest = product(x.shape), product(wanted)
        wanted[open_axes[0]] = _quotient(have, rest)
        sure = isinstance(have, int) and isinstance(rest, int)  # then reshape compares
        if bounds(rest)[0] != 0 and not sure:  # an empty tensor has any sizes
            x.builder.require(have, rest * wanted[open_axes[0]])
    return x.reshape(tuple(wanted))


def _computed_shape(x: Any, shape: Any, allowzero: int,
                    room: tuple[int, ...] | None) -> tuple[Dim, ...]:
    """A shape that the run computes; its last unknown entry follows from the number of elements,
    unless x is empty, and the run compares the two.

    0 stands for x's own size there, −1 for the rest; both may appear only at run time. `room` is
    the shape that the model declares.
    """
    total = product(x.shape)
    if room is not None:
        filled = _filled(x, shape.cast(dtypes.int64), len(room), total, allowzero)
        return agreed_entries(filled, room, "the shape")
    count = count_of(shape)
    out: list[Dim | None] = [known_element(shape, i) for i in range(count)]
    for i, d in enumerate(out):
        if d == 0 and not allowzero:
            out[i] = x.shape[i]
    open_axes = [i for i, d in enumerate(out) if isinstance(d, int) and d == -1]
    known = bool(open_axes)
    if not known and total != 0:
        open_axes = [i for i, d in enumerate(out) if d is None]
    filled = _filled(x, shape.cast(dtypes.int64), count, total, allowzero)
    # an empty tensor may have any sizes; if it is open whether x is empty, the sizes are those
    # without 0
    most = None if total == 0 else product(maximum(d, 1) for d in x.shape)
    rest: Dim = 1
    for i, d in enumerate(out):
        if i not in open_axes[-1:]:
            size = entry(filled, i, 0, most) if d is None else d
            out[i], rest = size, rest * size
    for i in open_axes[-1:]:
        out[i] = last = floordiv(total, maximum(rest, 1))
        rest *= last
        if not known:
            x.builder.require(entry(filled, i, 0, most), last)
    x.builder.require(total, rest)
    return tuple(d for d in out if d is not None)


def _filled(x: Any, shape: Any, count: int, total: Dim, allowzero: int) -> Any:
    """The vector of sizes, with 0 and −1 replaced by the sizes that they stand for."""
    if not allowzero:
        present = x.builder.sizes([*x.shape[:count], *[0] * (count - x.ndim)])
        shape = o.select(o.eq(shape, 0), present, shape)
    rest = o.eq(shape, -1)
    others = o.reduce_prod(o.select(rest, 1, shape), axes=(0,))
    left = dim_tensor(total, x.builder).reshape((1,)) / o.max(others, 1)
    return o.select(rest, left, shape)


def _quotient(total: Dim, rest: Dim) -> Dim:
    if isinstance(rest, int) and rest == 0:
        return 0
    exact = exact_quotient(total, rest)
    return floordiv(total, rest) if exact is None else exact


@onnx_op("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    """x as a matrix, as `reshape`: the axes before `axis`, and the axes from there on."""
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError(f"axis {axis} is out of range for rank {x.ndim}")
    at = axis if axis >= 0 else axis + x.ndim
    return x.reshape((product(x.shape[:at]), product(x.shape[at:])))


@onnx_op("Squeeze")
def squeeze(x: Any, at: Any = None, *, axes: Any = None, ctx: Any) -> Any:
    """`reshape` without the given axes, or without all axes of size 1."""
    room = ctx.room()
    if at is not None and array_of(at) is None and room is not None:
        return x.reshape(agreed_axes(at, x.shape, room))
    if at is not None:
        axes = ints(at, "the axes")
    if axes is None:
        gone = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        gone = axes_of(axes, x.ndim)
        if any(known(x.shape[a], "==", 1) is False for a in gone):
            raise ValueError(f"a dimension of {tuple(x.shape)} at {gone} is not 1")
    return x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in gone))


@onnx_op("Unsqueeze")
def unsqueeze(x: Any, at: Any = None, *, axes: Any = None, ctx: Any) -> Any:
    """`reshape` with axes of size 1 at the given places."""
    room = ctx.room()
    if at is not None and array_of(at) is None and room is not None:
        agreed_axes(at, room, x.shape)
        return x.reshape(room)
    axes = ints(at, "the axes") if at is not None else axes
    new = axes_of(axes, x.ndim + len(axes))
    if len(set(new)) != len(new):
        raise ValueError(f"the axes {axes} name one axis twice")
    rest = iter(x.shape)
    return x.reshape(tuple(1 if i in new else next(rest) for i in range(x.ndim + len(new))))


@onnx_op("Expand")
def expand(x: Any, shape: Any, *, ctx: Any) -> Any:
    """`broadcast` to the common shape of x and `shape`."""
    need_vector(shape, "the shape")
    if array_of(shape) is None:
        room = ctx.room()
        return o.broadcast(x, shape=_spread_shape(x, shape) if room is None
                           else _agreed_spread(x, shape, room))
    to = dims(shape, "the shape")
    for axis, n in enumerate(to, x.ndim - len(to)):
        if axis >= 0 and n != 1 and isinstance(n, int) and known(x.shape[axis], "==", n) is None:
            x = _one_or(x, axis, n)
    wanted = _broadcast_to(x, to)
    if (wide := x.builder.spread(x, wanted[len(wanted) - x.ndim:])) is not x:
        x = x.builder.traced(wide.value)
    return x if tuple(x.shape) == wanted else o.broadcast(x, shape=wanted)


def _broadcast_to(x: Any, to: tuple[Dim, ...]) -> tuple[Dim, ...]:
    try:
        return broadcast_shapes(tuple(x.shape), to)
    except Undecided as error:
        wanted = tuple(d for d in x.builder.knowledge.common((x.shape, to), error) if d is not None)
        if len(wanted) < max(x.ndim, len(to)):
            raise
        return wanted


def _one_or(x: Any, axis: int, n: int) -> Any:
    """x with n elements along an axis of an open size, which a run checks to be 1 or n."""
    have = dim_tensor(x.shape[axis], x.builder)
    agreed_truth(o.eq(have, 1) | o.eq(have, n), f"whether axis {axis} is 1 or {n}")
    return o.spread(x, shape=tuple(n if a == axis else d for a, d in enumerate(x.shape)))


def _agreed_spread(x: Any, shape: Any, room: tuple[int, ...]) -> tuple[int, ...]:
    """The declared shape, after a check that x's shape broadcast to a computed one is equal."""
    count = count_of(shape)
    padded = (1,) * (len(room) - x.ndim) + tuple(x.shape)
    if len(room) != max(count, x.ndim):
        raise ValueError(f"the model declares rank {len(room)}, computed is {max(count, x.ndim)}")
    kept = x.builder.sizes(padded[len(room) - count:])
    wide = o.select(o.eq(shape.cast(dtypes.int64), 1), kept, shape.cast(dtypes.int64))
    agreed_entries(wide, room[len(room) - count:], "the shape")
    return room


def _spread_shape(x: Any, shape: Any) -> tuple[Dim, ...]:
    """x's shape broadcast to a computed one: where x has size 1, the size is symbolic."""
    count = count_of(shape)
    padded = (1,) * (count - x.ndim) + tuple(x.shape)
    out = list(padded)
    for i in range(count):
        at = i + len(padded) - count
        d = known_element(shape, i)
        if d is not None:
            (out[at],) = broadcast_shapes((padded[at],), (d,))
        elif padded[at] == 1:
            out[at] = entry(shape, i)
        elif not isinstance(padded[at], int):
            raise Refused(f"the size {padded[at]} is symbolic and cannot be broadcast to a size "
                          "that the run computes; it must be fixed with --dynamic NAME=SIZE")
    return tuple(out)


@onnx_op("Tile")
def tile(x: Any, repeats: Any, *, ctx: Any) -> Any:
    """x repeated along each axis, as `reshape`, `broadcast`, `reshape`."""
    room = ctx.room()
    if array_of(repeats) is None and room is not None and all(
            isinstance(d, int) and d > 0 for d in x.shape):
        return tiled(x, _agreed_repeats(x, repeats, room))
    return tiled(x, dims(repeats, "the repeats"))


def _agreed_repeats(x: Any, repeats: Any, room: tuple[int, ...]) -> tuple[Dim, ...]:
    """The repeats that make the declared shape, after a check that the computed ones are equal."""
    times = [n // d if isinstance(d, int) and n % d == 0 else None
             for n, d in zip(room, x.shape, strict=True)]
    if None in times:
        raise ValueError(f"the model declares {room}, which repeats of {x.shape} cannot make")
    return agreed_entries(repeats, [n for n in times if n is not None], "the repeats")


def tiled(x: Any, times: tuple[Dim, ...]) -> Any:
    """The same for repeats that are dimensions. Raises ValueError if their number is not x's
    rank."""
    if len(times) != x.ndim or any(isinstance(n, int) and n < 0 for n in times):
        raise ValueError(f"the repeats must be {x.ndim} sizes, but are {times}")
    apart = tuple(v for d in x.shape for v in (1, d))
    spread = tuple(v for n, d in zip(times, x.shape, strict=True) for v in (n, d))
    if apart == spread:
        return x
    out = o.broadcast(x.reshape(apart), shape=spread)
    return out.reshape(tuple(n * d for n, d in zip(times, x.shape, strict=True)))
