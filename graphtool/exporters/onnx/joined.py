"""Joins several nodes that are one node in ONNX.

They are a convolution with its bias, and a transposed convolution with its original weights, which
our importer had rearranged. The joined nodes have private ops of this exporter, which decompose
into the original nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.exporters.onnx import products
from graphtool.exporters.onnx.quantised import DEQUANTIZE
from graphtool.exporters.onnx.registry import Ref, form, takes
from graphtool.exporters.onnx.writer import Writer
from graphtool.io.weights import weight
from graphtool.ir.graph import (
    Graph,
    Node,
    TensorType,
    Value,
    is_constant,
    producers,
    use_counts,
)
from graphtool.ir.op import OPS, Op, evaluate
from graphtool.ir.prune import prune


def _biased(y: Any, bias: Any) -> Any:
    return y if bias is None else y + o.reshape(
        bias, shape=(1, bias.shape[0], *(1,) * (y.ndim - 2)))


def _plain(x: Any, k: Any, bias: Any = None, **attrs: Any) -> Any:
    return _biased(o.conv(x, k, **attrs), bias)


def _as_conv(x: Any, k: Any, bias: Any = None, **attrs: Any) -> Any:
    return _biased(o.conv(x, products.swapped(k, attrs["groups"]), **attrs), bias)


def _infer(x: TensorType, *_: Any, **attrs: Any) -> TensorType:
    return x  # not used: the joined nodes keep the types of the nodes that they replace


JOINED = Op("conv_joined", _infer, decompose=_plain)
TRANSPOSED = Op("conv_transposed", _infer, decompose=_as_conv)


@form("conv_joined")
def conv_joined(w: Writer, node: Node, x: Ref, k: Ref, bias: Ref) -> Any:
    """Conv or ConvTranspose with a bias; declined if the conv alone would need other nodes."""
    before = len(w.nodes)
    name = products.conv(w, node, x, k)
    made = next((n for n in reversed(w.nodes[before:]) if name in n.output), None)
    takes(made is not None and made.op_type in ("Conv", "ConvTranspose"))
    made.input.append(bias.name)  # type: ignore[union-attr]
    return name


@form("conv_transposed")
def conv_transposed(w: Writer, node: Node, x: Ref, k: Ref, bias: Ref | None = None) -> Any:
    """ConvTranspose with an optional bias; k is in ONNX's layout, [in, out/group, …]."""
    return products.transposed(w, node, x, k, bias)


# ---- finding such nodes
# ---------------------------------------------------------------------------

def join(graph: Graph) -> Graph:
    """The graph with a joined node for each conv that has a bias or is a transposed one."""
    made, uses, swapped = producers(graph), use_counts(graph), dict[Value, tuple[Node, Node]]()
    flat: dict[Value, Node] = {}
    nodes = list(graph.nodes)
    for i, node in enumerate(nodes):
        match node.op.name:
            case "conv":
                nodes[i] = _transposed(node, made, swapped)
            case "add":
                nodes[i] = _with_bias(node, made, uses, swapped, flat)
    weights = [*(n for pair in swapped.values() for n in pair), *flat.values()]
    return prune(Graph(graph.inputs, (*weights, *nodes), graph.outputs))


def _with_bias(add: Node, made: dict[Value, Node], uses: dict[Value, int],
               swapped: dict[Value, tuple[Node, Node]], flat: dict[Value, Node]) -> Node:
    for y, term in (add.inputs, add.inputs[::-1]):
        conv, wide = (made.get(v) if isinstance(v, Value) else None for v in (y, term))
        if conv is None or wide is None or conv.op.name != "conv" or uses[conv.outputs[0]] > 1 \
                or conv.attrs["channels_last"]:
            continue
        bias = _bias(wide, conv, flat)
        if bias is not None:
            inner = _transposed(conv, made, swapped)
            op = JOINED if inner is conv else TRANSPOSED
            return replace(conv, op=op, inputs=(*inner.inputs, bias), outputs=add.outputs)
    return add


def _bias(wide: Node, conv: Node, flat: dict[Value, Node]) -> Value | None:
    """What the node makes [1, channels, 1, …] or [channels, 1, …] of: an operand, or a constant
    that joins `flat`."""
    kernel, found = conv.inputs[1], wide.outputs[0]
    channels = kernel.type.shape[:1] if isinstance(kernel, Value) else ()
    shape = (*channels, *(1,) * (conv.outputs[0].type.rank - 2))
    if found.type.shape not in (shape, (1, *shape)):
        return None
    if is_constant(wide):
        if found not in flat:
            vector = replace(found, type=TensorType(found.type.dtype, channels))
            held = wide.attrs["data"]
            flat[found] = replace(wide, outputs=(vector,), attrs={
                **wide.attrs, "data": weight(np.asarray(held.source).reshape(-1))})
        return flat[found].outputs[0]
    bias = wide.inputs[0] if wide.op.name == "reshape" else None
    return bias if isinstance(bias, Value) and bias.type.shape == channels else None


def _transposed(conv: Node, made: dict[Value, Node],
                swapped: dict[Value, tuple[Node, Node]]) -> Node:
    """A conv_transposed on the original weights, if the kernel is only a rearrangement of them; or
    on integers in ONNX's layout, which join `swapped` with the node that dequantises them."""
    kernel = conv.inputs[1]
    if not products.is_transposed(conv) or not isinstance(kernel, Value):
        return conv
    pair = swapped.get(kernel) or _swapped(kernel, made, conv.attrs["groups"])
    if pair is not None:
        swapped[kernel] = pair
        return replace(conv, op=TRANSPOSED, inputs=(conv.inputs[0], *pair[1].outputs))
    steps: list[Node] = []
    v = kernel
    while (node := made.get(v)) is not None and node.op.name in ("reverse", "transpose", "reshape"):
        steps.append(node)
        (v,) = (x for x in node.inputs if isinstance(x, Value))
        if steps and v.type.rank == kernel.type.rank and _reorders(v, steps, conv.attrs["groups"]):
            return replace(conv, op=TRANSPOSED, inputs=(conv.inputs[0], v))
    return conv


def _swapped(kernel: Value, made: dict[Value, Node], groups: int) -> tuple[Node, Node] | None:
    """Constant integers in ONNX's layout, and the node that dequantises them: runtimes look for a
    scale for each output channel right before the product. With groups there is no such axis."""
    real = made.get(kernel)
    held = made.get(real.inputs[0]) if real is not None and real.op is DEQUANTIZE else None  # type: ignore[arg-type]
    if real is None or not is_constant(held) or (real.attrs["scale"].ndim and (
            groups > 1 or real.attrs["axis"])):
        return None
    whole = products.swapped(np.asarray(held.attrs["data"].source), groups)
    values = [replace(v, type=TensorType(v.type.dtype, whole.shape))
              for v in (*held.outputs, kernel)]
    return (replace(held, attrs={**held.attrs, "data": weight(whole)}, outputs=tuple(values[:1])),
            replace(real, inputs=tuple(values[:1]),
                    attrs={**real.attrs, "axis": 1}, outputs=tuple(values[1:])))


def _reorders(v: Value, steps: list[Node], groups: int) -> bool:
    """Whether the steps rearrange v's elements as `products.swapped` does."""
    shape = [d for d in v.type.shape if isinstance(d, int)]
    if len(shape) < v.type.rank or shape[0] % groups:
        return False
    numbers = x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    for node in reversed(steps):
        x = evaluate(OPS[node.op.name], [x], node.attrs)
    return np.array_equal(x, products.swapped(numbers, groups))
