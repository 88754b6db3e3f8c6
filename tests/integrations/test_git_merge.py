"""The three-way merge of graph files: what two sides did to different nodes, and what conflicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.integrations.git.merge import Merge, merge
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.report.diff import diff
from tests.report.graphs import disguised, layers, module, random_module

W = np.arange(16, dtype=np.float32).reshape(4, 4)


def text(m: Module) -> bytes:
    return serial.dumps(m).encode()


def net(first: Callable[[Any], Any] = o.relu, last: Callable[[Any], Any] = o.tanh, *,
        weight: float = 0.0, between: Callable[[Any], Any] = lambda x: x,
        width: int = 2) -> Module:
    """first, a product, what is `between`, last."""
    def body(x: Any) -> Any:
        y = o.matmul(first(x), x.builder.constant(W + weight, "w", param=True))
        return last(between(y))
    return module(trace(body, [TensorType(dtypes.float32, (width, 4))]))


def merged(base: Module, ours: Module, theirs: Module) -> Merge:
    return merge(*map(text, (base, ours, theirs)))


def graph(found: Merge) -> Module:
    assert not found.conflicts
    return serial.loads(found.text)


CLEAN = {
    "two ops": (net(o.exp), net(last=o.exp), net(o.exp, o.exp)),
    "an op and a weight": (net(o.exp), net(weight=1), net(o.exp, weight=1)),
    "an op beside a new node": (net(o.exp), net(between=o.neg), net(o.exp, between=o.neg)),
    "a type and a new node": (net(width=3), net(between=o.neg), net(width=3, between=o.neg)),
    "the same change": (net(o.exp), net(o.exp), net(o.exp)),
    "the same new node": (net(between=o.neg), net(between=o.neg), net(between=o.neg)),
    "a removed node and an op": (net(lambda x: x), net(last=o.exp), net(lambda x: x, o.exp)),
    "only ours": (net(o.exp), net(), net(o.exp)),
    "only theirs": (net(), net(o.exp), net(o.exp)),
}


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("swapped", [False, True])
def test_changes_of_different_nodes_are_merged(name: str, swapped: bool) -> None:
    ours, theirs, wanted = CLEAN[name]
    found = graph(merged(net(), *((theirs, ours) if swapped else (ours, theirs))))
    assert diff(found, wanted).equal
    x = np.linspace(-1, 1, 4 * wanted.graph.inputs[0].type.shape[0],  # type: ignore[operator]
                    dtype=np.float32).reshape(-1, 4)
    name = wanted.graph.inputs[0].hint
    for a, b in zip(interp.run(found, {name: x}).values(), interp.run(wanted, {name: x}).values(),
                    strict=True):
        assert np.array_equal(a, b)


CONFLICTS = {
    "two ops for one": (net(o.exp), net(o.neg), "relu: exp on our side, neg on theirs"),
    "two weights for one": (net(weight=1), net(weight=2), "the data of @w: "),
    "two nodes at one place": (net(between=o.neg), net(between=o.exp), "operand 0 of tanh: "),
    "removed and changed": (net(lambda x: x), net(o.exp), "relu: removed on our side, changed on "
                                                          "theirs"),
    "two types of an input": (net(width=3), net(width=5), "the data of x"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_changes_of_one_node_are_a_conflict(name: str) -> None:
    ours, theirs, told = CONFLICTS[name]
    found = merged(net(), ours, theirs)
    assert found.text == "" and any(c.startswith(told) for c in found.conflicts), found.conflicts


def test_what_one_side_removed_the_other_must_not_read() -> None:
    def more(x: Any) -> Any:
        y = o.relu(x)
        return o.tanh(o.matmul(y, x.builder.constant(W, "w", param=True))), o.neg(y)
    reading = module(trace(more, [TensorType(dtypes.float32, (2, 4))]))
    found = merged(net(), net(lambda x: x), reading)
    assert any("which the other side removed" in c for c in found.conflicts)


@pytest.mark.parametrize("seed", range(5))
def test_names_and_order_do_not_count(seed: int) -> None:
    """Our side renames and reorders everything, theirs changes a layer."""
    found = graph(merged(layers(6, seed), disguised(layers(6, seed), seed),
                         layers(6, seed, odd=3)))
    assert diff(found, layers(6, seed, odd=3)).equal


@pytest.mark.parametrize("seed", range(5))
def test_layers_changed_apart(seed: int) -> None:
    found = graph(merged(layers(8, seed), layers(8, seed, odd=1, extra=6), layers(8, seed, odd=4)))
    kinds = [n.op.name for n in found.graph.nodes]
    assert kinds.count("tanh") == 2 and kinds.count("neg") == 1


@pytest.mark.parametrize("seed", range(10))
def test_a_side_without_changes_gives_the_other(seed: int) -> None:
    base, other = random_module(seed), random_module(seed + 100)
    assert diff(graph(merged(base, base, other)), other).equal
    assert diff(graph(merged(base, other, base)), other).equal


def test_changes_that_make_no_graph_together() -> None:
    """One side's weight has a shape that the other side's change does not fit."""
    def sized(n: int, between: Callable[[Any], Any]) -> Module:
        def body(x: Any) -> Any:
            return between(o.matmul(x, x.builder.constant(
                np.zeros((4, n), np.float32), "w", param=True)))
        return module(trace(body, [TensorType(dtypes.float32, (2, 4))]))
    found = merged(sized(4, o.relu), sized(5, o.relu),
                   sized(4, lambda y: o.relu(o.reshape(y, shape=(4, 2)))))
    assert found.conflicts and "make no graph" in found.conflicts[0]


def test_loops_are_merged_whole() -> None:
    def looped(inner: Callable[[Any], Any], after: Callable[[Any], Any]) -> Module:
        body = trace(lambda c, x: (c, inner(x)), [TensorType(dtypes.float32, (4,))] * 2)

        def outer(c: Any, xs: Any) -> Any:
            return after(o.scan(c, xs, body=body, carries=1, xs=1, length=3)[1])
        return module(trace(outer, [TensorType(dtypes.float32, (4,)),
                                    TensorType(dtypes.float32, (3, 4))]))
    base = looped(o.relu, o.neg)
    found = graph(merged(base, looped(o.exp, o.neg), looped(o.relu, o.abs)))
    assert diff(found, looped(o.exp, o.abs)).equal
    assert merged(base, looped(o.exp, o.neg), looped(o.tanh, o.neg)).conflicts
