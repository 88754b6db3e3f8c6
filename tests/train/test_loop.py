"""The loop: digits to 98 %, bit-identical resumption, early stopping, schedules, files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

import graphtool
from graphtool.cli.faults import run as cli
from graphtool.compile import as_is
from graphtool.errors import GraphtoolError, UsageError
from graphtool.train import checkpoint
from graphtool.train.dataset import cuts, prepared
from graphtool.train.loop import Plan, Trainer
from graphtool.train.model import TrainModel
from graphtool.train.schedule import schedule
from graphtool.transforms.training import Recipe, training

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: Any) -> Path:
    """The digits network from random weights, compiled for training with any batch size."""
    path: Path = tmp_path_factory.mktemp("digits")
    assert cli(["import", f"{SAMPLES / 'digits.py'}:model", "--dynamic", "batch", "--no-check",
                "-o", str(path / "m.graph.json")]) == 0
    assert cli(["grad", str(path / "m.graph.json"), "--loss", "cross_entropy", "--optimizer",
                "adamw", "-o", str(path / "m.train.graph.json")]) == 0
    assert cli(["build", str(path / "m.train.graph.json"), "-o", str(path / "b"), "--name",
                "digits"]) == 0
    return path


def data() -> dict[str, Any]:
    with np.load(SAMPLES / "digits_test.npz") as z:
        return dict(z)


def trained(build: Path, **more: Any) -> Trainer:
    model = TrainModel(build, 1)
    plan = Plan(**{"epochs": 2, "batch": 50, "lr": 2e-3, **more})
    trainer = Trainer(model, prepared(data(), model, 0.2, plan.seed, plan.shuffle), plan)
    trainer.run()
    return trainer


@pytest.mark.compiled
def test_digits_from_random_weights(digits: Path, tmp_path: Path) -> None:
    """The 360 test images of the sample: three quarters to train on, the rest to judge by."""
    assert cli(["train", str(digits / "b"), "--data", str(SAMPLES / "digits_test.npz"),
                "--epochs", "14", "--batch", "16", "--lr", "5e-3", "--schedule", "onecycle",
                "--val", "0.25", "--checkpoint", str(tmp_path / "run"), "--seed", "1",
                "--threads", "1"]) == 0
    rows = [json.loads(s) for s in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    epochs = [r for r in rows if "step" not in r]
    assert len(rows) - len(epochs) == 14 * 17 and len(epochs) == 14
    assert epochs[-1]["val_accuracy"] >= 0.97
    assert set(rows[0]) == {"step", "epoch", "loss", "lr"}
    ET.fromstring((tmp_path / "run" / "loss.svg").read_text())
    assert cli(["weights", str(digits / "m.graph.json"), "--from",
                str(tmp_path / "run" / "model.safetensors"), "-o",
                str(tmp_path / "t.graph.json")]) == 0
    z = data()
    out = graphtool.evaluate(graphtool.read(tmp_path / "t.graph.json"), {"image": z["image"]})
    logits = next(iter(out.values()))
    assert (logits.argmax(1) == z["y"]).mean() >= 0.98
    sys.path.insert(0, str(SAMPLES))
    import digits as sample
    network = sample.model()
    found = safetensors.numpy.load_file(tmp_path / "run" / "model.safetensors")
    network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in found.items()})
    with torch.no_grad():
        want = network(torch.from_numpy(z["image"])).numpy()
    np.testing.assert_allclose(logits, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("more", [{}, {"shuffle": False, "schedule": "cosine"},
                                  {"save_every": 2, "warmup": 3}], ids=["plain", "order", "often"])
def test_a_resumed_run_ends_in_the_same_bits(digits: Path, tmp_path: Path, more: Any) -> None:
    whole = trained(digits / "b", run=tmp_path / "a", epochs=3, **more)

    class Killed(Exception):
        pass

    def kill(row: dict[str, Any]) -> None:
        if row["step"] == 9:
            raise Killed
    model = TrainModel(digits / "b", 1)
    plan = Plan(epochs=3, batch=50, lr=2e-3, run=tmp_path / "b", resume=True, **more)
    examples = prepared(data(), model, 0.2, 0, plan.shuffle)
    with pytest.raises(Killed):
        Trainer(model, examples, plan, on_step=kill).run()
    model = TrainModel(digits / "b", 1)
    Trainer(model, examples, plan).run()
    assert model.block.tobytes() == whole.model.block.tobytes()
    logs = [re.sub(r'"(seconds|examples_per_second)": [\d.]+', "",
                   (tmp_path / r / "log.jsonl").read_text()) for r in "ab"]
    assert logs[0] == logs[1]


def test_a_resumed_run_writes_the_model_anew(digits: Path, tmp_path: Path) -> None:
    """A run that was killed between its two files left the model one save older."""
    trained(digits / "b", run=tmp_path / "a", epochs=1)
    path = tmp_path / "a" / checkpoint.MODEL
    whole = path.read_bytes()
    for older in (whole[:-1] + b"x", None):
        path.unlink()
        if older is not None:
            path.write_bytes(older)
        trained(digits / "b", run=tmp_path / "a", epochs=1, resume=True)
        assert path.read_bytes() == whole


def test_killed_for_real(digits: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphtool", "train", str(digits / "b"), "--data",
               str(SAMPLES / "digits_test.npz"), "--batch", "32", "--lr", "1e-3", "--epochs", "8",
               "--threads", "1", "--save-every", "3", "--resume", "--checkpoint"]
    process = subprocess.Popen([*command, str(tmp_path / "a")], stderr=subprocess.DEVNULL)
    log, limit = tmp_path / "a" / "log.jsonl", time.monotonic() + 300
    while process.poll() is None and time.monotonic() < limit and not (
            log.exists() and log.read_bytes().count(b"\n") > 40):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for run in "ab":
        subprocess.run([*command, str(tmp_path / run)], check=True, stderr=subprocess.DEVNULL)
    a, b = ((tmp_path / run / checkpoint.STATE).read_bytes() for run in "ab")
    assert a == b
    assert not [f for f in os.listdir(tmp_path / "a") if f not in (
        checkpoint.STATE, checkpoint.MODEL, "log.jsonl", "loss.svg") and not f.startswith(".")]


def test_early_stopping(digits: Path, tmp_path: Path) -> None:
    trainer = trained(digits / "b", epochs=30, lr=0.0, patience=2, run=tmp_path / "r",
                      shuffle=False)
    assert trainer.progress.epoch < 8


def test_a_start_from_torch(digits: Path, tmp_path: Path) -> None:
    found = trained(digits / "b", run=tmp_path / "r", epochs=1)
    model = TrainModel(digits / "b", 1)
    checkpoint.start(model, checkpoint.read(tmp_path / "r" / checkpoint.MODEL), "r")
    for n in model.row.model:
        assert np.array_equal(model.state[n], found.model.state[n])
    assert model.state["step"] == 0


def test_a_fixed_batch(tmp_path: Path) -> None:
    """A compiled batch size: the rest is left out of training, and counted in validation."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    module = graphtool.import_model(network, (torch.randn(32, 1, 8, 8),))
    as_is.build(training(module, Recipe("cross_entropy", optimizer="adam")), tmp_path / "b")
    model = TrainModel(tmp_path / "b", 1)
    z = data()
    found = {model.inputs[0]: z["image"], "y": z["y"]}
    examples = prepared(found, model, 0.2, 0, True)
    trainer = Trainer(model, examples, Plan(epochs=3, batch=32, lr=1e-2))
    trainer.run()
    row = trainer.validate()
    network.load_state_dict({n: torch.from_numpy(model.state[n].copy()) for n in model.row.model})
    with torch.no_grad():
        out = network(torch.from_numpy(z["image"][examples.val]))
    y = torch.from_numpy(z["y"][examples.val])
    assert row["val_loss"] == pytest.approx(torch.nn.functional.cross_entropy(out, y).item(), 1e-4)
    assert row["val_accuracy"] == pytest.approx((out.argmax(1) == y).double().mean().item())
    with pytest.raises(GraphtoolError, match="batches of 32"):
        Trainer(model, examples, Plan(batch=16))


