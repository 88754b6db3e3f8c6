"""What a hook checks of graph files before they are committed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import files, weights
from graphtool.ir import serial
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.git import Checked, HookReport


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
