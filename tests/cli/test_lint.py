"""`lint`: profiles as files, formats, exit codes. What rules find: importers/onnx/test_lint.py."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from graphtool.importers.onnx.lint.profile import Profile, Rule, load
from tests.cli.conftest import DIGITS, Cli


def test_a_profile_of_ones_own(tmp_path: Path, gt: Cli) -> None:
    rule = Rule("ACME-1", "all sizes are numbers", "sizes-fixed", "warning")
    profile = Profile("acme", "Acme's models", "Acme's handbook", (rule,))
    (tmp_path / "acme.json").write_bytes(msgspec.json.encode(profile))
    result = gt("lint", DIGITS, "--profile", tmp_path / "acme.json")
    assert result.code == 0  # a warning is no error
    assert result.out.startswith("ACME-1 (warning, ")
    assert result.out.endswith(" findings against 1 of 1 rules\n")


def test_the_profile_is_printed_as_it_is_read(tmp_path: Path, gt: Cli) -> None:
    (tmp_path / "mine.json").write_text(gt("lint", "--profile", "sonnx").out)
    assert load(str(tmp_path / "mine.json")) == load("sonnx")


def test_findings_reach_code_scanning(gt: Cli) -> None:
    result = gt("lint", DIGITS, "--format", "sarif")
    results = json.loads(result.out)["runs"][0]["results"]
    assert result.code == 1 and {r["ruleId"] for r in results} == {"lint/REQ-OP-070"}


def test_other_files_are_refused(gt: Cli) -> None:
    assert "error[GT3018]" in gt("lint", "samples/digits.py").err
    assert "error[GT0332]" in gt("lint", DIGITS, "--profile", "none.json").err
