"""Rules about a cast to bytes that quantises: what it does to numbers that are quantised already,
and what it makes superfluous."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
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
    if type.dtype not in BYTES or not isinstance(xs[0], Tracer):
        return None
    rounded, zero = _without_zero(xs[0])
    divided = maker(rounded)
    if divided is None or divided.op is not o.round:
        return None
    quotient = maker(wrapped(rounded, divided.inputs[0]))
    if quotient is None or quotient.op is not o.div:
        return None
    x, scale = (wrapped(rounded, v) for v in quotient.inputs)
    real = dequantised(x)
    if real is None or real.narrow.q.dtype is not type.dtype or only(scale) is None or (
            only(real.scale) != only(scale) or only(real.narrow.zero) != zero):
        return None
    return real.narrow.q


def _without_zero(x: Any) -> tuple[Any, float | None]:
    """The rounded number and the zero point that was added to it."""
    node = maker(x)
    if node is None or node.op is not o.add:
        return x, 0.0
    value, zero = (wrapped(x, v) for v in node.inputs)
    return value, only(zero)


@family_rule(o.cast)
def limits_of_bytes(op: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """cast(round(relu(x) / s) + z) = cast(round(x / s) + z), if z is the least byte; and the same
    for a clamp: the cast cuts off what lies beyond"""
    if type.dtype not in BYTES or not isinstance(xs[0], Tracer) or not attrs["saturate"]:
        return None
    rounded, zero = _without_zero(xs[0])
    divided = maker(rounded)
    quotient = maker(wrapped(rounded, divided.inputs[0])) if divided is not None and (
        divided.op is o.round) else None
    if quotient is None or quotient.op is not o.div or zero is None:
        return None
    y, by = (wrapped(rounded, v) for v in quotient.inputs)
    cut, scale = maker(y), only(by)
    if cut is None or cut.op not in (o.relu, o.clamp) or scale is None or not scale > 0 or (
            read_times(y) != 1):
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
