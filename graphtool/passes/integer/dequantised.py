"""Dequantised numbers: (q - zero)·scale, found in the ops that compute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import (
    BYTES,
    Chain,
    Narrow,
    dequantising,
    is_single,
    known_array,
    maker,
    narrow,
    wrapped,
)
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Node, is_constant
from graphtool.ir.trace import Tracer


@dataclass(frozen=True)
class Real:
    """The real number (q - zero)·scale; the scale is a number or an array that broadcasts."""

    narrow: Narrow
    scale: Any

    @property
    def centred(self) -> Any:
        """q - zero, in int32."""
        wide = o.cast(self.narrow.q, dtype=dtypes.int32)
        zero = self.narrow.zero
        if isinstance(zero, Tracer) and zero.dtype is not dtypes.int32:
            zero = o.cast(zero, dtype=dtypes.int32)
        return wide if zero is None else o.sub(wide, zero)


def dequantised(x: Any) -> Real | None:
    """x as an integer times a scale; None if it is not known to be one."""
    node = maker(x)
    if node is None or x.dtype is not dtypes.float32:
        return None
    for chain in dequantising(node, x.builder.made_by):
        scale = values(wrapped(x, chain.scale))
        if (steps := _steps(x, chain)) is not None and (scale is None or is_plain(scale)):
            return Real(steps, wrapped(x, chain.scale))
    if Movement.JOINS in node.op.movement:
        return _joined(x, [wrapped(x, v) for v in node.inputs], node.attrs["axis"])
    largest = bool(node.op.traits & Trait.LARGEST)
    if node.op.movement & Movement.ONCE or largest:
        inner = dequantised(wrapped(x, node.inputs[0]))
        if inner is None:
            return None
        scale, zero = (_moved(node, v, x.ndim) for v in (inner.scale, inner.narrow.zero))
        if scale is None or (zero is None and inner.narrow.zero is not None) or (
                largest and not _positive(scale)):
            return None
        return Real(Narrow(node.op(inner.narrow.q, **node.attrs), zero), scale)
    return None


def _moved(node: Node, v: Any, rank: int) -> Any:
    """A scale or zero point after the node moved what it belongs to; None if that is not known."""
    if is_single(v):
        return v
    if v.ndim == rank and node.op.movement & Movement.PERMUTES:
        return node.op(v, **node.attrs)
    still = v.ndim == rank and node.op.movement & Movement.REVERSES and all(
        v.shape[a] == 1 for a in node.attrs["axes"])
    return v if still else None


def _joined(x: Any, parts: list[Any], axis: int) -> Real | None:
    """Parts that have one type, scale and zero point, side by side."""
    reals = [dequantised(p) for p in parts]
    first = reals[0] if reals else None
    if first is None or only(first.scale) is None or only(first.narrow.zero) is None:
        return None
    for r in reals:
        if r is None or r.narrow.q.dtype is not first.narrow.q.dtype or (
                only(r.scale) != only(first.scale)
                or only(r.narrow.zero) != only(first.narrow.zero)):
            return None
    joined = o.concat(*(r.narrow.q for r in reals if r is not None), axis=axis)
    return Real(Narrow(joined, first.narrow.zero), first.scale)


def _steps(x: Any, chain: Chain) -> Narrow | None:
    """q - zero, which has the shape of x; the zero was subtracted from integers or from floats."""
    q = wrapped(x, chain.x)
    if q.shape != x.shape:
        return None
    steps = Narrow(q) if q.dtype in BYTES else narrow(q)
    if steps is None or chain.zero is None:
        return steps
    whole = _whole(wrapped(x, chain.zero))
    return Narrow(steps.q, whole) if steps.zero is None and whole is not None else None


def _whole(zero: Any) -> Any:
    """A zero point in float32 as an integer, if it is one."""
    node = maker(zero)
    if node is not None and Trait.CONVERTS in node.op.traits and (
            source := wrapped(zero, node.inputs[0])).dtype.is_integer:
        return source
    known = known_array(zero)
    if known is None or not np.array_equal(known, np.rint(known)) or np.abs(known).max() > 255:
        return None
    return int(known.reshape(-1)[0]) if known.size == 1 else (
        zero.builder.constant(known.astype(np.int32)))


def _positive(scale: Any) -> bool:
    known = values(scale)
    return known is not None and bool((known > 0).all())


def is_plain(scale: Any) -> bool:
    """Whether these numbers times an integer of 16 bits neither overflow in float32 nor lose
    digits, as subnormal ones do."""
    size, limits = np.abs(np.asarray(scale, np.float32)), np.finfo(np.float32)
    return bool(((size == 0) | (size >= limits.tiny) & (size <= limits.max / 2**16)).all())


def values(x: Any) -> Any:
    """The values of a scale or bias. Parameters count as constant, because training through a
    rounding is impossible."""
    node = maker(x)
    if is_constant(node):
        return np.asarray(node.attrs["data"].source)
    return known_array(x)


def only(x: Any) -> float | None:
    """The single number that x holds; None counts as a zero point of 0."""
    if x is None:
        return 0.0
    known = values(x)
    return float(np.float32(known.reshape(-1)[0])) if known is not None and known.size == 1 else (
        None)
