"""Large constants are computed if the graph's constants do not grow; small ones: fold/*.txt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.passes.fold import fold
from tests.passes.pass_samples import module, values


def scaled(w: Any) -> Any:
    return w * o.rsqrt(o.reduce_sum(w * w, axes=(0,)))


CASES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "repacking": (lambda x: o.matmul(x, o.transpose(values(x, 600, 600), perm=(1, 0))),
                  ["constant", "matmul"]),
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


def test_weights_that_are_rounded_for_a_kernel_are_packed() -> None:
    """Also where they are read as they are, as an embedding that is the head too."""
    w = np.arange(12, dtype=np.float32).reshape(3, 4)

    def model(i: Any) -> Any:
        table = i.builder.constant(w)
        packed = o.pack_pairs(o.cast(table, dtype=dtypes.bfloat16), nr=4)
        return o.gather(table, i, axes=(0,)), packed
    graph = trace(model, [TensorType(dtypes.int64, (2, 1))], ["i"])
    done = fold(graph, max_bytes=0)
    assert [n.op.name for n in done.nodes if n.op.name != "constant"] == ["gather"]
