"""amp: automatic mixed precision, by the class of each op, on a model or on a whole training graph.

The most expensive ops compute in the low type, ops that would lose digits in float32, and the
others in the widest type of their operands. Parameters and state stay float32. A training graph in
float16 gets a loss scale that adapts itself; a step whose gradients overflow changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import UsageError
from graphtool.ir.facets import Movement, Precision, Trait
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant, is_parameter
from graphtool.ir.op import OPS
from graphtool.ir.text import value_names
from graphtool.ir.trace import Builder, Tracer, rebuild
from graphtool.passes.amp.residuals import kept_low
from graphtool.passes.amp.scaling import Scaling, scaled
from graphtool.passes.cse import cse
from graphtool.passes.decompose import decompose
from graphtool.passes.distribute import gradients

_MOVES = Movement.KEEPS | Movement.PERMUTES | Movement.REPEATS  # what a cast may pass


def amp(module: Module, *, dtype: str, scale: float = 65536.0, growth: float = 2.0,
        backoff: float = 0.5, interval: int = 2000) -> Module:
    """The module with casts to `dtype`, bfloat16 or float16. The other arguments are of the loss
    scale in float16: its start, its factors after `interval` good steps and after an overflow.

    Raises UsageError GT0629 for another type, InputError GT0628 where passes have changed the
    gradients of a training graph.
    """
    low = dtypes.BY_NAME.get(dtype)
    if low not in dtypes.HALVES:
        raise UsageError("GT0629", f"amp in {dtype!r}", hint="bfloat16 or float16")
    roles = module.meta.get("training")
    if isinstance(roles, dict) and roles.get("amp"):
        return module
    if isinstance(roles, dict):
        if low is dtypes.float16:
            module = scaled(module, Scaling(scale, growth, backoff, interval))
        module = replace(module, meta={**module.meta, "training": {
            **module.meta["training"], "amp": low.name}})
    state = {module.graph.inputs[i] for _, i in module.donations}
    casted = replace(module, graph=_casts(module.graph, low, state))
    return casted if not isinstance(roles, dict) else _with_low_residuals(casted, low)


def _with_low_residuals(module: Module, low: DType) -> Module:
    """Norms and the like as the ops they consist of, so that gradients share what they compute; and
    of that and all else the gradients read what has 16 bits."""
    graph = module.graph
    count, marks = len(graph.outputs), gradients(module)
    seen = Graph(graph.inputs, graph.nodes, (*graph.outputs, *marks))
    opened = cse(decompose(seen, keep=_mixed(), placed=False))
    marks = list(opened.outputs[count:])
    made = kept_low(Graph(opened.inputs, opened.nodes, opened.outputs[:count]), marks, low)
    names = value_names(made)
    return replace(module, graph=made, meta={**module.meta, "training": {
        **module.meta["training"], "gradients": [names[v] for v in marks]}})


def _mixed() -> tuple[str, ...]:
    """The ops that may compute in 16 bits."""
    return tuple(op.name for op in OPS.values() if op.precision is not Precision.HIGH)


def _casts(graph: Graph, low: DType, state: set[Value]) -> Graph:
    """The graph with every op in the type of its row; its inputs and outputs keep theirs."""
    fixed, parameters = _neutral(graph), _parameters(graph, state)
    made = _Made(low)

    def rewrite(node: Node, xs: tuple[Any, ...], b: Builder) -> Sequence[Any] | None:
        floats = [x for x in xs if isinstance(x, Value) and x.type.dtype in (low, dtypes.float32)]
        to = _type(node, xs, low, fixed | _biases(node, parameters))
        if not floats or (all(x.type.dtype is to for x in floats) and xs == node.inputs):
            return None
        operands = [made.as_type(x, to, b) if isinstance(x, Value) else x for x in xs]
        out = node.op(*(Tracer(x, b) if isinstance(x, Value) else x for x in operands),
                      **node.attrs)
        return out if isinstance(out, tuple) else (out,)

    cast = rebuild(graph, rewrite)
    end = Builder()
    for node in cast.nodes:
        end.add(node)
    outputs = tuple(v if v.type == old.type else made.as_type(v, old.type.dtype, end)
                    for v, old in zip(cast.outputs, graph.outputs, strict=True))
    return Graph(cast.inputs, tuple(end.nodes), outputs)


class _Made:
    """The casts made so far. Narrowed values are shared; each reader widens for itself, which costs
    less than memory."""

    def __init__(self, low: DType) -> None:
        self.low = low
        self.narrowed: dict[Value, Value] = {}
        self.origin: dict[Value, Value] = {}  # what a widened value was made of

    def as_type(self, x: Value, to: DType, b: Builder) -> Value:
        if x.type.dtype not in (self.low, dtypes.float32) or x.type.dtype is to:
            return x
        if to is not self.low:
            wide = self._cast(x, to, b)
            self.origin[wide] = x
            return wide
        if x in self.origin:  # what was low stays exactly that
            return self.origin[x]
        if x not in self.narrowed:
            self.narrowed[x] = self._narrow(x, b)
        return self.narrowed[x]

    def _narrow(self, x: Value, b: Builder) -> Value:
        maker = b.made.get(x)
        if maker is None or not maker.op.movement & _MOVES:
            return self._cast(x, self.low, b)
        (source,) = maker.inputs  # rounded before it is moved
        assert isinstance(source, Value)
        moved: Value = maker.op(
            Tracer(self.as_type(source, self.low, b), b), **maker.attrs).value
        return moved

    def _cast(self, x: Value, to: DType, b: Builder) -> Value:
        made: Value = b.emit(OPS["cast"], (Tracer(x, b),), {"dtype": to},
                             hint=f"{x.hint.lstrip('@')}.{to.short}").value
        return made


def _type(node: Node, xs: Sequence[Any], low: DType, fixed: set[Value]) -> DType:
    """In what type the node's floats are: those of a constant follow the others."""
    if node.op.precision is Precision.LOW and node.outputs[0].type.dtype is dtypes.float32:
        return low
    if node.op.precision is not Precision.FOLLOW or any(
            isinstance(a, Graph) for a in node.attrs.values()):
        return dtypes.float32
    varying = [x for x, old in zip(xs, node.inputs, strict=True) if isinstance(x, Value)
               and x.type.dtype in (low, dtypes.float32) and old not in fixed]
    return low if varying and all(x.type.dtype is low for x in varying) else dtypes.float32


def _parameters(graph: Graph, state: set[Value]) -> set[Value]:
    """Parameters, and what is only moved from them: a training graph has them in its state."""
    out = {v for v in state if v.type.rank}
    for node in graph.nodes:
        if is_parameter(node) or (
                node.op.movement & _MOVES and node.inputs[0] in out):
            out |= set(node.outputs)
    return out


def _biases(node: Node, parameters: set[Value]) -> set[Value]:
    """Parameters that the node spreads over a larger operand: they follow its type."""
    shape = node.outputs[0].type.shape if node.outputs else ()
    return {x for x in node.inputs if isinstance(x, Value) and x in parameters
            and x.type.shape != shape}


def _neutral(graph: Graph) -> set[Value]:
    """Values that are made of constants alone, parameters apart: they have no type to defend."""
    out: set[Value] = set()
    for node in graph.nodes:
        if is_constant(node):
            out |= set() if node.attrs["param"] else set(node.outputs)
        elif node.outputs and all(x in out for x in node.inputs if isinstance(x, Value)) and (
                Trait.WORLD not in node.op.traits):
            out |= set(node.outputs)
    return out
