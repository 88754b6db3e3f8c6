"""Quantisation as ONNX writes it: QuantizeLinear and DequantizeLinear for the ops that compute
them, MatMulNBits for products with packed weights.

Runtimes find their integer kernels by these operators. The ops of a chain become one node with an
op of this exporter; a chain of another form is written op by op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.exporters.onnx.registry import Ref, form, takes
from graphtool.exporters.onnx.writer import Writer
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant, producers
from graphtool.ir.op import Op
from graphtool.ir.prune import prune

Array = np.ndarray[Any, Any]
_BYTES = (dtypes.uint8, dtypes.int8)


def _infer(x: TensorType, **_: Any) -> TensorType:
    return x  # not used: the nodes keep the types of the nodes that they replace


QUANTIZE, DEQUANTIZE = Op("quantize_onnx", _infer), Op("dequantize_onnx", _infer)


@form("quantize_onnx", "dequantize_onnx")
def quantize(w: Writer, node: Node, x: Ref) -> Any:
    """QuantizeLinear or DequantizeLinear, with a zero point of the integers' type."""
    scale, zero, axis = (node.attrs[k] for k in ("scale", "zero", "axis"))
    op = "QuantizeLinear" if node.op is QUANTIZE else "DequantizeLinear"
    kind: DType = node.attrs["dtype"]
    points = np.full(scale.shape, zero, kind.numpy)
    return w(op, x, w.array(scale, dtypes.float32), w.array(points, kind),
             axis=axis if scale.ndim else None)


@form("linear_nbits")
def linear_nbits(w: Writer, node: Node, x: Ref, packed: Ref, scales: Ref,
                 zeros: Ref | None = None) -> Any:
    """MatMulNBits of com.microsoft; declined for zeros, and for blocks that it does not have."""
    block, bits = node.attrs["block"], node.attrs["bits"]
    takes(zeros is None and block >= 16 and block & (block - 1) == 0)
    takes(x.type.dtype is dtypes.float32 and isinstance(x.shape[1], int))
    takes(packed.shape[1] == -(-x.shape[1] // block))
    return w("MatMulNBits", x, packed, scales, domain="com.microsoft", K=x.shape[1],
             N=packed.shape[0], bits=bits, block_size=block,
             accuracy_level=4 if node.attrs["activations"] == "q8" else None)


# ---- finding the chains ------------------------------------------------------------------------

@dataclass(frozen=True)
class _Steps:
    """A scale in float32 and zero point, and the axis along which the scale varies."""

    scale: Array
    zero: int
    axis: int


def chains(graph: Graph) -> Graph:
    """The graph with one node for each chain that quantises, or the reverse."""
    made = producers(graph)
    nodes = [_quantizing(n, made) or _dequantizing(n, made) or n for n in graph.nodes]
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return prune(Graph(graph.inputs, tuple(nodes), graph.outputs))


def _node(old: Node, op: Op, x: Operand, steps: _Steps, dtype: DType) -> Node:
    return replace(old, op=op, inputs=(x,), attrs={
        "scale": steps.scale, "zero": steps.zero, "axis": steps.axis, "dtype": dtype})


def _quantizing(node: Node, made: Mapping[Value, Node]) -> Node | None:
    """cast(clamp(round(x / scale) + zero)) to bytes, with or without the clamp and the zero."""
    dtype = node.outputs[0].type.dtype if node.outputs else dtypes.float32
    if node.op is not o.cast or dtype not in _BYTES:
        return None
    v, zero = node.inputs[0], 0
    inner = _of(v, made)
    if inner is not None and inner.op is o.clamp:
        if [_number(b, made) for b in inner.inputs[1:]] != [dtype.low, dtype.high]:
            return None
        v = inner.inputs[0]
        inner = _of(v, made)
    if inner is not None and inner.op is o.add:
        term = _number(inner.inputs[1], made)
        if term is None or term != int(term) or not dtype.low <= term <= dtype.high:
            return None
        v, zero = inner.inputs[0], int(term)
        inner = _of(v, made)
    divided = _of(inner.inputs[0], made) if inner is not None and inner.op is o.round else None
    if divided is None or divided.op is not o.div:
        return None
    x, by = divided.inputs
    scale = _number(by, made)
    if scale is None or not isinstance(x, Value) or x.type.dtype is not dtypes.float32 or (
            x.type.shape != node.outputs[0].type.shape):
        return None
    return _node(node, QUANTIZE, x, _Steps(np.asarray(scale, np.float32), zero, 0), dtype)


def _dequantizing(node: Node, made: Mapping[Value, Node]) -> Node | None:
    """(cast(q) − zero)·scale of bytes, or of a constant of int32 without a zero."""
    if node.op is not o.mul or node.outputs[0].type.dtype is not dtypes.float32:
        return None
    for v, by in (node.inputs, node.inputs[::-1]):
        inner, zero = _of(v, made), 0
        if inner is not None and inner.op is o.sub:
            term = _number(inner.inputs[1], made)
            if term is None or term != int(term):
                continue
            zero = int(term)
            inner = _of(inner.inputs[0], made)
        q = inner.inputs[0] if inner is not None and inner.op is o.cast else None
        if not isinstance(q, Value) or q.type.shape != node.outputs[0].type.shape:
            continue
        kind = q.type.dtype
        whole = kind is dtypes.int32 and zero == 0 and is_constant(made.get(q))
        steps = _scale(by, q.type, made, zero)
        if steps is not None and (whole or kind in _BYTES) and kind.low <= zero <= kind.high:
            return _node(node, DEQUANTIZE, q, steps, kind)
    return None


def _scale(x: Operand, q: TensorType, made: Mapping[Value, Node], zero: int) -> _Steps | None:
    """The scale of integers of type q: one number, or one for each index of an axis."""
    single = _number(x, made)
    if single is not None:
        return _Steps(np.asarray(single, np.float32), zero, 0)
    node = _of(x, made)
    if not is_constant(node):
        return None
    scale = np.asarray(node.attrs["data"].source)
    shape = (1,) * (q.rank - scale.ndim) + scale.shape
    axes = [a for a, d in enumerate(shape) if d != 1]
    if len(axes) > 1 or len(shape) != q.rank or scale.dtype != np.float32:
        return None
    axis = axes[0] if axes else 0
    return _Steps(scale.reshape(-1), zero, axis) if shape[axis] == q.shape[axis] else None


def _of(x: Operand, made: Mapping[Value, Node]) -> Node | None:
    return made.get(x) if isinstance(x, Value) else None


def _number(x: Operand, made: Mapping[Value, Node]) -> float | None:
    """The number of a literal, or of a constant of rank 0."""
    if isinstance(x, (int, float)):
        return float(x)
    node = _of(x, made)
    if is_constant(node) and node.outputs[0].type.rank == 0 and (
            node.outputs[0].type.dtype.kind != "string"):
        return float(np.asarray(node.attrs["data"].source))
    return None
