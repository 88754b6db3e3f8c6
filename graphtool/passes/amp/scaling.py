"""The loss scale for training in float16, as nodes of the graph. It is a part of `amp`, not a pass.

The backward pass starts from the scale instead of from 1, so that small gradients do not underflow
in float16; the optimizer gets the gradients divided by the scale. If a gradient is infinite or NaN,
the step keeps the old state and makes the scale smaller; after many good steps it gets larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.composites import need_gradients, seed
from graphtool.errors import InputError
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.trace import Builder, Tracer

SCALE, GOOD = "loss_scale", "loss_scale.good_steps"
# state that counts the optimizer's steps and does not depend on gradients
COUNTERS = ("step", "micro")


@dataclass(frozen=True)
class Scaling:
    """The first scale, its factor after `interval` good steps in a row, and its factor after a
    bad step."""

    start: float
    growth: float
    backoff: float
    interval: int


def scaled(module: Module, how: Scaling) -> Module:
    """The training graph with the scale and the number of good steps as further state."""
    return _Scaler(module, how).run()


class _Scaler:
    def __init__(self, module: Module, how: Scaling) -> None:
        self.module, self.how, self.graph = module, how, module.graph
        self.builder = Builder()
        self.scale = self.builder.input(TensorType(dtypes.float32, ()), SCALE)
        self.good = self.builder.input(TensorType(dtypes.int64, ()), GOOD)
        self.marks = dict.fromkeys(need_gradients(module.graph))
        self.seed = seed(module.graph)
        if self.seed is None or module.meta["training"].get("distributed"):
            raise InputError("GT0628", "the backward pass is no longer as `graphtool grad` made it",
                             hint="run amp first, on the file that `graphtool grad` wrote")

    def run(self) -> Module:
        swapped: dict[Value, Value] = {}
        finite: Any = None
        last = next(n for n in reversed(self.graph.nodes) if n.outputs[0] in self.marks)
        for node in self.graph.nodes:
            self.builder.add(_reading(node, swapped))
            if self.seed in node.outputs:
                swapped |= self.started()
            if node is last:  # after all marks: other gradients may have to be ready first
                divided, finite = self.divided()
                swapped |= divided
        return self.finished(finite)

    def started(self) -> dict[Value, Value]:
        """Replace the 1 from which the backward pass starts by the scale."""
        assert self.seed is not None
        with self.builder.scope(SCALE):
            start = o.reshape(o.cast(self.scale, dtype=self.seed.type.dtype),
                              shape=self.seed.type.shape)
        return {self.seed: start.value}

    def divided(self) -> tuple[dict[Value, Value], Any]:
        """Divide the gradients by the scale, and compute whether all of them are finite.

        If one is not finite, the optimizer gets zeros. All nodes that use the optimizer's results
        therefore wait for this test, and can overwrite the old state in place.
        """
        finite: Any = None
        for v in self.marks:
            g = Tracer(v, self.builder)
            # their sum is finite only if all of them are
            with self.builder.scope(f"{v.hint}.finite"):
                total = o.reduce_sum(g, axes=tuple(range(g.ndim)))
                whole = o.reshape(o.is_finite(total), shape=())
                finite = whole if finite is None else o.and_(finite, whole)
        out: dict[Value, Value] = {}
        for v in self.marks:
            g = Tracer(v, self.builder)
            with self.builder.scope(f"{v.hint}.unscaled"):
                kept = o.select(finite, g, 0.0)
                out[v] = (kept / o.cast(self.scale, dtype=g.dtype)).value
        return out, finite

    def finished(self, finite: Any) -> Module:
        """The results: the old state if a gradient is not finite, and the new state of the
        scale."""
        m, given = self.module, 1 + len(self.module.donations)
        outputs = list(self.graph.outputs[:given])
        touched = self.behind_gradients()
        with self.builder.scope(SCALE):
            for out, i in m.donations:
                old, new = self.graph.inputs[i], outputs[out]
                if new in touched or m.output_names[out] in COUNTERS:
                    outputs[out] = o.select(finite, Tracer(new, self.builder),
                                            Tracer(old, self.builder)).value
            scale, good = self.moved(finite)
        inputs = (*self.graph.inputs, self.scale.value, self.good.value)
        n = len(self.graph.inputs)
        graph = Graph(inputs, tuple(self.builder.nodes),
                      (*outputs, scale, good, *self.graph.outputs[given:]))
        return replace(
            m, graph=graph, donations=(*m.donations, (given, n), (given + 1, n + 1)),
            output_names=(*m.output_names[:given], SCALE, GOOD, *m.output_names[given:]),
            initial={**m.initial, n: weight(np.full((), self.how.start, np.float32))})

    def moved(self, finite: Any) -> tuple[Value, Value]:
        """The scale and the number of good steps after this step."""
        full = o.eq(self.good + 1, self.how.interval)
        up = o.select(full, self.scale * self.how.growth, self.scale)
        scale = o.select(finite, up, self.scale * self.how.backoff)
        good = o.select(o.and_(finite, o.not_(full)), self.good + 1, 0)
        return scale.value, good.value

    def behind_gradients(self) -> set[Value]:
        """All nodes that depend on the gradients that the optimizer reads."""
        out: set[Value] = set(self.marks)
        for node in self.graph.nodes:
            if any(x in out for x in node.inputs if isinstance(x, Value)):
                out.update(node.outputs)
        return out


def _reading(node: Node, swapped: dict[Value, Value]) -> Node:
    """The node with some of its operands replaced."""
    inputs = tuple(swapped.get(x, x) if isinstance(x, Value) else x for x in node.inputs)
    return node if inputs == node.inputs else replace(node, inputs=inputs)