@pytest.mark.parametrize(("text", "make"), [
    ("step{every=2,factor=0.5}", lambda o: torch.optim.lr_scheduler.LambdaLR(
        o, lambda s: 0.5 ** (s // 8))),
    ("cosine{floor=0.01}", lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 40, 0.01)),
    ("onecycle", lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=40)),
    ("constant", lambda o: torch.optim.lr_scheduler.ConstantLR(o, 1.0))])
def test_schedules_as_torch(text: str, make: Any) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], 0.1)
    oracle = make(optimizer)
    rate = schedule(text, 0.1, 40, 4)
    for s in range(40):
        assert rate(s) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6), s
        optimizer.step()
        oracle.step()
    assert schedule(text, 0.1, 40, 4, warmup=4)(1) == pytest.approx(rate(1) / 2)


@pytest.mark.parametrize(("count", "batch", "fixed", "ends"), [
    (10, 4, False, [4, 8, 10]), (10, 4, True, [4, 8]), (9, 4, False, [4, 8]),
    (3, 4, False, [3]), (3, 4, True, [])])
def test_batches(count: int, batch: int, fixed: bool, ends: list[int]) -> None:
    assert [end for _, end in cuts(count, batch, fixed)] == ends


@pytest.mark.parametrize(("change", "code"), [
    ({"y": None}, "GT3071"), ({"y": np.zeros(3, np.int64)}, "GT3072"),
    ({"y": np.zeros(360)}, "GT3074"), ({"y": np.full(360, 2**63, np.uint64)}, "GT3074"),
    ({"image": np.full((360, 1, 8, 8), 1e300)}, "GT3074"),
    ({"image": np.full((360, 1, 8, 8), 2**24 + 1)}, "GT3074")])
