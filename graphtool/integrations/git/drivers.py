"""What git calls: a graph file as text for `git diff`, the merge of graphs and weights, the check
of a hook, and files as they were in a commit.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphtool.analysis.composites import notes
from graphtool.errors import InputError, UsageError
from graphtool.integrations.git.merge import Merge, merge
from graphtool.io import files, weights
from graphtool.io.atomic import atomic
from graphtool.io.weights import Weight
from graphtool.ir import serial
from graphtool.ir.listing import ListingStyle, listing
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.git import Checked, HookReport


def textconv(path: Path) -> Iterable[str]:
    """The listing of a graph file, for which no weights are read; a file that is no valid graph is
    given as it is, because git shows nothing at all if this fails."""
    data = files.read_bytes(path)
    try:
        module = serial.of_rows(serial.file_of(data, str(path)), str(path))
    except InputError:
        return data.decode(errors="replace").splitlines()
    return listing(module, ListingStyle(notes=notes(module.graph)))


def merge_graphs(base: Path, ours: Path, theirs: Path) -> Merge:
    """Merge three graph files into `ours`. With conflicts, git's line merge with its markers is
    there if it has any, else our side stays."""
    merged = merge(*(files.read_bytes(p) for p in (base, ours, theirs)))
    if not merged.conflicts:
        files.write_bytes(ours, merged.text.encode())
        return merged
    lines = subprocess.run(["git", "merge-file", "-p", "--diff3", "-L", "ours", "-L", "base", "-L",
                            "theirs", str(ours), str(base), str(theirs)],
                           capture_output=True, check=False)
    if files.conflicted(lines.stdout):
        files.write_bytes(ours, lines.stdout)
    return merged


def merge_weights(ours: Path, theirs: Path) -> None:
    """Make `ours` contain the weights of both; the next writer of the graph removes what no graph
    names. Raises InputError GT3133 for a file that graphtool did not write."""
    held: dict[str, Weight] = {}
    for path in (theirs, ours):
        tensors = weights.load(path)
        if not tensors:
            raise InputError("GT3133", "only the weights of graph files can be merged",
                             where=str(path),
                             hint="take one side: git checkout --ours, or --theirs")
        held |= tensors
    arrays = list(held.values())
    with atomic(ours) as file:
        weights.save(arrays, file)


def check_files(paths: Sequence[Path]) -> HookReport:
    """Whether each graph file is a graph, its weights are beside it with the hashes that it states,
    and it is written as graphtool writes it."""
    rows = [Checked(str(p), not (fault := _fault(p)), fault or "valid") for p in paths]
    return HookReport(all(r.ok for r in rows), rows)


def _fault(path: Path) -> str:
    try:
        data = files.read_bytes(path)
        module, side = serial.load_pair(path)
        if damaged := [w.digest for w in serial.collect_weights(module)
                       if not weights.intact(w)]:
            return f"the data of {damaged[0][:19]}… in {side} are damaged"
        if path.suffix == ".json" and serial.dumps(
                module, side.name if side else "").encode() != data:
            return f"not as graphtool writes it: `graphtool import {path} -o {path}` does"
    except InputError as error:
        return f"{error.code}: {error.message}" + (
            f" ({', '.join(error.where.splitlines()[1:])})" if "\n" in error.where else "")
    return ""


def hook_lines(r: HookReport) -> list[str]:
    """A line for each file."""
    return [f"{'ok  ' if x.ok else 'FAIL'} {x.path}: {x.message}" for x in r.files]


def hook_outcome(r: HookReport) -> Outcome:
    """A finding for each file."""
    bad = sum(not x.ok for x in r.files)
    return outcome("git check", "graph files", f"{len(r.files)} files, {bad} of them with faults",
                   [Finding("graph/file", x.path, "ok" if x.ok else "error", x.message, "", x.path)
                    for x in r.files], hook_lines(r))


def at_revision(source: str, folder: Path) -> str:
    """The path of a file REV:PATH, which is written to the existing `folder`; a source that git
    does not know as one is returned as it is. PATH begins at the top of the repository, or with ./
    in the current folder. Raises UsageError GT3173 for a graph or model that git does not have
    there."""
    rev, colon, path = source.partition(":")
    if not colon or source.startswith("-") or Path(source).exists():
        return source
    try:
        answer = subprocess.run(["git", "cat-file", "blob", source], capture_output=True,
                                check=False)
    except OSError:
        return source
    if answer.returncode:
        if len(rev) > 1 and path.endswith((".graph.json", ".gt", ".onnx")):  # C:m.onnx is a file
            raise UsageError("GT3173", f"git has no {source}",
                             where=answer.stderr.decode(errors="replace").strip(),
                             hint="REV:PATH is a file of a commit, its path from the top of the "
                                  "repository: HEAD:models/m.graph.json")
        return source
    out = folder / Path(path).name
    files.write_bytes(out, answer.stdout)
    return str(out)
