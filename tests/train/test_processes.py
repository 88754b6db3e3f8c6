"""Two processes by mpirun: equal to one on the joined batch, one writer, no hang when one dies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from graphtool import interp, passes
from graphtool.cli.faults import run as cli
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Module
from graphtool.lower import lower
from graphtool.ops import collective
from graphtool.target import named
from graphtool.train import checkpoint
from graphtool.transforms.training import Recipe, programs, training
from tests.train.test_trainer_program import data, regression

BIN = str(Path(sys.executable).parent)
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path=BIN)
ENV = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
needs_mpi = pytest.mark.skipif(MPIRUN is None, reason="no MPI is installed")


def joint(batch_norm: bool = True, **more: Any) -> Module:
    return training(regression(None), Recipe("mse", optimizer="adam", batch_norm=batch_norm,
                                             **more))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: Any) -> dict[str, Path]:
    """The same training for one process, and for several; without statistics of the batch."""
    path: Path = tmp_path_factory.mktemp("processes")
    graph = passes.run(joint(False), "distribute{bucket=120}")
    np.savez(path / "d.npz", **data("mse", 64))
    return {"one": build(joint(False), path / "one"), "data": path / "d.npz",
            "many": build(graph, path / "many", exe=True, mpi=True)}


def mpirun(*command: object, ranks: int = 2, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(MPIRUN), "-n", str(ranks), *map(str, command)], env=ENV, text=True,
                          capture_output=True, timeout=300, **more)


def options(builds: dict[str, Path], run: Path, *more: object) -> list[object]:
    return ["--data", builds["data"], "--batch", 8, "--epochs", 3, "--val", "0.25", "--threads", 1,
            "--checkpoint", run, *more]


PYTHON = (sys.executable, "-m", "graphtool", "train")


@pytest.mark.part(2)
@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_equal_to_one_process_on_the_joined_batch(builds: Any, ranks: int, tmp_path: Path) -> None:
    assert cli(["train", str(builds["one"]), *map(str, options(builds, tmp_path / "one"))]) == 0
    done = mpirun(builds["many"] / "model", *options(builds, tmp_path / "c"), ranks=ranks)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("epochs, best loss") == 1  # one of them speaks
    found, want = (checkpoint.read(tmp_path / r / checkpoint.STATE) for r in ("c", "one"))
    assert set(found) == set(want)
    for name in want:
        np.testing.assert_allclose(found[name], want[name], rtol=2e-4, atol=2e-6, err_msg=name)
    logs = [[json.loads(s) for s in (tmp_path / r / "log.jsonl").read_text().splitlines()]
            for r in ("c", "one")]
    for a, b in zip(*logs, strict=True):
        for key in set(b) - {"seconds", "examples_per_second"}:
            assert a[key] == pytest.approx(b[key], rel=1e-4), key


@needs_mpi
def test_graphtool_train_gives_the_bits_of_the_program(builds: Any, tmp_path: Path) -> None:
    for run, command in (("c", (builds["many"] / "model",)), ("py", (*PYTHON, builds["many"]))):
        done = mpirun(*command, *options(builds, tmp_path / run))
        assert done.returncode == 0, done.stderr
    done = mpirun(*PYTHON, builds["many"], *options(builds, tmp_path / "c", "--resume", "--seed",
                                                    "0"))
    assert done.returncode == 0, done.stderr
    a, b = ((tmp_path / r / checkpoint.STATE).read_bytes() for r in ("c", "py"))
    assert a == b


@needs_mpi
@pytest.mark.parametrize("way", ["c", "py"])
def test_a_dead_process_ends_the_run(builds: Any, way: str, tmp_path: Path) -> None:
    """One rank is killed in the middle: mpirun ends soon, with an error."""
    command = [builds["many"] / "model"] if way == "c" else [*PYTHON, builds["many"]]
    log = tmp_path / "r" / "log.jsonl"
    script = tmp_path / "rank.sh"  # the second rank is killed when training is under way
    script.write_text(f"""if [ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 1 ]; then
    (while ! grep -q '"step": 9' {log}; do sleep 0.05; done 2>/dev/null; kill -9 $$) & fi
