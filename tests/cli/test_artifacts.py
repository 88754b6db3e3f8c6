"""`show` of programs and of builds, and what they have no use for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphtool.cli.faults import run
from tests.cli.conftest import DIGITS, Cli


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "b"
    assert run(["build", DIGITS, "-o", str(folder), "--keep", "--march", "x86-64-v3"]) == 0
    return folder


def test_a_build_in_short(built: Path, gt: Cli) -> None:
    out = gt("show", built).out
    assert out.startswith("build digits: inference, for x86-64-v3\ncompiler ")
    assert "digits_load, digits_free, digits_arena_bytes, digits_run\n" in out
    assert "input        image: f32[batch,1,8,8]" in out and "build.json (" in out
    assert out.count("\nk") == 11  # the head of the table and ten kernels
    assert json.loads(gt("show", built, "--json").out)["name"] == "digits"


def test_a_missing_file_is_said(built: Path, gt: Cli, tmp_path: Path) -> None:
    for name in ("build.json", "digits.h"):
        (tmp_path / name).write_bytes((built / name).read_bytes())
    assert "libdigits.so (missing)" in gt("show", tmp_path).out


def test_why_not_fused_asks_the_kept_graph(built: Path, gt: Cli, tmp_path: Path) -> None:
    names = [line.split(":")[0] for line in gt(
        "show", built / "stages" / "1-opt.graph.json").out.splitlines() if " = reduce_window" in
        line]
    assert "does not read" in gt("show", built, "--why-not-fused", *reversed(names)).out
    (tmp_path / "build.json").write_bytes((built / "build.json").read_bytes())
    result = gt("show", tmp_path, "--why-not-fused", *names)
    assert result.code == 3 and "GT0338" in result.err and "--keep" in result.err


def test_why_of_a_build_knows_the_author_s_names_and_the_kernels(built: Path, gt: Cli) -> None:
    """Those are the names that `show BUILD` prints."""
    steps = json.loads((built / "build.json").read_text())["steps"]
    step = next(s for s in steps if s["label"].endswith("block1.relu"))
    relu = gt("why", built, "block1.relu").out
    assert "no node of its own" in relu and f"kernel {step['kernel']} (" in relu
    kernel = gt("why", built, step["kernel"]).out
    assert kernel.startswith(f"{step['kernel']}: a kernel\n")
    assert kernel.count("\nkernel ") == 1 and f"digits_{step['kernel']}() at " in kernel
    last = steps[-1]["kernel"]
    for pair in (("block1.relu", last), (step["kernel"], last), (last, "relu")):
        assert "does not read" in gt("show", built, "--why-not-fused", *pair).out
    assert "one template kernel" in gt("show", built, "--why-not-fused", "relu",
                                       step["kernel"]).out
    result = gt("show", built, "--why-not-fused", "block1.rellu", last)
    assert result.code == 3 and "did you mean 'block1.relu'?" in result.err


def test_a_program_by_the_verb(built: Path, gt: Cli) -> None:
    path = built / "stages" / "2-lower.program.json"
    out = gt("show", path).out
    assert out.startswith("program digits: for x86-64-v3, vectors of 8 floats")
    assert "\nbuffers\nspace " in out and "\nsteps\n   0  k0(in0 -> " in out
    assert "\n    template winograd(TILE=" in out and "\n      WORK is y1, written" in out
    assert gt("show", path, "--json").out == path.read_text()


@pytest.mark.parametrize("option", ["--stats", "--tabular", "--where", "--full"])
def test_options_of_graphs(option: str, built: Path, gt: Cli) -> None:
    for source in (built, built / "stages" / "2-lower.program.json"):
        result = gt("show", source, option)
        assert result.code == 2 and f"GT3027]: {option} is for graphs" in result.err
