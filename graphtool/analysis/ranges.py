"""Small integers in a graph: 32-bit ones as differences of 8-bit ones, known values of constants,
and the chains that quantise numbers to bytes and turn bytes back into real numbers.

Which scales and zero points fit is for the readers of this module to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    return x.builder.made_by.get(x.value) if isinstance(x, Tracer) else None


def maker_in(x: Operand, made_by: Mapping[Value, Node]) -> Node | None:
    """The node that computes a node's operand, where `made_by` has the nodes by their values."""
    return made_by.get(x) if isinstance(x, Value) else None


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
            inner = narrow(left)
            if inner is None or inner.zero is not None or left.shape != x.shape:
                return None
            return Narrow(inner.q, zero)
        case _ if node.op.movement & Movement.ONCE:
            inner = narrow(wrapped(x, node.inputs[0]))
            if inner is None or not is_single(inner.zero):
                return None
            return Narrow(node.op(inner.q, **node.attrs), inner.zero)
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


_FORMS = ((), (o.add,), (o.clamp,), (o.clamp, o.add))  # between a cast and a round, last first


@dataclass(frozen=True)
class Chain:
    """clamp(round(x / scale) + zero, *bounds), or (cast(x) - zero)·scale; a zero that is left out
    is None, a clamp that is left out has no bounds."""

    x: Value
    scale: Operand
    zero: Operand
    bounds: tuple[Operand, ...] = ()


def to_bytes(node: Node) -> bool:
    """Whether the node is a cast to bytes: the last op of a chain that quantises."""
    return Trait.CONVERTS in node.op.traits and node.outputs[0].type.dtype in BYTES


def quantising(x: Operand, made_by: Mapping[Value, Node]) -> Chain | None:
    """The chain that computes x, the operand of a cast to bytes; None if it is of another form."""
    rounded, after = rounding(x, made_by)
    divided = maker_in(rounded.inputs[0], made_by) if rounded is not None else None
    terms = {n.op: n.inputs[1:] for n in after}
    if divided is None or divided.op is not o.div or tuple(n.op for n in after) not in _FORMS or (
            not isinstance(real := divided.inputs[0], Value)):
        return None
    zero, *_ = terms.get(o.add, (None,))
    return Chain(real, divided.inputs[1], zero, terms.get(o.clamp, ()))


def rounding(x: Operand, made_by: Mapping[Value, Node]) -> tuple[Node | None, list[Node]]:
    """The `round` that x is computed from, and the sums and clamps that follow it, last first."""
    after = []
    while (node := maker_in(x, made_by)) is not None and node.op in (o.add, o.clamp):
        after.append(node)
        x = node.inputs[0]
    return node if node is not None and node.op is o.round else None, after


def dequantising(node: Node, made_by: Mapping[Value, Node]) -> Iterator[Chain]:
    """Each way to read the node as a product of a number that was cast and of its scale."""
    for steps, scale in (node.inputs, node.inputs[::-1]) if node.op is o.mul else ():
        inner, zero = maker_in(steps, made_by), None
        if inner is not None and inner.op is o.sub:
            steps, zero = inner.inputs
            inner = maker_in(steps, made_by)
        if inner is not None and Trait.CONVERTS in inner.op.traits and isinstance(
                q := inner.inputs[0], Value):
            yield Chain(q, scale, zero)
