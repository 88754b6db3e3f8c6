"""Findings as markdown, GitHub's workflow commands, SARIF 2.1.0 and JUnit's XML.

Text and JSON are the business of each report. Nothing here knows a verb. Each writer escapes what
it is given: a line of its own may be a command, a line of a name is none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
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
from graphtool.report.findings import Finding, Level, Outcome, Place, Places

MOST = 10
"""GitHub shows so many annotations of a level for each step, and drops the others."""
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
_WORDS: dict[Level, str] = {"ok": "ok", "note": "note", "warning": "warning", "error": "**error**"}


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
    out, places = list(map(line, o.text)), Places()
    for level, command in _COMMANDS.items():
        found = o.of(level)
        shown = found if len(found) <= MOST else found[:MOST - 1]
        out += [_command(command, f, places) for f in shown]
        if len(shown) < len(found):
            out.append(f"::{command} title={workflow_property(f'graphtool {o.verb}')}::"
                       f"and {len(found) - len(shown)} more: the log lists them")
    return out


def _command(command: str, f: Finding, places: Places) -> str:
    where = places.of(f)
    properties = {} if where is None else {"file": where.file, "line": str(where.line or 1)}
    properties["title"] = f"graphtool {f.rule.partition('/')[0]}"
    told = ",".join(f"{k}={workflow_property(v)}" for k, v in properties.items())
    return f"::{command} {told}::{workflow_data(f'{f.name}: {_message(f, where)}')}"


def _message(f: Finding, where: Place | None) -> str:
    """The message, with the place as the graph states it if no line of a file says it."""
    told = f.at in ("", f.file) or (where and where.line)
    return f.message if told else f"{f.message}, at {f.at}"


def annotation(message: str, at: str) -> str:
    """The workflow command for an error that ended a verb; `at` may name a file."""
    first = (at.splitlines() or [""])[0]
    return _command("error", Finding("error", "graphtool", "error", message, first, first),
                    Places())


def sarif(o: Outcome, version: str) -> list[str]:
    """A log of one run, as text; what is right is no result."""
    places = Places()
    found = o.of("note", "warning", "error")
    rules = list(dict.fromkeys(f.rule for f in found))
    driver: dict[str, Any] = {"name": "graphtool", "rules": [
        {"id": r, "shortDescription": {"text": r.replace("/", ": ")}} for r in rules]}
    if version:
        driver["version"] = version
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
           "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints",
                     "results": [_result(f, rules.index(f.rule), places)
                                 for f in found]}]}
    return visible(json.dumps(log, ensure_ascii=False, indent=1)).splitlines()


def _result(f: Finding, rule: int, places: Places) -> dict[str, Any]:
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
    failed, places = o.of("error"), Places()
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


def _case(o: Outcome, f: Finding, where: Place | None) -> list[str]:
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
