"""Rules about a cast to bytes that quantises: what it does to numbers that are quantised already,
and what it makes superfluous."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.analysis.ranges import BYTES, quantising, wrapped
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op
from graphtool.ir.trace import Tracer
from graphtool.passes.integer.dequantised import dequantised, only
from graphtool.rewrite.engine import family_rule
from graphtool.rewrite.engine import readers as read_times
from graphtool.rewrite.patterns import bindings, pattern


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
    cut, scale = _cut(y), only(by)
    if cut is None or zero is None or scale is None or not scale > 0 or read_times(y) != 1:
        return None
    x, bounds = cut
    least, most = (np.rint(np.float32(b) / np.float32(scale)) + zero for b in bounds)
    if least > type.dtype.low or most < type.dtype.high:
        return None
    steps = o.round(o.div(x, by))
    return op(steps if zero == 0 else o.add(steps, zero), **attrs)


_RELU = pattern(lambda x: o.relu(x))
_CLAMP = pattern(lambda x, low, high: o.clamp(x, low, high))


def _cut(y: Any) -> tuple[Any, tuple[float, float]] | None:
    """What a relu or a clamp reads that makes y, and its bounds; None if a bound is no number."""
    if not isinstance(y, Tracer):
        return None
    look = y.builder.made.get
    for env in bindings(_RELU, y.value, look):
        return wrapped(y, env["x"]), (0.0, float("inf"))
    for env in bindings(_CLAMP, y.value, look):
        low, high = (None if v is None else only(wrapped(y, v)) for v in (env["low"], env["high"]))
        if low is not None and high is not None:
            return wrapped(y, env["x"]), (low, high)
    return None
