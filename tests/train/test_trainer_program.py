"""`build --exe` of a training graph: the files of `train` to the byte, and clear complaints."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.cli.faults import run as cli
from graphtool.compile import as_is
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder, Tracer
from graphtool.native.probes import supports
from graphtool.symbolic import Symbol, symbol
from graphtool.train import checkpoint
from graphtool.train.dataset import load, shuffled
from graphtool.train.loop import Plan, Trainer
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.compilers import run_compiler

SAMPLES = Path(__file__).parents[2] / "samples"
Options = dict[str, Any]


def regression(batch: int | None) -> Module:
    """x[batch, 5] @ w + b, with a batch norm between: statistics, decay and more than one shape."""
    rng = np.random.default_rng(0)
    b = Builder()
    n = symbol("batch", 1, 64) if batch is None else batch
    x = b.input(TensorType(dtypes.float32, (n, 5)), "x")

    def param(name: str, *shape: int) -> Tracer:
        return b.constant(rng.standard_normal(shape).astype(np.float32), name, True)
    h = o.linear(x, param("a.weight", 6, 5), param("a.bias", 6))
    h = o.batch_norm(h, param("n.weight", 6), param("n.bias", 6),
                     b.constant(np.zeros(6, np.float32), "n.running_mean", True),
                     b.constant(np.ones(6, np.float32), "n.running_var", True), epsilon=1e-5)
    y = o.linear(o.tanh(h), param("c.weight", 3, 6))
    symbols = {"batch": Symbol("batch", 1, 64)} if batch is None else {}
    return Module(Graph((x.value,), tuple(b.nodes), (y.value,)), ("out",), symbols=symbols)


BUILDS: dict[str, tuple[int | None, Recipe]] = {
    "mse": (None, Recipe("mse", optimizer="adam")),
    "fixed": (8, Recipe("cross_entropy{ignore_index=2}", optimizer="sgd{momentum=0.9}")),
    "bce": (None, Recipe("bce{from_logits=true}", optimizer="lion", accumulate=2, clip_norm=1.0,
                         grad_norm=True)),
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: Any) -> Mapping[str, Path]:
    path: Path = tmp_path_factory.mktemp("trainers")
    return {name: as_is.build(training(regression(batch), recipe), path / name, exe=True)
            for name, (batch, recipe) in BUILDS.items()}


def data(name: str, n: int = 61) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, 5))
    y: Any = x[:, :3] ** 2
    if name == "fixed":
        y = y.argmax(1)
    elif name == "bce":
        y = (y > 0.5).astype(np.float32)
    return {"x": x.astype(np.float32), "y": y.astype(np.int64 if name == "fixed" else np.float32)}


def program(build: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(build / "model"), *map(str, args)], capture_output=True, text=True)


def words(options: Options) -> list[str]:
    """The options of a plan as the command line has them."""
    out = []
    for key, value in options.items():
        if key == "shuffle":
            out += [] if value else ["--no-shuffle"]
        elif key == "resume":
            out += ["--resume"]
        else:
            out.append(f"--{key.replace('_', '-')}={value}")
    return out


def by_python(build: Path, arrays: Any, run: Path, **more: Any) -> None:
    options = {"batch": 8, "epochs": 3, **more}
    val = options.pop("val", 0.0)
    model = TrainModel(build, 1)
    plan = Plan(run=run, **options)
    data = run.parent / f"{run.name}.npz"
    np.savez(data, **arrays)
    Trainer(model, load(data, model, val, plan.seed, plan.shuffle), plan).run()


def by_c(build: Path, arrays: Any, run: Path, save: Any = np.savez, **more: Any) -> None:
    run.parent.mkdir(exist_ok=True)
    save(run.parent / f"{run.name}.npz", **arrays)
    done = program(build, "--data", run.parent / f"{run.name}.npz", "--checkpoint", run,
                   "--threads", 1, *words({"batch": 8, "epochs": 3, **more}))
    assert done.returncode == 0, done.stderr


def files(run: Path) -> list[bytes]:
    log = re.sub(rb'"(seconds|examples_per_second)": [\d.e+]+', b"",
                 (run / "log.jsonl").read_bytes())
    return [(run / checkpoint.STATE).read_bytes(), (run / checkpoint.MODEL).read_bytes(), log,
            (run / "loss.svg").read_bytes()]


PLANS: dict[str, Options] = {
    "plain": {}, "validated": {"val": 0.3, "seed": 7}, "order": {"shuffle": False, "val": 0.2},
    "cosine": {"schedule": "cosine{floor=0.0001}", "lr": 0.01, "warmup": 4},
    "steps": {"schedule": "step{every=2,factor=0.3}", "epochs": 6, "save_every": 2},
    "onecycle": {"schedule": "onecycle{rise=0.25,end=100}", "lr": 0.02, "batch": 16},
    "early": {"lr": 0.0, "patience": 2, "epochs": 30, "shuffle": False},
    "nothing": {"epochs": 0}}


@pytest.mark.part(9)
@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("plan", PLANS)
def test_the_files_of_graphtool_train(builds: Any, name: str, plan: str, tmp_path: Path) -> None:
    options = PLANS[plan]
    if name == "fixed" and "batch" in options:
        options = {k: v for k, v in options.items() if k != "batch"}
    by_python(builds[name], data(name), tmp_path / "py", **options)
    by_c(builds[name], data(name), tmp_path / "c", **options)
    assert files(tmp_path / "py") == files(tmp_path / "c")


@pytest.mark.parametrize("name", BUILDS)
def test_a_file_to_validate_by(builds: Any, name: str, tmp_path: Path) -> None:
    arrays = data(name)
    held = tmp_path / "held.npz"
    np.savez(held, **{k: a[5:24] if k == "y" else a[5:24].astype("f8") for k, a in arrays.items()})
    by_python(builds[name], arrays, tmp_path / "py", val=held)
    by_c(builds[name], arrays, tmp_path / "c", val=held)
    assert files(tmp_path / "py") == files(tmp_path / "c")
    assert b"val_loss" in files(tmp_path / "c")[2] and b"validation" in files(tmp_path / "c")[3]


def test_both_log_the_norm_of_the_gradients(builds: Any, tmp_path: Path) -> None:
    for way in (by_python, by_c):
        for name in BUILDS:
            at = tmp_path / way.__name__ / name
            at.parent.mkdir(exist_ok=True)
            way(builds[name], data(name), at, **({} if name == "fixed" else {"batch": 4}))
            rows = map(json.loads, (at / "log.jsonl").read_text().splitlines())
            norms = [r.get("grad_norm") for r in rows if "step" in r]
            if name == "bce":  # accumulates 2 batches: the second one completes the first norm
                assert norms[0] == 0 and norms[1] == norms[2] > 0 and norms[3] not in norms[:3]
            else:
                assert set(norms) == {None}


def test_a_long_curve_is_thinned_alike(builds: Any, tmp_path: Path) -> None:
    """More steps than points; the loss of one batch is no number, as all of its targets are
    ignored."""
    more = {"epochs": 90, "shuffle": False, "val": 0.1}
    arrays = data("fixed")
    arrays["y"][8:16] = 2  # the ignored label
    by_python(builds["fixed"], arrays, tmp_path / "py", **more)
    by_c(builds["fixed"], arrays, tmp_path / "c", **more)
    assert '"nan"' in (tmp_path / "c" / "log.jsonl").read_text()
    assert (tmp_path / "py" / "loss.svg").read_bytes() == (tmp_path / "c" / "loss.svg").read_bytes()


def test_types_are_converted_as_numpy_does(builds: Any, tmp_path: Path) -> None:
    """float64 and compressed, integers where floats are wanted, narrow labels."""
    for name, kinds in (("mse", ("f8", "f8")), ("fixed", ("i2", "i4")), ("bce", ("u1", "f2"))):
        arrays = data(name)
        arrays = {k: (a * 3).astype(kind) for (k, a), kind in zip(arrays.items(), kinds,
                                                                  strict=True)}
        if name == "fixed":
            arrays["y"] %= 3
        by_python(builds[name], arrays, tmp_path / f"{name}.py")
        by_c(builds[name], arrays, tmp_path / f"{name}.c", np.savez_compressed)
        assert files(tmp_path / f"{name}.py") == files(tmp_path / f"{name}.c")


@pytest.mark.parametrize("first", ["c", "py"])
def test_each_goes_on_where_the_other_stopped(builds: Any, first: str, tmp_path: Path) -> None:
    ways, arrays = {"c": by_c, "py": by_python}, data("mse")
    ways[first](builds["mse"], arrays, tmp_path / "a", epochs=2)
    del ways[first]
    (other,) = ways.values()
    other(builds["mse"], arrays, tmp_path / "a", epochs=5, resume=True)
    by_python(builds["mse"], arrays, tmp_path / "b", epochs=5)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_killed_at_any_moment(builds: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", **data("mse"))
    options = ["--data", tmp_path / "d.npz", "--batch", 4, "--epochs", 60, "--resume",
               "--save-every", 3, "--threads", 1, "--checkpoint"]
    whole = program(builds["mse"], *options, tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    for moment in (0.002, 0.02, 0.05, 0.1, 0.03, 0.07):
        process = subprocess.Popen([str(builds["mse"] / "model"), *map(str, options),
                                    str(tmp_path / "cut")], stderr=subprocess.DEVNULL)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert program(builds["mse"], *options, tmp_path / "cut").returncode == 0
    assert files(tmp_path / "whole") == files(tmp_path / "cut")


def test_a_resumed_run_writes_the_model_anew(builds: Any, tmp_path: Path) -> None:
    by_c(builds["mse"], data("mse"), tmp_path / "a", epochs=1)
    path = tmp_path / "a" / checkpoint.MODEL
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    done = program(builds["mse"], "--data", tmp_path / "a.npz", "--checkpoint", tmp_path / "a",
                   "--threads", 1, "--resume", *words({"batch": 8, "epochs": 1}))
    assert done.returncode == 0 and path.read_bytes() == whole


def test_starting_from_weights(builds: Any, tmp_path: Path) -> None:
    by_c(builds["mse"], data("mse"), tmp_path / "a", epochs=1)
    start = tmp_path / "a" / checkpoint.MODEL
    by_c(builds["mse"], data("mse"), tmp_path / "b", epochs=0, start=start)
    assert (tmp_path / "b" / checkpoint.MODEL).read_bytes() != b""
    a, b = (checkpoint.read(tmp_path / r / checkpoint.MODEL) for r in "ab")
    assert all(np.array_equal(a[n], b[n]) for n in a if not n.endswith("tracked"))
    done = program(builds["bce"], "--data", tmp_path / "a.npz", "--start", tmp_path / "a.npz")
    assert done.returncode == 3 and "GT3077" in done.stderr


def broken(path: Path) -> None:
    np.savez(path, **data("mse"))
    path.write_bytes(path.read_bytes()[:-300])


FAULTS: dict[str, tuple[Any, list[str], int, str]] = {
    "cut": (broken, [], 3, "GT0335"),
    "absent": (lambda p: None, [], 3, "GT0335"),
    "missing": ({"x": None}, [], 3, "GT3071"),
    "lengths": ({"y": np.zeros((3, 3), np.float32)}, [], 3, "GT3072"),
    "type": ({"x": np.zeros((61, 5), np.complex64)}, [], 3, "GT3074"),
    "range": ({"x": np.full((61, 5), 1e300)}, [], 3, "GT3074"),
    "digits": ({"x": np.full((61, 5), 2**24 + 1)}, [], 3, "GT3074"),
    "nan": ({"x": np.full((61, 5), np.nan)}, [], 3, "GT3082"),
    "rate": ({}, ["--lr", "inf"], 2, "GT3001"),
    "rates": ({}, ["--schedule", "step{factor=nan}"], 2, "GT3070"),
    "shape": ({"x": np.zeros((61, 6), np.float32)}, [], 3, "GT2213"),
    "rank": ({"x": np.zeros(61, np.float32)}, [], 3, "GT2213"),
    "few": ({}, ["--val", "1"], 3, "GT3073"),
    "share": ({}, ["--val", "1.5"], 2, "GT3001"),
    "held": ({}, ["--val", "none.npz"], 3, "GT0335"),
    "size": ({}, ["--batch", "65", "--no-shuffle"], 3, "GT2215"),
    "schedule": ({}, ["--schedule", "linear"], 2, "GT3070"),
    "argument": ({}, ["--schedule", "step{much=3}"], 2, "GT3070"),
    "number": ({}, ["--epochs", "many"], 2, "GT3001"),
    "option": ({}, ["--fast", "1"], 2, "GT3001"),
    "resume": ({}, ["--resume"], 2, "GT3050"),
    "place": ({}, ["--checkpoint", "/dev/null/run"], 3, "GT0330"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_complaints(builds: Any, fault: str, tmp_path: Path) -> None:
    change, args, code, number = FAULTS[fault]
    if callable(change):
        change(tmp_path / "d.npz")
    else:
        arrays = data("mse", 100 if fault == "size" else 61) | change
        np.savez(tmp_path / "d.npz", **{k: v for k, v in arrays.items() if v is not None})
    done = program(builds["mse"], "--data", tmp_path / "d.npz", "--epochs", 1, *args)
    assert done.returncode == code and number in done.stderr, done.stderr


def test_a_checkpoint_of_another_run(builds: Any, tmp_path: Path) -> None:
    by_c(builds["mse"], data("mse"), tmp_path / "r", epochs=1)
    args = ["--data", tmp_path / "r.npz", "--checkpoint", tmp_path / "r", "--resume"]
    assert "GT3079" in program(builds["mse"], *args, "--seed", 5).stderr
    assert "GT3075" in program(builds["bce"], *args, "--batch", 8).stderr
    state = tmp_path / "r" / checkpoint.STATE
    newer = state.read_bytes().replace(rb'\"version\": 1', rb'\"version\": 2')
    assert newer != state.read_bytes()
    state.write_bytes(newer)
    assert "GT0334" in program(builds["mse"], *args).stderr
    (tmp_path / "r" / checkpoint.STATE).write_bytes(b"cut")
    assert "GT3077" in program(builds["mse"], *args).stderr


def test_sanitized(builds: Any, tmp_path: Path) -> None:
    """Training, resuming, and damaged data and checkpoints, under ASan and UBSan."""
    target = tmp_path / "model"
    done = run_compiler(
        ["gcc", "-std=gnu11", "-g", "-O0", "-fwrapv", "-fsanitize=address,undefined",
         "-fno-sanitize-recover", "-Wno-psabi", *sorted(
             p.name for p in builds["mse"].glob("*.c") if "weights" not in p.name),
         "model_weights0.c", "-lm", "-o", str(target)], builds["mse"])
    assert done.returncode == 0, done.stderr[:2000]
    rng, env = np.random.default_rng(0), {"ASAN_OPTIONS": "detect_leaks=0"}
    np.savez_compressed(tmp_path / "d.npz", **data("mse"))

    def run(*args: str) -> int:
        return subprocess.run([str(target), "--data", str(tmp_path / "d.npz"), "--epochs", "2",
                               "--batch", "16", "--val", "0.2", "--checkpoint",
                               str(tmp_path / "r"), *args], env=env,
                              capture_output=True).returncode
    assert run() == 0 and run("--resume", "--epochs=4") == 0
    for file in (tmp_path / "r" / checkpoint.STATE, tmp_path / "d.npz"):
        good = file.read_bytes()
        for trial in range(25):
            bad = bytearray(good)
            for at in rng.integers(0, len(bad) if trial % 2 else 600, 3):
                bad[at] = rng.integers(256)
            file.write_bytes(bytes(bad[:rng.integers(len(bad))] if trial % 3 == 0 else bad))
            assert run("--resume") in (0, 3), (file, trial)
        file.write_bytes(good)


@pytest.mark.part(3)
@pytest.mark.parametrize("std", ["gnu11", "c99", "c17"])
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_free_of_warnings(builds: Any, cc: str, std: str, tmp_path: Path) -> None:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    for build in builds.values():
        done = run_compiler([cc, f"-std={std}", "-O1", "-Wall", "-Wextra", "-Werror", "-c",
                             "model_main.c", "-o", str(tmp_path / "main.o")], build)
        assert done.returncode == 0, done.stderr[:2000]


def test_help_names_the_arrays(builds: Any) -> None:
    done = program(builds["fixed"], "--help")
    assert done.returncode == 0 and "array  y: i64[8]" in done.stdout
    assert program(builds["fixed"]).returncode == 2


def test_shuffling_is_a_permutation() -> None:
    orders = [shuffled(seed, epoch, 1000) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(x) == list(range(1000)) for x in orders)
    assert len({x.tobytes() for x in orders}) == 4
    assert abs(np.corrcoef(orders[0], np.arange(1000))[0, 1]) < 0.1


def test_digits_on_a_machine_with_nothing(tmp_path: Path) -> None:
    """--static: the README's sample, in a program that asks for no library at all."""
    if not supports(("cc",), "-static"):
        pytest.skip("there is no static C library")
    graph = str(tmp_path / "m.graph.json")
    assert cli(["import", f"{SAMPLES / 'digits.py'}:model", "--dynamic", "batch", "--no-check",
                "-o", graph]) == 0
    assert cli(["grad", graph, "--loss", "cross_entropy", "--optimizer", "adamw", "-o",
                str(tmp_path / "t.graph.json")]) == 0
    assert cli(["build", str(tmp_path / "t.graph.json"), "-o", str(tmp_path / "b"), "--exe",
                "--static", "--name", "digits", "--cc", "cc"]) == 0
    exe = tmp_path / "b" / "digits"
    shown = subprocess.run(["ldd", str(exe)], capture_output=True, text=True)
    assert "not a dynamic executable" in shown.stdout + shown.stderr
    done = subprocess.run([str(exe), "--data", str(SAMPLES / "digits_test.npz"), "--batch", "16",
                           "--epochs", "8", "--lr", "5e-3", "--schedule", "onecycle", "--val",
                           "0.25", "--checkpoint", str(tmp_path / "run")], env={},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert cli(["weights", graph, "--from", str(tmp_path / "run" / "model.safetensors"), "-o",
                str(tmp_path / "w.graph.json")]) == 0
    (accuracy,) = re.findall(r"val_accuracy ([\d.]+)", done.stderr)[-1:]
    assert float(accuracy) > 0.95
