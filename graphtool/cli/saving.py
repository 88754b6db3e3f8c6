"""Writes what a verb has made: to a file, to a pipe, and on a terminal to a file beside its source.

A graph with its weights is too long to read. A terminal gets a summary and the name of the file.
"""

from __future__ import annotations

import re
import sys
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from graphtool.cli import terminal

if TYPE_CHECKING:
    from graphtool.ir.graph import Module

MOST = 4  # inputs and outputs in a summary


def destination(out: Path | None, source: str, kind: str, stage: str = "") -> Path | None:
    """The file to write, None for stdout.

    Without `out`, or with `-`, this is stdout, unless that is a terminal: then it is a new file
    beside `source`, as m.opt.graph.json is beside m.onnx for the kind `.graph.json` and the stage
    `opt`. If that file or its weights exist, the name gets a number: m.opt.2.graph.json."""
    from graphtool.io import files
    if out is not None and str(out) != "-":
        return out
    if not sys.stdout.isatty():
        return None
    numbers = chain(("",), map(".{}".format, count(2)))
    folder, name = Path(source.partition(":")[0]).parent, stem(source) + (stage and f".{stage}")
    return next(p for p in (folder / f"{name}{n}{kind}" for n in numbers) if not (
        p.exists() or files.next_to(p, ".safetensors").exists()))


def stem(source: str) -> str:
    """The name of a file that is made from a source, a path or `FILE.py:NAME`, without an
    ending."""
    name = Path(source.partition(":")[0]).name
    return re.sub(r"(\.graph|\.program)?\.\w+$", "", name).strip("-") or "graph"


def save(module: Module, out: Path | None, source: str, did: str = "", text: bool = False) -> None:
    """Write a graph file; to stdout the whole graph, as `text` or as JSON.

    `source` is what the graph was made from, and `did` the word for what was done to it."""
    from graphtool.ir import listing, serial
    path = destination(out, source, serial.SUFFIX if text else ".graph.json", did)
    if path is None:
        terminal.document((listing.dumps if text else serial.dumps)(module, embed=True))
        return
    serial.save(module, path)
    if path != out:
        terminal.lines(_summary(module))
    told(path, out)


def told(path: Path | None, out: Path | None) -> None:
    """Name the written file, if `destination` chose it."""
    if path is not None and path != out:
        terminal.lines([f"written to {path}"])


def told_rules(module: Module, stage: str) -> None:
    """Name the conditions on sizes that an exported model cannot have."""
    from graphtool.ir.listing import required
    if rules := required(module):
        terminal.note(f"not in the {stage}, which cannot state it of sizes: {', '.join(rules)}")


def _summary(module: Module) -> list[str]:
    """What a graph is, in a few lines."""
    from graphtool.ir.graph import is_constant
    from graphtool.ir.run_sizes import all_nodes
    from graphtool.ir.text import value_names
    from graphtool.report.table import human
    names = value_names(module.graph)
    nodes = list(all_nodes(module.graph))
    weights = {n.attrs["data"].digest: n.attrs["data"] for n in nodes if is_constant(n)}
    ends = [("input", [(names[v], v) for v in module.graph.inputs]),
            ("output", list(zip(module.output_names, module.graph.outputs, strict=True)))]
    lines = [f"nodes    {sum(not is_constant(n) for n in nodes)}",
             f"weights  {sum(w.size for w in weights.values()):,} numbers, "
             f"{human(sum(w.nbytes for w in weights.values()), 'B')}"]
    for word, values in ends:
        lines += [f"{word:7}  {name}: {v.type}" for name, v in values[:MOST]]
        lines += [f"         and {len(values) - MOST} more"] if len(values) > MOST else []
    return lines


def write(out: Path | None, text: str) -> None:
    """Write a text file, or with `-` or nothing to stdout."""
    from graphtool.io import files
    if out is None or str(out) == "-":
        terminal.document(text)
    else:
        files.write_bytes(out, text.encode())
