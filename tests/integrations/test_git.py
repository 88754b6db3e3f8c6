"""The drivers in temporary repositories, by git itself; the hook and the action as they are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from graphtool.ir import serial
from graphtool.report.diff import diff
from tests.cli.conftest import Cli, gt  # noqa: F401  (a fixture)
from tests.report.graphs import layers

ROOT = Path(__file__).parents[2]
Git = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, in which git finds no settings but its own."""
    path = tmp_path / "a repo"
    path.mkdir()
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def git(repo: Path) -> Git:
    """`git("status")` in the repository, which must succeed unless `ok=False`."""
    def call(*words: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@e.org", *words],
                              capture_output=True, text=True, check=False)
        assert not ok or done.returncode == 0, (words, done)
        return done
    call("init", "-q", "-b", "main")
    return call


def commit(git: Git, message: str, **which: Any) -> None:
    """The graph and its weights as they are with these layers, committed."""
    serial.save(layers(6, **which), Path("m.graph.json"))
    git("add", "-A")
    git("commit", "-qm", message)


def test_installed_shown_and_removed(repo: Path, git: Git, gt: Cli) -> None:  # noqa: F811
    (repo / ".gitattributes").write_text("*.png binary\n")
    assert gt("git", "status").code == 1
    for _ in range(2):  # again changes nothing
        assert gt("git", "install").out.endswith(f"installed in {repo}\n")
    assert gt("git", "status", "--json").code == 0
    lines = (repo / ".gitattributes").read_text().splitlines()
    assert lines[0] == "*.png binary" and len(lines) == len(set(lines)) == 4
    assert gt("git", "uninstall").code == 0
    assert (repo / ".gitattributes").read_text() == "*.png binary\n"
    assert "graphtool" not in (repo / ".git" / "config").read_text()
    assert gt("git", "status").code == 1


def test_a_file_of_its_own_goes_again(repo: Path, git: Git, gt: Cli) -> None:  # noqa: F811
    gt("git", "install")
    gt("git", "uninstall")
    assert not (repo / ".gitattributes").exists()


def test_outside_of_a_repository(repo: Path, gt: Cli) -> None:  # noqa: F811
    result = gt("git", "install")
    assert result.code == 2 and "GT3130" in result.err


def test_diff_shows_the_listing(git: Git, gt: Cli) -> None:  # noqa: F811
    gt("git", "install")
    commit(git, "base")
    commit(git, "tanh", odd=2)
    shown = git("diff", "HEAD~1", "--", "m.graph.json").stdout
    assert re.search(r"^-relu#3: .* = relu\(add#5\)$", shown, re.M), shown
    assert re.search(r"^\+tanh: .* = tanh\(", shown, re.M) and '"op"' not in shown
    Path("m.graph.json").write_text("no graph\n")  # is shown as it is
    assert "+no graph" in git("diff", "--", "m.graph.json").stdout


def test_branches_are_merged_with_their_weights(git: Git, gt: Cli) -> None:  # noqa: F811
    """Each side changes a layer, and one of them a weight of 16 KiB, which is in the other file."""
    gt("git", "install")
    commit(git, "base")
    git("checkout", "-qb", "theirs")
    commit(git, "their layer", odd=4)
    git("checkout", "-q", "main")
    commit(git, "our layer", extra=1)
    git("merge", "theirs", "-m", "both")
    assert diff(serial.load(Path("m.graph.json")), layers(6, odd=4, extra=1)).equal
    assert git("status", "--porcelain").stdout == ""


def test_both_sides_have_new_weights(git: Git, gt: Cli) -> None:  # noqa: F811
    import tests.report.graphs as graphs
    gt("git", "install")
    width, graphs.WIDTH = graphs.WIDTH, 8  # so that weights are in the other file
    try:
        commit(git, "base")
        git("checkout", "-qb", "theirs")
        commit(git, "their weight", weights=4)
        git("checkout", "-q", "main")
        commit(git, "our weight", weights=1)
        git("merge", "theirs", "-m", "both")
        found = serial.load(Path("m.graph.json"))
        held = [n.attrs["data"].source for n in found.graph.nodes if n.op.name == "constant"]
        base, ours, theirs = (
            [n.attrs["data"].source for n in layers(6, **k).graph.nodes if n.op.name == "constant"]
            for k in ({}, {"weights": 1}, {"weights": 4}))
    finally:
        graphs.WIDTH = width
    for b, x, y in zip(base, ours, theirs, strict=True):
        wanted = y if not np.array_equal(b, y) else x
        assert any(np.array_equal(wanted, h) for h in held)
    assert gt("git", "check", "m.graph.json").code == 0


def test_a_conflict_is_git_s_and_names_the_node(git: Git, gt: Cli) -> None:  # noqa: F811
    gt("git", "install")
    commit(git, "base")
    git("checkout", "-qb", "theirs")
    text = Path("m.graph.json").read_text()
    Path("m.graph.json").write_text(text.replace('"op": "relu"', '"op": "exp"', 1))
    git("commit", "-qam", "exp")
    git("checkout", "-q", "main")
    Path("m.graph.json").write_text(text.replace('"op": "relu"', '"op": "tanh"', 1))
    git("commit", "-qam", "tanh")
    done = git("merge", "theirs", ok=False)
    assert done.returncode == 1
    assert "m.graph.json: conflict: relu: " in done.stdout + done.stderr
    assert "UU m.graph.json" in git("status", "--porcelain").stdout
    for verb in (["show"], ["git", "check"]):
        result = gt(*verb, "m.graph.json")
        assert result.code and "git left a conflict in it" in result.out + result.err
    git("checkout", "--theirs", "m.graph.json")
    assert gt("git", "check", "m.graph.json").code == 0


