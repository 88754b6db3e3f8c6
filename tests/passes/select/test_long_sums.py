"""Long sums over outer axes take two steps; others stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import ops as o
from graphtool.passes import run
from tests.passes.pass_samples import assert_same, module


def summed(shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return module(lambda x: o.reduce_sum(x, axes=axes), f"f32[{','.join(map(str, shape))}]")


@pytest.mark.parametrize(("shape", "axes", "steps"), [
    ((8, 16, 24, 5), (0, 1, 2), [(1, 2), (0,)]), ((8, 90, 80, 5), (0, 1, 2), [(2,), (0, 1)]),
    ((64, 3, 64), (0, 1), [(0, 1)]), ((4, 8, 32, 32), (0, 2, 3), [(0, 2, 3)]),
    ((4096, 8), (0,), [(0,)]), ((64, 5, 64, 3), (0, 2), [(2,), (0,)])])
def test_steps(shape: tuple[int, ...], axes: tuple[int, ...], steps: Any) -> None:
    m = summed(shape, axes)
    new = run(m, "select")
    assert [n.attrs["axes"] for n in new.graph.nodes if n.op.name == "reduce_sum"] == steps
    assert_same(m, new, rtol=1e-4)


def test_an_open_size_is_left_alone() -> None:
    m = module(lambda x: o.reduce_sum(x, axes=(0, 1)), "f32[B,64,4]")
    assert len(run(m, "select").graph.nodes) == 1
