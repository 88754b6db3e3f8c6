"""One name, one version, from pyproject.toml; and what an installed graphtool knows of itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from graphtool.io import release

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.yml"),
         *(ROOT / "graphtool").rglob("*.py")]


def test_the_release_is_that_of_the_checkout() -> None:
    assert release.release() == (PROJECT["name"], PROJECT["version"], ROOT)
    assert release.install("view") == f"pip install '{ROOT}[view]'"


def test_what_a_text_installs_is_ours() -> None:
    """Each `graphtool…[extra]` is the distribution's name with extras that exist; pins are of this
    version."""
    known, wrong = set(PROJECT["optional-dependencies"]), list[str]()
    for path in TEXTS:
        text = path.read_text()
        wrong += [f"{path}: {name}[{extras}]" for name, extras in re.findall(
            r"(?<![\w/.])(graphtool[\w-]*)\\?\[([a-z,]+)\]", text)
            if name != PROJECT["name"] or not {*extras.split(",")} <= known]
        wrong += [f"{path}: {line}" for line in re.findall(
            r"pip install [^\n&`]*(?<![\w/.-])graphtool(?![\w/.-])", text)]
        wrong += [f"{path}: v{pin}" for pin in re.findall(
            r"(?:graphtool@|rev: )v(\d[\d.]*\d)", text)
            if pin != PROJECT["version"] and path.name != "CHANGELOG.md"]
    assert not wrong


@pytest.mark.parametrize(("url", "view", "newer"), [
    ("", "'graphtool-compiler[view]'", "--upgrade 'graphtool-compiler>=9'"),
    ('{"url": "file:///src", "dir_info": {}}', "'fast-sugiyama>=0.5' 'vl-convert-python>=1.7'",
     "--upgrade 'graphtool-compiler @ file:///src'"),
    ('{"url": "https://host/g.git", "vcs_info": {"vcs": "git"}}',
     "'fast-sugiyama>=0.5' 'vl-convert-python>=1.7'",
     "--upgrade 'graphtool-compiler @ git+https://host/g.git'")])
def test_what_an_installation_says_is_there(url: str, view: str, newer: str, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """An index is named only where one gave it: the release may not be on any."""
    info = tmp_path / "graphtool_compiler-1.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: graphtool-compiler\nVersion: 1.1.0\n" + "".join(
            f'Requires-Dist: {r}; extra == "{e}"\n'
            for e in ("view", "zig") for r in PROJECT["optional-dependencies"][e]))
    (info / "top_level.txt").write_text("graphtool\n")
    if url:
        (info / "direct_url.json").write_text(url)
    monkeypatch.setattr(release, "_ROOT", tmp_path)
    monkeypatch.setattr(release, "release", release.release.__wrapped__)
    assert release.install("view") == f"pip install {view}"
    assert release.install(least="9") == f"pip install {newer}"


@pytest.mark.slow
def test_it_runs_where_the_checkout_is_not(tmp_path: Path) -> None:
    """A wheel in an environment of its own, which sees the packages of this one."""
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "tests", "benchmarks"))
    run = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", "dist",
           str(source)]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "env"], cwd=tmp_path, check=True)
    python = tmp_path / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--no-index", "--find-links", "dist",
                    "--no-deps", f"{PROJECT['name']}[view]"], cwd=tmp_path, check=True,
                   capture_output=True)
    for folder in sys.path:
        if folder.endswith("site-packages"):
            with next((tmp_path / "env/lib").glob("python*")).joinpath(
                    "site-packages/these.pth").open("a") as file:
                file.write(f"{folder}\n")
    (tmp_path / "empty").mkdir()

    def told(*command: str) -> str:
        done = subprocess.run([tmp_path / "env/bin" / command[0], *command[1:]], text=True,
                              cwd=tmp_path / "empty", env={"PATH": "/usr/bin:/bin"}, check=False,
                              capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert told("graphtool", "--version") == f"graphtool {PROJECT['version']}\n"
    assert told("python", "-c", "from graphtool import release; print(release.install('view'))"
                ) == f"pip install '{PROJECT['name']}[view]'\n"
    assert "faster" in told("graphtool", "demo", "--seconds", "0.1")
    graph = tmp_path / "empty/graphtool-demo/digits.graph.json"
    told("graphtool", "view", str(graph), "-o", "page.html")
