"""model.safetensors against torch's state_dict: strict loading, and starting from torch's file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import graphtool
from graphtool.compile import as_is
from graphtool.errors import GraphtoolError
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.train import checkpoint
from graphtool.train.dataset import load
from graphtool.train.loop import Plan, Trainer
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training, with_weights

IDS = torch.tensor([1, 2, 3])


class Every(nn.Module):
    """Tied, frozen, complex and unread parameters; buffers that are saved, and one that is not;
    two norms with equal statistics."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.e, self.h = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.h.weight = self.e.weight
        self.f = nn.Linear(4, 4).requires_grad_(False)
        self.n, self.m = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
        self.unread = nn.Linear(2, 2)
        self.c = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.register_buffer("one", torch.ones(4), persistent=False)
        self.register_buffer("places", torch.arange(3))
        self.two = torch.ones(4) * 2

    def forward(self, i: torch.Tensor) -> torch.Tensor:
        x = self.m(self.n(self.f(self.e(i)))) + self.one + self.two
        return self.h((x * self.c).real)


def imported(how: str, tmp_path: Path) -> Module:
    if how != "pt2":
        return graphtool.import_model(Every().eval(), (IDS,), capture=how)
    torch.export.save(torch.export.export(Every().eval(), (IDS,)), tmp_path / "m.pt2")
    return graphtool.import_model(tmp_path / "m.pt2")


@pytest.mark.parametrize("how", ["export", "fx", "pt2"])
def test_entries_are_those_of_torch(how: str, tmp_path: Path) -> None:
    module = imported(how, tmp_path)
    for suffix in (".graph.json", ".gt"):
        serial.save(module, tmp_path / f"m{suffix}")
        assert serial.dumps(serial.load(tmp_path / f"m{suffix}")) == serial.dumps(module)
    step = training(module, Recipe("cross_entropy", optimizer="sgd"))
    assert set(step.meta["training"]["model"]) == set(Every().state_dict())


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Path:
    """A build, its data, and a run of two epochs."""
    path: Path = tmp_path_factory.mktemp("every")
    module = graphtool.import_model(Every().eval(), (IDS,))
    as_is.build(training(module, Recipe("cross_entropy", optimizer="adam")), path / "b", exe=True)
    rng = np.random.default_rng(0)
    np.savez(path / "d.npz", i=rng.integers(0, 6, 12), y=rng.integers(0, 6, 12))
    model = TrainModel(path / "b", 1)
    Trainer(model, load(path / "d.npz", model, 0.0, 0, True),
            Plan(epochs=2, batch=3, run=path / "r")).run()
    return path


def by_c(run: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(run / "b" / "model"), "--data", str(run / "d.npz"), "--batch", "3",
                           *map(str, args)], capture_output=True, text=True)


def test_torch_loads_it_strictly(run: Path, tmp_path: Path) -> None:
    found = safetensors.torch.load_file(run / "r" / checkpoint.MODEL)
    model = Every().eval()
    before = {n: t.clone() for n, t in model.state_dict().items()}
    assert model.load_state_dict(found, strict=True) is not None
    moved = {n for n, t in model.state_dict().items() if not torch.equal(t, before[n])}
    still = {"f.weight", "f.bias", "unread.weight", "unread.bias", "places"}
    assert moved == set(before) - still and found["n.num_batches_tracked"] == 8
    want = model(IDS).detach().numpy()
    predicted = TrainModel(run / "b", 1)
    checkpoint.start(predicted, checkpoint.read(run / "r" / checkpoint.MODEL), "")
    np.testing.assert_allclose(predicted.predict({"i": IDS.numpy()})[0], want, atol=2e-5)
    graph, count = with_weights(graphtool.import_model(Every().eval(), (IDS,)),
                                checkpoint.read(run / "r" / checkpoint.MODEL))
    np.testing.assert_allclose(next(iter(graphtool.evaluate(graph, {"i": IDS.numpy()}).values())),
                               want, atol=2e-5)
    assert count == 13 and graph.kept["n.num_batches_tracked"].source == 8


def test_the_program_writes_and_reads_the_same(run: Path, tmp_path: Path) -> None:
    first = (run / "r" / checkpoint.MODEL).read_bytes()
    assert by_c(run, "--epochs", 2, "--checkpoint", tmp_path / "c").returncode == 0
    assert (tmp_path / "c" / checkpoint.MODEL).read_bytes() == first
    done = by_c(run, "--epochs", 0, "--start", run / "r" / checkpoint.MODEL, "--checkpoint",
                tmp_path / "s")
    assert done.returncode == 0 and (tmp_path / "s" / checkpoint.MODEL).read_bytes() == first


@pytest.mark.parametrize(("name", "value", "says"), [
    ("f.bias", torch.ones(4), "fixed"), ("places", torch.arange(3) + 1, "fixed"),
    ("h.weight", torch.ones(6, 4), "tied"), ("e.weight", torch.full((6, 4), np.nan), "NaN"),
    ("c", torch.full((4,), np.nan, dtype=torch.complex64), "NaN"), ("m.bias", None, "needs"),
    ("c", torch.ones(4), "type|complex"), ("n.bias", torch.ones(5), "shape"),
    ("n.num_batches_tracked", torch.tensor(7), None), ("n.num_batches_tracked", None, None),
    ("unread.bias", None, None)])
def test_what_cannot_be_a_start(run: Path, tmp_path: Path, name: str, value: Any,
                                says: str | None) -> None:
    """The program and the library take and refuse the same; None: they take it."""
    tensors = dict(safetensors.torch.load_file(run / "r" / checkpoint.MODEL))
    tensors[name] = value
    safetensors.torch.save_file({n: t.clone() for n, t in tensors.items() if t is not None},
                                tmp_path / "m.safetensors")
    done = by_c(run, "--epochs", 0, "--start", tmp_path / "m.safetensors")
    model = TrainModel(run / "b", 1)
    if says is None:
        assert done.returncode == 0, done.stderr
        checkpoint.start(model, checkpoint.read(tmp_path / "m.safetensors"), "")
        return
    assert done.returncode == 3 and "GT3076" in done.stderr and re.search(says, done.stderr)
    with pytest.raises(GraphtoolError, match=says) as fault:
        checkpoint.start(model, checkpoint.read(tmp_path / "m.safetensors"), "")
    assert fault.value.code == "GT3076"
