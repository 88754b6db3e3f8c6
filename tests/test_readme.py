"""What the README tells to type and that takes long works; tests/docs runs its other commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphtool.cli.app import app
from graphtool.verbs import families

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", README, re.S | re.M)


def block(start: str) -> str:
    return next(b for b in BLOCKS if b.startswith(start))


def run(line: str) -> str:
    result = CliRunner().invoke(app, line.split()[1:])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the samples."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.compiled
def test_training_as_told_works(checkout: Path) -> None:
    for line in block("graphtool import samples/digits.py").splitlines():
        run(line.replace("--epochs 20", "--epochs 1"))
    assert (checkout / "trained.graph.json").is_file()


@pytest.mark.compiled
def test_a_trained_network_knows_digits_that_it_has_not_seen(
        checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in block("graphtool import samples/digits.py").splitlines():
        if line.startswith("graphtool train "):
            assert "--epochs 20" in line
            line = line.replace("--epochs 20", "--epochs 12") + " --threads 1"
        run(line)
    exec(block("import graphtool, numpy"), {})
    right, _, total = capsys.readouterr().out.split()[-3:]
    assert int(right) >= 0.98 * int(total)


@pytest.mark.parametrize("marker", ["tour", "tests"])
def test_ci_finds_its_commands(marker: str) -> None:
    part = README.split(f"<!-- {marker} -->")[1].split("<!-- end -->")[0]
    assert re.search(r"^pip install .* && \w+", part, re.M)


def test_the_table_has_every_verb_in_its_group() -> None:
    table = README.partition("| group | verb | what it does |")[2].partition("\n\n")[0]
    told, group = dict[str, str](), ""
    for said, row in re.findall(r"^\| ([a-zA-Z ]*?) ?\| ((?:`[a-z-]+` ?)+)\|", table, re.M):
        group = said.strip() or group
        told |= dict.fromkeys(re.findall(r"`([a-z-]+)`", row), group)
    unsaid = {"demo", "help", "version", "cache"}  # not what one looks for in a table
    assert told == {name: next(iter(verbs.values())).group for name, verbs in families().items()
                    if name not in unsaid}
