"""What a verb found, one entry for each thing with its place in a file, and the formats of that:
Markdown, the workflow commands of GitHub, SARIF 2.1.0 and the XML of JUnit.

Text and JSON are the business of each report. Nothing here knows a verb. Each writer escapes names:
a line of its own may be a command, a line of a name is none.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from graphtool.escaping import (
    attribute,
    line,
    markdown_code,
    visible,
    workflow_data,
    workflow_property,
    xml,
)
from graphtool.escaping import markdown as plain
from graphtool.escaping import sarif as sarif_text
from graphtool.loops.dim_names import source_line

Level = Literal["ok", "note", "warning", "error"]
_ID = re.compile(r' \{"id": ("(?:[^"\\]|\\.)*")')
_FILES = 20_000  # how many entries of the current folder are looked at for a source file
MOST = 10
"""GitHub shows so many annotations of a level for each step, and drops the others."""
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
_WORDS: dict[Level, str] = {"ok": "ok", "note": "note", "warning": "warning", "error": "**error**"}


@dataclass(frozen=True)
class Finding:
    """One thing that a verb found or, with level `ok`, checked and found right.

    `rule` is its kind (`diff/added`), `name` what it concerns (a node, an output). `at` is the
    place as the graph states it (`mlp.py:20 MLP.forward`); `file` is the artifact, for a finding
    without a place in a source file that is here.
    """

    rule: str
    name: str
    level: Level
    message: str
    at: str = ""
    file: str = ""


@dataclass(frozen=True)
class Outcome:
    """All that a verb found about `subject`, the summary in one line, and the verb's own report as
    text."""

    verb: str
    subject: str
    summary: str
    findings: tuple[Finding, ...]
    text: tuple[str, ...] = ()
    markdown: tuple[str, ...] = ()  # if the verb writes its own

    def of(self, *levels: Level) -> list[Finding]:
        """The findings of these levels."""
        return [f for f in self.findings if f.level in levels]


@dataclass(frozen=True)
class FilePlace:
    """A file, relative to the current folder where it is in it, and a line; 0: unknown."""

    file: str
    line: int = 0


def outcome(verb: str, subject: str, summary: str, findings: Iterable[Finding],
            text: Sequence[str] = (), markdown: Sequence[str] = ()) -> Outcome:
    """The outcome of a verb; without findings, a single finding that says that all is right."""
    rows = tuple(findings) or (Finding(verb, subject, "ok", summary),)
    return Outcome(verb, subject, summary, rows, tuple(text), tuple(markdown))


class FindingPlaces:
    """Where findings belong, in the current folder as it was when it was first looked at."""

    def __init__(self) -> None:
        self.files: list[str] | None = None
        self.lines: dict[str, dict[str, int]] = {}

    def of(self, f: Finding) -> FilePlace | None:
        """The line of the source that the finding's `at` names, if exactly one such file is in the
        current folder; else the line of the artifact that defines its name."""
        at = source_line(f.at)
        if at and (source := self.source(at[0])):
            return FilePlace(source, at[1])
        path = Path(f.file)
        if not f.file or not path.exists():
            return None
        if f.file not in self.lines:
            self.lines[f.file] = _lines(path)
        return FilePlace(relative(path), self.lines[f.file].get(f.name, 0))

    def source(self, name: str) -> str | None:
        """The file that a location names, or the only one whose path ends in that name."""
        if Path(name).is_file():
            return relative(Path(name))
        if self.files is None:
            self.files = _files()
        matches = [p for p in self.files if p.endswith(f"/{name}")]
        return matches[0] if len(matches) == 1 else None


def relative(path: Path) -> str:
    """The path from the current folder, if it is in it; else as it is."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def _files() -> list[str]:
    out: list[str] = []
    for root, folders, names in os.walk("."):
        folders[:] = sorted(f for f in folders if f[0] != "." and f != "node_modules")
        out += [(Path(root) / n).as_posix() for n in names]
        if len(out) > _FILES:
            break
    return out


