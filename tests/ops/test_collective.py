"""Collectives among replicas in threads: their values, and their gradients against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, transforms
from graphtool import ops as o
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import trace
from graphtool.ops import collective

SIZE = 3
Array = np.ndarray[Any, Any]


def module(function: Any, *shape: int) -> Module:
    graph = trace(function, [TensorType(dtypes.float64, shape)], ["x"])
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))))


def everywhere(m: Module, xs: list[Array]) -> list[Array]:
    return collective.replicas(
        SIZE, lambda rank: next(iter(interp.run(m, {"x": xs[rank]}).values())))


def operands(*shape: int) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for _ in range(SIZE)]


KINDS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@pytest.mark.parametrize("kind", KINDS)
def test_all_reduce(kind: str) -> None:
    xs = operands(2, 5)
    whole = lambda x: o.all_reduce(x, kind=kind)  # noqa: E731
    for f in (whole, lambda x: o.all_reduce.decompose(x, kind=kind)):
        for y in everywhere(module(f, 2, 5), xs):
            np.testing.assert_allclose(y, KINDS[kind](np.stack(xs), 0), rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_and_scatter(axis: int) -> None:
    xs = operands(3, 6, 3)
    gathered = everywhere(module(lambda x: o.all_gather(x, axis=axis, size=SIZE), 3, 6, 3), xs)
    for y in gathered:
        np.testing.assert_array_equal(y, np.concatenate(xs, axis))
    parts = everywhere(module(lambda x: o.reduce_scatter(x, axis=axis, size=SIZE), 3, 6, 3), xs)
    for y, want in zip(parts, np.split(sum(xs), SIZE, axis), strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-15)


def test_broadcast() -> None:
    xs = operands(2, 3)
    for f in (lambda x: o.broadcast_first(x), lambda x: o.broadcast_first.decompose(x)):
        for y in everywhere(module(f, 2, 3), xs):
            np.testing.assert_array_equal(y, xs[0])


CASES: dict[str, Any] = {
    **{k: lambda x, k=k: o.all_reduce(x, kind=k) for k in KINDS},
    "gather": lambda x: o.all_gather(x, axis=1, size=SIZE),
    "scatter": lambda x: o.reduce_scatter(x, axis=0, size=SIZE),
    "broadcast": lambda x: o.broadcast_first(x)}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_sum_of_all_losses(name: str) -> None:
    xs, step = operands(3, 2), 1e-6
    direction = operands(3, 2)[::-1]

    def loss(x: Any) -> Any:
        y = CASES[name](x)
        return o.reshape(o.reduce_sum(o.tanh(y) * y, axes=tuple(range(y.ndim))), shape=())
    m = module(loss, 3, 2)
    joint = transforms.grad(m.graph, 0, [m.graph.inputs[0]])
    grads = everywhere(Module(Graph(joint.inputs, joint.nodes, joint.outputs[1:]), ("g",)), xs)
    ends = [sum(everywhere(m, [x + s * d for x, d in zip(xs, direction, strict=True)]))
            for s in (step, -step)]
    found = sum((g * d).sum() for g, d in zip(grads, direction, strict=True))
    assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_a_replica_that_fails_ends_all() -> None:
    def one(rank: int) -> None:
        if rank == 1:
            raise ZeroDivisionError
        collective.current().exchange(rank)
    with pytest.raises((ZeroDivisionError, GraphtoolError)):
        collective.replicas(2, one)
    m = module(lambda x: o.all_gather(x, axis=0, size=2), 3)
    with pytest.raises(GraphtoolError, match="2 processes"):
        interp.run(m, {"x": np.zeros(3)})
