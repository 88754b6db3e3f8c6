"""The gradients of slices of one value: joined where they are disjoint, added where they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import dtypes, transforms
from graphtool import ops as o
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace

CASES: list[tuple[list[tuple[Any, Any, Any]], bool]] = [  # (start, limit, strides), joined
    ([((0, 0), (2, 5), (1, 1)), ((2, 0), (6, 5), (1, 1))], True),
    ([((3, 0), (6, 5), (1, 1)), ((1, 0), (2, 5), (1, 1))], True),
    ([((0, 0), (4, 5), (1, 1)), ((2, 0), (6, 5), (1, 1))], False),
    ([((0, 0), (2, 5), (1, 1)), ((2, 0), (6, 3), (1, 1))], False),
    ([((0, 0), (6, 5), (2, 1)), ((1, 0), (6, 5), (2, 1))], False),
    ([((0, 0), (6, 5), (1, 1)), ((0, 0), (6, 5), (1, 1))], False),
    ([((0, 1), (6, 2), (1, 1)), ((0, 2), (6, 4), (1, 1))], True)]


@pytest.mark.parametrize(("cuts", "joined"), CASES, ids=range(len(CASES)))
def test_gradients_of_slices(cuts: Any, joined: bool) -> None:
    def f(x: Any) -> Any:
        square = x * x
        parts = [o.slice(square, start=a, limit=b, strides=s) for a, b, s in cuts]
        total = None
        for i, p in enumerate(parts):
            term = o.reduce_sum(o.exp(p * (i + 1.0)), axes=(0, 1))
            total = term if total is None else total + term
        return total
    graph = trace(f, [TensorType(dtypes.float64, (6, 5))])
    joint = transforms.grad(graph, 0, graph.inputs)
    assert any(n.op.name == "concat" for n in joint.nodes) == joined
    x = np.random.default_rng(0).standard_normal((6, 5))
    _, found = evaluate_graph(joint, [x], Setting())
    t = torch.from_numpy(x).requires_grad_()
    total = sum(torch.exp((t * t)[a[0]:b[0]:s[0], a[1]:b[1]:s[1]] * (i + 1)).sum()
                for i, (a, b, s) in enumerate(cuts))
    total.backward()  # type: ignore[union-attr]
    assert t.grad is not None
    np.testing.assert_allclose(found, t.grad.numpy(), rtol=1e-12)