exec "$@"
""")
    done = mpirun("sh", script, *command, *options(builds, tmp_path / "r", "--epochs", 10**7))
    assert done.returncode != 0
    assert log.read_text().count("\n") > 9


@needs_mpi
@pytest.mark.parametrize("way", ["c", "py"])
def test_a_fault_of_one_takes_the_others_down(builds: Any, way: str, tmp_path: Path) -> None:
    command = [builds["many"] / "model"] if way == "c" else [*PYTHON, builds["many"]]
    script = tmp_path / "rank.sh"
    script.write_text('if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then\n'
                      'exec "$@" --data missing.npz; fi\nexec "$@"\n')
    done = mpirun("sh", script, *command, *options(builds, tmp_path / "r"))
    assert done.returncode != 0 and "missing.npz" in done.stderr


@needs_mpi
def test_a_fault_of_one_is_a_fault_of_all(builds: Any, tmp_path: Path) -> None:
    for command in ((builds["many"] / "model",), (*PYTHON, builds["many"])):
        done = mpirun(*command, *options(builds, tmp_path / "r", "--batch", 7))
        assert done.returncode == 2 and "GT3080" in done.stderr
    done = mpirun(*PYTHON, builds["one"], *options(builds, tmp_path / "r"))
    assert done.returncode == 2 and "GT3081" in done.stderr


def test_without_mpi(monkeypatch: Any, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setattr("shutil.which", lambda *a, **k: None)
    with pytest.raises(GraphtoolError, match="GT2126"):
        build(joint(), tmp_path / "b", mpi=True)
    with pytest.raises(GraphtoolError, match="GT2126"):
        build(joint(), tmp_path / "b", mpi=True, cc="/usr/bin/cc")


# ---- the pass ----------------------------------------------------------------------------------

def steps(module: Module, ranks: int, count: int = 3) -> list[dict[str, Any]]:
    """The state after some steps of replicas in the evaluator, each with its share."""
    step = programs(module)["step"]
    init = {n: w for n, w in interp.run(programs(module)["init"], {}).items()}
    rows = data("mse", 24)

    def one(rank: int) -> dict[str, Any]:
        state = dict(init)
        for i in range(count):
            share = 8 // ranks
            at = 8 * i + share * rank
            batch = {k: a[at:at + share] for k, a in rows.items()}
            out = interp.run(step, {**batch, **state, "lr": np.float32(0.01)})
            state = {n: out[n] for n in state}
        return {**state, "loss": out["loss"]}
    found: list[dict[str, Any]] = collective.replicas(ranks, one)
    return found


@pytest.mark.parametrize("more", [{}, {"clip_norm": 0.1}, {"accumulate": 2}])
def test_replicas_in_the_evaluator(more: Any) -> None:
    graph = joint(False, **more)
    (want,) = steps(graph, 1)
    for found in steps(passes.run(graph, "distribute{bucket=100}"), 2):
        for n in want:
            if n != "loss":
                np.testing.assert_allclose(found[n], want[n], rtol=2e-4, atol=1e-6, err_msg=n)


def test_batch_norm_keeps_one_state_in_all() -> None:
    """Each normalises its share; the running statistics are the means of theirs."""
    graph = joint()
    one, two = steps(passes.run(graph, "distribute"), 2)
    for n in one:
        np.testing.assert_array_equal(one[n], two[n])
    (alone,) = steps(graph, 1)
    np.testing.assert_allclose(one["n.running_mean"], alone["n.running_mean"], rtol=0.2)


@pytest.mark.parametrize(("bucket", "count"), [("25MiB", 1), ("100", 2), ("1", 8)])
def test_buckets(bucket: str, count: int) -> None:
    """Each starts as soon as its last gradient is there, and is waited for by the optimizer."""
    module = passes.run(joint(False), f"distribute{{bucket={bucket}}}")
    assert [n.op.name for n in module.graph.nodes].count("collective_begin") == count
    assert passes.run(module, "distribute").graph is module.graph
    program = lower(passes.run(programs(module)["step"]), named("native"), name="m")
    order = [s.label.split()[0] for s in program.steps]  # type: ignore[union-attr]
    begins = [i for i, s in enumerate(order) if "collective_begin" in s]
    ends = [i for i, s in enumerate(order) if "collective_end" in s]
    assert len(begins) == len(ends) == count and max(begins) < min(ends)
    if count > 1:  # work of the backward pass stands between
        assert any("grad" in s for s in order[begins[0]:begins[-1]])


def test_reductions_in_place() -> None:
    """Gradients are written straight into their bucket, and reduced there."""
    module = passes.run(joint(False), "distribute")
    program = lower(passes.run(programs(module)["step"]), named("native"), name="m")
    run = next(s for s in program.steps if "collective_begin" in s.label)  # type: ignore
    assert len(run.args) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(("make", "code"), [
    (lambda: regression(None), "GT0617"),
    (lambda: passes.run(joint(), "simplify,freeze,dce"), "GT0628")])
def test_what_cannot_be_distributed(make: Any, code: str) -> None:
    with pytest.raises(GraphtoolError) as fault:
        passes.run(make(), "distribute")
    assert fault.value.code == code


class Noisy(torch.nn.Module):
    """All it does is to drop; so the mean of its output tells the mask."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(64))

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.dropout(x * self.w, 0.5, training=True)


