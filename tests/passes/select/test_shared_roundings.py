"""What products read rounded, other readers read rounded too where it is large, in `fast`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.ir.graph import Module, Node
from graphtool.kernels.choice.rules import rules_of
from graphtool.passes import run
from graphtool.target import named
from tests.passes.pass_samples import module, values

SIZES = {"large": 64, "small": 8}


def residual(size: int) -> Module:
    """Two blocks of convolutions, the second around the result of the first."""
    def fn(x: Any) -> Any:
        y = o.relu(o.conv(x, values(x, 48, 48, 3, 3), padding=((1, 1), (1, 1)),
                          channels_last=True))
        z = o.conv(y, values(x, 48, 48, 3, 3), padding=((1, 1), (1, 1)), channels_last=True)
        return o.relu(z + y)
    return module(fn, f"f32[1,{size},{size},48]")


def wide_readers(done: Module) -> list[Node]:
    """The additions that read the result of the first block in float32 as it was computed."""
    cast = {n.inputs[0] for n in done.graph.nodes
            if n.op is o.cast and n.attrs["dtype"] is dtypes.bfloat16}
    return [n for n in done.graph.nodes if n.op is o.add and cast.intersection(n.inputs)]


@pytest.mark.parametrize(("size", "precision", "shared"), [
    ("large", "fast", True), ("small", "fast", False), ("large", "default", False)])
def test_a_residual_is_stored_once(size: str, precision: str, shared: bool) -> None:
    before = residual(SIZES[size])
    done = run(before, None, supply={"target": named("amx"), "rules": rules_of(precision)})
    rounds = [n for n in done.graph.nodes if n.op is o.cast
              and n.attrs["dtype"] is dtypes.bfloat16 and n.outputs[0].type.shape[3] == 48]
    widens = [n for n in done.graph.nodes if n.op is o.cast
              and n.attrs["dtype"] is dtypes.float32]
    assert len(rounds) == (2 if precision == "fast" else 0)
    assert len(widens) == (1 if shared else 0)
    assert len(wide_readers(done)) == (1 if size == "small" else 0)
    x = {"x0": np.random.default_rng(0).standard_normal(
        (1, SIZES[size], SIZES[size], 48)).astype(np.float32)}
    (want,), (got,) = (tuple(interp.run(m, x).values()) for m in (before, done))
    assert float(np.abs(got - want).max()) < 0.01 * float(np.abs(want).max())


def test_a_result_of_the_graph_stays_exact() -> None:
    def fn(x: Any) -> Any:
        y = o.relu(o.conv(x, values(x, 48, 48, 1, 1), channels_last=True)) * 2.0
        return y, o.conv(y, values(x, 48, 48, 3, 3), channels_last=True) + 1.0, y + 1.0
    done = run(module(fn, "f32[1,64,64,48]"), None,
               supply={"target": named("amx"), "rules": rules_of("fast")})
    assert not [n for n in done.graph.nodes if n.op is o.cast
                and n.attrs["dtype"] is dtypes.float32]
