"""Synthetic graphs of a wanted size, for timing the compiler: residual blocks, one after another.

Each block mixes what real models have: a product with weights of its own, a bias, an activation, a
normalisation over the last axis, a residual, and shape changes that cancel.
"""

from __future__ import annotations

import itertools

import numpy as np

import graphtool.ops  # noqa: F401  (fills the table of ops)
from graphtool import ops as o
from graphtool.dtypes import float32
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder, Tracer

ROWS, WIDTH, DISTINCT = 4, 8, 64


def chain(nodes: int) -> Module:
    """A module of at least so many nodes, and at most one block more."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) for _ in range(DISTINCT)]
    biases = [rng.standard_normal(WIDTH).astype(np.float32) for _ in range(DISTINCT)]
    builder = Builder()
    x = first = builder.input(TensorType(float32, (ROWS, WIDTH)), "x")
    for i in itertools.count():
        if len(builder.nodes) >= nodes:
            break
        with builder.scope(f"block{i}"):
            x = _block(builder, x, i, weights[i % DISTINCT], biases[i * 7 % DISTINCT])
    return Module(Graph((first.value,), tuple(builder.nodes), (x.value,)), ("y",))


def _block(builder: Builder, x: Tracer, i: int, w: np.ndarray, bias: np.ndarray) -> Tracer:
    y = o.matmul(x, builder.constant(w, f"block{i}.weight", True))
    y = o.relu(y + builder.constant(bias, f"block{i}.bias", True))
    y = o.reshape(o.reshape(y, shape=(ROWS * WIDTH,)), shape=(ROWS, WIDTH))
    total: Tracer = o.softmax(y, axis=1) * 1.0 + x
    return total
