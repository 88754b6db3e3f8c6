"""action.yml: every step, run as a runner runs it, with stand-ins for what needs a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphtool.cli.faults import run
from graphtool.integrations.git.review import MARK

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
SAMPLE = f"{ROOT}/samples/mlp.py:model"
GIT = ("git", "-c", "user.name=n", "-c", "user.email=n@example.org")


class Runner:
    """What GitHub's runner does of a composite action: inputs, conditions, files for outputs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.inputs = folder, {n: x.get("default", "") for n, x in
                                            ACTION["inputs"].items()}
        self.outputs = dict[str, str]()
        self.bin, self.temp = folder / "bin", folder / "temp"
        for path in (self.bin, self.temp):
            path.mkdir()
        self.tool("graphtool", f'exec {sys.executable} -m graphtool "$@"')
        self.failed = False
        self.summary = ""

    def tool(self, name: str, body: str) -> None:
        """A program in the path, which also notes how it was called."""
        note = f'echo "{name} $*" >> {self.folder}/calls'
        (self.bin / name).write_text(f"#!/bin/sh\n{note}\n{body}\n")
        (self.bin / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def value(self, expression: str) -> str:
        """An expression between ${{ and }}: a context, or one of several by ||."""
        known = {"github.base_ref": "main", "github.token": "secret",
                 "github.repository": "o/r",
                 "github.event.pull_request.number": "7",
                 "github.event.repository.default_branch": "main",
                 **{f"inputs.{n}": v for n, v in self.inputs.items()},
                 **{f"steps.review.outputs.{n}": v for n, v in self.outputs.items()}}
        found = (known.get(part.strip(), "") for part in expression.split("||"))
        return next(filter(None, found), "")

    def text(self, template: str) -> str:
        once = re.sub(r"\$\{\{(.*?)\}\}", lambda m: self.value(m[1]), str(template))
        return re.sub(r"\$\{\{(.*?)\}\}", lambda m: self.value(m[1]), once)

    def holds(self, condition: str) -> bool:
        """A condition of terms joined by &&; without always() a failed step is the end."""
        if self.failed and "always()" not in condition:
            return False
        for term in condition.split("&&"):
            match = re.fullmatch(r"\s*([\w.]+)\s*(==|!=)\s*'(.*)'\s*", term)
            if match and (self.text(self.value(match[1])) == match[3]) != (match[2] == "=="):
                return False
            assert match or term.strip() in ("", "always()"), term
        return True

    def run(self, workspace: Path) -> list[str]:
        """The names of the steps that ran."""
        ran = []
        for step in ACTION["runs"]["steps"]:
            if not self.holds(step.get("if", "")):
                continue
            ran.append(step["name"])
            out, summary = self.temp / "out", self.temp / "summary"
            out.write_text("")
            env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.temp),
                   "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(self.temp),
                   "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(out),
                   "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true", "CI": "true",
                   **{k: self.text(v) for k, v in step.get("env", {}).items()}}
            script = self.temp / "step.sh"
            script.write_text(self.text(step["run"]))
            assert step["shell"] == "bash"
            done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
                                  cwd=workspace, env=env, capture_output=True, text=True)
            self.failed |= done.returncode != 0
            self.log = done.stdout + done.stderr
            if "id" in step:
                self.outputs = dict(line.split("=", 1) for line in out.read_text().splitlines())
        return ran


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose branch changes a graph of origin/main."""
    folder = tmp_path_factory.mktemp("action") / "checkout"
    folder.mkdir()
    env = {n: x for n, x in os.environ.items() if not n.startswith("GIT_")}

    def sh(*words: str) -> None:
        subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)
    assert run(["import", SAMPLE, "--no-check", "-o", str(folder / "m.graph.json")]) == 0
    sh("git", "init", "-q", "-b", "main")
    sh("git", "add", ".")
    sh(*GIT, "commit", "-qm", "base")
    sh("git", "update-ref", "refs/remotes/origin/main", "HEAD")
    text = (folder / "m.graph.json").read_text()
    (folder / "m.graph.json").write_text(text.replace('"op": "relu"', '"op": "tanh"', 1))
    sh(*GIT, "commit", "-qam", "change")
    return folder


@pytest.fixture
def repo(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the checkout."""
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    return Path(shutil.copytree(checkout, tmp_path / "checkout"))


def test_a_changed_graph_is_commented_on(runner: Runner, repo: Path) -> None:
    runner.inputs |= {"comment": "true"}
    runner.tool("python3", "")
    runner.tool("gh", 'test "$GH_TOKEN" = secret && test "$1" = api || grep -q "relu → tanh" "$5"')
    assert runner.run(repo) == [s["name"] for s in ACTION["runs"]["steps"]] and not runner.failed
    assert runner.outputs["changed"] == "true" and Path(runner.outputs["comment"]).is_file()
    assert runner.calls[0] == f"python3 -m pip install --quiet {ROOT}"
    asked, told = (c for c in runner.calls if c.startswith("gh "))
    assert asked.startswith("gh api repos/o/r/issues/7/comments --paginate --jq ") and MARK in asked
    assert told == f"gh pr comment 7 --body-file {runner.outputs['comment']}"
    assert "tanh" in (runner.temp / "summary").read_text()
    assert Path(runner.outputs["comment"]).read_text().startswith(MARK)


@pytest.mark.parametrize("changed", [True, False])
def test_its_own_comment_is_edited_and_no_other(changed: bool, runner: Runner, repo: Path) -> None:
    """Also when nothing differs any more: the comment would say that something does."""
    if not changed:
        equal(repo)
    runner.inputs |= {"comment": "true", "python": ""}
    runner.tool("gh", 'case "$*" in *--paginate*) echo 11; echo 42;; esac')
    ran = runner.run(repo)
    assert "Install graphtool" not in ran and not runner.failed
    assert [c for c in runner.calls if c.startswith("gh ")][1:] == [
        "gh api --method PATCH repos/o/r/issues/comments/42 "
        f"--field body=@{runner.outputs['comment']}"]


def equal(repo: Path) -> None:
    """Make the base what is checked out."""
    subprocess.run(["git", "update-ref", "refs/remotes/origin/main", "HEAD"], cwd=repo, check=True)


@pytest.mark.parametrize("comment", ["true", "false"])
def test_a_difference_may_fail_the_job(comment: str, runner: Runner, repo: Path) -> None:
    runner.inputs |= {"fail": "true", "python": "", "comment": comment}
    runner.tool("gh", "")
    ran = runner.run(repo)
    assert runner.failed and runner.outputs["changed"] == "true"
    assert ("Comment on the pull request" in ran) == (comment == "true")  # a failed job tells why


def test_no_difference_no_comment(runner: Runner, repo: Path) -> None:
    equal(repo)
    runner.inputs |= {"fail": "true", "python": "", "comment": "true"}
    runner.tool("gh", 'test "$1" = api')
    runner.run(repo)
    assert not runner.failed and not [c for c in runner.calls if "gh pr" in c]
    assert runner.outputs["changed"] == "false"


def test_a_failed_install_ends_the_job(runner: Runner, repo: Path) -> None:
    runner.inputs |= {"comment": "true"}
    runner.tool("python3", "exit 1")
    runner.tool("gh", "")
    assert runner.run(repo) == ["Install graphtool"] and runner.failed
    assert not [c for c in runner.calls if c.startswith("gh ")]
