"""Matrix products and convolutions, and several nodes that are one in ONNX: a convolution with its
bias, and a transposed one with its original weights, which our importer had rearranged.

The joined nodes have private ops of this exporter, which decompose into the original nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.exporters.onnx.elementwise import cast, computed
from graphtool.exporters.onnx.kit import Ref, Writer, dtypes, form, o, takes
from graphtool.exporters.onnx.quantised import DEQUANTIZE
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Node, TensorType, Value, is_constant, producers, use_counts
from graphtool.ir.op import OPS, Op, evaluate
from graphtool.ir.replay import prune
from graphtool.ops.indexing import conv_defaults, dilate


def swap_last_axes(w: Writer, x: Ref) -> Any:
    """Transpose of x that swaps its last two axes."""
    rank = len(x.shape)
    return w("Transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))


@form("matmul")
def matmul(w: Writer, node: Node, a: Ref, b: Ref) -> Any:
    """MatMul; Gemm for transposed float matrices, MatMulInteger for int8 to int32."""
    left, right, to = (node.attrs[k] for k in ("transpose_a", "transpose_b", "dtype"))
    dtype, result = a.type.dtype, node.outputs[0].type.dtype
    if (left or right) and dtype.is_float and dtype is result and len(a.shape) == len(b.shape) == 2:
        return w("Gemm", a, b, transA=int(left) or None, transB=int(right) or None)
    x, y = swap_last_axes(w, a) if left else a.name, swap_last_axes(w, b) if right else b.name
    if to is dtypes.int32 and dtype.bits == 8:
        return w("MatMulInteger", x, y)
    if result is not dtype:
        x, y = cast(w, x, result), cast(w, y, result)
    return computed(w, "MatMul", result, [x, y])


@form("linear")
def linear(w: Writer, node: Node, x: Ref, weights: Ref, bias: Ref | None = None) -> Any:
    """Gemm for a matrix x; else MatMul and Add."""
    takes(len(x.shape) >= 2)
    if len(x.shape) == 2 and x.type.dtype.is_float:
        return w("Gemm", x, weights, bias, transB=1)
    y = w("MatMul", x, swap_last_axes(w, weights))
    return y if bias is None else w("Add", y, bias)


@form("conv")
def conv(w: Writer, node: Node, x: Ref, k: Ref) -> Any:
    """Conv if only strides and kernel dilation are used; ConvTranspose if the input is dilated;
    any other conv is written as one of them with pads, groups and transposes around it."""
    attrs = node.attrs
    strides, padding, lhs, rhs = _geometry(node)
    if attrs["channels_last"] or attrs["batch_groups"] > 1:
        return w.restate(lambda x, k: _usual(x, k, dict(attrs)), [x, k])
    if is_transposed(node):
        kernel, = w.restate(lambda k: swapped(k, attrs["groups"]), [k])
        return transposed(w, node, x, kernel)
    if not _plain(padding) or set(lhs) != {1}:
        return w.restate(lambda x, k: _padded(x, k, dict(attrs), padding, lhs), [x, k])
    takes(all(isinstance(d, int) for d in k.shape[2:]))
    given = {"strides": strides, "dilations": rhs, "group": attrs["groups"],
             "kernel_shape": k.shape[2:],
             "pads": [p[0] for p in padding] + [p[1] for p in padding]}
    dtype, result = x.type.dtype, node.outputs[0].type.dtype
    if dtype.bits == 8 and result is dtypes.int32:
        return w("ConvInteger", x, k, **given)
    if result is not dtype or not dtype.is_float:
        real = result if result.is_float else dtypes.float64
        y = w("Conv", cast(w, x, real), cast(w, k, real), **given)
        return y if real is result else cast(w, y, result)
    return w("Conv", x, k, **given)


def _geometry(node: Node) -> Any:
    a = node.attrs
    return conv_defaults(node.outputs[0].type.rank - 2, a["strides"], a["padding"],
                         a["lhs_dilation"], a["rhs_dilation"])


def _plain(padding: Any) -> bool:
    return all(isinstance(d, int) and d >= 0 for pair in padding for d in pair)


def _usual(x: Any, k: Any, attrs: dict[str, Any]) -> Any:
    """The same conv with channels at axis 1, and batch groups written as channel groups."""
    n, groups = x.ndim - 2, attrs["batch_groups"]
    inner = {**attrs, "channels_last": False, "batch_groups": 1}
    if attrs["channels_last"]:
        x = o.transpose(x, perm=(0, n + 1, *range(1, n + 1)))
    if groups > 1:
        size, channels, space = x.shape[0] // groups, x.shape[1], x.shape[2:]
        apart = o.transpose(o.reshape(x, shape=(groups, size, channels, *space)),
                            perm=(1, 0, 2, *range(3, n + 3)))
        x = o.reshape(apart, shape=(size, groups * channels, *space))
        inner["groups"] = groups
    y = o.conv(x, k, **inner)
    return o.transpose(y, perm=(0, *range(2, n + 2), 1)) if attrs["channels_last"] else y


def _padded(x: Any, k: Any, attrs: dict[str, Any], padding: Any, lhs: Any) -> Any:
    spread = o.pad(x, lo=(0, 0, *(p[0] for p in padding)), hi=(0, 0, *(p[1] for p in padding)),
                   interior=(0, 0, *(d - 1 for d in lhs)))
    return o.conv(spread, k, **{**attrs, "padding": None, "lhs_dilation": None, "absent": False})


# ---- transposed convolution --------------------------------------------------------------------

def is_transposed(node: Node) -> bool:
    """Whether a conv can be a ConvTranspose: its pads would not be negative, and its output
    padding would be below the stride."""
    x, k = (v.type for v in node.inputs[:2] if isinstance(v, Value))
    strides, padding, lhs, rhs = _geometry(node)
    spread = node.attrs["absent"] or set(lhs) != {1}
    if set(strides) != {1} or not spread or not x.dtype.is_float or \
            node.attrs["channels_last"] or node.attrs["batch_groups"] > 1 or 0 in x.shape or \
            node.outputs[0].type.dtype is not x.dtype:
        return False
    for d, r, s, (lo, hi) in zip(k.shape[2:], rhs, lhs, padding, strict=True):
        edge = dilate(d, r) - 1
        if not (isinstance(lo, int) and isinstance(hi, int) and isinstance(edge, int)
                and lo <= edge and hi - edge < max(s, r)):
            return False
    return True


def transposed(w: Writer, node: Node, x: Ref, k: Ref, bias: Ref | None = None) -> Any:
    """ConvTranspose; k is in ONNX's layout, [in, out/group, …]."""
    _, padding, lhs, rhs = _geometry(node)
    window = [d for d in k.shape[2:] if isinstance(d, int)]
    edges = [(d - 1) * r for d, r in zip(window, rhs, strict=True)]
    end = [e - hi for e, (_, hi) in zip(edges, padding, strict=True)]
    return w("ConvTranspose", x, k, bias, strides=lhs, dilations=rhs, kernel_shape=window,
             group=node.attrs["groups"],
             pads=[*(e - lo for e, (lo, _) in zip(edges, padding, strict=True)),
                   *(max(e, 0) for e in end)],
             output_padding=[max(-e, 0) for e in end])


