"""Synthetic graphs of a wanted size, for timing the compiler: residual blocks, one after another.

Each block mixes what real models have: a product with weights of its own, a bias, an activation, a
normalisation over the last axis, a residual, and shape changes that cancel.
"""

from __future__ import annotations

import itertools
from typing import Any

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


def onnx_chain(nodes: int) -> Any:
    """An ONNX model of the same blocks, whose constants are initializers and nodes."""
    from onnx import TensorProto, helper, numpy_helper
    weights = [np.full((WIDTH, WIDTH), i, np.float32) for i in range(DISTINCT)]
    arrays = {"flat": np.array([ROWS * WIDTH]), "rows": np.array([ROWS, WIDTH])}
    rows: list[Any] = []
    x = "x"
    for i in itertools.count():
        if len(rows) >= nodes:
            break
        at = f"block{i}"
        arrays |= {f"{at}.weight": weights[i % DISTINCT], f"{at}.bias": weights[i % DISTINCT][0]}
        one = numpy_helper.from_array(np.float32(1), "one")
        for op, *names in (("MatMul", x, f"{at}.weight", f"{at}.matmul"),
                           ("Add", f"{at}.matmul", f"{at}.bias", f"{at}.add"),
                           ("Relu", f"{at}.add", f"{at}.relu"),
                           ("Reshape", f"{at}.relu", "flat", f"{at}.flat"),
                           ("Reshape", f"{at}.flat", "rows", f"{at}.rows"),
                           ("Softmax", f"{at}.rows", f"{at}.softmax"),
                           ("Mul", f"{at}.softmax", f"{at}.one", f"{at}.mul"),
                           ("Add", f"{at}.mul", x, f"{at}.y")):
            if op == "Mul":
                rows.append(helper.make_node("Constant", [], [f"{at}.one"], value=one))
            rows.append(helper.make_node(op, names[:-1], names[-1:]))
        x = f"{at}.y"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, WIDTH])
            for name in ("x", x)]
    graph = helper.make_graph(rows, "chain", ends[:1], ends[1:], [
        numpy_helper.from_array(a, name) for name, a in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
