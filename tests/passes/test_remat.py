"""remat: the same values in less memory, through the whole pipeline to the arena of the library."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import costs, made_up
from graphtool.compile.as_is import build
from graphtool.dtypes import float32
from graphtool.errors import InputError, UsageError
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify_module
from graphtool.lower.arena import arena_of
from graphtool.passes.remat import curve
from graphtool.passes.remat.min_cut import Network
from graphtool.target import named
from graphtool.transforms.training import Recipe, training
from tests.lower.compiling import compiled, optimised


def step(**more: Any) -> Module:
    """A training step of three blocks, each of a norm, a wide layer and a narrow one."""
    def model(x: Any) -> Any:
        for n in range(3):
            with x.builder.scope(f"h.{n}"):
                up, down = (x.builder.constant(RNG.normal(size=shape).astype(np.float32) / 10,
                                               f"h.{n}.{name}", param=True)
                            for name, shape in (("up", (256, 64)), ("down", (64, 256))))
                wide = o.gelu(o.linear(o.layer_norm(x, axes=(1,)), up))
                x = x + o.linear(wide, down)
        return x
    graph = trace(model, [TensorType(float32, (256, 64))], ["x"])
    return training(Module(graph, ("out",)), Recipe("mse", **more))


RNG = np.random.default_rng(0)
STEP = step()
GIVEN = made_up.random_inputs(STEP, 3)


def peak(module: Module) -> Any:
    return costs.peak(module.graph, costs.placeless(module.graph)).bytes


@pytest.mark.parametrize("budget", ["0.0", "0.5", "1.0"])
def test_keeps_the_values(budget: str) -> None:
    found = passes.run(STEP, f"remat{{budget={budget}}}")
    verify_module(found)
    assert (found is STEP) == (budget == "1.0")
    want = interp.run(STEP, GIVEN)
    for name, x in interp.run(found, GIVEN).items():
        np.testing.assert_array_equal(x, want[name])


def test_the_peak_is_within_the_budget() -> None:
    plans = curve(STEP)
    peaks = [p.peak for p in plans]
    assert len(plans) > 3 and peaks == sorted(peaks, reverse=True) and peaks[-1] < 0.7 * peaks[0]
    assert [p.flops for p in plans] == sorted(p.flops for p in plans)
    for budget in peaks[1:]:
        assert peak(passes.run(STEP, f"remat{{budget={budget}}}")) <= budget


def test_products_are_computed_again_only_where_they_must() -> None:
    def kinds(budget: str) -> set[str]:
        graph = passes.run(STEP, f"remat{{budget={budget}}}").graph
        return {n.op.name for n in graph.nodes if n.outputs[0].hint.endswith(".again")}
    assert "matmul" not in kinds("0.4") and "gelu" in kinds("0.4")
    assert "matmul" in kinds("0.0")


def test_no_pass_merges_what_is_computed_again(tmp_path: Path) -> None:
    """The arena of the compiled step shrinks, and the values are those of the plain one."""
    arenas, results = [], []
    for name, module in (("all", STEP), ("less", passes.run(STEP, "remat{budget=0.0}"))):
        optimal = optimised(module)
        model = compiled(optimal, tmp_path / name)
        results.append(model.run(GIVEN))
        arenas.append(json.loads((tmp_path / name / "build.json").read_text())["arena"])
    assert arenas[1] < 0.75 * arenas[0]
    for k, x in results[0].items():
        np.testing.assert_allclose(results[1][k], x, rtol=1e-5, atol=1e-6)


def test_the_arena_of_the_compiled_step_is_within_the_budget(tmp_path: Path) -> None:
    module = step(optimizer="sgd")
    arena = arena_of(named("native"))
    plans = curve(module, arena)
    assert len(plans) >= 2 and plans[0].peak == arena(module)
    for budget in {plans[0].peak - 1, plans[-1].peak}:
        found = graphtool.optimize(module, f"remat{{budget={budget}}}")
        build(found, tmp_path / str(budget))
        row = json.loads((tmp_path / str(budget) / "build.json").read_text())
        assert plans[-1].peak <= row["arena"] <= budget
    with pytest.raises(InputError, match=f"at least {plans[-1].peak:,}"):
        graphtool.optimize(module, f"remat{{budget={plans[-1].peak - 1}}}")


def test_deterministic() -> None:
    texts = {serial.dumps(passes.run(STEP, "remat{budget=0.3}"), embed=True) for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize(("budget", "error", "code"), [
    ("1000", InputError, "GT0620"), ("2.5", UsageError, "GT0603"), ("lots", UsageError, "GT0603"),
    ("3XB", UsageError, "GT0603")])
def test_what_is_refused(budget: str, error: type[Exception], code: str) -> None:
    with pytest.raises(error) as found:
        passes.run(STEP, f"remat{{budget={budget}}}")
    assert found.value.code == code  # type: ignore[attr-defined]


def test_checkpoints() -> None:
    marked = step(checkpoint=("h.0", "h.2"))
    again = [n.outputs[0].hint for n in marked.graph.nodes
             if n.outputs[0].hint.endswith(".again") and n.op.name != "barrier"]
    assert again and all(h.startswith(("h.0.", "h.2.")) for h in again)
    assert any("linear" in h for h in again)
    with pytest.raises(InputError) as found:
        step(checkpoint=("h.7",))
    assert found.value.code == "GT0621"


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_the_least(seed: int) -> None:
    """Against every way to divide seven nodes."""
    rng = np.random.default_rng(seed)
    room = rng.integers(0, 9, (7, 7)) * (rng.random((7, 7)) < 0.5)
    network = Network(7)
    for a, b in np.argwhere(room):
        network.edge(int(a), int(b), int(room[a, b]))
    sides = [{0, *c} for n in range(6) for c in combinations(range(1, 6), n)]

    def cost(side: set[int]) -> int:
        return int(sum(room[a, b] for a in side for b in range(7) if b not in side))
    assert cost(network.cut(0, 6)) == min(map(cost, sides))