def test_each_process_drops_something_else() -> None:
    """With one state in all; the first one's numbers are those of a process alone."""
    module = graphtool.import_model(Noisy().train(), (torch.ones(2, 64),))
    graph = training(module, Recipe("mse", optimizer="sgd"))
    step = {k: programs(g)["step"] for k, g in (
        ("one", graph), ("many", passes.run(graph, "distribute")))}
    start = interp.run(programs(graph)["init"], {})
    batch = {"x": np.ones((2, 64), np.float32), "y": np.zeros((2, 64), np.float32),
             "lr": np.float32(0.1)}
    alone = interp.run(step["one"], {**start, **batch})
    first, second = collective.replicas(2, lambda _: interp.run(step["many"], {**start, **batch}))
    for n in alone:
        np.testing.assert_array_equal(first[n], second[n], err_msg=n)
    np.testing.assert_array_equal(first["rng"], alone["rng"])
    moved = 1 - first["w"]  # by the mean gradient: masks that agree would leave three values
    assert len(np.unique(np.round(moved / moved.max(), 4))) > 3
    alone_again = interp.run(step["many"], {**start, **batch})
    np.testing.assert_array_equal(alone_again["w"], alone["w"])


@needs_mpi
@pytest.mark.parametrize("way", ["c", "py"])
def test_all_start_from_what_the_first_one_has(builds: Any, way: str, tmp_path: Path) -> None:
    """The second process is given other weights to start from, and a checkpoint of its own."""
    command = [builds["many"] / "model"] if way == "c" else [*PYTHON, builds["many"]]
    done = mpirun(*command, *options(builds, tmp_path / "a"))
    assert done.returncode == 0, done.stderr
    script = tmp_path / "rank.sh"
    script.write_text('if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then\n'
                      f'exec "$@" --start {tmp_path / "a" / "model.safetensors"}; fi\n'
                      'exec "$@"\n')
    done = mpirun("sh", script, *command, *options(builds, tmp_path / "b"))
    assert done.returncode == 0, done.stderr
    a, b = ((tmp_path / r / checkpoint.STATE).read_bytes() for r in "ab")
    assert a == b