def test_other_safetensors_are_left_to_people(git: Git, gt: Cli) -> None:  # noqa: F811
    from safetensors.numpy import save_file
    gt("git", "install")
    for branch, value in (("main", 0), ("theirs", 1), ("main", 2)):
        git("checkout", "-q", *(["-b"] if branch == "theirs" else []), branch, ok=False)
        save_file({"w": np.full(3, value, np.float32)}, "other.safetensors")
        git("add", "-A")
        git("commit", "-qm", f"{value}")
    done = git("merge", "theirs", ok=False)
    assert done.returncode == 1 and "GT3133" in done.stdout + done.stderr


def test_check_before_a_commit(git: Git, gt: Cli) -> None:  # noqa: F811
    commit(git, "base")
    assert gt("git", "check", "m.graph.json").out == "ok   m.graph.json: valid\n"
    text = Path("m.graph.json").read_text()
    Path("spaced.graph.json").write_text(text + "\n")
    Path("typed.graph.json").write_text(text.replace("f32[2,4]", "f32[2,5]", 1))
    result = gt("git", "check", "m.graph.json", "spaced.graph.json", "typed.graph.json")
    assert result.code == 1 and "not as graphtool writes it" in result.out
    assert "FAIL typed.graph.json: GT0" in result.out
    assert gt("git", "check", "typed.graph.json", "--format", "github").out.count("::error ") == 1


def test_the_hook_s_entry_takes_the_files(git: Git, gt: Cli) -> None:  # noqa: F811
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    commit(git, "base")
    names = [n for n in ("m.graph.json", "x.json", "m.gt") if re.search(hook["files"], n)]
    assert names == ["m.graph.json", "m.gt"]
    assert gt(*hook["entry"].split()[1:], "m.graph.json").code == 0


def test_review_of_a_branch(git: Git, gt: Cli) -> None:  # noqa: F811
    commit(git, "base")
    git("checkout", "-qb", "topic")
    commit(git, "tanh", odd=2)
    serial.save(layers(1), Path("new.graph.json"))  # not even added
    Path("broken.graph.json").write_text("{")
    result = gt("git", "review", "main", "--comment", "c.md")
    assert result.code == 1 and "broken, 1 changed, 1 added" in result.out
    comment = Path("c.md").read_text()
    assert comment.startswith("<!-- graphtool review -->\n") and "```mermaid\nflowchart" in comment
    assert comment.count(":::changed") == 1 and "| changed | `tanh` |" in comment
    shown = gt("git", "review", "main", "--format", "github").out
    assert "::warning file=m.graph.json," in shown and "::error file=broken.graph.json," in shown
    git("checkout", "-q", "--", ".")
    git("clean", "-qfd")
    git("checkout", "-q", "main")
    assert gt("git", "review", "main").out == "graph files since main: none differ\n"
    assert gt("git", "review", "nowhere").code == 2


def test_a_comment_is_no_longer_than_github_takes(git: Git, gt: Cli) -> None:  # noqa: F811
    serial.save(layers(900), Path("m.graph.json"))
    git("add", "-A")
    git("commit", "-qm", "base")
    for i in range(3):
        serial.save(layers(400, seed=i + 1), Path(f"m{i}.graph.json"))
    serial.save(layers(100, odd=3), Path("m.graph.json"))
    Path("z.graph.json").write_text("{")
    gt("git", "review", "HEAD", "--comment", "c.md")
    comment = Path("c.md").read_text()
    assert 0 < len(comment.encode()) < 65_536 and "is cut here" in comment
    assert "\nbroken: " in comment  # by which the action fails


@pytest.mark.parametrize(("fail", "code"), [("false", 0), ("true", 1)])
def test_the_action_runs(fail: str, code: int, repo: Path, git: Git, tmp_path: Path) -> None:
    """The step's shell commands, as a runner runs them."""
    commit(git, "base")
    git("checkout", "-qb", "topic")
    commit(git, "tanh", odd=2)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = {s["name"]: s for s in action["runs"]["steps"]}
    step = steps["Compare the graphs"]
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "graphtool").write_text(f'#!/bin/sh\nexec {sys.executable} -m graphtool "$@"\n')
    (tools / "graphtool").chmod(0o755)
    files = {n: tmp_path / n for n in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    given = {k: str(v) for k, v in files.items()} | {
        "RUNNER_TEMP": str(tmp_path), "BASE": "main", "FAIL": fail,
        "PATH": f"{tools}:{os.environ['PATH']}"}
    assert set(step["env"]) <= set(given) and step["shell"] == "bash"
    done = subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c",
                           step["run"]], env=os.environ | given, capture_output=True, text=True,
                          check=False)
    assert done.returncode == code, done
    assert "::warning file=m.graph.json,line=" in done.stdout
    assert files["GITHUB_OUTPUT"].read_text() == (
        f"changed=true\ncomment={tmp_path}/graphtool-review.md\n")
    assert "```mermaid" in files["GITHUB_STEP_SUMMARY"].read_text()
    for s in action["runs"]["steps"]:  # an input that is misspelt would be empty
        for name in re.findall(r"inputs\.(\w+)", str(s)):
            assert name in action["inputs"]
