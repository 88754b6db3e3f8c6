"""What a branch does to the graph files of a repository: for a pull request's checks and comment.

Graphs are compared without their weights; the files have hashes of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from graphtool import escaping
from graphtool.errors import InputError, UsageError
from graphtool.integrations.git.config import git, repository
from graphtool.io import files
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.report.diff import diff
from graphtool.report.diff_text import diff_outcome, diff_picture, markdown, text
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.git import Review, Reviewed

MARK = "<!-- graphtool review -->"
"""Begins a comment, so that the next one can replace it."""
LONGEST = 60_000
"""Characters; GitHub refuses a comment of more than 65,536."""


@dataclass(frozen=True)
class Pair:
    """A graph file at the base and in the working tree, as far as both exist and can be read."""

    row: Reviewed
    before: Module | None = None
    after: Module | None = None


def review(folder: Path, base: str) -> tuple[Review, list[Pair]]:
    """The graph files that differ between the revision `base` and the working tree.

    Raises UsageError GT3134 for a revision that does not exist."""
    top = repository(folder)
    merged = git("merge-base", base, "HEAD", folder=top)
    if merged.returncode:
        raise UsageError("GT3134", f"git knows no common ancestor of {base!r} and HEAD",
                         where=str(top), hint="in a workflow: actions/checkout with fetch-depth: 0")
    start = merged.stdout.strip()
    listed = git("diff", "--name-only", "--no-renames", "-z", start, "--", "*.graph.json", "*.gt",
                 folder=top).stdout
    new = git("ls-files", "--others", "--exclude-standard", "-z", "--", "*.graph.json", "*.gt",
              folder=top).stdout
    paths = sorted({p for p in (listed + new).split("\0") if p})
    pairs = [_pair(top, start, p) for p in paths]
    return Review(base, all(p.row.state == "equal" for p in pairs), [p.row for p in pairs]), pairs


def _pair(top: Path, start: str, path: str) -> Pair:
    old = git("show", f"{start}:{path}", folder=top)
    try:
        before = _module(old.stdout.encode(), f"{path} at the base") if not old.returncode else None
    except InputError:
        before = None  # a file that was broken and is whole now is new
    if not (top / path).exists():
        return Pair(Reviewed(path, "removed", "the file is removed", None), before)
    try:
        after = _module(files.read_bytes(top / path), path)
    except InputError as error:
        return Pair(Reviewed(path, "broken", f"{error.code}: {error.message}", None), before)
    if before is None:
        count = len(after.graph.nodes)
        return Pair(Reviewed(path, "added", f"a new graph of {count} nodes", None), None, after)
    d = diff(before, after)
    state = "equal" if d.equal else "changed"
    return Pair(Reviewed(path, state, text(d, "base", path)[-1 if d.equal else 0], d),
                before, after)


def _module(data: bytes, where: str) -> Module:
    return serial.of_rows(serial.file_of(data, where), where)


def review_outcome(r: Review, pairs: Iterable[Pair]) -> Outcome:
    """The changes of all graphs as warnings, as they may be intended; a file that cannot be read is
    an error."""
    findings: list[Finding] = []
    for p in pairs:
        if p.row.diff is not None and not p.row.diff.equal:
            findings += [replace(f, level="warning") for f in diff_outcome(
                p.row.diff, p.row.path, p.row.path).findings]
        else:
            levels = {"equal": "ok", "broken": "error", "removed": "error"}
            findings.append(Finding(f"graph/{p.row.state}", p.row.path,
                                    levels.get(p.row.state, "note"),  # type: ignore[arg-type]
                                    p.row.message, "", p.row.path))
    return outcome("git review", r.base, _summary(r), findings, review_lines(r), comment(r, pairs))


def _summary(r: Review) -> str:
    states = [g.state for g in r.graphs]
    parts = [f"{states.count(s)} {s}" for s in dict.fromkeys(states)]
    return f"graph files since {r.base}: {', '.join(parts) or 'none differ'}"


def review_lines(r: Review) -> list[str]:
    """The report as lines of text."""
    out = [_summary(r)]
    for g in r.graphs:
        out += ["", f"{g.path}: {g.state}"]
        if g.diff is not None and not g.diff.equal:
            out += [f"  {line}".rstrip() for line in text(g.diff, "base", g.path)]
        elif g.state != "equal":
            out.append(f"  {g.message}")
    return out


def comment(r: Review, pairs: Iterable[Pair]) -> list[str]:
    """The comment for a pull request: the changes of each graph as tables, with a picture that
    GitHub draws. It is cut at the size that GitHub takes; files that cannot be read come first, as
    the action fails by them."""
    out = [MARK, f"**graphtool**: {escaping.markdown(_summary(r))}"]
    left = LONGEST
    for p in sorted(pairs, key=lambda p: p.row.state != "broken"):
        for part in _parts(p):  # a table is cut between rows, a picture is there or is not
            left -= sum(len(line.encode()) + 1 for line in part)
            if left < 0:
                return [*out, "", "The comment is cut here: the log has all of it."]
            out += part
    return out


def _parts(p: Pair) -> Iterator[list[str]]:
    if p.row.diff is None or p.before is None or p.after is None or p.row.diff.equal:
        yield ["", f"### {escaping.markdown_code(p.row.path)}", "",
               f"{p.row.state}: {escaping.markdown(p.row.message)}"]
        return
    yield [""]
    yield from ([line] for line in markdown(p.row.diff, "base", p.row.path))
    drawn = diff_picture(p.row.diff, p.before, p.after)
    if drawn:
        yield ["", "<details><summary>Picture</summary>", "", "```mermaid", *drawn, "```", "",
               "</details>"]
