"""Complex numbers as pairs of tensors: arithmetic, movement part by part.

A graph has no complex type: inputs, outputs and carried values are two tensors each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.arrays import array_of
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import PAIRED, Pair, is_complex, real_kind
from graphtool.importers.stablehlo.driver.registry import HANDLERS, Refused
from graphtool.importers.stablehlo.driver.values import dtype_of, element_type, shape_of, spread
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.reduce import simple_body
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.types import Signature

Fn = TypeVar("Fn", bound=Callable[..., Any])


def paired(*names: str) -> Callable[[Fn], Fn]:
    """A decorator that registers what these operations of StableHLO do with complex numbers."""
    def declare(fn: Fn) -> Fn:
        PAIRED.update({f"stablehlo.{n}": fn for n in names})
        return fn
    return declare


def real_context(ctx: Context) -> Context:
    """The context of the operation on one part: its complex results are real."""
    kinds = tuple(map(real_kind, ctx.op.signature.results))
    return replace(ctx, op=replace(ctx.op, signature=Signature(ctx.op.signature.operands, kinds)))


def part(x: Any, i: int) -> Any:
    """The real (0) or the imaginary (1) part; of a real value the value itself."""
    return (x.real, x.imag)[i] if isinstance(x, Pair) else x


def whole(x: Any) -> Pair:
    """A value as a pair; a real one has an imaginary part of 0."""
    return x if isinstance(x, Pair) else Pair(x, spread(
        np.zeros((), dtype_of(x).numpy), shape_of(x)))


# ---- part by part ------------------------------------------------------------------------------

def _parts(ctx: Context, *xs: Any, **attrs: Any) -> Any:
    """The same operation on both parts."""
    handler, inner = HANDLERS[ctx.op.name], real_context(ctx)
    made = [handler.fn(inner, *(part(x, i) for x in xs), **attrs) for i in (0, 1)]
    if isinstance(made[0], list):
        return [Pair(a, b) for a, b in zip(*made, strict=True)]
    return Pair(*made)


for _name in ("add", "subtract", "negate", "broadcast",
              "broadcast_in_dim", "dynamic_broadcast_in_dim",
              "reshape", "dynamic_reshape", "transpose", "slice", "real_dynamic_slice", "reverse",
              "pad", "dynamic_pad", "concatenate", "gather", "dynamic_gather", "dynamic_slice",
              "dynamic_update_slice", "optimization_barrier", "select", "torch_index_select",
              "all_gather", "all_to_all", "collective_broadcast", "collective_permute"):
    PAIRED[f"stablehlo.{_name}"] = _parts


@paired("get_dimension_size")
def _size(ctx: Context, x: Pair, **attrs: Any) -> Any:
    return HANDLERS[ctx.op.name].fn(ctx, x.real, **attrs)


@paired("reduce", "reduce_window", "scatter")
def _summed(ctx: Context, *xs: Any, **attrs: Any) -> Any:
    """Sums of parts; the body of a scatter may also replace. Other bodies run on the parts."""
    body = ctx.op.regions[0]
    replaces = ctx.op.name == "stablehlo.scatter" and body.operations[0].name == "return"
    if (simple_body(body) != "add" and not replaces) or attrs.get("dimensions") == []:
        return NotImplemented
    kinds = {a.name: real_kind(a.kind) for a in body.arguments}
    real = replace(body, arguments=tuple(replace(a, kind=kinds[a.name]) for a in body.arguments))
    return _parts(replace(ctx, op=replace(ctx.op, regions=(real,))), *xs, **attrs)


@paired("constant")
def _constant(ctx: Context, *, value: Any) -> Pair:
    kind = ctx.op.signature.results[0]
    row, shape = element_type(real_kind(kind)), tuple(d or 0 for d in kind.shape or ())
    if isinstance(value.elements, bytes):
        both = array_of(value, row, (*shape, 2))
        return Pair(both[..., 0], both[..., 1])
    return Pair(*(array_of(Dense(_each(value.elements, i)), row, shape) for i in (0, 1)))


def _each(x: Any, i: int) -> Any:
    return [_each(v, i) for v in x] if isinstance(x, list) else x[i]


@paired("iota", "dynamic_iota")
def _iota(ctx: Context, *xs: Any, **attrs: Any) -> Pair:
    """0, 1, 2, … with an imaginary part of 0."""
    return whole(HANDLERS[ctx.op.name].fn(real_context(ctx), *xs, **attrs))


@paired("convert")
def _convert(ctx: Context, x: Any) -> Any:
    if not is_complex(ctx.op.signature.results[0]):
        if ctx.dtype is not dtypes.bool_:
            return cast(ctx, x.real, ctx.dtype)
        return ctx.apply(o.or_, cast(ctx, x.real, dtypes.bool_), cast(ctx, x.imag, dtypes.bool_))
    to = element_type(real_kind(ctx.op.signature.results[0]))
    pair = whole(cast(ctx, x, to) if not isinstance(x, Pair) else x)
    return Pair(cast(ctx, pair.real, to), cast(ctx, pair.imag, to))


@paired("complex")
def _complex(ctx: Context, a: Any, b: Any) -> Pair:
    return Pair(a, b)


@paired("real")
def _real_part(ctx: Context, x: Any) -> Any:
    return part(x, 0)


@paired("imag")
def _imaginary_part(ctx: Context, x: Any) -> Any:
    return whole(x).imag


# ---- arithmetic --------------------------------------------------------------------------------

@paired("multiply")
def multiply(ctx: Context, x: Pair, y: Pair) -> Pair:
    """(a + bi)(c + di)."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return Pair(ctx.apply(o.sub, ctx.apply(o.mul, a, c), ctx.apply(o.mul, b, d)),
                ctx.apply(o.add, ctx.apply(o.mul, a, d), ctx.apply(o.mul, b, c)))


