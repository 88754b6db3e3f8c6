"""With `-o -` the result alone goes to stdout: reports, and what user code prints, to stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS, Cli

REPORTS = ["--check", "--time", "--stats", "--print-after=all", "--json",
           "--check --time --stats"]
LOUD = """
import torch
print("loud file")

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        print("loud init")

    def forward(self, x):
        print("loud forward")
        return x + 1

def inputs():
    print("loud inputs")
    return (torch.ones(3),)
"""


@pytest.mark.parametrize("options", REPORTS)
def test_reports_of_opt(options: str, gt: Cli) -> None:
    done = gt("opt", DIGITS, "--passes", "simplify,dce", "-o", "-", *options.split())
    assert done.code == 0, done.err
    assert json.loads(done.out)["format"] == "graphtool/graph"
    told = gt("opt", DIGITS, "--passes", "simplify,dce", *options.split())
    assert done.err.count("\n") == told.out.count("\n") and not told.err


@pytest.mark.parametrize("verb", ["import", "show", "opt", "draw"])
def test_what_a_models_file_prints(verb: str, gt: Cli, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(LOUD)
    done = gt(verb, f"{tmp_path / 'net.py'}:Net", *(["-o", "-"] if verb in ("import", "opt")
                                                   else []))
    assert not any(line.startswith("loud") for line in done.out.splitlines())
    for word in ("file", "init", "inputs"):
        assert f"loud {word}" in done.err
    if verb == "import":
        assert json.loads(done.out)["format"] == "graphtool/graph" and "loud forward" in done.err


def test_what_a_plug_in_prints(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('loud plug-in')")
    done = gt("ops", "relu", "--json", "--plugin", tmp_path / "loud.py")
    assert json.loads(done.out) and "loud plug-in" in done.err
