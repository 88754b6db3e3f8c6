"""Batch norms and dropout: which norms use the statistics of a batch, how the running statistics
move, and the inference form of a model that was captured in training mode.

What a model states is kept: in one captured in training mode, a norm in inference mode stays so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import UsageError
from graphtool.io.weights import Weight, weight
from graphtool.ir.facets import Trait
from graphtool.ir.graph import (
    Graph,
    Module,
    Node,
    Operand,
    TensorType,
    Value,
    is_constant,
    producers,
)
from graphtool.ir.replay import rebuild
from graphtool.ir.text import value_names
from graphtool.ir.trace import Builder, Tracer
from graphtool.ops.common import count
from graphtool.transforms.training.recipe import Recipe
from graphtool.transforms.training.state import closed

COUNTER = "num_batches_tracked"  # beside the running statistics, in torch


def inference(graph: Graph, donations: Sequence[tuple[int, int]], dropout: bool = False) -> Graph:
    """The graph without randomness; `donations` show which input belongs to which batch norm.

    Returns the same graph if there is nothing to change. With `dropout` that is kept.
    """
    norms = moving(graph, donations)
    if not (norms or (drops(graph) and not dropout)):
        return graph

    def rewrite(node: Node, xs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        operands: list[Any] = [Tracer(x, b) if isinstance(x, Value) else x for x in xs]
        if node.op is o.dropout and not dropout:
            x, state = operands
            kept = b.constant(np.ones((1,) * x.ndim, bool))
            return x, o.broadcast(kept, shape=x.shape), state
        if node not in norms:
            return None
        mean, var = (Tracer(norms[node][i], b) for i in (1, 2))
        x, scale, bias = (*operands, None, None)[:3]
        return o.batch_norm(x, scale, bias, mean, var, **node.attrs), mean, var
    return rebuild(graph, rewrite)


def moving(graph: Graph, donations: Sequence[tuple[int, int]]) -> dict[Node, dict[int, Value]]:
    """For each batch norm with running statistics that move, the inputs whose new values are
    computed from its mean (1) and its variance (2)."""
    made_by = producers(graph)
    out: dict[Node, dict[int, Value]] = {}
    for new, old in donations:
        pending, seen = [graph.outputs[new]], set[Value]()
        while pending:
            v = pending.pop()
            node = made_by.get(v)
            if node is None or v in seen:
                continue
            seen.add(v)
            if node.op is o.batch_norm_training:
                out.setdefault(node, {})[node.outputs.index(v)] = graph.inputs[old]
            elif Trait.ELEMENTWISE in node.op.traits:
                pending += [x for x in node.inputs if isinstance(x, Value)]
    return {node: row for node, row in out.items() if len(row) == 2}


def trained(module: Module, recipe: Recipe) -> list[Node]:
    """The batch norms that use statistics of the model, and are to use those of the batch.

    Raises UsageError GT0624 for a momentum that nothing uses.
    """
    wanted = recipe.batch_norm if recipe.batch_norm is not None else not in_training(module)
    norms = learning(module.graph) if wanted else []
    if recipe.batch_norm_momentum is not None and not norms:
        raise UsageError("GT0624", "no batch norm is changed to use statistics of the batch, so "
                                   "the momentum has no effect",
                         hint="a model that was captured in training mode has its own; "
                              "--batch-norm changes the norms that are in inference mode")
    return norms


def norm_note(module: Module, recipe: Recipe) -> str:
    """What the default chose for batch norms of a model captured in inference mode; empty if it had
    no choice."""
    norms = trained(module, recipe) if recipe.batch_norm is None else []
    if not norms:
        return ""
    shares = sorted({"the mean over all batches" if m is None else f"{m:g}" for m in (
        n.attrs["momentum"] if recipe.batch_norm_momentum is None else recipe.batch_norm_momentum
        for n in norms)})
    return (f"the model is in inference mode, so without dropout; its {len(norms)} batch "
            f"norm{'s' * (len(norms) != 1)} are trained with the statistics of each batch "
            f"(momentum {', '.join(shares)}), as in training mode; --frozen-batch-norm keeps them")


def in_training(module: Module) -> bool:
    """Whether the model was captured in training mode: so it says, or it has dropout, or running
    statistics that move."""
    mode = module.meta.get("mode")
    if mode is not None:
        return bool(mode == "training")
    return drops(module.graph) or bool(moving(module.graph, module.donations))


def drops(graph: Graph) -> bool:
    """Whether the graph has dropout."""
    return any(n.op is o.dropout for n in graph.nodes)


def learning(graph: Graph) -> list[Node]:
    """The batch norms whose statistics are arrays of the model."""
    made_by = producers(graph)
    return [n for n in graph.nodes if n.op is o.batch_norm and all(
        isinstance(v, Value) and is_constant(made_by.get(v)) for v in n.inputs[3:5])]


def frozen(module: Module) -> Module:
    """The module in which all batch norms use the statistics that they have."""
    norms = moving(module.graph, module.donations)
    if not norms:
        return module
    names = value_names(module.graph)
    stems = {names[v].removesuffix("running_mean") for row in norms.values() for v in row.values()}
    still = {v for row in norms.values() for v in row.values()} | {
        v for v in module.graph.inputs if names[v] in {s + COUNTER for s in stems}}
    graph = inference(module.graph, module.donations, dropout=True)
    return closed(replace(module, graph=graph), still)


def counters(module: Module, chosen: Sequence[Node]) -> dict[Value, tuple[Value, Weight]]:
    """By the mean of each norm the count of its batches, as an input, and where it starts: where
    the model has such a count, or the norm needs one."""
    names = value_names(module.graph)
    result: dict[Value, tuple[Value, Weight]] = {}
    for node in chosen:
        mean = node.inputs[3]
        assert isinstance(mean, Value)
        name = names[mean].lstrip("@").removesuffix("running_mean") + COUNTER
        if name in module.kept or node.attrs["momentum"] is None:
            start = module.kept.get(name) or weight(np.zeros((), np.int64))
            result.setdefault(mean, (Value(TensorType(dtypes.int64, ()), name), start))
    return result


def by_batches(graph: Graph, chosen: Collection[Node], recipe: Recipe,
               counts: Mapping[Value, Value]) -> tuple[Graph, list[tuple[Value, Value]]]:
    """The graph with the chosen norms in training form, and pairs of an input of the graph and its
    new value: the running statistics, and the counts of batches by the mean that they belong to.

    A norm that runs twice moves its statistics twice, as in torch.
    """
    moved: dict[Value, Any] = {}

    def rewrite(node: Node, xs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if node not in chosen:
            return None
        operands: list[Any] = [Tracer(v, b) if isinstance(v, Value) else v for v in xs]
        x, scale, bias, mean, var = operands
        axis = node.attrs["axis"] % x.ndim
        y, now_mean, now_var = o.batch_norm_training(
            x, scale, bias, epsilon=node.attrs["epsilon"], axis=axis)
        if mean.value not in graph.inputs:
            return (y,)
        n = count(x, tuple(a for a in range(x.ndim) if a != axis))
        rate: Any = recipe.batch_norm_momentum
        rate = node.attrs["momentum"] if rate is None else rate
        if seen := counts.get(mean.value):
            moved[seen] = moved.get(seen, Tracer(seen, b)) + 1
            rate = 1.0 / o.cast(moved[seen], dtype=mean.dtype) if rate is None else rate
        for old, now in ((mean, now_mean), (var, now_var * (n / (n - 1.0)))):
            moved[old.value] = moved.get(old.value, old) * (1 - rate) + now * rate
        return (y,)
    changed = rebuild(graph, rewrite)
    return changed, [(old, new.value) for old, new in moved.items()]
