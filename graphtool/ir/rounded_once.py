"""Computes what consists of several ops in float32 inside, and rounds its results once.

Of values of 16 or fewer bits each op would round: squares of 300 leave the range of float16, and
sums lose digits. So the definition of a composite (`rounded_once`), the gradient of an op and what
an importer makes of one operator (`settle`) go through here, and no function that computes one of
them casts by hand. Products, convolutions and attention of values that are exact in the narrow type
read them so, as their kernels do; they sum in float32 in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.facets import Lowering, Precision, Trait
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant
from graphtool.ir.op import OPS, ArrayOperand, Op
from graphtool.ir.replay import prune, replay
from graphtool.ir.trace import Builder, Tracer, trace

_APART = Trait.RANDOM | Trait.WORLD | Trait.SIZE | Trait.BITS


def rounded_once(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, a definition by ops, which computes in float32 inside if an operand is narrow and more
    than one op rounds; operands of wider types leave it as it is."""
    @wraps(fn)
    def run(*operands: Any, **attrs: Any) -> Any:
        given = [x for x in operands if isinstance(x, (Tracer, ArrayOperand))]
        if not any(x.dtype.is_narrow for x in given):
            return fn(*operands, **attrs)

        def traced(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Graph:
            def placed(*xs: Any) -> Any:
                rest = iter(xs)
                return fn(*(next(rest) if isinstance(x, (Tracer, ArrayOperand)) else x
                            for x in operands), **attrs)
            return trace(placed, types)
        narrow = traced([x.type for x in given], attrs)
        if not _loops(narrow) and not rounds_inside(narrow.nodes, in_definition=True):
            return fn(*operands, **attrs)
        wide = traced([TensorType(_widened(x.dtype), x.shape) for x in given],
                      {k: _widened(a) for k, a in attrs.items()})
        out = _Wide(given[0].builder).run(wide, given, [v.type.dtype for v in narrow.outputs])
        return tuple(out) if len(out) > 1 else out[0]
    return run


def settle(builder: Builder, before: int, results: Sequence[Any]) -> list[Any]:
    """The results of the nodes from position `before` on; if narrow values are rounded between
    these nodes, the results are computed once more, in float32.

    The old nodes stay, for others that hold their values. Results that are no tracers stay as they
    are.
    """
    nodes = builder.nodes[before:]
    if not rounds_inside(nodes):
        return list(results)
    again = _from_first_rounding(nodes)
    inside = {v for n in again for v in n.outputs}
    several = [x for x in results if isinstance(x, Tracer) and x.maker is not None]
    wanted = dict.fromkeys(x.value for x in several if x.value in inside)
    inputs = dict.fromkeys(x for n in again for x in n.inputs
                           if isinstance(x, Value) and x not in inside)
    graph = prune(Graph(tuple(inputs), tuple(again), tuple(wanted)))
    rounded = _Wide(builder).run(graph, [builder.traced(v) for v in inputs],
                                 [v.type.dtype for v in wanted])
    by_value = dict(zip(wanted, rounded, strict=True))
    return [by_value.get(x.value, x) if any(x is t for t in several) else x for x in results]


# ---- whether it is necessary -------------------------------------------------------------------

def rounds_inside(nodes: Sequence[Node], in_definition: bool = False) -> bool:
    """Whether a node reads a narrow value that another node has rounded, or a number that is beyond
    the range of its narrow type.

    A product that is rounded before a bias is added does not count: it overflows only if its sum
    does. `in_definition`: arrays, such as sines, and casts belong to the definition, so they round
    too.
    """
    rounded: dict[Value, bool] = {}  # → whether only products have rounded it
    for node in nodes:
        if in_definition and (_has_digits(node) or _narrows(node)):
            rounded[node.outputs[0]] = False
            continue
        before = [rounded[x] for x in node.inputs if isinstance(x, Value) and x in rounded]
        computes = node.op.rounds and any(v.type.dtype.is_float for v in node.outputs)
        if computes and before and not (all(before) and _adds(node.op)):
            return True
        if computes and any(map(node.outputs[0].type.dtype.loses, node.inputs)):
            return True
        if _is_apart(node):
            continue
        for v in node.outputs:
            if node.op.rounds and v.type.dtype.is_narrow:
                rounded[v] = node.op.precision is Precision.LOW
            elif before and v.type.dtype.is_float:
                rounded[v] = all(before)
    return False


def _has_digits(node: Node) -> bool:
    """Whether the node is a narrow constant of more than one element."""
    return is_constant(node) and node.outputs[0].type.dtype.is_narrow and (
        max(node.outputs[0].type.shape, default=1) != 1)


def _narrows(node: Node) -> bool:
    """Whether the node rounds a wider float to a narrow type."""
    if node.op is not OPS["cast"] or not node.attrs["dtype"].is_narrow:
        return False
    return any(isinstance(x, Value) and x.type.dtype.is_float and not x.type.dtype.is_narrow
               for x in node.inputs)


def _adds(op: Op) -> bool:
    """Whether the op overflows only if its result is too large, and loses no more digits than its
    operands have lost."""
    return op.precision is Precision.LOW or Trait.ADDS in op.traits


def _loops(graph: Graph) -> bool:
    """Whether a loop or a branch computes narrow values, so that each iteration rounds them."""
    return any(v.type.dtype.is_narrow for n in graph.nodes if _has_body(n) for v in n.outputs)


def _has_body(node: Node) -> bool:
    return any(isinstance(a, Graph) for a in node.attrs.values())


def _is_apart(node: Node) -> bool:
    """Whether the node reads its operands in the types that the graph states: it computes in
    float32 inside, or has bodies, or depends on the bits of its operands."""
    return _is_product(node.op) or bool(node.op.traits & _APART) or _has_body(node)


def _is_product(op: Op) -> bool:
    """Whether the op is made of products, and its kernel reads narrow operands."""
    whole = Trait.COMPOSITE in op.traits and op.precision is Precision.LOW
    return whole or Trait.KERNEL in op.traits or op.lowering is Lowering.TEMPLATE


def _from_first_rounding(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that round narrow values, and all that read their results."""
    out: list[Node] = []
    inside: set[Value] = set()
    for node in nodes:
        rounds = node.op.rounds and not _is_apart(node) and any(
            v.type.dtype.is_narrow for v in node.outputs)
        if rounds or not inside.isdisjoint(x for x in node.inputs if isinstance(x, Value)):
            out.append(node)
            inside.update(node.outputs)
    return out


# ---- how it is done ----------------------------------------------------------------------------

class _Wide:
    """Replays a graph, whose floats may be narrow or float32, in float32.

    A value is in `exact` if it is exact in a narrow type, in `wide` in the type that computes; a
    float that is in `wide` alone is rounded only when somebody needs it narrow.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.exact: dict[Value, Any] = {}
        self.wide: dict[Value, Any] = {}

    def run(self, graph: Graph, args: Sequence[Any], to: Sequence[DType]) -> list[Any]:
        """The graph's outputs on these tensors, in the element types `to`."""
        for v, x in zip(graph.inputs, args, strict=True):
            self.keep(v, x)
        replay(graph, graph.inputs, self.node)
        return [self.as_type(v, d) for v, d in zip(graph.outputs, to, strict=True)]

    def keep(self, v: Value, x: Any) -> None:
        """Records what the value is; one of an exact type is in both tables when it is read."""
        (self.exact if x.dtype.is_narrow else self.wide)[v] = x

    def node(self, node: Node, *inputs: Operand) -> Sequence[Value]:
        """Emits the node; its results are found under its own values."""
        op, attrs = node.op, {k: _widened(a) for k, a in node.attrs.items()}
        exact = self._all_exact(node)
        if op is OPS["cast"]:
            self._cast(node, inputs[0], node.attrs["dtype"])
            return node.outputs
        if is_constant(node):
            result: Any = self.builder.constant(node.attrs["data"])
        elif _is_apart(node):
            narrow = exact and _is_product(op)
            result = self._emit(op, map(self.as_read if narrow else self.as_stated, inputs),
                                node.attrs)
        elif not op.rounds and Trait.ELEMENTWISE not in op.traits and exact:
            result = self._emit(op, map(self.as_read, inputs), node.attrs)
        elif op.traits & Trait.CONTRACTION and "dtype" in op.schema and exact:
            result = self._emit(op, map(self.as_read, inputs), attrs | {"dtype": dtypes.float32})
        else:
            result = self._emit(op, map(self.as_wide, inputs), attrs)
        results = result if isinstance(result, tuple) else (result,)
        for v, x in zip(node.outputs, results, strict=True):
            self.keep(v, x)
        return node.outputs

    def _all_exact(self, node: Node) -> bool:
        floats = [x for x in node.inputs if isinstance(x, Value) and x.type.dtype.is_float]
        return bool(floats) and all(x in self.exact for x in floats)

    def _cast(self, node: Node, x: Operand, to: DType) -> None:
        """A cast to a narrow type from another float is meant to round; one from an integer only
        gives the type in which an op computes."""
        assert isinstance(x, Value)
        v, source = node.outputs[0], x.type.dtype
        if source.is_float and (to is source or (source.is_narrow and to is dtypes.float32)):
            for table in (self.exact, self.wide):
                if x in table:
                    table[v] = table[x]
            return
        read = self.as_stated if source.is_narrow and to.is_narrow else self.as_wide
        attrs = {**node.attrs, "dtype": to if source.is_float else _widened(to)}
        self.keep(v, self._emit(node.op, (read(x),), attrs))

    # ---- operands ------------------------------------------------------------------------------

    def as_type(self, x: Value, to: DType) -> Any:
        """The value in this element type: the type that the graph states, or a narrower one."""
        if not to.is_narrow:
            return self.as_wide(x)
        if x not in self.exact or self.exact[x].dtype is not to:
            self.exact[x] = self._emit(OPS["cast"], (self.as_wide(x),), {"dtype": to})
        return self.exact[x]

    def as_stated(self, x: Operand) -> Any:
        """The operand in the element type that the graph states."""
        return self.as_type(x, x.type.dtype) if isinstance(x, Value) else x

    def as_read(self, x: Operand) -> Any:
        """The operand in its narrow type if it is exact there."""
        return self.exact[x] if isinstance(x, Value) and x in self.exact else self.as_wide(x)

    def as_wide(self, x: Operand) -> Any:
        """The operand in float32 if it is narrow."""
        if not isinstance(x, Value):
            return x
        if x not in self.wide:
            self.wide[x] = self._emit(OPS["cast"], (self.exact[x],), {"dtype": dtypes.float32})
        return self.wide[x]

    def _emit(self, op: Op, operands: Any, attrs: Mapping[str, Any]) -> Any:
        return self.builder.emit(op, tuple(operands), dict(attrs))


def _widened(x: Any) -> Any:
    """float32 for a narrow type; anything else unchanged."""
    return dtypes.float32 if isinstance(x, DType) and x.is_narrow else x