@paired("divide")
def divide(ctx: Context, x: Pair, y: Pair) -> Pair:
    """x·ȳ / |y|², with y divided by its greater part first, so that no square overflows."""
    scale = ctx.apply(o.max, ctx.apply(o.abs, y.real), ctx.apply(o.abs, y.imag))
    c, d = ctx.apply(o.div, y.real, scale), ctx.apply(o.div, y.imag, scale)
    square = ctx.apply(o.mul, scale, ctx.apply(
        o.add, ctx.apply(o.mul, c, c), ctx.apply(o.mul, d, d)))
    top = multiply(ctx, x, Pair(c, ctx.apply(o.neg, d)))
    return Pair(ctx.apply(o.div, top.real, square), ctx.apply(o.div, top.imag, square))


@paired("abs")
def size(ctx: Context, x: Pair) -> Any:
    """The greater part times √(1 + ratio²), so that no square overflows; 0 stays 0."""
    a, b = ctx.apply(o.abs, x.real), ctx.apply(o.abs, x.imag)
    row = dtype_of(a).numpy
    big, small = ctx.apply(o.max, a, b), ctx.apply(o.min, a, b)
    none = ctx.apply(o.eq, big, np.zeros((), row))
    ratio = ctx.apply(o.div, small, ctx.apply(o.select, none, np.ones((), row), big, kept=(0,)))
    root = ctx.apply(o.sqrt, ctx.apply(o.add, ctx.apply(o.mul, ratio, ratio), np.ones((), row)))
    endless = ctx.apply(o.is_inf, big)
    return ctx.apply(o.select, endless, big, ctx.apply(o.mul, big, root), kept=(0,))


@paired("compare")
def _compare(ctx: Context, x: Pair, y: Pair, *, comparison_direction: str) -> Any:
    both = {"EQ": ("eq", "and_"), "NE": ("ne", "or_")}.get(comparison_direction)
    if both is None:
        raise Refused("complex numbers have no order; only EQ and NE are supported")
    same, join = (getattr(o, n) for n in both)
    return ctx.apply(join, ctx.apply(same, x.real, y.real), ctx.apply(same, x.imag, y.imag))


@paired("dot_general")
def _dot_general(ctx: Context, x: Any, y: Any, **attrs: Any) -> Pair:
    fn, inner = HANDLERS[ctx.op.name].fn, real_context(ctx)
    a, b, c, d = (part(whole(v), i) for v in (x, y) for i in (0, 1))
    return Pair(ctx.apply(o.sub, fn(inner, a, c, **attrs), fn(inner, b, d, **attrs)),
                ctx.apply(o.add, fn(inner, a, d, **attrs), fn(inner, b, c, **attrs)))
