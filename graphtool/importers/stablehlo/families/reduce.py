"""Reductions: one op for the usual bodies, `arg_reduce` for JAX's argmax, halving for any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool.front import Array, Refused
from graphtool.front.regions import union
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.kit import Context, Region, concat, dtypes, o, product, stablehlo
from graphtool.ir.graph import TensorType
from graphtool.ops.reduce import identity

# body → kind of the reduction of numbers, and of booleans
KINDS = {"add": ("sum", "or"), "multiply": ("prod", "and"), "maximum": ("max", "or"),
         "minimum": ("min", "and"), "and": ("", "and"), "or": ("", "or")}
COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and_", "or": "or_"}


def simple_body(region: Region) -> str:
    """The name of the operation that is all of a body of two arguments; "" if there is more."""
    if len(region.operations) != 2 or len(region.arguments) != 2:
        return ""
    first, last = region.operations
    names = {a.name for a in region.arguments}
    if set(first.operands) != names or last.operands != first.results:
        return ""
    return first.name.removeprefix("stablehlo.")


def kind_of(region: Region, x: Array) -> str:
    """`sum`, `max`, …: the reduction that a body is; "" for another."""
    number, boolean = KINDS.get(simple_body(region), ("", ""))
    return boolean if x.dtype is dtypes.bool_ else number


@stablehlo("reduce")
def reduce(ctx: Context, *xs: Array, dimensions: Any) -> Any:
    """The body over all elements along the axes, from the first values on."""
    count = len(xs) // 2
    values, starts = xs[:count], xs[count:]
    axes = ints(dimensions)
    body = ctx.op.regions[0]
    if not axes:
        return ctx.region(0, [*starts, *values], vector=True)
    kind = kind_of(body, values[0]) if count == 1 else ""
    if kind:
        return reduced(kind, values[0], starts[0], axes)
    extremes = _arg_extreme(ctx, values, starts, axes)
    return extremes if extremes is not None else _halved(ctx, values, starts, axes)


def reduced(kind: str, x: Array, start: Array, axes: tuple[int, ...]) -> Array:
    """One of the usual reductions, without the reduced axes."""
    out, first = x.reduce(kind, axes), start.literal
    if first is not None and first == identity(kind, x.dtype):
        return out
    return getattr(o, COMBINE[kind])(out, start)  # type: ignore[no-any-return]


# ---- argmax and argmin -------------------------------------------------------------------------

_TRIALS = np.array([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan])


def _arg_extreme(ctx: Context, values: Sequence[Array], starts: Sequence[Array],
                 axes: tuple[int, ...]) -> list[Any] | None:
    """JAX's argmax and argmin: a value and its place, of equal ones the first. The body is known by
    what it does to all pairs of some numbers in the order of their places."""
    if len(values) != 2 or len(axes) != 1 or not values[1].dtype.is_integer or not _is_line(
            values[1], axes[0]):
        return None
    row = values[0].dtype
    if row is dtypes.bool_:
        return None
    trials = _TRIALS if row.is_float else np.array([0, 1, 3, 100])
    v = trials.astype(row.numpy)
    n, m = len(v), 3
    grid = [np.ascontiguousarray(g.reshape(-1)) for g in np.meshgrid(
        np.arange(n), np.arange(m), np.arange(n), np.arange(m), indexing="ij")]
    grid = [g[grid[1] < grid[3]] for g in grid]
    places = values[1].dtype.numpy
    left, right = (v[grid[0]], grid[1].astype(places)), (v[grid[2]], grid[3].astype(places))
    try:
        results = ctx.region(0, list(map(ctx.builder.constant, (*left, *right))), vector=True)
    except (Refused, ValueError, KeyError):
        return None
    numbers = [x.numbers for x in results]
    if any(f is None for f in numbers):
        return None
    for kind, worst in (("max", -np.inf), ("min", np.inf)):
        want = _wanted(kind, left, right)
        first = starts[0].literal
        if all(np.array_equal(f, w, equal_nan=f.dtype.kind == "f")
               for f, w in zip(numbers, want, strict=True)) and first is not None and (
                not row.is_float or first == worst):
            x, (axis,) = values[0], axes
            best = x.reduce(kind, axes)
            place = o.arg_reduce(x, kind=kind, axis=axis).reshape(best.shape)
            return [best, cast(place, values[1].dtype)]
    return None


def _wanted(kind: str, left: Any, right: Any) -> tuple[Any, Any]:
    """The greater or lesser one and its place; the first of equal ones, and of NaNs, which win."""
    (a, i), (b, j) = left, right
    first = (a >= b if kind == "max" else a <= b) | (a != a)
    return np.where(first, a, b), np.where(first, i, j)


def _is_line(x: Array, axis: int) -> bool:
    """Whether x counts 0, 1, 2, … along an axis."""
    if x.numbers is not None:
        shape = x.numbers.shape
        line = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return bool(np.array_equal(x.numbers, np.broadcast_to(line, shape)))
    base = x if x.base is None else x.base
    node, lead = base.maker, x.ndim - base.ndim
    return node is not None and node.op is o.iota and node.attrs["axis"] + lead == axis


# ---- any body ----------------------------------------------------------------------------------

def _halved(ctx: Context, values: Sequence[Array], starts: Sequence[Array],
            axes: tuple[int, ...]) -> list[Any]:
    """Any body, which StableHLO takes to be associative: neighbours are combined, then the results,
    until one is left; then the first values."""
    shape = values[0].shape
    kept = [i for i in range(len(shape)) if i not in axes]
    lead = tuple(shape[i] for i in kept)
    n = product(shape[i] for i in axes)
    if not isinstance(n, int):
        return _in_turn(ctx, values, starts, axes)
    rows = [x.transpose((*kept, *axes)).reshape((*lead, n)) for x in values]
    if n == 0:
        return [s.broadcast(lead) for s in starts]
    last = len(lead)
    while n > 1:
        even = n - n % 2
        joined = ctx.region(0, [x.take(last, at, even, 2) for at in (0, 1) for x in rows],
                            vector=True)
        rows = joined if n % 2 == 0 else [concat((x, y.take(last, n - 1, n)), last)
                                          for x, y in zip(joined, rows, strict=True)]
        n = n // 2 + n % 2
    return ctx.region(0, [*starts, *(x.reshape(lead) for x in rows)], vector=True)


def _in_turn(ctx: Context, values: Sequence[Array], starts: Sequence[Array],
             axes: tuple[int, ...]) -> list[Any]:
    """Any body along axes of open size: one element after the other, from the first values on."""
    shape = values[0].shape
    kept = [i for i in range(len(shape)) if i not in axes]
    lead = tuple(shape[i] for i in kept)
    n = product(shape[i] for i in axes)
    rows = [x.transpose((*axes, *kept)).reshape((n, *lead)) for x in values]
    held = [x.broadcast(lead) for x in starts]
    inner = [TensorType(x.dtype, lead) for x in (*held, *rows)]
    body = ctx.driver.closed(ctx.op.regions[0], inner, ctx.env, True)
    outer = union(body)
    out = o.scan(*held, *rows, *map(ctx.builder.traced, outer), body=body.graph(outer),
                 carries=len(held), xs=len(rows), length=n)
    return list(out) if isinstance(out, tuple) else [out]
