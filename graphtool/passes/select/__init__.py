"""select: contractions become target ops, with their weights packed for the kernels.

Packing is an op like any other: `fold` evaluates it where the weights are constant, and where they
are not it runs as a kernel of its own. What no kernel suits is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.op import OPS
from graphtool.ir.trace import Builder, Tracer, rebuild
from graphtool.kernels.choice import Attention
from graphtool.kernels.choice.candidates import Rules, choose
from graphtool.passes.decompose import decompose
from graphtool.passes.select import integer_convolution, integer_product
from graphtool.passes.select.channel_gates import gates
from graphtool.passes.select.convolution import conv
from graphtool.passes.select.long_sums import long_sum
from graphtool.passes.select.pooling import window
from graphtool.passes.select.product import Goal, cost_size, matmul
from graphtool.passes.select.recurrence import recurrence, recurrence_grad
from graphtool.passes.select.row_means import row_sums
from graphtool.passes.select.trailing_elementwise import follow
from graphtool.plan import Choice
from graphtool.symbolic import product
from graphtool.target import Target, named

# by op, and whether its elements are integers
CHOICES: dict[tuple[str, bool], Callable[[Goal, Node, Tracer, Tracer], Any]] = {
    ("matmul", False): matmul, ("conv", False): conv,
    ("matmul", True): integer_product.matmul, ("conv", True): integer_convolution.conv}


def select(graph: Graph, *, target: Target | None = None, rules: Rules | None = None,
           march: str = "", winograd: int = 4, notes: dict[str, str] | None = None,
           choices: dict[Value, Choice] | None = None) -> Graph:
    """The graph with contractions as ops of kernels, chosen by estimated cost or as tuned.

    `march` names another target than the given one; `winograd` is the largest output tile allowed
    (0, 2 or 4); `notes` receives, by the name of a node, what else decided, and `choices`,
    by its first result, what the plan of a node was chosen over.
    """
    aim = named(march or "native") if march or target is None else target
    allowed = rules or Rules()
    goal = Goal(aim, replace(allowed, winograd=min(winograd, allowed.winograd)),
                {} if notes is None else notes)

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if node.op.name == "reduce_sum" and isinstance(inputs[0], Value):
            x = Tracer(inputs[0], b)
            parts = row_sums(x, node.attrs) or long_sum(x, node.attrs)
            return None if parts is None else (parts,)
        if node.op.name in ("reduce_window", "extreme_tap"):
            return window(goal, node, Tracer(inputs[0], b)) if isinstance(
                inputs[0], Value) else None
        if Trait.ELEMENTWISE in node.op.traits:
            wide = follow(node, inputs, b)
            return None if wide is None else (wide,)
        if node.op.name == "recurrence":
            return recurrence(goal, node, operands_of(inputs, b))
        if node.op.name == "recurrence_grad":
            return recurrence_grad(goal, node, operands_of(inputs, b))
        if node.op.name == "attention":
            wide = [_widened(x) if isinstance(x, Tracer) else x for x in operands_of(inputs, b)]
            return _in_type(node, _attention(goal, node, wide))
        return _contraction(goal, node, inputs, b)
    # first, so that what composites contain is seen; then, as a refused attention brings softmax
    chosen = decompose(gates(goal, rebuild(decompose(graph), rewrite)))
    if choices is not None:
        choices |= goal.choices
    return chosen


def _contraction(goal: Goal, node: Node, inputs: tuple[Operand, ...],
                 b: Builder) -> Sequence[Any] | None:
    out = node.outputs[0].type
    choose = CHOICES.get((node.op.name, out.dtype.is_integer))
    if choose is None or out.dtype not in (dtypes.float32, dtypes.int32, *dtypes.HALVES):
        return None
    x, w = inputs
    if not isinstance(x, Value) or not isinstance(w, Value) or any(d == 0 for d in out.shape):
        return None
    made = choose(goal, node, Tracer(x, b), Tracer(w, b))
    return None if made is None else _in_type(node, made)


def _in_type(node: Node, out: Any) -> tuple[Any]:
    """The result in the type that the node's has."""
    own = node.outputs[0].type.dtype
    return (out if out.dtype is own else OPS["cast"](out, dtype=own),)


def _widened(x: Tracer) -> Tracer:
    """A product of narrow numbers is exact in float32, and is summed there."""
    return OPS["cast"](x, dtype=dtypes.float32) if x.dtype in dtypes.HALVES else x


def operands_of(inputs: tuple[Operand, ...], b: Builder) -> list[Any]:
    """The operands as ops take them: tracers, literals, None."""
    return [Tracer(x, b) if isinstance(x, Value) else x for x in inputs]


# ---- attention ---------------------------------------------------------------------------------

def _attention(goal: Goal, node: Node, operands: list[Any]) -> Any:
    """The kernel where it fits, else the ops that attention consists of."""
    q, k, v, mask = (*operands, None)[:4]
    a = node.attrs
    why = _unfit(q, v)
    goal.note(q, f"attention in its parts: the kernel {why}" if why else
              "attention by its kernel: float32, with heads of known number and size")
    if why:
        return node.op.decompose(*operands, **a)  # type: ignore[misc]
    given = () if mask is None or _hides_nothing(mask) else (_added(mask, q.dtype),)
    scale = a["scale"] if a["scale"] is not None else q.shape[-1] ** -0.5
    made = _chosen(goal, q, k, v, a["causal"], bool(given))
    return goal.planned(made, OPS["attend"], q, k, v, *given, causal=a["causal"], scale=scale,
                        softcap=a["softcap"])


def _chosen(goal: Goal, q: Tracer, k: Tracer, v: Tracer, causal: bool, masked: bool) -> Choice:
    """How many rows and keys are taken at a time, and over what that was chosen."""
    queries, keys, heads = q.shape[-2], k.shape[-2], product(q.shape[:-2])
    site = Attention(
        cost_size(heads), cost_size(queries), cost_size(keys), cost_size(q.shape[-1]),
        cost_size(v.shape[-1]), cost_size(q.shape[-3] // k.shape[-3]), causal, masked,
        fixed=all(isinstance(d, int) for d in (heads, queries, keys)))
    return choose(site, goal.target, goal.rules)


def _unfit(q: Tracer, v: Tracer) -> str:
    """What the kernel does not take, in words; empty where it fits."""
    if q.dtype is not dtypes.float32:
        return f"computes float32, not {q.dtype.name}"
    if q.ndim < 3:
        return "walks heads, and there is no axis of them"
    sizes = [d for x in (q, v) for d in (x.shape[-1], x.shape[-3])]
    if not all(isinstance(d, int) for d in sizes):
        return "wants to know how many heads there are, and their size"
    return "" if all(sizes) else "takes no empty heads"


def _hides_nothing(mask: Tracer) -> bool:
    node = mask.builder.made.get(mask.value)
    if node is None or node.op.name != "constant":
        return False
    data = node.attrs["data"].source
    return bool(data.all() if mask.dtype is dtypes.bool_ else not data.any())


def _added(mask: Any, dtype: DType) -> Any:
    """The mask as numbers to add, a row for each query."""
    if mask.dtype is dtypes.bool_:
        mask = OPS["select"](mask, OPS["cast"](mask, dtype=dtype) * 0.0, -math.inf)
    return mask if mask.ndim >= 2 else OPS["reshape"](mask, shape=(*(1,) * (2 - mask.ndim),
                                                                   *mask.shape))
