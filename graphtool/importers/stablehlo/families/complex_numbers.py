"""Complex numbers as pairs of tensors: arithmetic, movement part by part, Fourier transforms.

A graph has no complex type, so an input, an output or a carried value cannot be complex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.pairs import PAIRED, Pair, is_complex, real_kind
from graphtool.importers.stablehlo.driver.registry import HANDLERS, Refused
from graphtool.importers.stablehlo.driver.values import dtype_of, element_type, shape_of, spread
from graphtool.importers.stablehlo.families.create import array_of
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints, transposed
from graphtool.importers.stablehlo.families.reduce import simple_body
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.types import Signature


def _paired(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        PAIRED.update({f"stablehlo.{n}": fn for n in names})
        return fn
    return declare


def _real(ctx: Context) -> Context:
    """The context of the operation on one part: its complex results are real."""
    kinds = tuple(map(real_kind, ctx.op.signature.results))
    return replace(ctx, op=replace(ctx.op, signature=Signature(ctx.op.signature.operands, kinds)))


def _part(x: Any, i: int) -> Any:
    return (x.real, x.imag)[i] if isinstance(x, Pair) else x


def _whole(x: Any) -> Pair:
    """A value as a pair; a real one has an imaginary part of 0."""
    return x if isinstance(x, Pair) else Pair(x, spread(
        np.zeros((), dtype_of(x).numpy), shape_of(x)))


# ---- part by part ------------------------------------------------------------------------------

def _parts(ctx: Context, *xs: Any, **attrs: Any) -> Any:
    """The same operation on both parts."""
    handler, inner = HANDLERS[ctx.op.name], _real(ctx)
    made = [handler.fn(inner, *(_part(x, i) for x in xs), **attrs) for i in (0, 1)]
    if isinstance(made[0], list):
        return [Pair(a, b) for a, b in zip(*made, strict=True)]
    return Pair(*made)


for _name in ("add", "subtract", "negate", "broadcast_in_dim", "dynamic_broadcast_in_dim",
              "reshape", "dynamic_reshape", "transpose", "slice", "real_dynamic_slice", "reverse",
              "pad", "concatenate", "gather", "dynamic_gather", "dynamic_slice",
              "dynamic_update_slice", "optimization_barrier", "select"):
    PAIRED[f"stablehlo.{_name}"] = _parts


@_paired("reduce", "reduce_window", "scatter")
def _summed(ctx: Context, *xs: Any, **attrs: Any) -> Any:
    """Sums of parts; the body of a scatter may also replace."""
    body = ctx.op.regions[0]
    replaces = ctx.op.name == "stablehlo.scatter" and body.operations[0].name == "return"
    if simple_body(body) != "add" and not replaces:
        raise Refused("of complex numbers only sums are supported")
    kinds = {a.name: real_kind(a.kind) for a in body.arguments}
    real = replace(body, arguments=tuple(replace(a, kind=kinds[a.name]) for a in body.arguments))
    return _parts(replace(ctx, op=replace(ctx.op, regions=(real,))), *xs, **attrs)


@_paired("constant")
def _constant(ctx: Context, *, value: Any) -> Pair:
    kind = ctx.op.signature.results[0]
    row, shape = element_type(real_kind(kind)), tuple(d or 0 for d in kind.shape or ())
    if isinstance(value.elements, bytes):
        both = array_of(value, row, (*shape, 2))
        return Pair(both[..., 0], both[..., 1])
    return Pair(*(array_of(Dense(_each(value.elements, i)), row, shape) for i in (0, 1)))


def _each(x: Any, i: int) -> Any:
    return [_each(v, i) for v in x] if isinstance(x, list) else x[i]


@_paired("convert")
def _convert(ctx: Context, x: Any) -> Any:
    if not is_complex(ctx.op.signature.results[0]):
        return cast(ctx, x.real, ctx.dtype)
    to = element_type(real_kind(ctx.op.signature.results[0]))
    pair = _whole(cast(ctx, x, to) if not isinstance(x, Pair) else x)
    return Pair(cast(ctx, pair.real, to), cast(ctx, pair.imag, to))


@_paired("complex")
def _complex(ctx: Context, a: Any, b: Any) -> Pair:
    return Pair(a, b)


@_paired("real")
def _real_part(ctx: Context, x: Any) -> Any:
    return _part(x, 0)


@_paired("imag")
def _imaginary_part(ctx: Context, x: Any) -> Any:
    return _whole(x).imag


# ---- arithmetic --------------------------------------------------------------------------------

@_paired("multiply")
def _multiply(ctx: Context, x: Pair, y: Pair) -> Pair:
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return Pair(ctx.apply(o.sub, ctx.apply(o.mul, a, c), ctx.apply(o.mul, b, d)),
                ctx.apply(o.add, ctx.apply(o.mul, a, d), ctx.apply(o.mul, b, c)))


@_paired("divide")
def _divide(ctx: Context, x: Pair, y: Pair) -> Pair:
    """x·ȳ / |y|², with y divided by its greater part first, so that no square overflows."""
    scale = ctx.apply(o.max, ctx.apply(o.abs, y.real), ctx.apply(o.abs, y.imag))
    c, d = ctx.apply(o.div, y.real, scale), ctx.apply(o.div, y.imag, scale)
    square = ctx.apply(o.mul, scale, ctx.apply(
        o.add, ctx.apply(o.mul, c, c), ctx.apply(o.mul, d, d)))
    top = _multiply(ctx, x, Pair(c, ctx.apply(o.neg, d)))
    return Pair(ctx.apply(o.div, top.real, square), ctx.apply(o.div, top.imag, square))


@_paired("abs")
def _abs(ctx: Context, x: Pair) -> Any:
    """The greater part times √(1 + ratio²), so that no square overflows; 0 stays 0."""
    a, b = ctx.apply(o.abs, x.real), ctx.apply(o.abs, x.imag)
    row = dtype_of(a).numpy
    big, small = ctx.apply(o.max, a, b), ctx.apply(o.min, a, b)
    none = ctx.apply(o.eq, big, np.zeros((), row))
    ratio = ctx.apply(o.div, small, ctx.apply(o.select, none, np.ones((), row), big, kept=(0,)))
    root = ctx.apply(o.sqrt, ctx.apply(o.add, ctx.apply(o.mul, ratio, ratio), np.ones((), row)))
    return ctx.apply(o.mul, big, root)


@_paired("exponential")
def _exponential(ctx: Context, x: Pair) -> Pair:
    size = ctx.apply(o.exp, x.real)
    return Pair(ctx.apply(o.mul, size, ctx.apply(o.cos, x.imag)),
                ctx.apply(o.mul, size, ctx.apply(o.sin, x.imag)))


@_paired("log")
def _log(ctx: Context, x: Pair) -> Pair:
    return Pair(ctx.apply(o.log, _abs(ctx, x)), ctx.apply(o.atan2, x.imag, x.real))


@_paired("compare")
def _compare(ctx: Context, x: Pair, y: Pair, *, comparison_direction: str) -> Any:
    both = {"EQ": ("eq", "and_"), "NE": ("ne", "or_")}.get(comparison_direction)
    if both is None:
        raise Refused("complex numbers have no order; only EQ and NE are supported")
    same, join = (getattr(o, n) for n in both)
    return ctx.apply(join, ctx.apply(same, x.real, y.real), ctx.apply(same, x.imag, y.imag))


@_paired("dot_general")
def _dot_general(ctx: Context, x: Any, y: Any, **attrs: Any) -> Pair:
    fn, inner = HANDLERS[ctx.op.name].fn, _real(ctx)
    a, b, c, d = (_part(_whole(v), i) for v in (x, y) for i in (0, 1))
    return Pair(ctx.apply(o.sub, fn(inner, a, c, **attrs), fn(inner, b, d, **attrs)),
                ctx.apply(o.add, fn(inner, a, d, **attrs), fn(inner, b, c, **attrs)))


# ---- Fourier transforms ------------------------------------------------------------------------

@_paired("fft")
def _fft(ctx: Context, x: Any, *, fft_type: str, fft_length: Any) -> Any:
    """A transform over the last axes: complex, or from and to real numbers along the last one."""
    lengths, rank = ints(fft_length), len(shape_of(_part(x, 0)))
    axes = list(range(rank - len(lengths), rank))
    inverse = fft_type in ("IFFT", "IRFFT")
    total = float(np.prod(lengths))
    if fft_type == "RFFT":
        pair = Pair(*o.fourier(ctx.tensor(x), half=True))
        return _along(ctx, pair, axes[:-1], False)
    whole = _whole(x)
    if fft_type == "IRFFT":
        pair = _along(ctx, whole, axes[:-1], True)
        line = o.fourier_real(ctx.tensor(pair.real), ctx.tensor(pair.imag), size=lengths[-1])
        return ctx.apply(o.div, line, np.full((), total, dtype_of(line).numpy))
    pair = _along(ctx, whole, axes, inverse)
    if not inverse:
        return pair
    share = np.full((), total, dtype_of(pair.real).numpy)
    return Pair(ctx.apply(o.div, pair.real, share), ctx.apply(o.div, pair.imag, share))


def _along(ctx: Context, x: Pair, axes: list[int], inverse: bool) -> Pair:
    """The transform along each of the axes, not divided by their lengths."""
    real, imag = ctx.tensor(x.real), ctx.tensor(x.imag)
    for axis in axes:
        order = [*(i for i in range(real.ndim) if i != axis), axis]
        back = [order.index(i) for i in range(real.ndim)]
        made = o.fourier(transposed(ctx, real, order), transposed(ctx, imag, order),
                         inverse=inverse)
        real, imag = (transposed(ctx, v, back) for v in made)
    return Pair(real, imag)
