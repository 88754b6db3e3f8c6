"""What git calls: a graph file as text for `git diff`, and the merge of graphs and weights."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from graphtool.analysis.composites import notes
from graphtool.errors import InputError
from graphtool.integrations.git.merge import Merge, merge
from graphtool.io import files, weights
from graphtool.io.atomic import atomic
from graphtool.io.weights import Weight
from graphtool.ir import serial
from graphtool.ir.listing import Form, listing


def textconv(path: Path) -> Iterable[str]:
    """The listing of a graph file, for which no weights are read; a file that is no valid graph is
    given as it is, because git shows nothing at all if this fails."""
    data = files.read_bytes(path)
    try:
        module = serial.of_rows(serial.file_of(data, str(path)), str(path))
    except InputError:
        return data.decode(errors="replace").splitlines()
    return listing(module, Form(notes=notes(module.graph)))


def merge_graphs(base: Path, ours: Path, theirs: Path) -> Merge:
    """Merge three graph files into `ours`. With conflicts, git's line merge with its markers is
    there if it has any, else our side stays."""
    found = merge(*(files.read_bytes(p) for p in (base, ours, theirs)))
    if not found.conflicts:
        files.write_bytes(ours, found.text.encode())
        return found
    lines = subprocess.run(["git", "merge-file", "-p", "--diff3", "-L", "ours", "-L", "base", "-L",
                            "theirs", str(ours), str(base), str(theirs)],
                           capture_output=True, check=False)
    if files.conflicted(lines.stdout):
        files.write_bytes(ours, lines.stdout)
    return found


def merge_weights(ours: Path, theirs: Path) -> None:
    """Make `ours` contain the weights of both; the next writer of the graph removes what no graph
    names. Raises InputError GT3133 for a file that graphtool did not write."""
    held: dict[str, Weight] = {}
    for path in (theirs, ours):
        found = weights.load(path)
        if not found:
            raise InputError("GT3133", "only the weights of graph files can be merged",
                             where=str(path),
                             hint="take one side: git checkout --ours, or --theirs")
        held |= found
    arrays = list(held.values())
    with atomic(ours) as file:
        weights.save(arrays, file)
