"""unroll: when it fires, when it must not, and that values stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.ir.graph import Module
from graphtool.ir.trace import trace
from graphtool.passes.unroll import unroll
from tests.passes.pass_samples import module, tensor


def scanned(length: int, reverse: bool = False) -> Module:
    def cell(h: Any, x: Any, s: Any) -> Any:
        return o.add(o.mul(h, s), x), o.tanh(h)
    body = trace(cell, [tensor("f32[4]")] * 3)
    return module(lambda h, xs, s: o.scan(h, xs, s, body=body, carries=1, xs=1, length=length,
                                          reverse=reverse),
                  "f32[4]", f"f32[{length},4]", "f32[4]")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 3, 16])
def test_few_turns_are_written_out(length: int, reverse: bool) -> None:
    m = scanned(length, reverse)
    after = passes.run(m, "unroll")
    assert "scan" not in {n.op.name for n in after.graph.nodes}
    feed = interp.random_inputs(m, 1)
    for name, want in interp.run(m, feed).items():
        np.testing.assert_array_equal(interp.run(after, feed)[name], want)
    assert unroll(after.graph) is after.graph


def test_many_turns_stay_a_loop() -> None:
    graph = scanned(40).graph
    assert unroll(graph) is graph
    assert unroll(graph, max_nodes=120) is not graph


@pytest.mark.parametrize("yes", [True, False])
def test_a_decided_branch_is_taken(yes: bool) -> None:
    then, orelse = trace(lambda x: o.neg(x), [tensor("f32[4]")]), trace(
        lambda x: o.exp(x), [tensor("f32[4]")])
    m = module(lambda x: o.cond(x.builder.constant(np.asarray(yes)), x, then=then, orelse=orelse),
               "f32[4]")
    assert [n.op.name for n in unroll(m.graph).nodes] == ["neg" if yes else "exp"]
