"""What a node costs: floating-point operations and bytes moved, as functions of its shapes.

Nominal numbers for comparing graphs, in the dims' own symbols; they measure nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, TensorType, Value
from graphtool.ir.op import Op
from graphtool.ir.trace import trace
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, product

Cost = Callable[[Node], Dim]


def elements(t: TensorType) -> Dim:
    return product(t.shape)


def nbytes(t: TensorType) -> Dim:
    """Bytes of a tensor in memory."""
    return elements(t) * t.dtype.bytes


def _out(node: Node) -> TensorType:
    return node.outputs[0].type


def _operand(node: Node, i: int) -> TensorType:
    x = node.inputs[i]
    return x.type if isinstance(x, Value) else _out(node)


# ---- floating-point operations -----------------------------------------------------------------

def _matmul(node: Node) -> Dim:
    """2·M·N·K for each matrix of the batch"""
    a = _operand(node, 0)
    return 2 * elements(_out(node)) * a.shape[-2 if node.attrs["transpose_a"] else -1]


def _conv(node: Node) -> Dim:
    """2 · outputs · channels in a group · window; zeros between dilated inputs are not counted"""
    w = _operand(node, 1)
    dilated: Dim = 1
    for by in node.attrs["lhs_dilation"] or ():
        dilated = dilated * by
    return 2 * elements(_out(node)) * product(w.shape[1:]) // dilated


def _window(node: Node) -> Dim:
    return elements(_out(node)) * product(node.attrs["window"])


def _conv_packed(node: Node) -> Dim:
    """Weights are [groups, panels, kh, kw·channels, columns]."""
    return 2 * elements(_out(node)) * product(_operand(node, 1).shape[2:4])


def _depthwise(node: Node) -> Dim:
    return 2 * elements(_out(node)) * product(_operand(node, 1).shape[:2])


def _winograd(node: Node) -> Dim:
    """(t+2)² products of all channels for t² outputs; the transforms are left out"""
    t: int = node.attrs["tile"]
    channels = _operand(node, 1).shape[2]
    return 2 * elements(_out(node)) * channels * (t + 2) ** 2 // t**2


def _winograd_line(node: Node) -> Dim:
    """t+2 products of all lines, threes of taps and channels for t outputs"""
    t: int = node.attrs["tile"]
    return 2 * elements(_out(node)) * _operand(node, 1).shape[2] * (t + 2) // t


def _attend(node: Node) -> Dim:
    """Two products and a softmax of about ten operations an element; a causal mask saves nothing"""
    q, k, v = (_operand(node, i) for i in range(3))
    scores = product(q.shape[:-1]) * k.shape[-2]
    return scores * (2 * q.shape[-1] + 2 * v.shape[-1] + 10)


def _per_input(node: Node) -> Dim:
    return elements(_operand(node, 0))


def _per_output(node: Node) -> Dim:
    return elements(_out(node))


def _nothing(_: Node) -> Dim:
    return 0


_FLOPS: dict[str, Cost] = {
    "matmul": _matmul,
    "conv": _conv,
    "matmul_packed": lambda n: 2 * elements(_out(n)) * _operand(n, 0).shape[-1],
    "matmul_blas": lambda n: 2 * elements(_out(n)) * _operand(n, 0).shape[-1],
    "matmul_bf16": lambda n: 2 * elements(_out(n)) * _operand(n, 0).shape[-1],
    "matmul_int": lambda n: 2 * elements(_out(n)) * _operand(n, 0).shape[-1],
    "conv_packed": _conv_packed,
    "conv_bf16": lambda n: 2 * _conv_packed(n),
    "conv_int": lambda n: 2 * elements(_out(n)) * product(n.attrs["window"]) * n.attrs["depth"],
    "depthwise_int": lambda n: 2 * elements(_out(n)) * product(n.attrs["window"]),
    "depthwise": _depthwise,
    "winograd": _winograd,
    "winograd_int": _winograd,
    "winograd_line": _winograd_line,
    "attend": _attend,
    "pooled": _window,
    "reduce_window": _window,
    "arg_reduce_window": _window,
    "extreme_tap": _window,
    "unpool": lambda n: elements(_operand(n, 0)),
    "cumulative": _per_input,
    "arg_reduce": _per_input,
    "sort": _per_input,
    "select": _per_output,
    "clamp": lambda n: 2 * elements(_out(n)),
    "cast": _per_output,
    "bitcast": _nothing,
}


def flops(node: Node) -> Dim:
    """Operations of one node; a composite costs what its decomposition does."""
    name, op = node.op.name, node.op
    if name in _FLOPS:
        return _FLOPS[name](node)
    if name in BY_NAME:
        return BY_NAME[name].flops * elements(_out(node))
    if inner := list(regions(node)):
        return sum((total(flops, g) for g in inner), 0) * turns(node)
    if Trait.REDUCTION in op.traits:
        return _per_input(node)
    if op.category in ("shape", "data", "memory"):
        return 0
    if op.decompose is not None:
        return _composite(op, *signature(node))
    return _per_output(node)


Attrs = tuple[tuple[str, Any], ...]


def signature(node: Node) -> tuple[tuple[Any, ...], Attrs]:
    """Operand types (literals as they are) and attributes: what a composite's cost depends on."""
    return (tuple(x.type if isinstance(x, Value) else x for x in node.inputs),
            tuple(node.attrs.items()))