def _lines(path: Path) -> dict[str, int]:
    """The line of each name that a graph file defines: it has one node a line."""
    if path.suffix != ".json":
        return {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        line_of: dict[str, int] = {}
        for i, line in enumerate(lines, 1):
            if match := _ID.match(line):
                line_of.setdefault(json.loads(match[1]), i)
        return line_of


def markdown(o: Outcome, version: str) -> list[str]:
    """The verb's own page, or a heading, the summary, and a table with a row for each finding."""
    if o.markdown:
        return list(o.markdown)
    rows = [f"| {_WORDS[f.level]} | {markdown_code(f.name)} | {plain(f.message)} | {plain(f.at)} |"
            for f in o.findings]
    return [f"### graphtool {o.verb}: {markdown_code(o.subject)}", "", f"{plain(o.summary)}.", "",
            "| | what | finding | from |", "|---|---|---|---|", *rows]


def github(o: Outcome, version: str) -> list[str]:
    """The report's text, then a workflow command for each finding, which GitHub shows at its line.

    Of each level there are as many as GitHub shows; the last one says how many are left out."""
    out, places = list(map(line, o.text)), FindingPlaces()
    for level, command in _COMMANDS.items():
        rows = o.of(level)
        shown = rows if len(rows) <= MOST else rows[:MOST - 1]
        out += [_command(command, f, places) for f in shown]
        if len(shown) < len(rows):
            out.append(f"::{command} title={workflow_property(f'graphtool {o.verb}')}::"
                       f"and {len(rows) - len(shown)} more: the log lists them")
    return out


def _command(command: str, f: Finding, places: FindingPlaces) -> str:
    where = places.of(f)
    properties = {} if where is None else {"file": where.file, "line": str(where.line or 1)}
    properties["title"] = f"graphtool {f.rule.partition('/')[0]}"
    values = ",".join(f"{k}={workflow_property(v)}" for k, v in properties.items())
    return f"::{command} {values}::{workflow_data(f'{f.name}: {_message(f, where)}')}"


def _message(f: Finding, where: FilePlace | None) -> str:
    """The message, with the place as the graph states it if no line of a file says it."""
    has_place = f.at in ("", f.file) or (where and where.line)
    return f.message if has_place else f"{f.message}, at {f.at}"


def annotation(message: str, at: str) -> str:
    """The workflow command for an error that ended a verb; `at` may name a file."""
    first = (at.splitlines() or [""])[0]
    return _command("error", Finding("error", "graphtool", "error", message, first, first),
                    FindingPlaces())


def sarif(o: Outcome, version: str) -> list[str]:
    """A log of one run, as text; what is right is no result."""
    places = FindingPlaces()
    rows = o.of("note", "warning", "error")
    rules = list(dict.fromkeys(f.rule for f in rows))
    driver: dict[str, Any] = {"name": "graphtool", "rules": [
        {"id": r, "shortDescription": {"text": r.replace("/", ": ")}} for r in rules]}
    if version:
        driver["version"] = version
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
           "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints",
                     "results": [_result(f, rules.index(f.rule), places)
                                 for f in rows]}]}
    return visible(json.dumps(log, ensure_ascii=False, indent=1)).splitlines()


def _result(f: Finding, rule: int, places: FindingPlaces) -> dict[str, Any]:
    where = places.of(f)
    out: dict[str, Any] = {"ruleId": f.rule, "ruleIndex": rule, "level": f.level,
                           "message": {"text": sarif_text(f"{f.name}: {_message(f, where)}")}}
    if where is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(where.file)}}
        if where.line:
            physical["region"] = {"startLine": where.line}
        out["locations"] = [{"physicalLocation": physical,
                             "logicalLocations": [{"name": f.name}]}]
        words = (f.rule, f.name, where.file, *([] if where.line or not f.at else [f.at]))
        out["partialFingerprints"] = {"graphtool/v1": ":".join(words)}
    return out


def _uri(path: str) -> str:
    return f"file://{quote(path)}" if PurePosixPath(path).is_absolute() else quote(path)


def junit(o: Outcome, version: str) -> list[str]:
    """A test suite as pytest writes one: a case for each finding; errors are failures. Cases of
    equal names have their places in them."""
    failed, places = o.of("error"), FindingPlaces()
    count = Counter((f.rule, f.name) for f in o.findings)
    cases = [replace(f, name=f"{f.name} at {f.at}") if count[f.rule, f.name] > 1 and f.at else f
             for f in o.findings]
    name = attribute(f"graphtool {o.verb}")
    return ['<?xml version="1.0" encoding="utf-8"?>', '<testsuites name="graphtool">',
            f'<testsuite name={name} errors="0" failures="{len(failed)}" skipped="0" '
            f'tests="{len(o.findings)}">',
            *(row for f, case in zip(o.findings, cases, strict=True)
              for row in _case(o, case, places.of(f))),
            "</testsuite>", "</testsuites>"]


def _case(o: Outcome, f: Finding, where: FilePlace | None) -> list[str]:
    at = f" file={attribute(where.file)}" + (
        f' line="{where.line}"' if where.line else "") if where else ""
    head = (f"<testcase classname={attribute(f'{o.subject}.{f.rule}')} "
            f"name={attribute(f.name)}{at}")
    text = "\n".join(map(xml, filter(None, (f.message, f.at))))
    match f.level:
        case "error":
            return [f"{head}>", f"<failure message={attribute(f.message)}>{text}</failure>",
                    "</testcase>"]
        case "ok":
            return [f"{head}/>"]
        case _:
            return [f"{head}>", f"<system-out>{text}</system-out>", "</testcase>"]


WRITERS: dict[str, Callable[[Outcome, str], list[str]]] = {
    "markdown": markdown, "github": github, "sarif": sarif, "junit": junit}
FORMATS = ("text", *WRITERS, "json")
"""What `--format` takes."""
