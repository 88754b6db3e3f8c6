"""amp: automatic mixed precision, by the class of each op, for a model or a whole training graph.

The most expensive ops compute in the low type, ops that would lose digits in float32, and the
others in the widest type of their operands. Parameters and state stay float32. A training graph in
float16 gets a loss scale that adapts itself; a step whose gradients overflow changes nothing.

The forward values that the backward pass reads stay in 16 bits: a float32 value that the model
rounds before its next product is rounded for the gradients as well. Values that only the loss
uses, and statistics of rows, keep all their digits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.composites import need_gradients
from graphtool.dtypes import DType
from graphtool.errors import UsageError
from graphtool.ir.facets import Movement, Precision, Trait
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant, is_parameter
from graphtool.ir.op import OPS
from graphtool.ir.replay import ancestors, rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.amp.scaling import Scaling, scaled
from graphtool.passes.cse import cse
from graphtool.passes.decompose import decompose

# movement over which a cast may be moved
_MOVES = Movement.KEEPS | Movement.PERMUTES | Movement.REPEATS
Half = Literal["bfloat16", "float16", "bf16", "f16"]


def amp(module: Module, *, dtype: Half, scale: float = 65536.0, growth: float = 2.0,
        backoff: float = 0.5, interval: int = 2000) -> Module:
    """The module with casts to `dtype`, bfloat16 or float16.

    The other arguments are for the loss scale in float16: its first value, its factor after
    `interval` good steps, and its factor after an overflow. Raises UsageError GT0629 for another
    type, InputError GT0628 if a pass has dropped the marks of a training graph's gradients.
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
    """Replace composites such as norms by the ops they consist of, so that gradients share their
    values; let gradients read these and all other values in 16 bits."""
    opened = cse(decompose(module.graph, keep=_mixed(), layout_dependent=False))
    return replace(module, graph=kept_low(opened, need_gradients(opened), low))


def _mixed() -> tuple[str, ...]:
    """The ops that may compute in 16 bits."""
    return tuple(op.name for op in OPS.values() if op.precision is not Precision.HIGH)


def _casts(graph: Graph, low: DType, state: set[Value]) -> Graph:
    """The graph with every op in the type of its class; inputs and outputs keep their types."""
    fixed, parameters = _neutral(graph), _parameters(graph, state)
    casts = _Casts(low)

    def rewrite(node: Node, xs: tuple[Any, ...], b: Builder) -> Sequence[Any] | None:
        floats = [x for x in xs if isinstance(x, Value) and x.type.dtype in (low, dtypes.float32)]
        to = _type(node, xs, low, fixed | _biases(node, parameters))
        if not floats or (all(x.type.dtype is to for x in floats) and xs == node.inputs):
            return None
        operands = [casts.as_type(x, to, b) if isinstance(x, Value) else x for x in xs]
        out = node.op(*(Tracer(x, b) if isinstance(x, Value) else x for x in operands),
                      **node.attrs)
        return out if isinstance(out, tuple) else (out,)

    cast = rebuild(graph, rewrite)
    end = Builder()
    for node in cast.nodes:
        end.add(node)
    outputs = tuple(v if v.type == old.type else casts.as_type(v, old.type.dtype, end)
                    for v, old in zip(cast.outputs, graph.outputs, strict=True))
    return Graph(cast.inputs, tuple(end.nodes), outputs)


class _Casts:
    """The casts made so far. Narrowed values are shared. Each reader widens a value for itself,
    because that costs less than storing the wide value."""

    def __init__(self, low: DType) -> None:
        self.low = low
        self.narrowed: dict[Value, Value] = {}
        self.origin: dict[Value, Value] = {}  # a widened value → the narrow value it was made from

    def as_type(self, x: Value, to: DType, b: Builder) -> Value:
        if x.type.dtype not in (self.low, dtypes.float32) or x.type.dtype is to:
            return x
        if to is not self.low:
            wide = self._cast(x, to, b)
            self.origin[wide] = x
            return wide
        if x in self.origin:  # the narrow value itself: casting to wide and back changes nothing
            return self.origin[x]
        if x not in self.narrowed:
            self.narrowed[x] = self._narrow(x, b)
        return self.narrowed[x]

    def _narrow(self, x: Value, b: Builder) -> Value:
        maker = b.made_by.get(x)
        if maker is None or not maker.op.movement & _MOVES:
            return self._cast(x, self.low, b)
        (source,) = maker.inputs  # round before the movement: less is moved
        assert isinstance(source, Value)
        moved: Value = maker.op(
            Tracer(self.as_type(source, self.low, b), b), **maker.attrs).value
        return moved

    def _cast(self, x: Value, to: DType, b: Builder) -> Value:
        result: Value = b.emit(o.cast, (Tracer(x, b),), {"dtype": to},
                               hint=f"{x.hint.lstrip('@')}.{to.short}").value
        return result


