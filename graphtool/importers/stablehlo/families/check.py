"""What test programs expect of values: each expectation becomes an output, true or false.

They are written as operations of the dialect `check`, or as custom calls of these names. Exact
ones take a NaN to equal a NaN. The others allow a share of the greatest number for the rounding of
sums in another order, beside what the program itself allows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from graphtool.importers.stablehlo.driver.parts import flat
from graphtool.importers.stablehlo.driver.registry import add
from graphtool.importers.stablehlo.families.composite import TARGETS
from graphtool.importers.stablehlo.families.elementwise import cast, total_order
from graphtool.importers.stablehlo.kit import Array, Context, Refused, dtypes, o
from graphtool.importers.stablehlo.text.tree import Signature

_ULPS = 3
_SHARE = {64: 1e-9, 32: 1e-4, 16: 1e-2, 8: 0.13, 4: 0.5}  # by the bits of a float
_TOLERANCE = 1e-3

Same = Callable[[Array, Array], Array]


def _equal(a: Array, b: Array) -> Array:
    same: Array = o.eq(a, b)
    return same | (o.is_nan(a) & o.is_nan(b)) if a.dtype.is_float else same


def _near(a: Array, b: Array, tolerance: float) -> Any:
    """|a − b| is within the tolerance times the greater of 1, |a| and |b|."""
    same = _equal(a, b)
    if not a.dtype.is_float:
        return same
    x, y = cast(a, dtypes.float64), cast(b, dtypes.float64)
    inside = abs(x - y) <= o.max(o.max(abs(x), abs(y)), 1) * tolerance
    return same | (o.is_finite(x) & o.is_finite(y) & inside)


def _close(a: Array, b: Array, ulps: int) -> Any:
    """At most so many numbers of the type lie between a and b, or they are near."""
    near = _near(a, b, _SHARE.get(a.dtype.bits, _TOLERANCE))
    if not a.dtype.is_float or a.dtype.bits < 16:
        return near
    x, y = (cast(total_order(v), dtypes.int64) for v in (a, b))
    return near | ((abs(x - y) <= ulps) & ~(o.is_nan(a) | o.is_nan(b)))


def _all(ctx: Context, same: Same, a: Any, b: Any) -> Array:
    """Whether all elements of all parts are the same."""
    out = ctx.builder.number(True, dtypes.bool_)
    for x, y in zip(flat([a]), flat([b]), strict=True):
        held = same(x, y)
        out = out & (held.reduce("and", range(held.ndim)) if held.ndim else held)
    return out


def _constant(ctx: Context, value: Any) -> Any:
    """The attribute's array, in the type of the operand."""
    op = replace(ctx.op, name="stablehlo.constant", operands=(), attrs={"value": value},
                 results=("%constant",), signature=Signature((), ctx.op.signature.operands[:1]))
    return ctx.driver.apply(op, [], ctx.env, False)[0]


def _judged(ctx: Context, same: Same, a: Any, b: Any) -> list[Any]:
    """The verdict as the result if the operation has one, else as an output of the program."""
    equal = _all(ctx, same, a, b)
    if ctx.op.results:
        return [equal]
    ctx.driver.expect(ctx.op, equal)
    return []


def expect_eq(ctx: Context, a: Any, b: Any) -> list[Any]:
    """All elements are equal."""
    return _judged(ctx, _equal, a, b)


def expect_eq_const(ctx: Context, a: Any, *, value: Any) -> list[Any]:
    """All elements are those of the constant."""
    return _judged(ctx, _equal, a, _constant(ctx, value))


def expect_almost_eq(ctx: Context, a: Any, b: Any, *, tolerance: Any = None) -> list[Any]:
    """All elements are within a tolerance of each other."""
    return _judged(ctx, partial(_near, tolerance=float(tolerance or _TOLERANCE)), a, b)


def expect_almost_eq_const(ctx: Context, a: Any, *, value: Any, tolerance: Any = None) -> list[Any]:
    """All elements are within a tolerance of the constant."""
    same = partial(_near, tolerance=float(tolerance or _TOLERANCE))
    return _judged(ctx, same, a, _constant(ctx, value))


def expect_close(ctx: Context, a: Any, b: Any, *, max_ulp_difference: Any = None,
                 min_ulp_difference: Any = None) -> list[Any]:
    """At most so many numbers of the type lie between the elements."""
    most = _ULPS if max_ulp_difference is None else int(max_ulp_difference)
    return _judged(ctx, partial(_close, ulps=most), a, b)


def expect_serialized_eq(ctx: Context, a: Any, *, probe_id: Any = None, iteration: Any = None
                         ) -> list[Any]:
    """Refused: what a probe has written is no part of the program."""
    raise Refused("what another tool has written is not known here")


CHECKS: dict[str, Callable[..., Any]] = {
    "eq": expect_eq, "expect_eq": expect_eq, "expect_eq_const": expect_eq_const,
    "expect_almost_eq": expect_almost_eq, "expect_almost_eq_const": expect_almost_eq_const,
    "expect_close": expect_close, "expect_serialized_eq": expect_serialized_eq}
for _name, _fn in CHECKS.items():
    add(f"check.{_name}", _fn)


def _called(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The expectation as a custom call, whose options are attributes of its own."""
    names = ("max_ulp_difference", "min_ulp_difference", "tolerance")

    def call(ctx: Context, *xs: Any) -> Any:
        given = {**ctx.op.attrs, **_mapping(ctx.op.attrs.get("backend_config")),
                 **_mapping(ctx.op.attrs.get("mhlo.backend_config"))}
        takes = inspect.signature(fn).parameters
        return fn(ctx, *xs, **{n: given[n] for n in names if n in given and n in takes})
    return call


def _mapping(x: Any) -> dict[str, Any]:
    return dict(x) if isinstance(x, dict) else {}


for _name in ("eq", "expect_eq", "expect_almost_eq", "expect_close"):
    TARGETS[f"check.{_name}"] = _called(CHECKS[_name])