def decomposed(op: Op, types: tuple[Any, ...], attrs: Attrs) -> Graph:
    """What a composite comes to on operands of these types, one level down."""
    def run(*args: Any) -> Any:
        rest = iter(args)
        operands = [next(rest) if isinstance(t, TensorType) else t for t in types]
        return op.decompose(*operands, **dict(attrs))  # type: ignore[misc]
    return trace(run, [t for t in types if isinstance(t, TensorType)])


@lru_cache(maxsize=4096)
def _composite(op: Op, types: tuple[Any, ...], attrs: Attrs) -> Dim:
    try:
        return total(flops, decomposed(op, types, attrs))
    except GraphtoolError:  # sizes it cannot decide on: one operation an element, at the least
        return sum((elements(t) for t in types[:1] if isinstance(t, TensorType)), 0)


# ---- bytes moved -------------------------------------------------------------------------------

_ALIAS = frozenset({"reshape", "constant", "bitcast"})
_PART = frozenset({"slice", "gather", "dynamic_slice", "embedding"})  # of x, only what they give


def bytes_moved(node: Node) -> Dim:
    """Bytes read and written when the node runs alone, each operand once."""
    name = node.op.name
    if name in _ALIAS:
        return 0
    written = sum((nbytes(v.type) for v in node.outputs), 0)
    read = [x.type for x in dict.fromkeys(node.inputs) if isinstance(x, Value)]
    if name in _PART:
        return 2 * written + sum((nbytes(t) for t in read[1:]), 0)
    return written + sum((nbytes(t) for t in read), 0)


# ---- sums --------------------------------------------------------------------------------------

def regions(node: Node) -> Iterator[Graph]:
    """The closed graphs among a node's attributes."""
    for a in node.attrs.values():
        if isinstance(a, Graph):
            yield a


def turns(node: Node) -> Dim:
    """How often the regions of a node run: a scan's length; 1 where the data decide."""
    length: Dim = node.attrs.get("length", 1)
    return length


def executions(graph: Graph, times: Dim = 1) -> Iterator[tuple[Node, Dim]]:
    """The nodes with those of their regions, and how often each runs."""
    for node in graph.nodes:
        yield node, times
        for inner in regions(node):
            yield from executions(inner, times * turns(node))


def total(cost: Cost, graph: Graph) -> Dim:
    """The sum over all executions; what has regions costs what they do, and nothing itself."""
    return sum((cost(n) * times for n, times in executions(graph) if not any(regions(n))), 0)


def covered(op: Op) -> bool:
    """Whether the op's cost is known rather than assumed; a test asks it of the whole registry."""
    return (op.name in _FLOPS or op.name in BY_NAME or op.decompose is not None
            or Trait.REDUCTION in op.traits or op.category != "compute")
