"""The program as a process: pipes, start-up time, and what it must not import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphtool.cli.verbs  # noqa: F401  (fills the table)
from graphtool.verbs import families
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


@pytest.mark.parametrize("line", [("show", "{g}"), ("ops", "--json"), ("show", "{g}", "--json")])
def test_a_pipe_without_a_reader_is_no_fault(line: tuple[str, ...], folder: Path) -> None:
    """It may be closed before the first byte comes, also where stderr goes the same way."""
    words = [word.format(g=folder / "digits.graph.json") for word in line]
    for where in (subprocess.DEVNULL, subprocess.STDOUT):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run([*COMMAND, *words], stdout=writer, stderr=where, check=False)
        finally:
            os.close(writer)
        assert done.returncode == 0


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


LIGHT = {"numpy", "msgspec", "rich", "onnx", "torch", "pydantic", "graphtool.ops"}
HEAVY = {"rich", "onnx", "torch", "onnxruntime", "pydantic", "graphtool.passes"}


def modules_of(*args: str) -> set[str]:
    """The modules that a process has imported when this command line has run."""
    code = ("import sys\nfrom graphtool.cli.faults import run\nrun(sys.argv[1:])\n"
            "print(*sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True,
                          check=True)
    return set(done.stderr.split())


@pytest.fixture(scope="module")
def after_help() -> dict[str, set[str]]:
    """The modules that a process has imported after --help of each verb, one after another."""
    code = ("import sys\nfrom graphtool.cli.faults import run\nfor verb in sys.argv[1:]:\n"
            "    run([*verb.split(), '--help'])\n    print(*sys.modules, file=sys.stderr)")
    verbs = ["", *families()]
    done = subprocess.run([sys.executable, "-c", code, *verbs], capture_output=True, text=True,
                          check=True)
    return {verb: set(line.split())
            for verb, line in zip(verbs, done.stderr.splitlines(), strict=True)}


@pytest.mark.parametrize("verb", ["", *families()])
def test_help_imports_the_command_line_alone(verb: str, after_help: dict[str, set[str]]) -> None:
    found = after_help[verb]
    assert not found & (LIGHT if verb else LIGHT | {"json", "tempfile"})
    assert {name for name in found if name.startswith("graphtool")
            and not name.startswith("graphtool.cli")} == {
        "graphtool", "graphtool.errors", "graphtool.escaping", "graphtool.plugins",
        "graphtool.verbs",
        "graphtool.compile", "graphtool.compile.option", "graphtool.compile.options",
        "graphtool.compile.source"}


@pytest.mark.parametrize(("args", "unwanted", "most"), [
    ("explain GT0401", LIGHT, 54),
    ("cache dir", LIGHT, 52),
    ("show {0}/digits.graph.json", HEAVY | {"graphtool.kernels"}, 156),
    ("diff {0}/digits.graph.json {0}/digits.graph.json", HEAVY, 270)])
def test_what_a_verb_imports(args: str, unwanted: set[str], most: int, folder: Path) -> None:
    """`show` is to answer within 0.15 s: nearly all of that time goes into imports, and these do
    not depend on the machine."""
    found = modules_of(*args.format(folder).split())
    assert not unwanted & found
    assert len([name for name in found if name.startswith("graphtool")]) <= most
