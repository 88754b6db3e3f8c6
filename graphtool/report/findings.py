"""What a verb found, one entry for each thing, with its place in a file. formats.py writes it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphtool.loops.places import source_line

Level = Literal["ok", "note", "warning", "error"]
_ID = re.compile(r' \{"id": ("(?:[^"\\]|\\.)*")')
_FILES = 20_000  # how many entries of the current folder are looked at for a source file


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
class Place:
    """A file, relative to the current folder where it is in it, and a line; 0: unknown."""

    file: str
    line: int = 0


def outcome(verb: str, subject: str, summary: str, findings: Iterable[Finding],
            text: Sequence[str] = (), markdown: Sequence[str] = ()) -> Outcome:
    """The outcome of a verb; without findings, one that says that all is right."""
    found = tuple(findings) or (Finding(verb, subject, "ok", summary),)
    return Outcome(verb, subject, summary, found, tuple(text), tuple(markdown))


class Places:
    """Where findings belong, in the current folder as it was when it was first looked at."""

    def __init__(self) -> None:
        self.files: list[str] | None = None
        self.lines: dict[str, dict[str, int]] = {}

    def of(self, f: Finding) -> Place | None:
        """The line of the source that the finding's `at` names, if exactly one such file is in the
        current folder; else the line of the artifact that defines its name."""
        at = source_line(f.at)
        if at and (source := self.source(at[0])):
            return Place(source, at[1])
        path = Path(f.file)
        if not f.file or not path.exists():
            return None
        if f.file not in self.lines:
            self.lines[f.file] = _lines(path)
        return Place(relative(path), self.lines[f.file].get(f.name, 0))

    def source(self, name: str) -> str | None:
        """The file that a location names, or the only one whose path ends in that name."""
        if Path(name).is_file():
            return relative(Path(name))
        if self.files is None:
            self.files = _files()
        found = [p for p in self.files if p.endswith(f"/{name}")]
        return found[0] if len(found) == 1 else None


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
        found: dict[str, int] = {}
        for i, line in enumerate(lines, 1):
            if match := _ID.match(line):
                found.setdefault(json.loads(match[1]), i)
        return found