def test_data_that_do_not_fit(digits: Path, change: dict[str, Any], code: str) -> None:
    model = TrainModel(digits / "b", 1)
    arrays = {k: v for k, v in {**data(), **change}.items() if v is not None}
    with pytest.raises(GraphtoolError) as fault:
        prepared(arrays, model, 0.2, 0, True)
    assert fault.value.code == code


def test_a_file_to_validate_by(digits: Path, tmp_path: Path) -> None:
    z = data()
    np.savez(tmp_path / "held.npz", image=z["image"][:70], y=z["y"][:70])
    line = ["train", str(digits / "b"), "--data", str(SAMPLES / "digits_test.npz"), "--epochs",
            "1", "--batch", "60", "--threads", "1", "--checkpoint", str(tmp_path / "r")]
    assert cli([*line, "--val", str(tmp_path / "held.npz")]) == 0
    row = json.loads((tmp_path / "r" / "log.jsonl").read_text().splitlines()[-1])
    assert row["steps"] == 6 and round(row["val_accuracy"] * 70, 6) % 1 == 0
    model = TrainModel(digits / "b", 1)
    checkpoint.start(model, checkpoint.read(tmp_path / "r" / checkpoint.MODEL), "r")
    (logits,) = model.predict({"image": z["image"][:70]})
    assert row["val_accuracy"] == pytest.approx((logits.argmax(1) == z["y"][:70]).mean())
    np.savez(tmp_path / "held.npz", image=z["image"][:, :, :7], y=z["y"])
    assert cli([*line, "--val", str(tmp_path / "held.npz")]) == 3
    assert cli([*line, "--val", "1.5"]) == 2


def test_a_checkpoint_of_another_training(digits: Path, tmp_path: Path) -> None:
    trained(digits / "b", run=tmp_path / "r", epochs=1)
    with pytest.raises(GraphtoolError) as fault:
        trained(digits / "b", run=tmp_path / "r", resume=True, seed=5)
    assert fault.value.code == "GT3079"
    (tmp_path / "r" / checkpoint.STATE).write_bytes(b"cut")
    with pytest.raises(GraphtoolError) as fault:
        trained(digits / "b", run=tmp_path / "r", resume=True)
    assert fault.value.code == "GT3077"


def test_options_of_models_are_refused(digits: Path, tmp_path: Path) -> None:
    assert cli(["build", str(digits / "m.train.graph.json"), "-o", str(tmp_path / "b"),
                "--weights", "c"]) == 2


def test_a_batch_is_looked_at_again_when_it_differs(digits: Path) -> None:
    model = TrainModel(digits / "b", 1)
    batch = prepared(data(), model, 0.0, 0, False).batch(np.arange(8))
    name, first = model.inputs[0], model.step(batch, 0.0)
    assert model.step(dict(batch), 0.0) == first
    assert model.step({**batch, name: np.asfortranarray(batch[name])}, 0.0) == first
    assert model.step({n: a[:4] for n, a in batch.items()}, 0.0) != first
    with pytest.raises(GraphtoolError, match="float32 expected"):
        model.step({**batch, name: batch[name].astype(np.float64)}, 0.0)


@pytest.mark.parametrize("text", [
    "linear", "step{every=0}", "step{every=-1}", "onecycle{start=0}", "", "step,step"])
def test_schedules_that_there_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="schedule"):
        schedule(text, 0.1, 10, 5)