def swapped(k: Any, groups: int) -> Any:
    """Weights [out, in/group, …] as [in, out/group, …], or back: in each group the first two axes
    are exchanged, and the window is reversed."""
    first, per, window = k.shape[0], k.shape[1], k.shape[2:]
    n = len(window)
    apart = o.reshape(k, shape=(groups, first // groups, per, *window))
    moved = o.reshape(o.transpose(apart, perm=(0, 2, 1, *range(3, n + 3))),
                      shape=(groups * per, first // groups, *window))
    axes = tuple(a for a, d in enumerate(window, 2) if d != 1)
    return o.reverse(moved, axes=axes)


# ---- several nodes that are one in ONNX ---------------------------------------------------------

def _biased(y: Any, bias: Any) -> Any:
    return y if bias is None else y + o.reshape(
        bias, shape=(1, bias.shape[0], *(1,) * (y.ndim - 2)))


def _conv_with_bias(x: Any, k: Any, bias: Any = None, **attrs: Any) -> Any:
    return _biased(o.conv(x, k, **attrs), bias)


def _as_conv(x: Any, k: Any, bias: Any = None, **attrs: Any) -> Any:
    return _biased(o.conv(x, swapped(k, attrs["groups"]), **attrs), bias)


def _infer(x: TensorType, *_: Any, **attrs: Any) -> TensorType:
    return x  # not used: the joined nodes keep the types of the nodes that they replace


JOINED = Op("conv_joined", _infer, decompose=_conv_with_bias)
TRANSPOSED = Op("conv_transposed", _infer, decompose=_as_conv)


@form("conv_joined")
def conv_joined(w: Writer, node: Node, x: Ref, k: Ref, bias: Ref) -> Any:
    """Conv or ConvTranspose with a bias; declined if the conv alone would need other nodes."""
    before = len(w.nodes)
    name = conv(w, node, x, k)
    product = next((n for n in reversed(w.nodes[before:]) if name in n.output), None)
    takes(product is not None and product.op_type in ("Conv", "ConvTranspose"))
    product.input.append(bias.name)  # type: ignore[union-attr]
    return name


@form("conv_transposed")
def conv_transposed(w: Writer, node: Node, x: Ref, k: Ref, bias: Ref | None = None) -> Any:
    """ConvTranspose with an optional bias; k is in ONNX's layout, [in, out/group, …]."""
    return transposed(w, node, x, k, bias)


# ---- nodes that are joined ----------------------------------------------------------------------

def join(graph: Graph) -> Graph:
    """The graph with a joined node for each conv that has a bias or is a transposed one."""
    made_by, uses, swapped = producers(graph), use_counts(graph), dict[Value, tuple[Node, Node]]()
    flat: dict[Value, Node] = {}
    nodes = list(graph.nodes)
    for i, node in enumerate(nodes):
        match node.op.name:
            case "conv":
                nodes[i] = _transposed(node, made_by, swapped)
            case "add":
                nodes[i] = _with_bias(node, made_by, uses, swapped, flat)
    weights = [*dict.fromkeys(n for pair in swapped.values() for n in pair), *flat.values()]
    return prune(Graph(graph.inputs, (*weights, *nodes), graph.outputs))


def _with_bias(add: Node, made_by: dict[Value, Node], uses: dict[Value, int],
               swapped: dict[Value, tuple[Node, Node]], flat: dict[Value, Node]) -> Node:
    for y, term in (add.inputs, add.inputs[::-1]):
        conv, wide = (made_by.get(v) if isinstance(v, Value) else None for v in (y, term))
        if conv is None or wide is None or conv.op.name != "conv" or uses[conv.outputs[0]] > 1 \
                or conv.attrs["channels_last"]:
            continue
        bias = _bias(wide, conv, flat)
        if bias is not None:
            inner = _transposed(conv, made_by, swapped)
            op = JOINED if inner is conv else TRANSPOSED
            return replace(conv, op=op, inputs=(*inner.inputs, bias), outputs=add.outputs)
    return add


def _bias(wide: Node, conv: Node, flat: dict[Value, Node]) -> Value | None:
    """What the node makes [1, channels, 1, …] or [channels, 1, …] of: an operand, or a constant
    that joins `flat`."""
    kernel, vector_ = conv.inputs[1], wide.outputs[0]
    channels = kernel.type.shape[:1] if isinstance(kernel, Value) else ()
    shape = (*channels, *(1,) * (conv.outputs[0].type.rank - 2))
    if vector_.type.shape not in (shape, (1, *shape)):
        return None
    if is_constant(wide):
        if vector_ not in flat:
            vector = replace(vector_, type=TensorType(vector_.type.dtype, channels))
            held = wide.attrs["data"]
            flat[vector_] = replace(wide, outputs=(vector,), attrs={
                **wide.attrs, "data": weight(np.asarray(held.source).reshape(-1))})
        return flat[vector_].outputs[0]
    bias = wide.inputs[0] if wide.op.name == "reshape" else None
    return bias if isinstance(bias, Value) and bias.type.shape == channels else None


def _transposed(conv: Node, made_by: dict[Value, Node],
                swapped: dict[Value, tuple[Node, Node]]) -> Node:
    """A conv_transposed on the original weights, if the kernel is only a rearrangement of them; or
    on integers in ONNX's layout, which join `swapped` with the node that dequantises them."""
    kernel = conv.inputs[1]
    if not is_transposed(conv) or not isinstance(kernel, Value):
        return conv
    pair = swapped.get(kernel) or _swapped(kernel, made_by, conv.attrs["groups"])
    if pair is not None:
        swapped[kernel] = pair
        return replace(conv, op=TRANSPOSED, inputs=(conv.inputs[0], *pair[1].outputs))
    steps: list[Node] = []
    v = kernel
    while (node := made_by.get(v)) is not None and node.op.name in (
            "reverse", "transpose", "reshape"):
        steps.append(node)
        (v,) = (x for x in node.inputs if isinstance(x, Value))
        if steps and v.type.rank == kernel.type.rank and _reorders(v, steps, conv.attrs["groups"]):
            return replace(conv, op=TRANSPOSED, inputs=(conv.inputs[0], v))
    return conv


def _swapped(kernel: Value, made_by: dict[Value, Node], groups: int) -> tuple[Node, Node] | None:
    """A constant in ONNX's layout; or constant integers, and the node that dequantises them:
    runtimes look for a scale for each output channel right before the product. With groups there
    is no such axis."""
    real = made_by.get(kernel)
    if is_constant(real):
        whole = swapped(np.asarray(real.attrs["data"].source), groups)
        turned = replace(real, attrs={**real.attrs, "data": weight(whole)}, outputs=(
            replace(kernel, type=TensorType(kernel.type.dtype, whole.shape)),))
        return turned, turned
    held = made_by.get(real.inputs[0]) if real is not None and real.op is DEQUANTIZE else None  # type: ignore[arg-type]
    if real is None or not is_constant(held) or (real.attrs["scale"].ndim and (
            groups > 1 or real.attrs["axis"])):
        return None
    whole = swapped(np.asarray(held.attrs["data"].source), groups)
    values = [replace(v, type=TensorType(v.type.dtype, whole.shape))
              for v in (*held.outputs, kernel)]
    return (replace(held, attrs={**held.attrs, "data": weight(whole)}, outputs=tuple(values[:1])),
            replace(real, inputs=tuple(values[:1]),
                    attrs={**real.attrs, "axis": 1}, outputs=tuple(values[1:])))


def _reorders(v: Value, steps: list[Node], groups: int) -> bool:
    """Whether the steps rearrange v's elements as `swapped` does."""
    shape = [d for d in v.type.shape if isinstance(d, int)]
    if len(shape) < v.type.rank or shape[0] % groups:
        return False
    numbers = x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    for node in reversed(steps):
        x = evaluate(OPS[node.op.name], [x], node.attrs)
    return np.array_equal(x, swapped(numbers, groups))
