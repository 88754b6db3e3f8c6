"""A graph as nested modules, each with its layers, for the page to draw.

Modules are read off the names that values have in the source. A module's own nodes and the modules
in it are laid out alone, so each can be collapsed without another layout.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise, takewhile
from typing import Any

from graphtool.ir.graph import Module, Node, Value, is_constant
from graphtool.ir.op import Op
from graphtool.ir.text import value_names
from graphtool.report.page import training
from graphtool.report.page.borders import at_borders, meeting, stubs
from graphtool.report.page.facts import NodeFacts
from graphtool.report.page.modules import ModuleGroup, calls, classes, grouped

Item = int | str  # a node's number, a module's "m3", a bend "b7", a port "pi5" or "po5"


def graph_data(module: Module) -> dict[str, Any]:
    """The nodes, the modules with their layers, and the edges, as the page's script reads them.

    An edge has its two nodes, its type, the module that it runs in, and what its ends are in there;
    the last three only if it is drawn.
    """
    names = value_names(module.graph)
    rows, edges, paths = _rows(module, names)
    pairs, ops = [(a, b) for a, b, _ in edges], [row["op"] for row in rows]
    column = training.columns(module)
    grid = None
    if column is None:
        paths = calls(paths, pairs, ops)
        root = grouped(dict(enumerate(paths)))
    else:
        paths = training.called(paths, pairs, ops, column)
        root, grid = training.arranged(paths, [row["name"] for row in rows], ops, pairs, column)
    for number, g in enumerate(root.all()):
        g.key = f"m{number}"
    for i, path in classes(root, paths, module.modules).items():
        rows[i] |= {"module": path, "class": module.modules[path]}
    chain = _chains(root)
    inner: dict[str, dict[tuple[Item, Item], None]] = defaultdict(dict)
    drawn: list[list[Any]] = []
    apart = stubs([(a, b) for a, b, _ in edges], chain)
    for a, b, text in edges:
        if (a, b) in apart:
            drawn.append([a, b, text])
            continue
        depth = meeting(chain[a], chain[b])
        out: list[Item] = [*chain[a][depth:], a]
        into: list[Item] = [*chain[b][depth:], b]
        at = chain[a][depth - 1]
        inner[at][out[0], into[0]] = None
        for key, item in pairwise(out):  # through a port at the border of each module
            inner[str(key)][item, f"po{a}"] = None
        for key, item in pairwise(into):
            inner[str(key)][f"pi{a}", item] = None
        drawn.append([a, b, text, at, out[0], into[0]])
    groups: list[dict[str, Any]] = []
    ends = {i for i, row in enumerate(rows) if row["op"] in ("input", "output")}
    _write(root, None, inner, ends, groups)
    if grid is not None:
        groups[0] |= {"grid": True, "bends": [], "layers": [
            [[x if isinstance(x, int) else x.key, at] for x, at in cells] for cells in grid]}
    used = {node.op for node in module.graph.nodes if not is_constant(node)}
    return {"nodes": rows, "groups": groups, "edges": drawn,
            "ops": {op.name: _about(op) for op in sorted(used, key=lambda op: op.name)}}


def _about(op: Op) -> list[str]:
    """What an op computes, in a line, and the names of its operands, as far as each is one."""
    names = takewhile(lambda p: p.kind is not p.VAR_POSITIONAL, op.operands)
    return [re.split(r";|\n", op.doc)[0], *(p.name for p in names)]


def _rows(module: Module, names: dict[Value, str]
          ) -> tuple[list[dict[str, Any]], list[tuple[int, int, str]], list[tuple[str, ...]]]:
    """The rows of nodes, inputs and outputs, the edges between them, and the path of each."""
    graph = module.graph
    rows: list[dict[str, Any]] = []
    paths: list[tuple[str, ...]] = []
    number: dict[Value, int] = {}
    edges: list[tuple[int, int, str]] = []
    single: dict[Value, int] = {}  # without the results of nodes that have several
    facts = NodeFacts(module, names, single)

    def add(name: str, op: str, path: tuple[str, ...], **more: Any) -> int:
        rows.append({"name": name, "op": op} | {k: v for k, v in more.items() if v})
        paths.append(path)
        return len(rows) - 1

    for v in graph.inputs:
        number[v] = single[v] = add(
            names[v], "input", within(names[v]), type=str(v.type), kind="input")
    for node in graph.nodes:
        if is_constant(node):
            continue
        i = add(names[node.outputs[0]] if node.outputs else node.op.name, node.op.name,
                _path(node, names), **facts.of(node))
        number |= dict.fromkeys(node.outputs, i)
        if len(node.outputs) == 1:
            single[node.outputs[0]] = i
        for x in dict.fromkeys(node.inputs):
            if isinstance(x, Value) and x in number:
                edges.append((number[x], i, _shape(x)))
    for name, v in zip(module.output_names, graph.outputs, strict=True):
        i = add(name, "output", within(name), type=str(v.type), kind="output")
        if v in number:
            edges.append((number[v], i, _shape(v)))
    return rows, edges, paths


def _shape(v: Value) -> str:
    return str(v.type)


def _path(node: Node, names: dict[Value, str]) -> tuple[str, ...]:
    """The module of a node: the author's name of the node, or of its origin, without the last
    word."""
    return within(node.of[0] if node.of else names[node.outputs[0]] if node.outputs else "")


def within(name: str) -> tuple[str, ...]:
    """A name without its last word; the state of a training step is beside what it belongs to.
    Exporters of ONNX repeat a path in its parts: `/layer1/layer1.0/Add` is in `layer1.0`."""
    parts = [p for p in name.split("/") if p]
    if len(parts) > 1:  # `/conv1/Conv_output_0.reshape` is a part of one node of the source
        parts[-1] = parts[-1].partition(".")[0]
    words = [p.removeprefix(f"{before}.") for before, p in pairwise(["", *parts])]
    return tuple(w for p in words for w in p.split(".") if w)[:-1]


def _chains(root: ModuleGroup) -> dict[int, list[str]]:
    """The keys of the modules around each node, the outermost first."""
    out: dict[int, list[str]] = {}

    def walk(group: ModuleGroup, around: list[str]) -> None:
        here = [*around, group.key]
        out.update(dict.fromkeys(group.nodes, here))
        for g in group.groups:
            walk(g, here)
    walk(root, [])
    return out


def _write(group: ModuleGroup, parent: str | None, inner: dict[str, dict[tuple[Item, Item], None]],
           ends: Set[int], out: list[dict[str, Any]]) -> None:
    edges = list(inner.get(group.key, ()))
    ports = dict.fromkeys(x for edge in edges for x in edge if str(x).startswith("p"))
    items: list[Item] = [*group.nodes, *(g.key for g in group.groups), *ports]
    layers, bends = layered(items, edges)
    if group.rises:
        layers.reverse()
    out.append({"key": group.key, "name": group.name, "parent": parent, "size": group.size(ends),
                **({"class": group.kind} if group.kind else {}),
                **({"rises": True} if group.rises else {}),
                "layers": layers, "bends": bends})
    for g in group.groups:
        _write(g, group.key, inner, ends, out)


def layered(items: Sequence[Item], edges: Sequence[tuple[Item, Item]]
            ) -> tuple[list[list[list[Any]]], list[list[Any]]]:
    """The layers from top to bottom, each a list of [item, x], and the bends of edges that pass
    layers, as [from, to, bend, …]. Items without edges stand in rows below."""
    from fast_sugiyama import from_edges
    numbers = {item: i for i, item in enumerate(items)}
    wanted = [(numbers[a], numbers[b]) for a, b in edges if a != b]
    rows: dict[int, list[tuple[Item, float]]] = defaultdict(list)
    bends: list[list[Any]] = []
    left, count, placed = 0.0, 0, set[int]()
    for positions, width, _, links in (from_edges(wanted, dummy_vertices=True) if wanted else ()):
        name: dict[int, Item] = {}
        top = max(y for _, (_, y) in positions)
        for n, (x, y) in positions:
            if n < len(items):
                name[n] = items[n]
                placed.add(n)
            else:
                name[n] = f"b{count}"
                count += 1
            rows[round((top - y) / 72)].append((name[n], left + x))
        bends += _bent(links or (), name)
        left += width + 108
    alone = [item for item in items if numbers[item] not in placed]
    start = max(rows, default=-1) + 1
    across = max(4, round(len(alone) ** 0.5))
    for i, item in enumerate(alone):
        rows[start + i // across].append((item, 72.0 * (i % across)))
    return at_borders([[[item, round(x, 1)] for item, x in sorted(rows[r], key=lambda p: p[1])]
                       for r in sorted(rows)], bends, edges)


def _bent(links: Iterable[tuple[int, int]], name: dict[int, Item]) -> list[list[Any]]:
    """For each edge through bends: the items at its ends, then the bends between them."""
    after = dict(link for link in links if str(name[link[0]]).startswith("b"))
    out = []
    for a, b in links:
        if str(name[a]).startswith("b") or not str(name[b]).startswith("b"):
            continue
        path = [b]
        while str(name[after[path[-1]]]).startswith("b"):
            path.append(after[path[-1]])
        out.append([name[a], name[after[path[-1]]], *(name[n] for n in path)])
    return out
