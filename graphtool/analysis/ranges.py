"""Recovers 32-bit integers as differences of 8-bit ones, and the known values of constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.interp import evaluate_op
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Node, Operand, Value, is_constant
from graphtool.ir.trace import Tracer
from graphtool.symbolic import product

Array = np.ndarray[Any, Any]
BYTES = (dtypes.uint8, dtypes.int8)
SMALL = (*BYTES, *(row for row in dtypes.TABLE if row.is_integer and row.is_packed))


@dataclass(frozen=True)
class Narrow:
    """q - zero, as int32: q has 8 bits; the zero, if there is one, is one number or broadcasts."""

    q: Any
    zero: Any = None


def maker(x: Any) -> Node | None:
    """The node that computes x; None for a graph input or a literal."""
    return x.builder.made.get(x.value) if isinstance(x, Tracer) else None


def maker_in(x: Operand, made: Mapping[Value, Node]) -> Node | None:
    """The node that computes a node's operand, where `made` has the nodes by their values."""
    return made.get(x) if isinstance(x, Value) else None


def narrow(x: Any) -> Narrow | None:
    """x as a difference of narrow numbers; None if it is not known to be one."""
    node = maker(x)
    if node is None:
        return None
    match node.op:
        case o.cast:
            return _cast(wrapped(x, node.inputs[0]))
        case o.sub:
            left, zero = (wrapped(x, v) for v in node.inputs)
            found = narrow(left)
            if found is None or found.zero is not None or left.shape != x.shape:
                return None
            return Narrow(found.q, zero)
        case _ if node.op.movement & Movement.ONCE:
            found = narrow(wrapped(x, node.inputs[0]))
            if found is None or not is_single(found.zero):
                return None
            return Narrow(node.op(found.q, **node.attrs), found.zero)
    return None


def _cast(x: Any) -> Narrow | None:
    """A widened number of a narrow type, or a cast of one between wide types."""
    if x.dtype in BYTES:
        return Narrow(x)
    if x.dtype in SMALL:
        return Narrow(o.cast(x, dtype=dtypes.int8))
    return narrow(x) if x.dtype.is_integer and x.dtype.bits >= 16 else None


def wrapped(beside: Any, x: Any) -> Any:
    """A value as a tracer of the same builder as `beside`; anything else unchanged."""
    return Tracer(x, beside.builder) if isinstance(x, Value) else x


def is_single(x: Any) -> bool:
    """Whether x is a literal, a single number, or absent."""
    return not isinstance(x, Tracer) or product(x.shape) == 1


def known_array(x: Any, depth: int = 6) -> Array | None:
    """The values, if they can be computed by at most so many ops from constants that are not
    trained."""
    if not isinstance(x, Tracer):
        return None if x is None else np.asarray(x)
    node = maker(x)
    if node is None or len(node.outputs) != 1 or Trait.WORLD in node.op.traits or depth == 0:
        return None
    if is_constant(node):
        return None if node.attrs["param"] else np.asarray(node.attrs["data"].source)
    if Trait.ELEMENTWISE not in node.op.traits and not (
            node.op.movement & (Movement.ONCE | Movement.REPEATS)):
        return None
    operands: list[Any] = []
    for v in node.inputs:
        operands.append(known_array(wrapped(x, v), depth - 1) if isinstance(v, Value) else v)
        if operands[-1] is None and v is not None:
            return None
    try:
        return evaluate_op(node.op, operands, node.attrs)[0]
    except (InputError, ValueError, TypeError, LookupError):
        return None


def within(x: Array, low: int, high: int) -> bool:
    """Whether every element of x is at least `low` and at most `high`."""
    return x.size == 0 or bool(x.min() >= low and x.max() <= high)
