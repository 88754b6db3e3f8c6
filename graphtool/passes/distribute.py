"""distribute: makes the gradients of a training graph means over all processes.

Tensors are put into buckets in the order in which they are ready. The reduction of a bucket starts
where its last tensor is made and ends before its first use, so that the backward pass runs in
between. Nothing can run during the reduction of the last bucket, so it ends where it starts.

Statistics of batch norm are averaged too, so that all processes have the same state; each process
normalises its own share of the batch. All processes have the same random state, but each draws its
own numbers: a step combines the key of the state with the rank of the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.composites import need_gradients
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Module, Node, Operand, TensorType, Value
from graphtool.ir.trace import Builder, Tracer
from graphtool.ops.collective import flattened, parted
from graphtool.symbolic import product

RANDOM = TensorType(dtypes.uint64, (2,))  # a random state: key and counter
_SPREAD = 0x9E3779B97F4A7C15  # odd, so that each rank gives a different key


def distribute(module: Module, *, bucket: int = 25 << 20) -> Module:
    """The training graph for several processes: its gradients become means over all of them.

    They are exchanged in buckets of about `bucket` bytes. Raises InputError GT0617 for a graph that
    is not a training graph, GT0628 if a pass has dropped the marks of its gradients.
    """
    roles = module.meta.get("training")
    if not isinstance(roles, dict):
        raise InputError("GT0617", "the graph is not a training graph",
                         hint="make one with graphtool grad MODEL --loss … --optimizer adam")
    if roles.get("distributed"):
        return module
    graph = _Distributor(module, need_gradients(module.graph), bucket).run()
    return replace(module, graph=graph, meta={**module.meta, "training": {
        **roles, "distributed": True}})


@dataclass
class _Bucket:
    members: list[Value] = field(default_factory=list)
    bytes: int = 0
    begun: tuple[Any, Any, Any] | None = None  # the flat array, its reduction, the ticket


class _Distributor:
    def __init__(self, module: Module, grads: Sequence[Value], limit: int) -> None:
        self.module, self.graph, self.limit = module, module.graph, limit
        self.position = {v: i for i, n in enumerate(self.graph.nodes) for v in n.outputs}
        # the optimizer reads a mark after the whole backward pass; the marked value is ready
        # earlier
        self.grads = {g: self.graph.nodes[self.position[g]].inputs[0] for g in grads}
        self.builder = Builder()
        # a gradient → the value that its readers read instead
        self.swapped: dict[Value, Value] = {}

    def run(self) -> Graph:
        self.draw_apart()
        buckets = self.buckets([*self.grads, *self.own_results()])
        begins: dict[int, list[_Bucket]] = {}
        for b in buckets:
            begins.setdefault(max(map(self.ready, b.members)), []).append(b)
        last = max(begins, default=0)
        home = {v: b for b in buckets for v in b.members}
        for i, node in enumerate(self.graph.nodes):
            for x in node.inputs:
                if isinstance(x, Value) and x in self.grads and x not in self.swapped:
                    self.end(home[x])
            self.builder.add(self.reading(node))
            for b in begins.get(i, ()):
                self.begin(b, buckets.index(b), i == last)
        for b in buckets:
            if b.members[0] not in self.swapped:
                self.end(b)
        given = 1 + len(self.module.donations)
        outputs = tuple(self.swapped.get(v, v) if i < given else v
                        for i, v in enumerate(self.graph.outputs))
        return Graph(self.graph.inputs, tuple(self.builder.nodes), outputs)

    def draw_apart(self) -> None:
        """Each process reads random states combined with its rank; the states that it returns
        are without it."""
        state = {i: out for out, i in self.module.donations
                 if self.graph.inputs[i].type == RANDOM}
        random = [i for i in state if self.graph.outputs[state[i]] is not self.graph.inputs[i]]
        if not random:
            return
        builder, inputs = Builder(), self.graph.inputs
        with builder.scope("rank"):
            key = o.reshape(o.cast(builder.emit(o.process_rank, (), {}),
                                   dtype=RANDOM.dtype), shape=(1,)) * _SPREAD
            fold = o.concat(key, builder.constant(np.zeros(1, np.uint64)), axis=0)
            keys = {inputs[i]: o.xor(Tracer(inputs[i], builder), fold).value for i in random}
        for node in self.graph.nodes:
            xs = tuple(keys.get(x, x) if isinstance(x, Value) else x for x in node.inputs)
            builder.add(node if xs == node.inputs
                        else replace(node, inputs=xs))
        outputs = list(self.graph.outputs)
        with builder.scope("rank"):
            for i in random:
                after = Tracer(outputs[state[i]], builder)
                outputs[state[i]] = o.xor(after, fold).value
        self.graph = Graph(inputs, tuple(builder.nodes), tuple(outputs))
        self.position = {v: i for i, n in enumerate(self.graph.nodes) for v in n.outputs}

    def own_results(self) -> list[Value]:
        """The loss and those parts of the state that differ between processes: they depend on
        the data not only through gradients."""
        state = {self.graph.inputs[i] for _, i in self.module.donations}
        differs = {v for v in self.graph.inputs if v not in state and v.hint != "lr"}
        for node in self.graph.nodes:
            if any(x in differs for x in node.inputs if isinstance(x, Value)):
                differs.update(v for v in node.outputs if v not in self.grads)
        kept = self.graph.outputs[:1 + len(self.module.donations)]
        return list(dict.fromkeys(v for v in kept if v in differs and v.type.dtype.is_float))

    def source(self, v: Value) -> Value:
        """The value that is reduced for v."""
        x = self.grads.get(v, v)
        assert isinstance(x, Value)
        return x

    def ready(self, v: Value) -> int:
        return self.position.get(self.source(v), 0)

    def buckets(self, values: Sequence[Value]) -> list[_Bucket]:
        """The buckets in the order in which their values are made; each has one dtype, and all
        sizes must be known."""
        done: list[_Bucket] = []
        open_: dict[str, _Bucket] = {}
        for v in sorted(dict.fromkeys(values), key=self.ready):
            size = product(v.type.shape) * v.type.dtype.bytes
            if not isinstance(size, int):
                raise InputError("GT0628", f"the gradient {v.hint}: {v.type} has no fixed size")
            b = open_.setdefault(v.type.dtype.name, _Bucket())
            if not b.members:
                done.append(b)
            b.members.append(v)
            b.bytes += size
            if b.bytes >= self.limit:
                del open_[v.type.dtype.name]
        return done

    def begin(self, b: _Bucket, number: int, now: bool) -> None:
        with self.builder.scope(f"bucket{number}"):
            xs = [Tracer(self.source(v), self.builder) for v in b.members]
            whole = flattened(xs, "mean")
            b.begun = whole, *o.collective_begin(whole, kind="sum", now=now)

    def end(self, b: _Bucket) -> None:
        assert b.begun is not None  # a gradient is read after the whole backward pass
        with self.builder.scope("mean"):
            whole = o.collective_end(*b.begun)
            xs = [Tracer(v, self.builder) for v in b.members]
            for v, mean in zip(b.members, parted(whole, xs, "mean"), strict=True):
                self.swapped[v] = mean.value

    def reading(self, node: Node) -> Node:
        def swap(x: Operand) -> Operand:
            return self.swapped.get(x, x) if isinstance(x, Value) and x in self.grads else x
        inputs = tuple(map(swap, node.inputs))
        return node if inputs == node.inputs else replace(node, inputs=inputs)
