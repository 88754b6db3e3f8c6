"""A training step in three columns: forward down the left, gradients up beside it, updates right.

Each row has what belongs to one module of the forward pass, or to a node outside of modules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from graphtool.analysis.composites import gradients as marked
from graphtool.analysis.phases import behind
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
from graphtool.report.page.modules import ModuleGroup, Path, calls, grouped

FORWARD, BACKWARD, UPDATE = range(3)
TITLES = ("", " gradient", " update")
ROWS = 16  # a module is divided into those in it while there are no more rows than that
_ENDS = ("input", "output")
LOOSE = 3  # nodes outside of modules that have a row of their own; of more, one is made


@dataclass
class ModuleColumns:
    """What belongs to one module, or to nodes without one: the nodes of each column."""

    name: str
    path: Path | None
    columns: tuple[list[int], list[int], list[int]] = field(default_factory=lambda: ([], [], []))


def columns(module: Module) -> list[int] | None:
    """The column of each input, node and output, constants aside; None for a graph that is no
    training step and has no gradients.

    Forward is what the outputs that are neither state nor gradients need, gradients are computed
    from it, and the rest updates the state."""
    state = {out for out, _ in module.donations}
    graph, ends = module.graph, list(enumerate(module.output_names))
    gradients = {i for i, name in ends if name.startswith("grad.") and "loss" in module.meta}
    wanted = {*marked(graph).values(), *(graph.outputs[i] for i in gradients)}
    stepped = bool(state) and "training" in module.meta  # passes remove the marks of gradients
    if not wanted and not stepped:
        return None
    forward = behind(graph, {graph.outputs[i] for i, _ in ends if i not in state | gradients})
    backward = behind(graph, wanted) if wanted else _unmarked(
        graph, forward, {graph.outputs[i] for i in state})

    def column(values: Sequence[Value]) -> int:
        return (FORWARD if forward & set(values) else BACKWARD if backward & set(values)
                else UPDATE)
    return [*(column([v]) for v in graph.inputs),
            *(column(n.outputs) for n in graph.nodes if not is_constant(n)),
            *(UPDATE if i in state else BACKWARD if i in gradients else FORWARD for i, _ in ends)]


def _unmarked(graph: Graph, forward: Set[Value], state: Set[Value]) -> set[Value]:
    """The values of the backward pass, where nothing marks the gradients: what is neither in the
    forward pass nor new state, and reads no input of the update alone, as a learning rate or a
    moment is one. Of what only the update reads, what scales or squares one gradient is part of the
    update, and what reads no gradient."""
    inputs = set(graph.inputs)
    known = inputs | {v for n in graph.nodes if is_constant(n) for v in n.outputs}
    update = (inputs - forward) | (set(state) - forward)
    later = [n for n in graph.nodes if not is_constant(n) and not forward & set(n.outputs)]
    read = {n: {x for x in n.inputs if isinstance(x, Value)} for n in later}
    for n in later:
        if update & {*n.outputs, *read[n]}:
            update.update(n.outputs)
    readers: dict[Value, list[Node]] = defaultdict(list)
    for n in later:
        for x in read[n]:
            readers[x].append(n)
    for n in reversed(later):
        computed = read[n] - known
        if Trait.ELEMENTWISE in n.op.traits and (len(computed) < 2 or computed <= forward) and all(
                update & set(r.outputs) for v in n.outputs for r in readers[v]):
            update.update(n.outputs)
    return {v for n in later for v in n.outputs} - update


def called(paths: Sequence[Path], edges: Sequence[tuple[int, int]], ops: Sequence[str],
           column: Sequence[int]) -> list[Path]:
    """The path of each node, with the calls of a module in the forward pass apart, and without the
    word `grad` in front of the gradient of a parameter."""
    mine = [i for i, c in enumerate(column) if c == FORWARD]
    number = {i: n for n, i in enumerate(mine)}
    paths_ = calls([paths[i] for i in mine], [(number[a], number[b]) for a, b in edges
                  if a in number and b in number], [ops[i] for i in mine])
    out = [path[1:] if path[:1] == ("grad",) else path for path in paths]
    for i, path in zip(mine, paths_, strict=True):
        out[i] = path
    return out


def arranged(paths: Sequence[Path], named: Sequence[str], ops: Sequence[str],
             edges: Sequence[tuple[int, int]], column: Sequence[int]
             ) -> tuple[ModuleGroup, list[list[tuple[int | ModuleGroup, int]]]]:
    """The root of the modules, and its rows: each cell a node or a module, and its column.

    `paths` and `named` have the module and the name of each node."""
    near: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    rows = _forward_rows(paths, named, ops, near, column)
    home = {i: row for row in rows for i in row.columns[FORWARD]}
    by_name = {named[i]: row for i, row in home.items()}
    by_path = {row.path: row for row in reversed(rows) if row.path}
    left = []
    for i, path in enumerate(paths):
        if column[i] == FORWARD:
            continue
        row = by_name.get(named[i].partition(".grad.")[0]) if column[i] == BACKWARD else None
        row = row or next((by_path[path[:n]] for n in range(len(path), 0, -1)
                           if path[:n] in by_path), None)
        if row is None:
            left.append(i)
        else:
            home[i] = row
    for i in reversed(left):  # beside what reads them, or what they read
        rows_near = [home[j] for j in near[i] if j in home and column[j] <= column[i]]
        home[i] = rows_near[0] if column[i] == BACKWARD and rows_near else rows[
            -1 if column[i] == BACKWARD else 0]
    for i in sorted(set(home) - {j for r in rows for j in r.columns[FORWARD]}):
        home[i].columns[column[i]].append(i)
    return _cells(rows, paths)


def _forward_rows(paths: Sequence[Path], named: Sequence[str], ops: Sequence[str],
                  near: Mapping[int, Sequence[int]], column: Sequence[int]) -> list[ModuleColumns]:
    """The rows in the order of a run: an input stands before its first reader, an output behind
    what it is."""
    mine = [i for i, c in enumerate(column) if c == FORWARD]

    root = grouped({i: paths[i] for i in mine})
    items: list[int | ModuleGroup] = [*root.nodes, *root.groups]
    while True:  # divide the largest module while it has most of the nodes
        groups = [g for g in items if isinstance(g, ModuleGroup) and len(g.groups) > 1]
        most = max(groups, key=ModuleGroup.size, default=None)
        if most is None or 5 * most.size() < 2 * len(mine) or len(items) + len(most.groups) + len(
                most.nodes) > ROWS:
            break
        for g in most.groups:
            g.name = f"{most.name}.{g.name}"
        items = [*(x for x in items if x is not most), *most.nodes, *most.groups]
    rows: list[ModuleColumns] = []
    loose: list[int] = []

    def end() -> None:
        many = len(loose) > LOOSE
        for part in ([loose] if many else [[i] for i in loose]):
            name = named[part[0]] + (f" … {named[part[-1]]}" if many else "")
            rows.append(ModuleColumns(name, None, (list(part), [], [])))
        loose.clear()
    begun: dict[int, float] = {}
    for item in items:
        inner = _members(item)
        computed = [i for i in inner if ops[i] not in _ENDS]
        begun |= dict.fromkeys(inner if computed else [], min(computed, default=0))

    def start(item: int | ModuleGroup) -> float:
        inner = _members(item)
        if inner[0] in begun:
            return begun[inner[0]]
        others = [begun[j] for i in inner for j in near[i] if j in begun]
        return min(others, default=inner[0]) + (0.5 if ops[inner[0]] == "output" else -0.5)
    for item in sorted(items, key=start):
        if isinstance(item, int) and ops[item] not in _ENDS:
            loose.append(item)
            continue
        end()
        rows.append(ModuleColumns(named[item], None, ([item], [], [])) if isinstance(item, int) else
                    ModuleColumns(item.name, item.path, (item.members(), [], [])))
    end()
    return rows


def _members(item: int | ModuleGroup) -> list[int]:
    return [item] if isinstance(item, int) else item.members()


def _cells(rows: Sequence[ModuleColumns], paths: Sequence[Path]
           ) -> tuple[ModuleGroup, list[list[tuple[int | ModuleGroup, int]]]]:
    """The modules of the rows, each with its own in it."""
    root, result = ModuleGroup((), ""), []
    for row in rows:
        cells: list[tuple[int | ModuleGroup, int]] = []
        depth = len(row.path or ())
        for number, nodes in enumerate(row.columns):
            if len(nodes) == 1:
                cells.append((nodes[0], number))
                root.nodes += nodes
            elif nodes:
                group = grouped({i: paths[i][depth:] if paths[i][:depth] == row.path else paths[i]
                                 for i in sorted(nodes)})
                while not group.nodes and len(group.groups) == 1:
                    (group,) = group.groups
                group.path, group.name = row.path or (), row.name + TITLES[number]
                if number == UPDATE and row.path is None:
                    group.name = "update of all"
                for g in group.all():
                    g.rises = number == BACKWARD
                root.groups.append(group)
                cells.append((group, number))
        if cells:
            result.append(cells)
    return root, result
