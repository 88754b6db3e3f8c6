"""The example repository of the how-to page: its workflow, run as a runner runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphtool.cli.faults import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "compare-graphs-in-ci.md").read_text()
MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(16, 16)

    def forward(self, x):
        return torch.relu(self.fc(x))


def model():
    return Net().eval()


def inputs():
    return (torch.zeros(4, 16),)
"""


def workflow() -> dict[str, Any]:
    block = re.search(r"<!-- file: model.yml -->\n```yaml\n(.*?)^```$", PAGE, re.S | re.M)
    assert block
    found: dict[str, Any] = yaml.safe_load(block[1])
    return found


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with the example's files; `origin/main` has the accepted model."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "graphtool").write_text(f'#!/bin/sh\nexec {sys.executable} -m graphtool "$@"\n')
    (tools / "graphtool").chmod(0o755)
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    for name, value in {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "GITHUB_BASE_REF": "main",
                        "PATH": f"{tools}:{os.environ['PATH']}",
                        "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "origin").mkdir()
    monkeypatch.chdir(tmp_path / "origin")
    Path("model.py").write_text(MODEL)
    sh("git init -q -b main . && graphtool git install && mkdir graphs")
    imported()
    commit("base")
    monkeypatch.chdir(tmp_path)
    sh("git clone -q origin clone")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "clone"


def imported() -> None:
    """The graph of the model as it is, in this process, where torch is imported already."""
    assert run(["import", "model.py:model", "--no-check", "-o", "graphs/model.graph.json"]) == 0


def sh(command: str) -> subprocess.CompletedProcess[str]:
    """A step's `run`, by the shell that a runner uses; stdout and stderr are one."""
    return subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", command],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def commit(message: str) -> None:
    done = sh(f"git add -A && git -c user.name=n -c user.email=n@e.org commit -qm {message}")
    assert done.returncode == 0, done


def run_steps() -> dict[str, subprocess.CompletedProcess[str]]:
    """What each step of the job does, until one fails."""
    out = {}
    for step in workflow()["jobs"]["model"]["steps"]:
        if "run" not in step or step["run"].startswith("pip install"):
            continue
        out[step["name"]] = sh(step["run"])
        if out[step["name"]].returncode:
            break
    return out


def test_a_change_with_its_graph_passes(repo: Path) -> None:
    Path("model.py").write_text(MODEL.replace("torch.relu(self.fc(x))", "torch.tanh(self.fc(x))"))
    imported()
    commit("tanh")
    done = run_steps()
    assert [d.returncode for d in done.values()][:2] == [0, 0], done
    assert len(done) == 3 and '<testcase classname="graphs/model.graph.json and' in Path(
        "out/check.xml").read_text()
    speed = done["It is not slower than before"].stdout
    assert "out/before" in speed and ("% confidence)" in speed or "no verdict" in speed)


def test_a_change_without_its_graph_is_shown_in_the_source(repo: Path) -> None:
    Path("model.py").write_text(MODEL.replace("torch.relu(self.fc(x))", "torch.tanh(self.fc(x))"))
    commit("tanh")
    (failed,) = [d for d in run_steps().values() if d.returncode]
    assert failed.returncode == 1
    assert "::error file=model.py,line=12,title=graphtool diff::" in failed.stdout


def test_the_action_that_it_uses_has_the_inputs_that_it_gives() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [s for s in workflow()["jobs"]["model"]["steps"] if "graphtool@" in s.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert all(f"- id: {h['id']}" in PAGE for h in hooks)
