"""Moves elementwise ops before the interleaving of phases, so that they can run in their kernels.

A transposed convolution consists of phases, whose results are interleaved: reshaped, joined along
rows and columns, and reshaped again. An op that reads nothing else but numbers for channels is
computed in each phase instead, before the elements are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Node, Operand, Value
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.select.trailing_elementwise import in_pixels
from graphtool.symbolic import Dim


def in_phases(node: Node, inputs: Sequence[Operand], b: Builder) -> Any:
    """The elementwise op, interleaved from its phases; None if its operands are neither phases of
    kernels nor numbers for channels."""
    if _widens(node):
        return None
    shape = node.outputs[0].type.shape
    lead = next((x for x in inputs if isinstance(x, Value) and _interleaved(x, shape, b)), None)
    if lead is None:
        return None
    operands = [x if not isinstance(x, Value) or x.type.shape == shape
                else _channels(x, shape[-1], b) for x in inputs]
    if any(x is None and y is not None for x, y in zip(operands, inputs, strict=True)):
        return None
    return _moved(node, operands, lead, b)


def _widens(node: Node) -> bool:
    """Whether the result has more bytes: its reader does this as well, or wants the narrow
    numbers."""
    return all(x.type.dtype.bytes < node.outputs[0].type.dtype.bytes for x in node.inputs
               if isinstance(x, Value))


def _interleaved(x: Value, shape: tuple[Dim, ...], b: Builder) -> bool:
    node = b.made.get(x)
    inner = node.inputs[0] if node is not None and Movement.KEEPS in node.op.movement else None
    return x.type.shape == shape and isinstance(inner, Value) and _joined(inner, b)


def _joined(x: Value, b: Builder) -> bool:
    """Whether x consists of parts side by side along another axis than that of channels."""
    node = b.made.get(x)
    return node is not None and Movement.JOINS in node.op.movement and (
        node.attrs["axis"] < x.type.rank - 1)


def _channels(x: Value, channels: Dim, b: Builder) -> Value | None:
    """x as [channels], or as a scalar; None if it is neither."""
    *lead, last = (1, *x.type.shape)
    if any(d != 1 for d in lead) or last not in (1, channels):
        return None
    y: Tracer = o.reshape(Tracer(x, b), shape=() if last == 1 else (channels,))
    return y.value


def _moved(node: Node, inputs: Sequence[Operand], lead: Value, b: Builder) -> Any:
    """The op on these operands, each of the shape of `lead` or numbers for channels."""
    maker = b.made.get(lead)
    if maker is None:
        return None
    if _joined(lead, b):
        rows = [_parts(x, lead, maker, b) for x in inputs]
        if any(row is None for row in rows):
            return None
        parts = [_moved(node, own, part, b) for part, *own in zip(
            maker.inputs, *(row for row in rows if row is not None), strict=True)]
        return None if any(p is None for p in parts) else o.concat(*parts, **maker.attrs)
    if Movement.KEEPS in maker.op.movement:
        source = maker.inputs[0]
        assert isinstance(source, Value)
        inner = [_before(x, lead, source, b) for x in inputs]
        if any(x is None and y is not None for x, y in zip(inner, inputs, strict=True)):
            return None
        y = _moved(node, inner, source, b)
        return None if y is None else maker.op(y, **maker.attrs)
    if maker.op.lowering is Lowering.TEMPLATE or Trait.ELEMENTWISE in maker.op.traits:
        return node.op(*(Tracer(x, b) if isinstance(x, Value) else x for x in inputs),
                       **node.attrs)
    return None


def _parts(x: Operand, lead: Value, maker: Node, b: Builder) -> Sequence[Operand] | None:
    """The parts of an operand where `lead` has its own."""
    if not isinstance(x, Value) or x.type.shape != lead.type.shape:
        return [x] * len(maker.inputs)
    own = b.made.get(x)
    same = own is not None and own.op is maker.op and own.attrs == maker.attrs and [
        v.type.shape for v in own.inputs if isinstance(v, Value)] == [
        v.type.shape for v in maker.inputs if isinstance(v, Value)]
    return own.inputs if own is not None and same else None


def _before(x: Operand, lead: Value, source: Value, b: Builder) -> Operand:
    """An operand before the reshape of `source` to `lead`; None if it has no such form."""
    if not isinstance(x, Value):
        return x
    if x.type.shape == lead.type.shape:
        own = b.made.get(x)
        inner = own.inputs[0] if own is not None and Movement.KEEPS in own.op.movement else None
        return inner if isinstance(inner, Value) and (
            inner.type.shape == source.type.shape) else None
    given, channels = source.type.shape[-1], lead.type.shape[-1]
    if not x.type.rank or given == channels:
        return x
    if not isinstance(given, int) or not isinstance(channels, int) or given % channels:
        return None
    many: Tracer = in_pixels(Tracer(x, b), channels, given)
    return many.value
