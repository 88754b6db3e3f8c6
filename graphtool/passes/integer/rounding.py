"""Rules about a cast to bytes that quantises: what it does to numbers that are quantised already,
and what it makes superfluous."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.analysis.quantised import quantising
from graphtool.analysis.ranges import BYTES, maker, wrapped
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op
from graphtool.ir.trace import Tracer
from graphtool.passes.integer.dequantised import dequantised, only
from graphtool.rewrite.engine import family_rule
from graphtool.rewrite.engine import readers as read_times


@family_rule(o.cast)
def quantised_again(_: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """Quantising a dequantised number in the same way gives the same integer: (q - z)·s / s + z
    = q"""
    if type.dtype not in BYTES:
        return None
    x, scale, zero = _quantised(xs[0])
    real = dequantised(x)
    if real is None or real.narrow.q.dtype is not type.dtype or only(scale) is None or (
            zero is None or only(real.scale) != only(scale) or only(real.narrow.zero) != zero):
        return None
    return real.narrow.q


def _quantised(x: Any) -> tuple[Any, Any, float | None]:
    """y, s and z of x = round(y / s) + z; all are None if x is of another form."""
    found = quantising(x.value, x.builder.made) if isinstance(x, Tracer) else None
    if found is None or found.bounds:
        return None, None, None
    return wrapped(x, found.x), wrapped(x, found.scale), only(wrapped(x, found.zero))


@family_rule(o.cast)
def limits_of_bytes(op: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """cast(round(relu(x) / s) + z) = cast(round(x / s) + z), if z is the least byte; and the same
    for a clamp: the cast cuts off what lies beyond"""
    if type.dtype not in BYTES or not attrs["saturate"]:
        return None
    y, by, zero = _quantised(xs[0])
    cut, scale = maker(y), only(by)
    if cut is None or cut.op not in (o.relu, o.clamp) or zero is None or scale is None or (
            not scale > 0 or read_times(y) != 1):
        return None
    x, bounds = _cut(wrapped(y, cut.inputs[0]), cut.op, [wrapped(y, v) for v in cut.inputs[1:]])
    if x is None:
        return None
    least, most = (np.rint(np.float32(b) / np.float32(scale)) + zero for b in bounds)
    if least > type.dtype.low or most < type.dtype.high:
        return None
    steps = o.round(o.div(x, by))
    return op(steps if zero == 0 else o.add(steps, zero), **attrs)


def _cut(x: Any, op: Op, rest: list[Any]) -> tuple[Any, tuple[float, float]]:
    """What a relu or a clamp reads, and its bounds; (None, …) if a bound is no number."""
    if op is o.relu:
        return x, (0.0, float("inf"))
    ends = [only(v) for v in rest if v is not None]
    if len(ends) != 2 or None in ends:
        return None, (0.0, 0.0)
    return x, (float(ends[0] or 0.0), float(ends[1] or 0.0))
