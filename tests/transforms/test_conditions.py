"""Conditions on open sizes are kept, and checked, by every transformation and by training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.errors import InputError
from graphtool.ir.graph import Module
from graphtool.ir.verify import verify_module
from graphtool.symbolic import symbols
from graphtool.train.model import TrainModel
from graphtool.transforms.modules import jvp, vmap
from graphtool.transforms.training import Recipe, programs, training
from tests.importers.onnx.build import checked, model, node, random

W = random(3, 3)


def regression() -> Module:
    """Predictions for N rows and targets for M: the loss requires M == N, unless one is 1.

    `predict` knows no M.
    """
    return checked(model(["y = MatMul(x, w)", "d = Sub(y, t)", "q = Mul(d, d)",
                          node("loss = ReduceSum(q)", keepdims=0)],
                         ["x f32 N 3", "t f32 M 3"], ["loss f32", "y f32 N 3"], {"w": W}))


def step(module: Module) -> Module:
    return training(module, Recipe("loss", optimizer="sgd"))


CHANGES: dict[str, Callable[[Module], Module]] = {
    "grad": lambda m: training(m, Recipe("loss")),
    "jvp": lambda m: jvp(m, ["x"]),
    "vmap": lambda m: vmap(m, size=2),
    "a step": step,
    "remat": lambda m: passes.run(step(m), "remat{budget=0.5}"),
    "chunk": lambda m: passes.run(m, "chunk{size=2}"),
    "optimised": lambda m: passes.run(m, None),
}


def feed(module: Module, n: int, m: int) -> dict[str, Any]:
    sizes = {"N": n, "M": m}
    return made_up.random_inputs(module, 0, sizes)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_graph_keeps_its_conditions(name: str) -> None:
    changed = CHANGES[name](regression())
    verify_module(changed)
    assert [str(e) for e in changed.requires] == ["M == N or M == 1 or N == 1"]
    interp.run(changed, feed(changed, 4, 4))
    with pytest.raises(InputError, match="M == N or M == 1 or N == 1 does not hold"):
        interp.run(changed, feed(changed, 4, 3))


def test_a_compiled_step_checks_conditions(tmp_path: Path) -> None:
    compiled = TrainModel(build(step(regression()), tmp_path / "b", exe=True), 1)
    x, t = random(4, 3), random(4, 3)
    before = compiled.step({"x": x, "t": t}, 0.01)
    assert compiled.step({"x": x, "t": t}, 0.01) < before
    for run in (lambda b: compiled.step(b, 0.01), compiled.loss):
        with pytest.raises(InputError, match="M == N or M == 1 or N == 1 does not hold"):
            run({"x": x, "t": t[:3]})
    _, y = compiled.predict({"x": x, "t": t})
    np.testing.assert_allclose(y, x @ compiled.state["w"], rtol=1e-4, atol=1e-5)


def test_a_part_gets_the_inputs_that_tell_its_sizes() -> None:
    """What t predicts has M rows, which the graph calls N: `predict` gets x for that."""
    module = checked(model(["a = Add(x, t)", "y = MatMul(t, w)", "d = Mul(a, y)"],
                           ["x f32 N 3", "t f32 M 3"], ["d f32 N 3", "y f32 N 3"], {"w": W}))
    parts = programs(training(module, Recipe("mse", optimizer="sgd")))
    for part in parts.values():
        verify_module(part)
        names = {s.name for e in part.requires for d in (e.left, e.right) for s in symbols(d)}
        assert names <= part.symbols.keys()
    assert not parts["init"].requires and parts["predict"].requires
