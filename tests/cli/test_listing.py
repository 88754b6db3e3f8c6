"""A listing is a model like any other: from stdin, from a .gt file, into either."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from graphtool.io.versions import GRAPH
from tests.cli.conftest import DIGITS, Cli


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_what_show_prints_goes_on(gt: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short form finds the weights from the folder that it was printed in."""
    monkeypatch.chdir(folder.parent)
    stdin(monkeypatch, gt("show", folder / "digits.graph.json").out)
    once = gt("opt", "-", "--passes", "simplify").out
    assert once.startswith(f"version {GRAPH.version} since ")
    stdin(monkeypatch, once)
    assert gt("diff", "-", folder / "digits.graph.json").code == 0


def test_the_full_form_needs_no_file(gt: Cli, tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, gt("show", DIGITS).out)
    assert "graphtool show --full" in gt("show", "-").err
    stdin(monkeypatch, gt("show", DIGITS, "--full").out)
    assert gt("opt", "-", "--passes", "dce", "-o", tmp_path / "m.graph.json").code == 0
    assert gt("diff", DIGITS, tmp_path / "m.graph.json").code == 0


@pytest.mark.compiled
def test_check_takes_a_graph_from_a_pipe(gt: Cli, folder: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "digits.graph.json"
    for line in (("check", f"{folder}/-", DIGITS), ("check", DIGITS, f"{folder}/-")):
        stdin(monkeypatch, path.read_text())
        assert (gt(*line).code, line) == (0, line)
    assert "GT3014" in gt("check", "-", f"{folder}/-").err


def test_verbs_take_and_write_gt_files(gt: Cli, tmp_path: Path) -> None:
    a, b, step = (tmp_path / f"{n}.gt" for n in "abc")
    for line in (("import", DIGITS, "--no-check", "-o", a), ("import", a, "--no-check", "-o", b),
                 ("diff", a, b), ("eval", a, "--random"), ("opt", b, "-o", b),
                 ("grad", a, "--loss", "cross_entropy", "-o", step), ("show", step, "--where"),
                 ("check", a, b)):
        assert (gt(*line).code, line) == (0, line)


def test_a_fault_of_a_listing_has_its_line(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.gt").write_text("input x: f32[4]\ny = nag(x)\nreturn y\n")
    result = gt("show", tmp_path / "m.gt")
    assert result.code == 3
    assert result.err.startswith(f"error[GT0401]: unknown op 'nag'\n  at {tmp_path}/m.gt:2:1\n")


def test_a_graph_from_a_pipe_finds_its_weights(gt: Cli, folder: Path, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "digits.graph.json"
    monkeypatch.chdir(tmp_path)
    stdin(monkeypatch, path.read_text())
    shown = gt("show", path).out.partition("\n")[2]  # the first line is the way to the weights
    assert gt("show", f"{folder}/-").out == shown
    stdin(monkeypatch, path.read_text())
    lost = gt("show", "-")
    assert lost.code == 3 and "GT0320" in lost.err and "DIR/-" in lost.err
    monkeypatch.chdir(folder)
    stdin(monkeypatch, path.read_text())
    inside = gt("opt", "-", "--passes", "dce", "-o", "-")
    assert inside.code == 0
    monkeypatch.chdir(tmp_path)
    stdin(monkeypatch, inside.out)
    assert gt("diff", "-", path).code == 0


def test_a_pipe_names_no_file_elsewhere(gt: Cli, folder: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    text = (folder / "digits.graph.json").read_text()
    stdin(monkeypatch, text.replace('"digits.safetensors"', '"../digits.safetensors"'))
    assert "GT0343" in gt("show", f"{folder}/-").err
