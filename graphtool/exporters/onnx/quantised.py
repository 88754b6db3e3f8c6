"""Quantisation as ONNX writes it: QuantizeLinear and DequantizeLinear for the ops that compute
them, MatMulNBits for products with packed weights.

Runtimes find their integer kernels by these operators. The ops of a chain become one node with an
op of this exporter; a chain of another form is written op by op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.analysis.ranges import BYTES, Chain, dequantising, maker_in, quantising, to_bytes
from graphtool.dtypes import DType
from graphtool.exporters.onnx.kit import Ref, Writer, dtypes, form, takes
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant, producers
from graphtool.ir.op import Op
from graphtool.ir.replay import prune

Array = np.ndarray[Any, Any]


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

def chains(graph: Graph) -> Graph:
    """The graph with one node for each chain that quantises, or the reverse."""
    made_by = producers(graph)
    nodes = [_quantizing(n, made_by) or _dequantizing(n, made_by) or n for n in graph.nodes]
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return prune(Graph(graph.inputs, tuple(nodes), graph.outputs))


def _quantizing(node: Node, made_by: Mapping[Value, Node]) -> Node | None:
    """cast(clamp(round(x / scale) + zero)) to bytes, with or without the clamp and the zero."""
    chain = quantising(node.inputs[0], made_by) if to_bytes(node) else None
    if chain is None:
        return None
    x, y, bounds = chain.x.type, node.outputs[0].type, [_number(b, made_by) for b in chain.bounds]
    zero, scale = _zero(chain, y.dtype, made_by), _number(chain.scale, made_by)
    if bounds not in ([], [y.dtype.low, y.dtype.high]) or zero is None or scale is None or (
            x.dtype is not dtypes.float32 or x.shape != y.shape):
        return None
    return replace(node, op=QUANTIZE, inputs=(chain.x,), attrs={
        "scale": np.asarray(scale, np.float32), "zero": zero, "axis": 0, "dtype": y.dtype})


def _dequantizing(node: Node, made_by: Mapping[Value, Node]) -> Node | None:
    """(cast(q) − zero)·scale of bytes, or of a constant of int32 without a zero."""
    for chain in dequantising(node, made_by):
        q, y = chain.x.type, node.outputs[0].type
        zero, scale = _zero(chain, q.dtype, made_by), _scale(chain.scale, q, made_by)
        whole = q.dtype is dtypes.int32 and zero == 0 and is_constant(made_by.get(chain.x))
        if zero is not None and scale is not None and (whole or q.dtype in BYTES) and (
                y.dtype is dtypes.float32 and q.shape == y.shape):
            return replace(node, op=DEQUANTIZE, inputs=(chain.x,), attrs={
                "scale": scale[0], "zero": zero, "axis": scale[1], "dtype": q.dtype})
    return None


def _zero(chain: Chain, kind: DType, made_by: Mapping[Value, Node]) -> int | None:
    """The zero point as an integer of this type, 0 if it is left out; None if it is not one."""
    term = 0.0 if chain.zero is None else _number(chain.zero, made_by)
    fits = term is not None and kind.low <= term <= kind.high and term == int(term)
    return int(term) if term is not None and fits else None


def _scale(x: Operand, q: TensorType, made_by: Mapping[Value, Node]) -> tuple[Array, int] | None:
    """The scale of integers of type q in float32, and the axis along which it varies: one number,
    or one for each index of the axis."""
    single = _number(x, made_by)
    if single is not None:
        return np.asarray(single, np.float32), 0
    node = maker_in(x, made_by)
    if not is_constant(node):
        return None
    scale = np.asarray(node.attrs["data"].source)
    shape = (1,) * (q.rank - scale.ndim) + scale.shape
    axes = [a for a, d in enumerate(shape) if d != 1]
    if len(axes) > 1 or len(shape) != q.rank or scale.dtype != np.float32:
        return None
    axis = axes[0] if axes else 0
    return (scale.reshape(-1), axis) if shape[axis] == q.shape[axis] else None


def _number(x: Operand, made_by: Mapping[Value, Node]) -> float | None:
    """The number of a literal, or of a constant of rank 0."""
    if isinstance(x, (int, float)):
        return float(x)
    node = maker_in(x, made_by)
    if is_constant(node) and node.outputs[0].type.rank == 0 and (
            node.outputs[0].type.dtype.kind != "string"):
        return float(np.asarray(node.attrs["data"].source))
    return None
