"""Models from stdin, graphs whose weights are elsewhere, and names that ASCII lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS, Cli


def piped(data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "graphtool", *words], input=data,
                          capture_output=True, check=False)


@pytest.mark.process
def test_an_onnx_model_from_stdin() -> None:
    data = Path(DIGITS).read_bytes()
    shown = piped(data, "show", "-")
    assert shown.returncode == 0 and shown.stdout.endswith(b"return logits\n")
    made = piped(data, "import", "-")
    assert made.returncode == 0 and b'"graphtool/graph"' in made.stdout
    assert b"not compared" in made.stderr and b"checked:" not in made.stderr
    assert b"checked:" in piped(made.stdout, "import", "-").stderr
    compared = piped(data, "check", "-", DIGITS)
    assert compared.returncode == 0 and b"match" in compared.stdout


@pytest.mark.process
def test_a_model_from_stdin_is_simplified(gt: Cli, tmp_path: Path) -> None:
    out = str(tmp_path / "s.onnx")
    for data in (Path(DIGITS).read_bytes(), gt("show", DIGITS, "--full").out.encode()):
        done = piped(data, "simplify", "-", out)
        assert done.returncode == 0 and b"match" in done.stderr, done.stderr


@pytest.mark.process
def test_stablehlo_from_stdin(gt: Cli) -> None:
    text = gt("export", DIGITS, "--format", "stablehlo").out
    assert piped(text.encode(), "show", "-", "--stats").returncode == 0


def test_why_without_the_weights(gt: Cli, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "digits.graph.json", graph := tmp_path / "m.graph.json")
    done, whole = gt("why", graph, "relu_1"), gt("why", folder / "digits.graph.json", "relu_1")
    assert done.code == 0 and "made-up weights" in done.err and "made-up" not in whole.err
    assert done.out.splitlines()[0] == whole.out.splitlines()[0]
    assert "winograd" in done.out and "winograd" in whole.out


LOCALES = {"as Python does it": {}, "in ASCII": {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}}


@pytest.mark.process
@pytest.mark.parametrize("how", LOCALES)
def test_a_path_of_other_letters_in_a_c_locale(how: str, tmp_path: Path) -> None:
    """It works, or there is one error that says what to set."""
    shutil.copy(DIGITS, model := tmp_path / "modèle.onnx")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    for words in (["import", model, "--no-check", "-o", tmp_path / "é.graph.json"],
                  ["build", model, "-o", tmp_path / "bü"]):
        done = subprocess.run([sys.executable, "-m", "graphtool", *words], check=False,
                              capture_output=True, env={**env, **LOCALES[how], "LC_ALL": "C"})
        if how == "in ASCII":
            assert done.returncode == 2 and done.stderr.count(b"error[") == 1
            assert b"PYTHONUTF8=1" in done.stderr
        else:
            assert done.returncode == 0, done.stderr
    assert (tmp_path / "é.graph.json").exists() == (how != "in ASCII")
