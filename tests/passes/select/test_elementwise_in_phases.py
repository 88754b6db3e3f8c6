"""What follows a transposed convolution, channel by channel, is computed in its phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Module, Node
from graphtool.kernels.choice.rules import rules_of
from graphtool.passes import run
from graphtool.target import named
from tests.passes.pass_samples import assert_same, module, values

PASSES = "select{march=x86-64-v4},simplify,fold,dce,fuse"


def network(c: int, out: int, then: Any, window: int = 2) -> Module:
    side = (window // 2, window // 2)

    def fn(x: Any) -> Any:
        w = values(x, out, c, window, window)
        return then(o.conv(x, w, channels_last=True, lhs_dilation=(2, 2), padding=(side, side)))
    return module(fn, f"f32[2,6,5,{c}]")


def whole(done: Module) -> list[Node]:
    """Elementwise ops on the interleaved result."""
    return [n for n in done.graph.nodes if Trait.ELEMENTWISE in n.op.traits
            and n.outputs[0].type.shape == done.graph.outputs[0].type.shape]


def bias(y: Any) -> Any:
    return y + values(y, y.shape[3])


def norm(y: Any) -> Any:
    return o.relu(bias(y * values(y, 1, 1, 1, y.shape[3])) * 0.5)


def sigmoid(y: Any) -> Any:
    return o.sigmoid(bias(y))


@pytest.mark.parametrize("then", [bias, norm, sigmoid])
@pytest.mark.parametrize(("c", "out", "window"), [
    (16, 24, 2), (16, 32, 4), (8, 3, 4)])  # the last: phases of a row are channels of one pixel
def test_runs_in_the_kernels_of_the_phases(c: int, out: int, window: int, then: Any) -> None:
    m = network(c, out, then, window)
    done = run(m, PASSES)
    assert not whole(done)
    assert_same(m, done, rtol=1e-4)


def test_what_reads_more_than_channels_stays_outside() -> None:
    def rows(y: Any) -> Any:
        return y + values(y, y.shape[1], y.shape[2], 1)

    def residual(y: Any) -> Any:
        return y + values(y, *y.shape)
    for then in (rows, residual):
        m = network(16, 24, then)
        done = run(m, PASSES)
        assert whole(done)
        assert_same(m, done, rtol=1e-4)


def test_two_results_of_the_phases() -> None:
    """What reads the phases twice reads both in each."""
    m = network(16, 24, lambda y: (o.relu(y) * y, y + 1.0))
    done = run(m, PASSES)
    assert not whole(done)
    assert_same(m, done, rtol=1e-4)


def test_phases_are_rounded_in_their_kernels() -> None:
    """Of a value that a convolution by a matrix unit reads beside others, as in a U-Net."""
    def fn(x: Any) -> Any:
        y = bias(o.conv(x, values(x, 32, 64, 2, 2), channels_last=True, lhs_dilation=(2, 2),
                        padding=((1, 1), (1, 1))))
        z = o.relu(o.conv(y, values(x, 32, 32, 1, 1), channels_last=True))
        both = o.concat(y, z, axis=3)
        return o.conv(both, values(x, 32, 64, 3, 3), channels_last=True, padding=((1, 1), (1, 1)))
    m = module(fn, "f32[1,16,16,64]")
    done = run(m, None, supply={"target": named("amx"), "rules": rules_of("fast")})
    of_kernels = {n for g in done.graph.groups for n in g.members if any(
        each.op.lowering is Lowering.TEMPLATE for each in g.members)}
    own = [n for n in done.graph.nodes if n.op is o.cast
           and n.attrs["dtype"] is dtypes.bfloat16 and n not in of_kernels]
    assert [n.inputs[0] for n in own] == list(done.graph.inputs)
    x = {"x0": np.random.default_rng(0).standard_normal((1, 16, 16, 64)).astype(np.float32)}
    (want,), (got,) = (tuple(interp.run(each, x).values()) for each in (m, done))
    assert float(np.abs(got - want).max()) < 0.02 * float(np.abs(want).max())
