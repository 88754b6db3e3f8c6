"""Each node of a training step has its phase, and what passes make of it keeps that."""

from __future__ import annotations

import pytest

import graphtool
from graphtool.analysis.phases import phase_of, phases
from graphtool.transforms.training import Recipe, programs, training
from tests.transforms.training.models import cnn


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    network, x = cnn()
    module = training(graphtool.import_model(network.eval(), (x,)),
                      Recipe("cross_entropy", optimizer="adamw", clip_norm=1.0, accumulate=2))
    return phases(programs(module)["step"])


@pytest.mark.parametrize(("label", "phase"), [
    ("0.conv.conv.pad", "forward"), ("loss.cross_entropy", "forward"),
    ("1.batch_norm.add", "forward"),  # of the running statistics
    ("0.conv.grad.conv#2.pack", "backward"), ("optimizer.add", "optimizer"),
    ("0.weight.adamw.mul#3 + 0.weight.adamw.sub", "optimizer"),
    ("7.linear.matmul.grad.matmul#2 + 7.weight.adamw.mul", "backward+optimizer"),
    ("nowhere", "")])
def test_phases(known: dict[str, str], label: str, phase: str) -> None:
    assert phase_of(label, known) == phase
