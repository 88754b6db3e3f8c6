"""Findings in each format: what a program that reads them relies on, also with odd names."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from graphtool.report.findings import (
    MOST,
    WRITERS,
    Finding,
    FindingPlaces,
    Level,
    Outcome,
    annotation,
    outcome,
)

ODD = "a,b:c|d`e<f>\n%&\"\x07'"


def found(level: Level = "error", count: int = 1, **more: str) -> Outcome:
    return outcome("diff", "a → b", "some differ", [
        Finding("diff/added", f"n{i}", level, "relu f32[2]", **more) for i in range(count)],
        ["the text"])


def written(form: str, o: Outcome) -> str:
    return "\n".join(WRITERS[form](o, "1.0"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "net.py").write_text("x = 1\n")
    (tmp_path / "m.graph.json").write_text('{\n "nodes": [\n {"id": "n0", "op": "relu"}]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("at", "file", "expected"), [
    ("net.py:9 Net.forward", "m.graph.json", ("src/net.py", 9)),  # the only one of that name
    ("src/net.py:9", "", ("src/net.py", 9)),
    ("gone.py:9", "m.graph.json", ("m.graph.json", 3)),  # the line that defines n0
    ("/Conv_3", "m.graph.json", ("m.graph.json", 3)),
    ("", "src", ("src", 0)),
    ("", "gone.json", None)])
def test_places(at: str, file: str, expected: tuple[str, int] | None) -> None:
    known = FindingPlaces().of(Finding("r", "n0", "error", "m", at, file))
    assert (known and (known.file, known.line)) == expected


def test_a_name_of_two_files_is_no_place(here: Path) -> None:
    (here / "twin.py").write_text("")
    (here / "src" / "twin.py").write_text("")
    (here / ".hidden").mkdir()
    (here / ".hidden" / "net.py").write_text("")
    assert FindingPlaces().of(Finding("r", "n", "error", "m", "nested/twin.py:1")) is None
    assert FindingPlaces().of(Finding("r", "n", "error", "m", "net.py:1")) is not None


def test_github_says_text_then_commands() -> None:
    assert written("github", found(at="net.py:9")).splitlines() == [
        "the text", "::error file=src/net.py,line=9,title=graphtool diff::n0: relu f32[2]"]
    assert "::warning title=" in written("github", found("warning"))
    assert "::notice title=" in written("github", found("note"))
    assert "::" not in written("github", found("ok"))


def test_github_gets_no_more_than_it_shows() -> None:
    lines = written("github", found(count=MOST + 5)).splitlines()[1:]
    assert len(lines) == MOST and lines[-1].endswith("::and 6 more: the log lists them")
    assert "more" not in written("github", found(count=MOST))


def test_github_escapes() -> None:
    line = written("github", outcome("diff", "s", "t", [Finding("a,b", "n\nn", "error", "50 %")]))
    assert line == "::error title=graphtool a%2Cb::n%0An: 50 %25"
    assert annotation("GT0330: no", "src/net.py") == (
        "::error file=src/net.py,line=1,title=graphtool error::graphtool: GT0330: no")


def test_sarif_has_what_its_schema_requires() -> None:
    o = outcome("diff", "s", "t", [Finding("r/a", "n0", "error", "m", "net.py:9"),
                                   Finding("r/b", ODD, "note", "m", "", "m.graph.json"),
                                   Finding("r/a", "n2", "ok", "m")])
    log = json.loads(written("sarif", o))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0" and run["tool"]["driver"]["version"] == "1.0"
    rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
    assert rules == ["r/a", "r/b"] and [r["level"] for r in run["results"]] == ["error", "note"]
    for r in run["results"]:
        assert rules[r["ruleIndex"]] == r["ruleId"] and r["message"]["text"]
    first, second = (r["locations"][0]["physicalLocation"] for r in run["results"])
    assert first == {"artifactLocation": {"uri": "src/net.py"}, "region": {"startLine": 9}}
    assert second == {"artifactLocation": {"uri": "m.graph.json"}}  # SARIF has no line 0


def test_sarif_names_files_by_uris(here: Path) -> None:
    (here / "a b.json").write_text("")
    log = json.loads(written("sarif", found(file="a b.json")))
    assert '"uri": "a%20b.json"' in json.dumps(log)
    log = json.loads(written("sarif", found(file=str(here.parent))))
    assert f'"uri": "file://{here.parent}"' in json.dumps(log)


def test_junit_counts_and_survives_odd_names() -> None:
    o = outcome("check", ODD, "t", [Finding("r", ODD, "error", ODD, ODD),
                                    Finding("r", "b", "ok", "fine"),
                                    Finding("r", "c", "warning", "hm")])
    (suite,) = ET.fromstring(written("junit", o).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    a, b, c = suite
    assert [x.tag for x in a] == ["failure"] and not list(b) and c[0].tag == "system-out"
    assert (a.get("name") or "").startswith("a,b:c|d`e<f>")


def test_nothing_found_is_one_test_that_passed() -> None:
    o = outcome("diff", "s", "equal: 3 nodes", [])
    (suite,) = ET.fromstring(written("junit", o).encode())
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert json.loads(written("sarif", o))["runs"][0]["results"] == []
    assert written("github", o) == ""


def test_markdown_is_one_table_whatever_the_names() -> None:
    lines = written("markdown", outcome("check", "s", "t", [
        Finding("r", ODD, "error", ODD, ODD), Finding("r", "b", "ok", "fine")])).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4 and lines[0] == "### graphtool check: `s`"
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)
