"""Quantised arithmetic: operations on the numbers that the stored integers stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.quantised import Quantised, Scale, read_quantised
from graphtool.importers.stablehlo.driver.values import Array, dtype_of, element_type, shape_of
from graphtool.importers.stablehlo.text.types import Kind, Signature


def by_numbers(ctx: Context, fn: Callable[..., Any], xs: Sequence[Any], attrs: dict[str, Any]
               ) -> list[Any]:
    """The operation on the numbers, and its results quantised where their types are."""
    kinds = ctx.op.signature.results
    plain = Signature(tuple(map(_expressed, ctx.op.signature.operands)),
                      tuple(map(_expressed, kinds)))
    numbers = [number(ctx, x) if isinstance(x, Quantised) else x for x in xs]
    found = fn(replace(ctx, op=replace(ctx.op, signature=plain)), *numbers, **attrs)
    made = list(found) if isinstance(found, (tuple, list)) else [found]
    scales = [read_quantised(k.element) for k in kinds]
    return [x if s is None else quantise(ctx, x, s) for x, s in zip(made, scales, strict=True)]


def _expressed(kind: Kind) -> Kind:
    scale = read_quantised(kind.element)
    return kind if scale is None else Kind(scale.expressed, kind.shape)


def number(ctx: Context, x: Quantised) -> Any:
    """(stored − zero) · scale."""
    scales, zeros = _steps(x.scale, len(shape_of(x.stored)))
    to = element_type(Kind(x.scale.expressed, ()))
    real = ctx.apply(o.cast, x.stored, dtype=to, saturate=False)
    return ctx.apply(o.mul, ctx.apply(o.sub, real, zeros), scales)


def quantise(ctx: Context, x: Any, scale: Scale) -> Quantised:
    """round(x / scale) + zero, within the bounds of the type; halves go to even numbers."""
    scales, zeros = _steps(scale, len(shape_of(x)))
    row = dtype_of(x).numpy
    steps = ctx.apply(o.add, ctx.apply(o.round, ctx.apply(o.div, x, scales)), zeros)
    bounded = ctx.apply(o.min, ctx.apply(o.max, steps, np.full((), scale.low, row)),
                        np.full((), scale.high, row))
    to = element_type(Kind(scale.storage, ()))
    return Quantised(ctx.apply(o.cast, bounded, dtype=to, saturate=False), scale)


def _steps(scale: Scale, rank: int) -> tuple[Array, Array]:
    """Scales and zeros in the type of the numbers, shaped for a tensor of this rank."""
    row = element_type(Kind(scale.expressed, ())).numpy
    shape = [] if scale.axis is None else [-1 if i == scale.axis else 1 for i in range(rank)]
    return (np.array(scale.scales, row).reshape(shape), np.array(scale.zeros, row).reshape(shape))
