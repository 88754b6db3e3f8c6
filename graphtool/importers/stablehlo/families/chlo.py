"""CHLO's operations: functions, what repeats its operands, constants, products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphtool.importers.stablehlo.driver.parts import PAIRED
from graphtool.importers.stablehlo.driver.registry import add, stablehlo
from graphtool.importers.stablehlo.driver.values import array_of
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import constant, ints, placed
from graphtool.importers.stablehlo.kit import Array, Complex, Context, Dense, Refused, dtypes, o
from graphtool.ir.trace import like
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Dim

# ---- functions ---------------------------------------------------------------------------------

# B₂ₖ / (2k)!, with Bernoulli's numbers B
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
_TERMS = 10


def _zeta(ctx: Context, s: Array, q: Array) -> Array:
    """Σ (q + k)⁻ˢ over k ≥ 0, for s > 1: ten terms, then the formula of Euler and Maclaurin for the
    others (DLMF 2.10.1)."""
    total = q ** -s
    for k in range(1, _TERMS):
        total = total + (q + k) ** -s
    end = q + _TERMS
    last = end ** -s
    total = total + (last * end / (s - 1) + last * 0.5)
    factor = last * s / end
    for i, b in enumerate(_BERNOULLI):
        total = total + factor * b
        for j in (2 * i + 1, 2 * i + 2):
            factor = factor * (s + j) / end
    return total


def _is_pos_inf(ctx: Context, x: Array) -> Any:
    return o.is_inf(x) & (x > 0)


def _is_neg_inf(ctx: Context, x: Array) -> Any:
    return o.is_inf(x) & ~(x > 0)


def top_k(ctx: Context, x: Array, *, k: int, largest: bool = True) -> list[Array]:
    """The k greatest along the last axis, and their places; of equal ones the first."""
    values, places = o.top_k(x, k=int(k), axis=x.ndim - 1, largest=largest)
    return [values, cast(places, ctx.element(1))]


for _name, _fn in (("zeta", _zeta), ("is_pos_inf", _is_pos_inf), ("is_neg_inf", _is_neg_inf)):
    add(f"chlo.{_name}", _fn, elementwise=True)
add("chlo.top_k", top_k)


# ---- operands that are repeated -----------------------------------------------------------------

_BROADCAST = ("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum",
              "multiply", "or", "power", "remainder", "select", "shift_left",
              "shift_right_arithmetic", "shift_right_logical", "subtract", "xor")
_OWN = ("next_after", "polygamma", "zeta")


def _spread(x: Any, shape: tuple[Dim, ...], dims: Any) -> Any:
    """x repeated to the shape: its axes at `dims` if they are given, else at the end."""
    if isinstance(x, Complex):
        return x.each(lambda p: _spread(p, shape, dims))
    at = ints(dims) if dims is not None and x.ndim < len(shape) else range(
        len(shape) - x.ndim, len(shape))
    return x if x.shape == shape else placed(x, tuple(at), shape)


def _broadcast(name: str, base: str) -> None:
    def handler(ctx: Context, *xs: Any, broadcast_dimensions: Any = None,
                comparison_direction: Any = None) -> list[Any]:
        shape = broadcast_shapes(*(x.shape for x in xs)) if broadcast_dimensions is None else (
            ctx.result().shape)
        wide = [_spread(x, shape, broadcast_dimensions) for x in xs]
        kept = {k: v for k, v in ctx.op.attrs.items() if k != "broadcast_dimensions"}
        op = replace(ctx.op, name=base, attrs=kept)
        return ctx.driver.apply(op, wide, ctx.env, ctx.vector)
    add(f"chlo.broadcast_{name}", handler)


for _name in _BROADCAST:
    _broadcast(_name, f"stablehlo.{_name}")
for _name in _OWN:
    _broadcast(_name, f"chlo.{_name}")


add("chlo.constant", constant)


@stablehlo("chlo.constant_like", elementwise=True)
def constant_like(ctx: Context, x: Array, *, value: Any) -> Array:
    """One number, in the shape and the type of x."""
    said = str(value).lower() if isinstance(value, bool) else str(value)
    one = ctx.builder.constant(array_of(Dense(said), x.dtype, ()))
    return _spread(one, x.shape, None)  # type: ignore[no-any-return]


@stablehlo("chlo.conj", elementwise=True)
def conj(ctx: Context, x: Array) -> Array:
    """A real number is its own conjugate."""
    return x


PAIRED["chlo.conj"] = lambda ctx, x: x.conj()


@stablehlo("chlo.mulhi", elementwise=True)
def mulhi(ctx: Context, a: Array, b: Array) -> Array:
    """The upper half of the bits of a product."""
    row = a.dtype
    if row.bits == 64:
        return _upper(a, b)
    wide = dtypes.BY_NAME[f"{row.kind}64"]
    return cast((cast(a, wide) * cast(b, wide)) >> row.bits, row)


def _upper(a: Array, b: Array) -> Array:
    """The upper 64 bits: of halves of 32 bits with the signs of the upper ones, as in Hacker's
    Delight, 8-2."""
    (a0, a1), (b0, b1) = ((x & 0xFFFFFFFF, x >> 32) for x in (a, b))
    low = ((a0 * b0).bits_as(dtypes.uint64) >> 32).bits_as(a.dtype)  # filled with 0
    middle = a1 * b0 + low
    other = a0 * b1 + (middle & 0xFFFFFFFF)
    return a1 * b1 + (middle >> 32) + (other >> 32)


@stablehlo("chlo.ragged_dot")
def ragged_dot(ctx: Context, x: Array, w: Array, sizes: Array, *, lhs_batching_dimensions: Any = (),
               rhs_batching_dimensions: Any = (), lhs_contracting_dimensions: Any = (),
               rhs_contracting_dimensions: Any = (),
               lhs_ragged_dimensions: Any = (), rhs_group_dimensions: Any = ()) -> Any:
    """x[m, k] · w[g, k, n], in which the next sizes[g] rows of x meet matrix g."""
    plain = ((), (), (1,), (1,), (0,), (0,))
    dimensions = tuple(map(ints, (lhs_batching_dimensions, rhs_batching_dimensions,
                                  lhs_contracting_dimensions, rhs_contracting_dimensions,
                                  lhs_ragged_dimensions, rhs_group_dimensions)))
    if dimensions != plain:
        raise Refused("only x[m, k] with w[g, k, n] is supported, of which the rows of x are "
                      "divided")
    a, b = cast(x, ctx.dtype), cast(w, ctx.dtype)
    g, k, n = b.shape
    ends = o.cumulative(sizes.cast(dtypes.int64), kind="sum", axis=0)
    starts = ends - sizes.cast(dtypes.int64)
    rows = like(a, o.iota, shape=(a.shape[0],), axis=0, dtype=dtypes.int64).reshape(
        (a.shape[0], 1))
    mine = (rows >= starts) & (rows < ends)
    wide = a.reshape((a.shape[0], 1, k)) * mine.reshape((a.shape[0], g, 1)).cast(a.dtype)
    return o.matmul(wide.reshape((a.shape[0], g * k)), b.reshape((g * k, n)))
