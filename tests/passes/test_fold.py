"""What is constant is computed, if it does not grow the constants by more than the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.dtypes import int64
from graphtool.ir.trace import like
from graphtool.passes.fold import fold
from tests.passes.pass_samples import B, module, values


def scaled(w: Any) -> Any:
    return w * o.rsqrt(o.reduce_sum(w * w, axes=(0,)))


CASES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "chain": (lambda x: x + o.exp(values(x, 4) * 2.0), ["constant", "add"]),
    "no operands": (lambda x: o.cast(x, dtype=int64) + like(
        x, o.iota, shape=(4,), axis=0, dtype=int64), ["constant", "cast", "add"]),
    "composite": (lambda x: x + o.softmax(values(x, 4), axis=0), ["constant", "add"]),
    "parameter": (lambda x: x + o.exp(values(x, 4, param=True)), ["constant", "exp", "add"]),
    "repacking": (lambda x: o.matmul(x, o.transpose(values(x, 600, 600), perm=(1, 0))),
                  ["constant", "matmul"]),
    "too large": (lambda x: x + o.reduce_sum(o.broadcast(values(x, 1), shape=(600, 600)),
                                             axes=(0, 1)),
                  ["constant", "broadcast", "reduce_sum", "add"]),
    "a weight of a norm": (lambda x: o.matmul(x, scaled(values(x, 600, 600))),
                           ["constant", "matmul"]),
    "fails": (lambda x: x + o.gather(values(x, 2), x.builder.constant(
        np.array([[7]])), axes=(0,)), ["constant", "constant", "gather", "add"]),
}
TYPES = {"repacking": "f32[1,600]", "a weight of a norm": "f32[1,600]"}


@pytest.mark.parametrize("name", CASES)
def test_folds(name: str) -> None:
    fn, wanted = CASES[name]
    new = fold(module(fn, TYPES.get(name, "f32[4]")).graph)
    assert sorted(n.op.name for n in new.nodes) == sorted(wanted)


def test_unknown_size_stays() -> None:
    graph = module(lambda x: like(x, o.iota, shape=(B,), axis=0, dtype=int64), "f32[B]").graph
    assert fold(graph) is graph


def test_budget() -> None:
    graph = module(lambda x: x + o.broadcast(values(x, 1), shape=(100,)), "f32[100]").graph
    assert fold(graph, max_bytes=100) is graph
    assert len(fold(graph, max_bytes=400).nodes) == 2


@pytest.mark.parametrize("ids, ops", [
    (None, ["cast", "constant", "gather"]), ([[3], [9]], ["add", "constant"])])
def test_a_table_of_which_rows_are_drawn_stays_narrow(ids: Any, ops: list[str]) -> None:
    """But not where the rows are known."""
    def rows(x: Any) -> Any:
        table = o.cast(x.builder.constant(np.ones((90, 60), np.int8)), dtype=int64)
        if ids is None:
            return o.gather(table, x, axes=(0,))
        return o.gather(table, x.builder.constant(np.array(ids)), axes=(0,)) + x
    graph = fold(module(rows, "i64[2,1]").graph)
    assert sorted(n.op.name for n in graph.nodes) == ops


def test_shared_constant_counts_as_growth() -> None:
    def shared(x: Any) -> Any:
        w = values(x, 600, 600)
        return o.matmul(x, w), o.matmul(x, w * 2.0)
    graph = module(shared, "f32[1,600]").graph
    assert fold(graph) is graph


def test_another_order_of_a_shared_constant_does_not() -> None:
    def shared(x: Any) -> Any:
        w = values(x, 600, 600)
        return o.matmul(x, w), o.matmul(x, o.transpose(w, perm=(1, 0)))
    graph = fold(module(shared, "f32[1,600]").graph)
    assert [n.op.name for n in graph.nodes if n.op.name != "constant"] == ["matmul", "matmul"]


def test_keeps_the_name() -> None:
    graph = fold(module(lambda x: x + o.exp(values(x, 4, name="w")), "f32[4]").graph)
    assert graph.nodes[0].outputs[0].hint == "exp"
