"""Quantised arithmetic: operations on the numbers that the stored integers stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import Quantised, Scale, read_quantised
from graphtool.importers.stablehlo.driver.values import element_type
from graphtool.importers.stablehlo.text.tree import MlirType, Signature


def by_numbers(ctx: Context, fn: Callable[..., Any], xs: Sequence[Any], attrs: dict[str, Any]
               ) -> list[Any]:
    """The operation on the numbers, and its results quantised where their types are."""
    kinds = ctx.op.signature.results
    plain = Signature(tuple(map(_expressed, ctx.op.signature.operands)),
                      tuple(map(_expressed, kinds)))
    numbers = [number(x) if isinstance(x, Quantised) else x for x in xs]
    out = fn(replace(ctx, op=replace(ctx.op, signature=plain)), *numbers, **attrs)
    results = list(out) if isinstance(out, (tuple, list)) else [out]
    scales = [read_quantised(k.element) for k in kinds]
    return [x if s is None else quantise(x, s) for x, s in zip(results, scales, strict=True)]


def _expressed(kind: MlirType) -> MlirType:
    scale = read_quantised(kind.element)
    return kind if scale is None else MlirType(scale.expressed, kind.shape)


def number(x: Quantised) -> Array:
    """(stored − zero) · scale."""
    scales, zeros = _steps(x.scale, x.stored.ndim)
    to = element_type(MlirType(x.scale.expressed, ()))
    return (x.stored.cast(to, False) - zeros) * scales  # type: ignore[no-any-return]


def quantise(x: Array, scale: Scale) -> Quantised:
    """round(x / scale) + zero, within the bounds of the type; halves go to even numbers."""
    scales, zeros = _steps(scale, x.ndim)
    bounded = o.min(o.max(o.round(x / scales) + zeros, scale.low), scale.high)
    return Quantised(bounded.cast(element_type(MlirType(scale.storage, ())), False), scale)


def _steps(scale: Scale, rank: int) -> tuple[Any, Any]:
    """Scales and zeros in the type of the numbers, shaped for a tensor of this rank."""
    row = element_type(MlirType(scale.expressed, ())).numpy
    shape = [] if scale.axis is None else [-1 if i == scale.axis else 1 for i in range(rank)]
    return (np.array(scale.scales, row).reshape(shape), np.array(scale.zeros, row).reshape(shape))
