"""`machine` and `--machine`: which row of figures kernels are chosen by."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from graphtool.report import machine as report
from graphtool.target import detect
from tests.cli.conftest import DIGITS, Cli


def test_a_build_says_its_machine(gt: Cli, tmp_path: Path) -> None:
    """By --machine, of a model or of the graph that `opt` made with it; and never by another."""
    def machine_of(*more: object) -> str:
        assert gt("build", *more, "-o", tmp_path / "b").code == 0
        return str(json.loads((tmp_path / "b" / "build.json").read_text())["machine"])
    assert machine_of(DIGITS) == detect().machine
    assert machine_of(DIGITS, "--machine", "generic") == "generic"
    own = tmp_path / "own.json"
    row = replace(report.against(detect()), name="own")
    own.write_text(row.line())
    assert machine_of(DIGITS, "--machine", own) == "own"
    graph = tmp_path / "o.graph.json"
    assert gt("opt", DIGITS, "--machine", own, "-o", graph).code == 0
    assert machine_of(graph) == "own"
    refused = gt("build", graph, "-o", tmp_path / "c", "--machine", own)
    assert refused.code == 2 and "GT3090" in refused.err and not (tmp_path / "c").exists()


def test_the_verb(gt: Cli, tmp_path: Path) -> None:
    assert "emerald-rapids" in gt("machine", "--list").out
    out = tmp_path / "h.json"
    assert "kernels are chosen by the row" in gt("machine", "-o", out, "--name", "h").out
    assert json.loads(out.read_text())["name"] == "h"
    for wrong in (["-o", tmp_path / "h"], ["--list", "--json"], ["--name", "a b"]):
        found = gt("machine", *wrong)
        assert found.code in (2, 3) and found.err.startswith("error[GT")
