"""amp: automatic mixed precision, by a table of ops, on a model or on a whole training graph.

What costs most computes in the low type, what would lose digits in float32, and the rest in the
widest type of its operands. Parameters and state stay float32; a training graph in float16 gets a
scale of the loss that adapts itself, and steps whose gradients overflow change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import UsageError
from graphtool.ir.graph import Graph, Module, Node, Value
from graphtool.ir.op import OPS
from graphtool.ir.trace import Builder, Tracer, rebuild
from graphtool.passes.scaling import Scaling, scaled

LOW = frozenset({"matmul", "linear", "conv", "attention"})
# what is as good in few digits as its operands are; elementwise ops besides those of HIGH
FOLLOW = frozenset({
    "reshape", "transpose", "slice", "broadcast", "concat", "pad", "reverse", "gather", "stack",
    "dynamic_slice", "dynamic_update_slice", "reduce_max", "reduce_min", "reduce_window",
    "max_pool", "sort", "top_k", "relu", "gelu", "silu", "mish", "elu", "selu", "celu",
    "leaky_relu", "prelu", "hard_sigmoid", "hard_swish", "thresholded_relu", "dropout", "repeat",
    "embedding", "rotary_embedding", "all_gather"})
HIGH = frozenset({  # elementwise ops that want float32: they lose digits, or leave float16's range
    "exp", "expm1", "log", "log1p", "pow", "rsqrt", "lgamma", "digamma", "erf_inv", "asin", "acos",
    "tan", "sinh", "cosh"})


def amp(module: Module, *, dtype: str, scale: float = 65536.0, growth: float = 2.0,
        backoff: float = 0.5, interval: int = 2000) -> Module:
    """The module with casts to `dtype`, bfloat16 or float16. The other arguments are of the loss
    scale in float16: its start, its factors after `interval` good steps and after an overflow.

    Raises UsageError GT0629 for another type, InputError GT0628 where passes have changed the
    gradients of a training graph.
    """
    if dtype not in ("bfloat16", "float16", "bf16", "f16"):
        raise UsageError("GT0629", f"amp in {dtype!r}", hint="bfloat16 or float16")
    low = dtypes.dtype(dtype)
    roles = module.meta.get("training")
    if isinstance(roles, dict) and roles.get("amp"):
        return module
    if isinstance(roles, dict):
        if low is dtypes.float16:
            module = scaled(module, Scaling(scale, growth, backoff, interval))
        module = replace(module, meta={**module.meta, "training": {
            **module.meta["training"], "amp": low.name}})
    return replace(module, graph=_casts(module.graph, low))


def _casts(graph: Graph, low: DType) -> Graph:
    """The graph with every op in the type of its row; its inputs and outputs keep theirs."""
    fixed = _neutral(graph)
    at: dict[tuple[Value, DType], Value] = {}  # casts made so far
    origin: dict[Value, Value] = {}  # what a cast was made of

    def as_type(x: Value, to: DType, b: Builder) -> Value:
        if x.type.dtype not in (low, dtypes.float32) or x.type.dtype is to:
            return x
        if x in origin and to is low:  # what was low stays exactly that
            return origin[x]
        if (x, to) not in at:
            at[x, to] = b.emit(OPS["cast"], (Tracer(x, b),), {"dtype": to},
                               hint=f"{x.hint.lstrip('@')}.{to.short}").value
            if to is dtypes.float32:
                origin[at[x, to]] = x
        return at[x, to]

    def rewrite(node: Node, xs: tuple[Any, ...], b: Builder) -> Sequence[Any] | None:
        floats = [x for x in xs if isinstance(x, Value) and x.type.dtype in (low, dtypes.float32)]
        to = _type(node, xs, low, fixed)
        if not floats or (all(x.type.dtype is to for x in floats) and xs == node.inputs):
            return None
        operands = [as_type(x, to, b) if isinstance(x, Value) else x for x in xs]
        out = node.op(*(Tracer(x, b) if isinstance(x, Value) else x for x in operands),
                      **node.attrs)
        return out if isinstance(out, tuple) else (out,)

    made = rebuild(graph, rewrite)
    end = Builder()
    for node in made.nodes:
        end.add(node)
    outputs = tuple(v if v.type == old.type else as_type(v, old.type.dtype, end)
                    for v, old in zip(made.outputs, graph.outputs, strict=True))
    return Graph(made.inputs, tuple(end.nodes), outputs)


def _type(node: Node, xs: Sequence[Any], low: DType, fixed: set[Value]) -> DType:
    """In what type the node's floats are: those of a constant follow the others."""
    name = node.op.name
    if name in LOW and node.outputs[0].type.dtype is dtypes.float32:
        return low
    follows = name in FOLLOW or ("elementwise" in node.op.traits and name not in HIGH)
    if not follows or any(isinstance(a, Graph) for a in node.attrs.values()):
        return dtypes.float32
    varying = [x for x, old in zip(xs, node.inputs, strict=True) if isinstance(x, Value)
               and x.type.dtype in (low, dtypes.float32) and old not in fixed]
    return low if varying and all(x.type.dtype is low for x in varying) else dtypes.float32


def _neutral(graph: Graph) -> set[Value]:
    """Values that are made of constants alone, parameters apart: they have no type to defend."""
    out: set[Value] = set()
    for node in graph.nodes:
        if node.op.name == "constant":
            out |= set() if node.attrs["param"] else set(node.outputs)
        elif node.outputs and all(x in out for x in node.inputs if isinstance(x, Value)) and (
                "world" not in node.op.traits):
            out |= set(node.outputs)
    return out
