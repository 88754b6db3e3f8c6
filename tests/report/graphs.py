"""Random graphs, and what must not matter to a diff: other names, another order, fresh objects."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.trace import trace

WIDTH = 4


def module(graph: Graph) -> Module:
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))))


def layers(count: int, seed: int = 0, odd: int | None = None, extra: int | None = None,
           weights: int | None = None) -> Module:
    """x + relu(x·W + b), `count` times. In layer `odd` relu is tanh, in `extra` a neg comes after,
    in `weights` W is another."""
    rng = np.random.default_rng(seed)

    def body(x: Any) -> Any:
        for i in range(count):
            w = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)
            y = o.add(o.matmul(x, x.builder.constant(w + (i == weights), f"l{i}.w")),
                      x.builder.constant(np.zeros(WIDTH, np.float32) + i % 3, f"l{i}.b"))
            y = o.tanh(y) if i == odd else o.relu(y)
            x = o.add(x, o.neg(y) if i == extra else y)
        return x
    return module(trace(body, [TensorType(dtypes.float32, (2, WIDTH))]))


def random_module(seed: int, size: int = 30) -> Module:
    """A random acyclic graph of unary, binary and reshaping ops over two inputs."""
    rng = random.Random(seed)
    types = [TensorType(dtypes.float32, (WIDTH, WIDTH))] * 2

    def body(a: Any, b: Any) -> Any:
        values = [a, b]
        for i in range(size):
            x, y = rng.choice(values), rng.choice(values)
            match rng.randrange(6):
                case 0:
                    values.append(o.add(x, y))
                case 1:
                    values.append(o.matmul(x, y, transpose_b=rng.random() < 0.5))
                case 2:
                    values.append(o.mul(x, rng.choice((0.5, 2.0))))
                case 3:
                    values.append(o.transpose(x, perm=(1, 0)))
                case 4:
                    w = np.full((WIDTH, WIDTH), rng.choice((1.0, i)), np.float32)
                    values.append(o.sub(x, x.builder.constant(w)))
                case _:
                    values.append(o.exp(x))
        return tuple(values[-3:])
    return module(trace(body, types))


def disguised(m: Module, seed: int) -> Module:
    """The same module: every value and node anew, under other names, in another legal order."""
    rng = random.Random(seed)
    g = m.graph
    fresh = {v: Value(v.type, f"v{rng.randrange(10**9)}")
             for v in (*g.inputs, *(outs for n in g.nodes for outs in n.outputs))}
    nodes = [Node(n.op, tuple(fresh[x] if isinstance(x, Value) else x for x in n.inputs), n.attrs,
                  tuple(fresh[v] for v in n.outputs), "elsewhere") for n in shuffled(g, rng)]
    graph = Graph(tuple(fresh[v] for v in g.inputs), tuple(nodes),
                  tuple(fresh[v] for v in g.outputs))
    return replace(m, graph=graph, output_names=tuple(f"z{i}" for i in range(len(g.outputs))))


def shuffled(g: Graph, rng: random.Random) -> list[Node]:
    """The nodes in a random topological order."""
    ready = set(g.inputs)
    left, out = list(g.nodes), []
    while left:
        node = rng.choice([n for n in left if all(
            x in ready for x in n.inputs if isinstance(x, Value))])
        left.remove(node)
        out.append(node)
        ready.update(node.outputs)
    return out
