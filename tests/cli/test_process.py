"""The program as a process: pipes, start-up time, and what it must not import."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS

COMMAND = [sys.executable, "-m", "graphtool"]


def run(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, check=False,
                          **options)  # type: ignore[call-overload,no-any-return]


def test_graphs_go_through_pipes(folder: Path) -> None:
    first = run("opt", str(folder / "digits.graph.json"), "--passes", "simplify", "-o", "-")
    second = run("opt", "-", "--passes", "dce", input=first.stdout)
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")
    assert run("show", "-", input=second.stdout).stdout.endswith("return logits\n")


def test_stages_side_by_side_in_processes_of_their_own(folder: Path, tmp_path: Path) -> None:
    """Each verb fills its own tables, and no stage writes over another's weights."""
    g, program, b = (str(tmp_path / n) for n in ("m.graph.json", "m.program.json", "b"))
    done = [run(*line) for line in (
        ("opt", DIGITS, "-o", g), ("lower", g, "-o", program),
        ("build", program, "-o", b), ("check", g, b), ("check", program, g), ("diff", g, g))]
    assert [(d.returncode, d.stderr) for d in done if d.returncode] == []


def test_a_reader_that_leaves_is_no_fault(folder: Path) -> None:
    line = f"{sys.executable} -m graphtool ops --json | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's full device")
def test_a_full_disk_is_one_error() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "ops"], stdout=full, stderr=subprocess.PIPE, text=True,
                              check=False)
    assert (done.returncode, done.stderr) == (3, "error[GT0330]: cannot write: the disk is full\n")


@pytest.mark.parametrize(("args", "heavy"), [
    (["--help"], {"numpy", "rich", "onnx", "torch", "graphtool.ops"}),
    (["show", "{}/digits.graph.json"], {"rich", "onnx", "torch", "onnxruntime"}),
    (["diff", "{0}/digits.graph.json", "{0}/digits.graph.json"], {"rich", "onnx", "torch"})])
def test_what_a_verb_does_not_import(args: list[str], heavy: set[str], folder: Path) -> None:
    code = ("import sys\nfrom graphtool.cli.faults import run\nrun(sys.argv[1:])\n"
            "print(*sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code, *(a.format(folder) for a in args)],
                          capture_output=True, text=True, check=True)
    assert not heavy & set(done.stderr.split())


def test_help_and_show_answer_at_once(folder: Path, tmp_path: Path) -> None:
    """200 ms is the promise; processor time is what counts here, for the machine may be busy."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    for args in (["--help"], ["show", str(folder / "digits.graph.json")]):
        times = []
        for _ in range(4):  # the first one compiles the modules
            start = children_seconds()
            assert run(*args, env=env).returncode == 0
            times.append(children_seconds() - start)
        assert min(times[1:]) < 0.4


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
