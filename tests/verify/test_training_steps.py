"""A training graph beside its build: the step is compared, and what only the graph gives is not."""

from __future__ import annotations

from pathlib import Path

import graphtool
from graphtool.transforms.training import Recipe, training
from graphtool.verify import sides
from graphtool.verify.check import check
from tests.passes.pass_samples import SAMPLES


def test_a_training_graph_beside_its_build(tmp_path: Path) -> None:
    module = training(SAMPLES["convnet"], Recipe("mse", optimizer="sgd"))
    graph = sides.of_module(module)
    build = sides.of_build(graphtool.build(module, tmp_path / "b"))
    inputs = sides.made_up((), (graph, build), 0, {})
    for pair in ((graph, build), (build, graph)):
        report = check(*pair, inputs, None, 1e-4)
        names = [d.name for d in report.outputs]
        assert report.ok and "loss" in names and "eval_loss" not in names
        assert {*names[1:]} >= {n for n in build.state if n in graph.state}
