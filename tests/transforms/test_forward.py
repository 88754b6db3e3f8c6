"""Directional derivatives: of every case against differences, of loops and models against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, transforms
from graphtool.ir.graph import Graph
from graphtool.ir.verify import verify
from tests.cases import Case
from tests.evaluating import run
from tests.transforms.test_regions import PROGRAMS
from tests.transforms.test_reverse import ONE_EACH, graph_of

F64 = dtypes.float64


def agrees_with_vjp(graph: Graph, xs: Any) -> None:
    """⟨g, J·dx⟩ = ⟨Jᵀ·g, dx⟩, and the outputs stay as they are."""
    rng = np.random.default_rng(2)
    wrt = [v for v in graph.inputs if v.type.dtype is F64]
    forward, joint = transforms.jvp(graph, wrt), transforms.vjp(graph, wrt)
    verify(forward)
    tangents = [rng.normal(size=v.type.shape) for v in wrt]
    cotangents = [rng.normal(size=v.type.shape) for v in graph.outputs if v.type.dtype is F64]
    own = len(graph.outputs)
    out = run(forward, [*xs, *tangents])
    for a, b in zip(out[:own], run(graph, xs), strict=True):
        np.testing.assert_array_equal(a, b)
    grads = run(joint, [*xs, *cotangents])[own:]
    ours = sum(np.sum(a * b) for a, b in zip(out[own:], cotangents, strict=True))
    theirs = sum(np.sum(a * b) for a, b in zip(grads, tangents, strict=True))
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", ONE_EACH, ids=repr)
def test_every_op(case: Case) -> None:
    agrees_with_vjp(*graph_of(case))


@pytest.mark.parametrize("name", PROGRAMS)
def test_branches_and_loops(name: str) -> None:
    graph, _, given = PROGRAMS[name]
    agrees_with_vjp(graph, list(given))
    forward = transforms.jvp(graph, [v for v in graph.inputs if v.type.dtype is F64])
    assert not any(v.hint.endswith("cotangent") for v in forward.inputs)


def test_the_cost_is_linear() -> None:
    """Of a chain of products: one product more for each, none of the first backward pass left."""
    from graphtool import ops as o
    from graphtool.ir.graph import TensorType
    from graphtool.ir.trace import trace
    square = TensorType(F64, (3, 3))

    def chain(x: Any, w: Any) -> Any:
        for _ in range(5):
            x = o.tanh(o.matmul(x, w))
        return x
    graph = trace(chain, [square, square])
    forward = transforms.jvp(graph, graph.inputs[:1])
    assert [n.op.name for n in forward.nodes].count("matmul") == 10
