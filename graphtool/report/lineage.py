"""The history of one value: its source, what each pass did to it, its kernel, its C function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from graphtool.errors import InputError, near
from graphtool.ir.graph import Module, is_constant, names_of
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import node_text, value_names
from graphtool.report.journal import Event


class Place(msgspec.Struct):
    """A kernel that computes the value, or a part of it, and its function in the C."""

    kernel: str
    label: str
    plan: str
    function: str
    file: str
    line: int


class Lineage(msgspec.Struct):
    """`why --json`; schemas/lineage.schema.json is made from it.

    `first` is the node in the graph that came in, `source` the line of the model that made it,
    `last` the nodes of the optimised graph that compute it.
    """

    name: str
    first: str
    where: str
    source: str
    events: list[Event]
    last: list[str]
    kernels: list[Place]
    graph: bool = True  # false: of a build without its graphs, of which only the kernels are known


def concerns(wanted: Iterable[str], names: Iterable[str]) -> bool:
    """Whether one of the names is a wanted one, or was derived from it."""
    found = tuple(names)
    return any(n == w or n.startswith(f"{w}.") for w in wanted for n in found)


def lineage(name: str, before: Module, events: Sequence[Event], after: Module,
            steps: Iterable[tuple[str, str, str]], texts: Mapping[str, str], prefix: str
            ) -> Lineage:
    """The history of `name`: a value of the graph, what its author called so, or a kernel. `steps`
    are (kernel, label, plan) of the program, `texts` its C files, `prefix` the name of the model in
    C.

    Raises InputError GT3093 if neither the graph, a pass nor the program has such a name."""
    names, rows = value_names(before.graph), list(steps)
    node = next((n for n in before.graph.nodes if any(names[v] == name for v in n.outputs)), None)
    own = [row for row in rows if row[0] == name]  # it is the name of a kernel
    wanted = {name, *(names_of(node) if node is not None else ()),
              *(n for _, label, _ in own for n in label.split(" + "))}
    found = [e for e in events if concerns(wanted, e.names)]
    known = {*names.values(), *(n for e in events for n in e.names), *(row[0] for row in rows),
             *names_of(*(n for n in before.graph.nodes if not is_constant(n)))}
    if name not in known and not found:
        raise InputError("GT3093", f"there is no value {name!r}",
                         hint=near(name, sorted(known), "`graphtool show` lists them"))
    place = before.locations.get(node.where) if node is not None else None
    last_names = value_names(after.graph)
    last = [node_text(n, last_names) if n in after.graph.nodes else n.op.name
            for n in all_nodes(after.graph) if not is_constant(n) and concerns(wanted, (
                *names_of(n), *(v.hint for v in n.outputs)))]
    if not last:  # it became a part of others: those in the events, those that read it
        wanted |= {e.value for e in found}
        wanted |= {n for r in before.graph.nodes if node is not None and set(r.inputs) & set(
            node.outputs) for n in names_of(r)}
    kernels = [_place(k, label, plan, texts, prefix) for k, label, plan in own or rows
               if concerns(wanted, label.split(" + "))]
    return Lineage(name, node_text(node, names) if node is not None else "",
                   place.at if place else node.where if node is not None else "",
                   place.text if place else "", found, last, kernels)


def of_steps(name: str, steps: Iterable[tuple[str, str, str]], texts: Mapping[str, str],
             prefix: str) -> Lineage:
    """What a build without graphs knows of `name`: the kernels that compute it.

    Raises InputError GT3093 if none does."""
    rows = list(steps)
    found = [(k, label, plan) for k, label, plan in rows if name == k or concerns(
        {name}, label.split(" + "))]
    if not found:
        raise InputError("GT3093", f"there is no value {name!r}", hint=near(
            name, sorted({n for k, label, _ in rows for n in (k, *label.split(" + "))}),
            "`graphtool show` lists what the kernels compute"))
    return Lineage(name, "", "", "", [], [], [
        _place(k, label, plan, texts, prefix) for k, label, plan in found], graph=False)


def recorded(module: Module) -> list[Event]:
    """The events that a graph's own history tells of: rules and notes, by value. What a node was
    and became is only in a journal."""
    out: list[Event] = []
    for value, told in module.history.items():
        for one in told:
            step, colon, words = one.partition(": ")
            call, _, rule = ("", "", "") if colon else one.partition(".")
            out.append(Event(len(out) + 1, step if colon else call, rule, "", value, [value], "",
                             words if colon else value, ""))
    return out


def _place(kernel: str, label: str, plan: str, texts: Mapping[str, str], prefix: str) -> Place:
    function = f"{prefix}_{kernel}"
    head = re.compile(rf"^void {re.escape(function)}\(", re.M)
    for file, text in texts.items():
        if file.endswith(".c") and (match := head.search(text)):
            line = text.count("\n", 0, match.start()) + 1
            return Place(kernel, label, plan, function, file, line)
    return Place(kernel, label, plan, function, "", 0)


def lineage_lines(x: Lineage) -> list[str]:
    """The history as lines of text, from the source down to the C."""
    if not x.graph:
        return [f"{x.name}: the build has no graphs; build --keep writes them", *_kernels(x)]
    kernel = any(k.kernel == x.name for k in x.kernels)
    out = [x.first or (f"{x.name}: a kernel" if kernel else
                       f"{x.name}: no node of its own in the graph that came in")]
    if x.where:
        out.append(f"  from {x.where}" + (f": {x.source}" if x.source else ""))
    for e in x.events:
        by = " " + ", ".join(filter(None, (e.rule, e.numerics))) if e.rule else ""
        out += ["", f"{e.number} {e.step}{by}" + (f"  ({e.value})" if e.value != x.name else "")]
        out += [f"  - {e.was}"] if e.was else []
        out.append(f"  + {e.became}" if e.became else "  removed")
    out += ["", "in the optimised graph" if x.last else
            "in the optimised graph: no node of its own"]
    out += [f"  {line}" for line in x.last]
    return out + _kernels(x)


def _kernels(x: Lineage) -> list[str]:
    out: list[str] = []
    for k in x.kernels:
        out += ["", f"kernel {k.kernel}" + (f" ({k.plan})" if k.plan else "") + f": {k.label}"]
        out += [f"  {k.function}() at {k.file}:{k.line}"] if k.file else []
    return out
