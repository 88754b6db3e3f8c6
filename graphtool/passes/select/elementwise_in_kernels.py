"""Moves elementwise ops before the reshape or the interleaving that follows a kernel, so that they
can run in the kernel.

The kernel's own shape differs from the node's if pixels share a vector, if a row is an image one
pixel high, or if the depths of a volume are images. Ops whose operands would have to move elements
stay after the reshape. A transposed convolution consists of phases, whose results are interleaved:
reshaped, joined along rows and columns, and reshaped again. An op that reads nothing else but
numbers for channels is computed in each phase instead, before the elements are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Node, Operand, Value
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Dim

Shape = tuple[Dim, ...]


def follow(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Any:
    """An elementwise op in the shape of the kernel that it reads; None if its operands do not
    allow that."""
    shape = node.outputs[0].type.shape
    source = next((v for x in inputs if (v := _source(x, shape, b))), None)
    if source is None or any(_behind(x, source, b) for x in inputs):
        return None
    operands = [_operand(x, shape, source.type.shape, b) for x in inputs]
    if any(x is None and y is not None for x, y in zip(operands, inputs, strict=True)):
        return None
    return o.reshape(node.op(*operands, **node.attrs), shape=shape)


def _source(x: Operand, shape: Shape, b: Builder) -> Value | None:
    """The operand of the reshape x, if a kernel or an op that follows one made it."""
    node = b.made_by.get(x) if isinstance(x, Value) and x.type.shape == shape else None
    source = node.inputs[0] if node is not None and Movement.KEEPS in node.op.movement else None
    maker = b.made_by.get(source) if isinstance(source, Value) else None
    if not isinstance(source, Value) or maker is None or not (
            maker.op.lowering is Lowering.TEMPLATE or Trait.ELEMENTWISE in maker.op.traits):
        return None
    same = (_joined(source.type.shape, shape) or _bare(source.type.shape) == _bare(shape)
            or _images(source.type.shape, shape))
    return source if same else None


def _behind(x: Operand, source: Value, b: Builder) -> bool:
    """Whether x is made by a later kernel than the source: then the op can join that kernel
    without a reshape."""
    if not isinstance(x, Value) or _source(x, x.type.shape, b) is not None:
        return False
    pending, seen, kernels = [x], {source}, set[Value]()
    while pending:
        value = pending.pop()
        node = b.made_by.get(value)
        if node is None or value in seen:
            continue
        seen.add(value)
        if node.op.lowering is Lowering.TEMPLATE:
            kernels.add(value)
        elif Movement.KEEPS in node.op.movement or Trait.ELEMENTWISE in node.op.traits:
            pending += [v for v in node.inputs if isinstance(v, Value)]
    last = next((v for v in reversed(b.made_by) if v in kernels or v is source), source)
    return last is not source


def _joined(given: Shape, shape: Shape) -> bool:
    """Whether adjacent pixels of a row are the channels of one pixel."""
    if len(shape) != 4 or len(given) != 4 or given[:2] != shape[:2]:
        return False
    last = given[3]
    return given[2] != shape[2] and last != shape[3] and isinstance(last, int) and isinstance(
        shape[3], int) and last % shape[3] == 0


def _images(given: Shape, shape: Shape) -> bool:
    """Whether the depths of a volume are images."""
    return len(shape) == 5 and len(given) == 4 and given[1:] == shape[2:]


def _bare(shape: Shape) -> Shape:
    return tuple(d for d in shape if d != 1)


def _operand(x: Operand, shape: Shape, given: Shape, b: Builder) -> Any:
    """x as the op in the kernel's shape reads it; None if its elements would have to move."""
    if not isinstance(x, Value):
        return x
    source = _source(x, shape, b)
    if source is not None:
        return Tracer(source, b) if source.type.shape == given else None
    padded = (*(1,) * (len(shape) - x.type.rank), *x.type.shape)
    if all(d == 1 for d in padded):
        return o.reshape(Tracer(x, b), shape=())
    if _bare(given) == _bare(shape):
        kept = iter([d for d, whole in zip(padded, shape, strict=True) if whole != 1])
        return o.reshape(Tracer(x, b), shape=tuple(
            1 if whole == 1 else next(kept) for whole in given))
    channels = shape[-1]
    if padded[-1] != channels or any(d != 1 for d in padded[:-1]):
        return None
    return in_pixels(Tracer(x, b), channels, given[-1])


def in_pixels(x: Any, channels: Dim, given: Dim) -> Any:
    """Numbers for channels as those for `given` channels of a pixel that stands for several."""
    line = o.reshape(x, shape=(1, channels))
    if given == channels:
        return o.reshape(line, shape=(channels,))
    return o.reshape(o.broadcast(line, shape=(given // channels, channels)), shape=(given,))


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
    node = b.made_by.get(x)
    inner = node.inputs[0] if node is not None and Movement.KEEPS in node.op.movement else None
    return x.type.shape == shape and isinstance(inner, Value) and _side_by_side(inner, b)


def _side_by_side(x: Value, b: Builder) -> bool:
    """Whether x consists of parts side by side along another axis than that of channels."""
    node = b.made_by.get(x)
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
    maker = b.made_by.get(lead)
    if maker is None:
        return None
    if _side_by_side(lead, b):
        rows = [_parts(x, lead, maker, b) for x in inputs]
        if any(row is None for row in rows):
            return None
        parts = [_moved(node, slices, part, b) for part, *slices in zip(
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
    other = b.made_by.get(x)
    same = other is not None and other.op is maker.op and other.attrs == maker.attrs and [
        v.type.shape for v in other.inputs if isinstance(v, Value)] == [
        v.type.shape for v in maker.inputs if isinstance(v, Value)]
    return other.inputs if other is not None and same else None


def _before(x: Operand, lead: Value, source: Value, b: Builder) -> Operand:
    """An operand before the reshape of `source` to `lead`; None if it has no such form."""
    if not isinstance(x, Value):
        return x
    if x.type.shape == lead.type.shape:
        node = b.made_by.get(x)
        inner = node.inputs[0] if node is not None and Movement.KEEPS in node.op.movement else None
        return inner if isinstance(inner, Value) and (
            inner.type.shape == source.type.shape) else None
    given, channels = source.type.shape[-1], lead.type.shape[-1]
    if not x.type.rank or given == channels:
        return x
    if not isinstance(given, int) or not isinstance(channels, int) or given % channels:
        return None
    many: Tracer = in_pixels(Tracer(x, b), channels, given)
    return many.value
