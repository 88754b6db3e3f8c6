"""compare-captures: columns that agree, a way that fails with its line, and the schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from graphtool.verify.schemas import schemas
from tests.cli.conftest import Cli

pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

BRANCHING = '''
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x * 2

class Sized(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            return (x + 1).view(-1)
        return x * 2

def inputs():
    return (torch.ones(3, 2),)
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "branching.py"
    path.write_text(BRANCHING)
    return path


@pytest.mark.torch
def test_one_way_fails_and_says_where(source: Path, gt: Cli) -> None:
    result = gt("compare-captures", f"{source}:Sized", "--json")
    report = json.loads(result.out)
    jsonschema.Draft202012Validator(json.loads(schemas()["captures"])).validate(report)
    fx, export, onnx = report["captures"]
    assert result.code == 0 and report["agree"]
    assert "branching.py:12" in fx["where"] and "--capture export" in fx["hint"]
    assert export["nodes"] == 2 and export["views"] == 1 and export["difference"] == 0
    assert onnx["difference"] == 0


@pytest.mark.torch
def test_what_one_way_cannot_is_no_failure_of_the_suite(source: Path, gt: Cli) -> None:
    """The exit code is 0, and so the suite is green."""
    done = gt("compare-captures", f"{source}:Sized", "--format", "junit")
    assert done.code == 0 and 'failures="0"' in done.out
    assert "::warning" in gt("compare-captures", f"{source}:Sized", "--format", "github").out


@pytest.mark.torch
def test_each_capture_keeps_its_own_ops(tmp_path: Path, gt: Cli) -> None:
    path = tmp_path / "net.py"
    path.write_text("import torch\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), "
                    "torch.nn.ReLU())\ndef inputs():\n    return torch.ones(3, 2)\n")
    rows = json.loads(gt("compare-captures", f"{path}:net", "--json").out)["captures"]
    assert [r["own"] for r in rows] == [
        {"Linear": 1, "ReLU": 1}, {"aten.linear": 1, "aten.relu": 1}, {"Gemm": 1, "Relu": 1}]
    assert [r["ops"] for r in rows] == [{"linear": 1, "relu": 1}] * 3
    table = gt("compare-captures", f"{path}:net").out
    assert "own ops" in table and table.count("1 × ") == 6


@pytest.mark.torch
def test_no_way_in(source: Path, gt: Cli) -> None:
    result = gt("compare-captures", f"{source}:Model")
    assert result.code == 4
    assert result.out.count("branching.py:6") == 3 and "torch.cond" in result.out


def test_only_source_is_captured(gt: Cli) -> None:
    result = gt("compare-captures", "model.onnx")
    assert result.code == 2 and "GT3099" in result.err
