"""Gates scale the weights where the image is larger, and only where one gate serves all rows."""

from typing import Any

import pytest

from graphtool import ops as o
from graphtool.passes import run
from tests.passes.pass_samples import assert_same, module, values

PASSES = "select{march=x86-64-v4},simplify,fold,dce,fuse"


def excited(x: Any, shape: tuple[int, ...], out: int) -> Any:
    """x gated by what it is on average, times weights."""
    c = x.shape[-1]
    g = o.reduce_mean(x, axes=(1, 2))
    g = o.reshape(o.sigmoid(g), shape=shape)
    return o.conv(g * x, values(x, out, c, 1, 1), channels_last=True)


@pytest.mark.parametrize(("size", "shape", "out", "scaled"), [
    ((1, 40, 33, 24), (1, 1, 1, 24), 20, True),
    ((1, 40, 33, 24), (24,), 20, True),
    ((2, 40, 33, 24), (2, 1, 1, 24), 20, False),  # a gate for each image
    ((1, 2, 3, 64), (1, 1, 1, 64), 100, False),  # the weights are larger
])
def test_gates(size: tuple[int, ...], shape: tuple[int, ...], out: int, scaled: bool) -> None:
    m = module(lambda x: excited(o.relu(x), shape, out), f"f32[{','.join(map(str, size))}]")
    new = run(m, PASSES)
    wide = [n for n in new.graph.nodes if n.op.name == "mul" and n.outputs[0].type.shape == size]
    assert bool(wide) != scaled
    assert_same(m, new, rtol=1e-4)


def test_what_others_read_is_multiplied() -> None:
    def fn(x: Any) -> Any:
        y = x * o.reduce_max(x, axes=(1, 2))
        return o.conv(y, values(x, 20, 24, 1, 1), channels_last=True), y
    m = module(fn, "f32[1,40,33,24]")
    new = run(m, PASSES)
    assert any(n.outputs[0].type.shape == (1, 40, 33, 24) for n in new.graph.nodes
               if n.op.name == "mul")
    assert_same(m, new, rtol=1e-4)
