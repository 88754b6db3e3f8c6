"""`show --modules`: the modules of the author's source, each with what is in it and below.

A node belongs to the module that its name in the source states; one that computes values of
several modules belongs to the module around all of them. A module that is called twice is one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile

import msgspec

from graphtool.analysis import costs
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
from graphtool.ir.text import value_names
from graphtool.report.page.tree import within
from graphtool.report.table import Column, Size, human, size
from graphtool.symbolic import Dim

Path = tuple[str, ...]
ROOT = "(model)"


class ModuleRow(msgspec.Struct):
    """A module with all that is below it. `path` is "" for the whole model, `class` the author's
    class, "" where the source states none.

    `ops` are nodes, those of regions among them; `parameters` and `constants` are numbers, each
    counted in the module whose name it bears. `multiply_adds` are those of products and
    convolutions, as often as they run. `outputs` are the types that its last node computes.
    """

    path: str
    class_: str = msgspec.field(name="class")
    ops: int
    parameters: int
    parameter_bytes: int
    constants: int
    multiply_adds: Size
    outputs: list[str]


class ModuleTable(msgspec.Struct):
    """All of `show --modules --json`; schemas/modules.schema.json is made from it.

    The first row is the whole model; a module comes after the one around it. `training`: the graph
    is a training step, whose parameters are inputs, which are not counted."""

    rows: list[ModuleRow]
    training: bool = False


ROWS: tuple[Column[ModuleRow], ...] = (
    Column("module", lambda r: r.path or ROOT), Column("class", "class_"), Column("ops"),
    Column("parameters", lambda r: f"{r.parameters:,}"),
    Column("multiply-adds", lambda r: human(r.multiply_adds)),
    Column("output", lambda r: _first(r.outputs)))


def modules(module: Module, depth: int | None = None) -> ModuleTable:
    """The modules of a graph in the order of their first nodes, down to `depth` levels."""
    rows: dict[Path, ModuleRow] = {}
    _row(rows, (), module)
    sums: dict[Path, Dim] = {}
    for path, node, times in sorted(_placed(module), key=lambda p: is_constant(p[1])):
        here = [(path[:n], _row(rows, path[:n], module)) for n in range(len(path) + 1)]
        if is_constant(node):
            data = node.attrs["data"]
            for _, row in here:
                if node.attrs["param"]:
                    row.parameters += data.size
                    row.parameter_bytes += data.nbytes
                else:
                    row.constants += data.size
            continue
        count = costs.multiply_adds(node) * times if not any(costs.regions(node)) else 0
        for part, row in here:
            row.ops += 1
            row.outputs = [str(v.type) for v in node.outputs]
            sums[part] = sums.get(part, 0) + count
    for part, row in rows.items():
        row.multiply_adds = size(sums.get(part, 0))
    rows[()].outputs = [str(v.type) for v in module.graph.outputs]
    return ModuleTable([rows[part] for part in _nested(list(rows))
                        if depth is None or len(part) <= depth], "training" in module.meta)


def _first(types: Sequence[str]) -> str:
    return ", ".join(types[:2]) + (f" and {len(types) - 2} more" if len(types) > 2 else "")


def lines(table: ModuleTable) -> list[str]:
    """What stands below the table: the sums, with their units."""
    whole = table.rows[0]
    held = f"{whole.parameters:,} ({human(whole.parameter_bytes, 'B')})"
    return [f"parameters     {'inputs of this training step' if table.training else held}",
            f"constants      {whole.constants:,}",
            f"multiply-adds  {human(whole.multiply_adds)} of products and convolutions"]


def _placed(module: Module) -> Iterator[tuple[Path, Node, Dim]]:
    """Each node with its module, and how often it runs. A weight without a module in its name
    belongs where it is read first."""
    known = {tuple(path.split(".")) for path in module.modules}

    def walk(graph: Graph, around: Path, times: Dim) -> Iterator[tuple[Path, Node, Dim]]:
        names, read = value_names(graph), dict[Value, Path]()
        paths: list[tuple[Node, Path]] = []
        for node in graph.nodes:
            own = [names[v].removeprefix("@") for v in node.outputs[:1]]
            path = _common([_module(name, known) for name in node.of or own]) or around
            paths.append((node, path))
            for x in node.inputs:
                if isinstance(x, Value):
                    read.setdefault(x, path)
        for node, path in paths:
            if is_constant(node) and not path:
                path = read.get(node.outputs[0], path)
            yield path, node, times
            for inner in costs.regions(node):
                yield from walk(inner, path, times * costs.trip_count(node))
    yield from walk(module.graph, (), 1)


def _module(name: str, known: Set[Path]) -> Path:
    """The path of the module in a name: the longest that the source states, or, where it states
    none, all words but the last."""
    words = within(f"{name}.x")
    words = tuple(re.sub(r"#\d+$", "", word) for word in words)
    if not known:
        return words[:-1]
    return next((words[:n] for n in range(len(words), 0, -1) if words[:n] in known), ())


def _common(paths: Sequence[Path]) -> Path:
    """The module around all of them."""
    return tuple(words[0] for words in takewhile(
        lambda words: len(set(words)) == 1, zip(*paths, strict=False)))


def _row(rows: dict[Path, ModuleRow], path: Path, module: Module) -> ModuleRow:
    if path not in rows:
        name = ".".join(path)
        rows[path] = ModuleRow(name, module.modules.get(name, ""), 0, 0, 0, 0, 0, [])
    return rows[path]


def _nested(paths: Sequence[Path]) -> list[Path]:
    """The paths, each followed by those below it, else in their order."""
    below: dict[Path, list[Path]] = {}
    for path in paths:
        if path:
            below.setdefault(path[:-1], []).append(path)

    def walk(path: Path) -> Iterator[Path]:
        yield path
        for inner in below.get(path, ()):
            yield from walk(inner)
    return list(walk(()))
