"""Training steps compiled for other CPUs than this one: the evaluator's losses and state."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool.compile.as_is import build
from graphtool.target import detect, named
from graphtool.train import checkpoint
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.native.test_cross import COMPILERS, INSTALLED, ROOT
from tests.transforms.training.models import cnn, mlp, steps
from tests.transforms.training.test_compiled import LENGTH, Recurrent, Transformer

MARCHES = ("x86-64", "x86-64-v3", "native")
STEPS = 3
X86 = platform.machine() == "x86_64"
SMALL = ("mlp_b64", "lenet_b64", "resnet8_cifar_b32", "transformer_enc_b16", "gpt2_tiny_b4",
         "lstm_b32")


def small(name: str) -> tuple[Any, Any, Any, Recipe]:
    """A network, an input, labels for it, and a recipe."""
    import torch
    torch.manual_seed(0)
    if name in ("mlp", "cnn"):
        network, x = {"mlp": mlp, "cnn": cnn}[name]()
    elif name == "lstm":
        network, x = Recurrent(), torch.randn(4, 9, 6)
    else:
        network, x = Transformer(), torch.randint(0, 50, (3, LENGTH))
    out = network(x)
    y = torch.randint(0, out.shape[-1], out.shape[:-1])
    return network, x, y, Recipe("cross_entropy{axis=-1}", optimizer="adamw", clip_norm=1.0)


def checked(network: Any, x: Any, y: Any, recipe: Recipe, march: str, folder: Path,
            rtol: float = 1e-4) -> None:
    if not X86 or named(march).lanes > detect().lanes:
        pytest.skip(f"this machine is no {march}")
    module = training(graphtool.import_model(network.eval(), (x,)), recipe)
    build(module, folder, target=named(march))
    compiled = TrainModel(folder, 2)
    batch = {compiled.inputs[0]: x.numpy(), "y": y.numpy()}
    found = [compiled.step(batch, 1e-3) for _ in range(STEPS)]
    losses, state = steps(module, [batch] * STEPS, 1e-3)
    np.testing.assert_allclose(found, losses, rtol=rtol)
    near({n: compiled.state[n] for n in compiled.row.model}, state)


def near(found: dict[str, Any], want: dict[str, Any]) -> None:
    """Whole arrays are near: Adam turns the rounding of a gradient near 0 into a step of its own.
    """
    for n, a in found.items():
        apart = np.linalg.norm(a - want[n])
        assert apart <= 2e-3 * np.linalg.norm(want[n]) + 1e-5 * np.sqrt(a.size), n


@pytest.mark.part(2)
@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("name", ["cnn", *(pytest.param(n, marks=pytest.mark.slow)
                                           for n in ("mlp", "lstm", "transformer"))])
def test_three_steps(name: str, march: str, tmp_path: Path) -> None:
    checked(*small(name), march, tmp_path / "b")


@pytest.mark.slow
@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("name", SMALL)
def test_models_of_the_training_bench(name: str, march: str, tmp_path: Path) -> None:
    from benchmarks.models.tasks import TASKS
    from benchmarks.models.trained import make
    checked(*make(name), Recipe("cross_entropy", optimizer=TASKS[name].recipe), march,
            tmp_path / "b", 1e-3)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-user is not installed")
@pytest.mark.parametrize("name", ["cnn", "lstm", "transformer"])
@pytest.mark.parametrize("cc", sorted(COMPILERS))
def test_arm(cc: str, name: str, tmp_path: Path) -> None:
    """The stand-alone program trains a step at a time on the whole of the data."""
    if not INSTALLED[cc]:
        pytest.skip(f"{COMPILERS[cc]} is not installed")
    network, x, y, recipe = small(name)
    module = training(graphtool.import_model(network.eval(), (x,)), recipe)
    build(module, tmp_path / "b", target=named("armv8-a"), cc=COMPILERS[cc], exe=True)
    ports = json.loads((tmp_path / "b" / "build.json").read_text())["inputs"]
    batch = {ports[0]["name"]: x.numpy(), "y": y.numpy()}
    np.savez(tmp_path / "d.npz", **batch)
    subprocess.run(["qemu-aarch64", "-L", ROOT, str(tmp_path / "b" / "model"), "--data",
                    str(tmp_path / "d.npz"), "--batch", str(len(x)), "--epochs", str(STEPS),
                    "--no-shuffle", "--lr", "1e-3", "--checkpoint", str(tmp_path / "r")],
                   check=True, capture_output=True)
    rows = map(json.loads, (tmp_path / "r" / "log.jsonl").read_text().splitlines())
    losses, state = steps(module, [batch] * STEPS, 1e-3)
    np.testing.assert_allclose([r["loss"] for r in rows if "loss" in r], losses, rtol=1e-4)
    found = checkpoint.read(tmp_path / "r" / checkpoint.MODEL)
    near({n: a for n, a in found.items() if not n.endswith("tracked")}, state)
