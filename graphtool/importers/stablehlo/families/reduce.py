"""Reductions: one op for the usual bodies, `arg_reduce` for JAX's argmax, halving for any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.regions import union
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import Spread, dtype_of, literal, shape_of, spread
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints, reshaped, sliced, transposed
from graphtool.importers.stablehlo.text.tree import Region
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import Tracer
from graphtool.ops.reduce import identity
from graphtool.symbolic import product

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


def kind_of(region: Region, x: Any) -> str:
    """`sum`, `max`, …: the reduction that a body is; "" for another."""
    number, boolean = KINDS.get(simple_body(region), ("", ""))
    return boolean if dtype_of(x) is dtypes.bool_ else number


@stablehlo("reduce")
def reduce(ctx: Context, *xs: Any, dimensions: Any) -> Any:
    """The body over all elements along the axes, from the first values on."""
    count = len(xs) // 2
    values, starts = xs[:count], xs[count:]
    axes = ints(dimensions)
    body = ctx.op.regions[0]
    if not axes:
        return ctx.region(0, [*starts, *values], vector=True)
    kind = kind_of(body, values[0]) if count == 1 else ""
    if kind:
        return reduced(ctx, kind, values[0], starts[0], axes)
    found = _arg_extreme(ctx, values, starts, axes)
    return found if found is not None else _halved(ctx, values, starts, axes)


def reduced(ctx: Context, kind: str, x: Any, start: Any, axes: tuple[int, ...]) -> Any:
    """One of the usual reductions, without the reduced axes."""
    (y,) = ctx.ready(x)
    out = getattr(o, f"reduce_{kind}")(y, axes=axes)
    kept = tuple(d for i, d in enumerate(shape_of(x)) if i not in axes)
    out = reshaped(ctx, out, kept)
    first = literal(start)
    if first is not None and first == identity(kind, dtype_of(x)):
        return out
    return ctx.apply(getattr(o, COMBINE[kind]), out, start)


# ---- argmax and argmin -------------------------------------------------------------------------

_TRIALS = np.array([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan])


def _arg_extreme(ctx: Context, values: Sequence[Any], starts: Sequence[Any],
                 axes: tuple[int, ...]) -> list[Any] | None:
    """JAX's argmax and argmin: a value and its place, of equal ones the first. The body is known by
    what it does to all pairs of some numbers in the order of their places."""
    if len(values) != 2 or len(axes) != 1 or not dtype_of(values[1]).is_integer or not _is_line(
            values[1], axes[0]):
        return None
    row = dtype_of(values[0])
    if row is dtypes.bool_:
        return None
    trials = _TRIALS if row.is_float else np.array([0, 1, 3, 100])
    v = trials.astype(row.numpy)
    n, m = len(v), 3
    grid = [np.ascontiguousarray(g.reshape(-1)) for g in np.meshgrid(
        np.arange(n), np.arange(m), np.arange(n), np.arange(m), indexing="ij")]
    grid = [g[grid[1] < grid[3]] for g in grid]
    places = dtype_of(values[1]).numpy
    left, right = (v[grid[0]], grid[1].astype(places)), (v[grid[2]], grid[3].astype(places))
    try:
        found = ctx.region(0, [*left, *right], vector=True)
    except (Refused, ValueError, KeyError):
        return None
    if not all(isinstance(f, np.ndarray) for f in found):
        return None
    for kind, worst in (("max", -np.inf), ("min", np.inf)):
        want = _wanted(kind, left, right)
        first = literal(starts[0])
        if all(np.array_equal(f, w, equal_nan=f.dtype.kind == "f")
               for f, w in zip(found, want, strict=True)) and first is not None and (
                not row.is_float or first == worst):
            x = ctx.tensor(values[0])
            shape = tuple(d for i, d in enumerate(x.shape) if i != axes[0])
            place = o.arg_reduce(x, kind=kind, axis=axes[0])
            best = getattr(o, f"reduce_{kind}")(x, axes=axes)
            return [reshaped(ctx, best, shape), cast(ctx, reshaped(ctx, place, shape),
                                                     dtype_of(values[1]))]
    return None


def _wanted(kind: str, left: Any, right: Any) -> tuple[Any, Any]:
    """The greater or lesser one and its place; the first of equal ones, and of NaNs, which win."""
    (a, i), (b, j) = left, right
    first = (a >= b if kind == "max" else a <= b) | (a != a)
    return np.where(first, a, b), np.where(first, i, j)


def _is_line(x: Any, axis: int) -> bool:
    """Whether x counts 0, 1, 2, … along an axis."""
    if isinstance(x, np.ndarray):
        n = x.shape[axis]
        line = np.arange(n).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return bool(np.array_equal(x, np.broadcast_to(line, x.shape)))
    base = x.base if isinstance(x, Spread) else x
    if isinstance(base, np.ndarray):
        return False
    node = base.builder.made.get(base.value)
    lead = len(shape_of(x)) - base.ndim
    return node is not None and node.op is o.iota and node.attrs["axis"] + lead == axis


# ---- any body ----------------------------------------------------------------------------------

def _halved(ctx: Context, values: Sequence[Any], starts: Sequence[Any],
            axes: tuple[int, ...]) -> list[Any]:
    """Any body, which StableHLO takes to be associative: neighbours are combined, then the results,
    until one is left; then the first values."""
    shape = shape_of(values[0])
    kept = [i for i in range(len(shape)) if i not in axes]
    lead = tuple(shape[i] for i in kept)
    n = product(shape[i] for i in axes)
    if not isinstance(n, int):
        return _in_turn(ctx, values, starts, axes)
    rows = [reshaped(ctx, transposed(ctx, x, (*kept, *axes)), (*lead, n)) for x in values]
    if n == 0:
        return [ctx.settled(ctx.tensor(s), lead) for s in starts]
    while n > 1:
        pairs = [_every_other(ctx, rows, at, n - n % 2) for at in (0, 1)]
        joined = ctx.region(0, [*pairs[0], *pairs[1]], vector=True)
        if n % 2:
            rest = [sliced(ctx, x, (0,) * len(lead) + (n - 1,), (*lead, n), (1,) * (len(lead) + 1))
                    for x in rows]
            joined = [o.concat(*ctx.ready(x, y), axis=len(lead))
                      for x, y in zip(joined, rest, strict=True)]
        rows, n = joined, n // 2 + n % 2
    return ctx.region(0, [*starts, *(reshaped(ctx, x, lead) for x in rows)], vector=True)


def _every_other(ctx: Context, rows: Sequence[Any], first: int, limit: int) -> list[Any]:
    out = []
    for x in rows:
        lead = shape_of(x)[:-1]
        steps = (1,) * len(lead)
        out.append(sliced(ctx, x, (0,) * len(lead) + (first,), (*lead, limit), (*steps, 2)))
    return out


def _in_turn(ctx: Context, values: Sequence[Any], starts: Sequence[Any],
             axes: tuple[int, ...]) -> list[Any]:
    """Any body along axes of open size: one element after the other, from the first values on."""
    shape = shape_of(values[0])
    kept = [i for i in range(len(shape)) if i not in axes]
    lead = tuple(shape[i] for i in kept)
    n = product(shape[i] for i in axes)
    rows = [ctx.tensor(reshaped(ctx, transposed(ctx, x, (*axes, *kept)), (n, *lead)))
            for x in values]
    held = [ctx.tensor(spread(ctx.tensor(x), lead)) for x in starts]
    inner = [TensorType(x.dtype, lead) for x in (*held, *rows)]
    body = ctx.driver.closed(ctx.op.regions[0], inner, ctx.env, True)
    outer = union(body)
    made = o.scan(*held, *rows, *(Tracer(v, ctx.builder) for v in outer), body=body.graph(outer),
                  carries=len(held), xs=len(rows), length=n)
    return list(made) if isinstance(made, tuple) else [made]
