"""The C of each kernel, with the model's names of the values that it computes, for the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphtool.io import files
from graphtool.io.manifest_rows import Manifest, StepRow
from graphtool.loops.program import Program, Run, runs


def of_build(manifest: Manifest, folder: Path) -> dict[str, Any]:
    """The kernels of a build's function in the order of a run, and the C of each."""
    texts = {p.name: files.read_bytes(p).decode(errors="replace")
             for p in sorted(folder.glob(f"{manifest.name}_kernels*.c"))}
    return of_texts(texts, manifest.name, manifest.steps)


def of_program(program: Program) -> dict[str, Any]:
    """The same of a program, as `emit` prints it."""
    from graphtool.emit.c import emit  # late: graphs alone do not need it
    texts = {name: text for name, text in emit(program).items()
             if name.startswith(f"{program.name}_kernels") and name.endswith(".c")}
    return of_texts(texts, program.name, runs(program.steps))


def of_texts(texts: Mapping[str, str], prefix: str, steps: Iterable[StepRow | Run]
             ) -> dict[str, Any]:
    """`kernels`: the calls, with `of`, the names of the nodes that each one computes. `code`: by
    kernel, the file, the first line and the text of its functions."""
    code = {kernel: {"file": file, "line": line, "text": text}
            for file, whole in texts.items() for kernel, line, text in blocks(whole, prefix)}
    kernels = [{"kernel": s.kernel, "label": s.label, "where": s.where,
                "of": s.label.split(" + ") if s.label else [],
                "plan": next(iter(s.choice.us)) if s.choice else ""} for s in steps]
    return {"kernels": kernels, "code": {k: c for k, c in code.items()
                                         if any(row["kernel"] == k for row in kernels)}}


def blocks(text: str, prefix: str) -> Iterator[tuple[str, int, str]]:
    """(kernel, first line, lines) of a file of kernels: each begins with the comment that names its
    nodes, and has its helper functions above the function itself."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("/* ")]
    kernel_name = re.compile(rf"\b{re.escape(prefix)}_(k\d+)(?:_\w+)?\(")
    for start, end in pairwise([*starts, len(lines)]):
        match = kernel_name.search("\n".join(lines[start:end]))
        if match:
            yield match[1], start + 1, "\n".join(lines[start:end]).rstrip()