def _type(node: Node, xs: Sequence[Any], low: DType, fixed: set[Value]) -> DType:
    """The type in which the node computes floats; constants take the type of the other operands."""
    if node.op.precision is Precision.LOW and node.outputs[0].type.dtype is dtypes.float32:
        return low
    if node.op.precision is not Precision.FOLLOW or any(
            isinstance(a, Graph) for a in node.attrs.values()):
        return dtypes.float32
    varying = [x for x, old in zip(xs, node.inputs, strict=True) if isinstance(x, Value)
               and x.type.dtype in (low, dtypes.float32) and old not in fixed]
    return low if varying and all(x.type.dtype is low for x in varying) else dtypes.float32


def _parameters(graph: Graph, state: set[Value]) -> set[Value]:
    """Parameters, and values that are only moved from them. In a training graph parameters are
    part of the state."""
    out = {v for v in state if v.type.rank}
    for node in graph.nodes:
        if is_parameter(node) or (
                node.op.movement & _MOVES and node.inputs[0] in out):
            out |= set(node.outputs)
    return out


def _biases(node: Node, parameters: set[Value]) -> set[Value]:
    """Parameters that the node broadcasts to a larger operand: they take its type."""
    shape = node.outputs[0].type.shape if node.outputs else ()
    return {x for x in node.inputs if isinstance(x, Value) and x in parameters
            and x.type.shape != shape}


def _neutral(graph: Graph) -> set[Value]:
    """Values made from constants only, without parameters: they take the type of the others."""
    out: set[Value] = set()
    for node in graph.nodes:
        if is_constant(node):
            out |= set() if node.attrs["param"] else set(node.outputs)
        elif node.outputs and all(x in out for x in node.inputs if isinstance(x, Value)) and (
                Trait.WORLD not in node.op.traits):
            out |= set(node.outputs)
    return out


# ---- what the backward pass reads ----------------------------------------------------------------

def kept_low(graph: Graph, gradients: Collection[Value], low: DType) -> Graph:
    """The graph whose gradients read residuals in `low`; its first output is the loss."""
    forward = set(ancestors(graph, graph.outputs[:1]))
    behind = set(ancestors(graph, gradients)) - forward
    rounded = _rounded(graph, forward)
    b = Builder()
    short: dict[Value, Value] = {}

    def cast(x: Value, to: DType) -> Value:
        result: Value = b.emit(o.cast, (Tracer(x, b),), {"dtype": to},
                               hint=f"{x.hint.lstrip('@')}.{to.short}").value
        return result
    sums = _cast(behind, low)
    wanted = {x for n in graph.nodes if n in behind for x in _residuals(n, rounded, sums)}
    for node in graph.nodes:
        ours = set(_residuals(node, rounded, sums)) if node in behind else set()
        b.add(node if not ours else replace(node, inputs=tuple(
            cast(short[x], dtypes.float32) if x in ours else x for x in node.inputs)))
        # cast it where it is made, so that the wide value need not be stored
        for v in node.outputs:
            if v in wanted:
                short[v] = cast(v, low)
    return Graph(graph.inputs, tuple(b.nodes), graph.outputs)


def _rounded(graph: Graph, forward: Collection[Node]) -> set[Value]:
    """Wide values of the forward pass that are rounded for a later product."""
    needed: set[Value] = set()
    out: set[Value] = set()
    for node in reversed(graph.nodes):
        if node not in forward:
            continue
        if node.op.precision is Precision.LOW or any(v in needed for v in node.outputs):
            needed.update(x for x in node.inputs if isinstance(x, Value))
            out.update(v for v in node.outputs if v in needed and (
                not is_constant(node) and Trait.CONVERTS not in node.op.traits)
                and v.type.dtype is dtypes.float32)
    return out


def _cast(behind: Collection[Node], low: DType) -> set[Value]:
    """Gradients that are rounded for a product."""
    return {x for n in behind if Trait.CONVERTS in n.op.traits and n.attrs["dtype"] is low
            for x in n.inputs if isinstance(x, Value)}


def _residuals(node: Node, rounded: set[Value], sums: set[Value]) -> list[Value]:
    """The operands of a gradient's node that it may read rounded: residuals that it does not
    broadcast, and the values that a bias's gradient sums."""
    if node.op is o.reduce_sum:
        return [x for x in node.inputs if isinstance(x, Value) and x in sums]
    if node.op.traits & (Trait.ELEMENTWISE | Trait.CONVERTS) != Trait.ELEMENTWISE:
        return []
    shape = node.outputs[0].type.shape
    return [x for x in node.inputs if isinstance(x, Value) and x in rounded
            and x.type.shape == shape]
