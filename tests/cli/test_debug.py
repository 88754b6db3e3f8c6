"""`debug`: stops, values, steps, in the evaluator and in C; bad commands, ends, failing runs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from graphtool import interp
from graphtool import ops as o
from graphtool.ir import serial
from tests.cli.conftest import DIGITS, Cli
from tests.passes.pass_samples import module

BOTH = pytest.mark.parametrize("side", ["evaluator", "c"])


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    made = module(lambda x: o.tanh(o.matmul(o.log(x), o.exp(x))), "f32[4,4]", names=["x"])
    serial.save(made, tmp_path / "m.graph.json")
    return tmp_path / "m.graph.json"


@BOTH
def test_a_stop_shows_the_value(side: str, gt: Cli, folder: Path) -> None:
    source = folder / "digits.graph.json"
    found = gt("debug", source, "--with", side, "--inputs", folder / "in.npz",
               "--commands", "break relu_1; run; stats relu_1; next; continue; print logits[0,:2]")
    assert (found.code, found.err) == (0, "")
    told = found.out.splitlines()
    assert told[0].startswith("stops at: relu_1")
    assert " = relu(" in told[1] if side == "evaluator" else "relu_1.select" in told[1]
    values: dict[str, np.ndarray] = {}  # type: ignore[type-arg]
    from graphtool.io import npz
    interp.run(serial.load(source), npz.load(folder / "in.npz"), on_value=values.__setitem__)
    assert f"max {values['relu_1'].max():.6g}"[:8] in told[2] and "min 0," in told[2]
    assert "max_pool2d" in told[3] and told[4].startswith("the run is complete: ")
    assert told[5].startswith("logits[0,:2]: f32[2] [")


@BOTH
def test_a_nan_is_stopped_at_where_it_is_made(side: str, gt: Cli, graph: Path) -> None:
    found = gt("debug", graph, "--with", side, "--input", "x=4x4xf32=-1.0",
               "--commands", "break --nan; run; where; delete --nan; continue")
    assert found.code == 0 and found.out.splitlines()[2] == "  it has nan"
    assert found.out.splitlines()[1].startswith("1 of ") and "log(" in found.out.splitlines()[1]
    assert "  x: f32[4,4], min -1," in found.out and "complete" in found.out


@pytest.mark.parametrize(("text", "code", "words"), [
    ("brek x", "GT3160", "did you mean 'break'"), ("break tahn", "GT3161", "did you mean 'tanh'"),
    ("print tanh", "GT3161", "not computed yet"), ("run; print tanh[9]", "GT3162", "out of bounds"),
    ("run; print tanh[a]", "GT3162", "cannot read 'a'"), ("next 0", "GT3160", "not a number"),
    ("run; print tanh[0", "GT3162", "cannot read"), ("where", "GT3161", "nothing has been"),
    ("run; continue", "GT3161", "the run is over"), ("delete x", "GT3161", "nothing stops"),
    ("run; stats tahn", "GT3161", "did you mean 'tanh'"), ("print", "GT3161", "nothing has been")])
def test_a_bad_command_ends_a_script(text: str, code: str, words: str, gt: Cli, graph: Path
                                     ) -> None:
    found = gt("debug", graph, "--commands", text)
    assert found.code == 2 and code in found.err and words in found.err


def test_a_person_may_mistype(gt: Cli, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["brek", "run", "print tanh[7,7]", "stats", "help"])

    def read(prompt: str) -> str:
        for line in typed:
            return line
        raise EOFError
    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    found = gt("debug", graph, "--input", "x=4x4xf32=0.5")
    assert found.code == 0 and "error[GT3160]" in found.out and "error[GT3162]" in found.out
    assert "tanh: f32[4,4], min" in found.out and "break NAME" in found.out


def test_commands_from_stdin_end_with_it(gt: Cli, graph: Path, monkeypatch: pytest.MonkeyPatch
                                         ) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("b log\nr; n 2\n\n"))
    found = gt("debug", graph)
    assert found.code == 0 and [line[:6] for line in found.out.splitlines()] == [
        "stops ", "1 of 4", "3 of 4"]
    assert gt("debug", "-").code == 2


@BOTH
def test_a_run_that_fails_keeps_what_it_had(side: str, gt: Cli, tmp_path: Path) -> None:
    made = module(lambda x, i: o.gather(o.exp(x), i, axes=(0,)), "f32[4]", "i64[2,1]",
                  names=["x", "i"])
    serial.save(made, tmp_path / "m.graph.json")
    found = gt("debug", tmp_path / "m.graph.json", "--with", side, "--input", "i=2x1xi64=9",
               "--commands", "run; stats x; list")
    if side == "c":
        assert found.code == 3 and "the run failed after 0" in found.out
    assert "x: f32[4], min" in found.out


def test_run_starts_again(gt: Cli, graph: Path) -> None:
    found = gt("debug", graph, "--commands", "break exp; run; run; delete exp; run")
    assert [line[:3] for line in found.out.splitlines()] == ["sto", "2 o", "2 o", "the"]


@BOTH
def test_each_value_is_the_evaluators(side: str, gt: Cli, graph: Path) -> None:
    m = serial.load(graph)
    found = gt("debug", graph, "--with", side, "--input", "x=4x4xf32=0.5",
               "--commands", "run; stats matmul; quit; bad")
    values: dict[str, np.ndarray] = {}  # type: ignore[type-arg]
    interp.run(m, {"x": np.full((4, 4), 0.5, np.float32)}, on_value=values.__setitem__)
    if side == "evaluator":
        assert f"mean {values['matmul'].astype(np.float64).mean():.6g}" in found.out
    else:
        assert found.code == 2 and "--with evaluator has it" in found.err


def test_an_unknown_side(gt: Cli) -> None:
    found = gt("debug", DIGITS, "--with", "cc")
    assert found.code == 2 and "one of evaluator, c" in found.err
