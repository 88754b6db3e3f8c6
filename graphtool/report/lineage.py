"""What the passes did: the journal of all events, and the history of one value down to its C.

A journal is JSON lines, one event each, in the order of the passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from graphtool.assume import numerics_of
from graphtool.errors import InputError, near
from graphtool.escaping import visible
from graphtool.io import files
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant, names_of
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import attr_text, literal_text, node_text, shown_attrs, value_names
from graphtool.passes import PassReport
from graphtool.rewrite.engine import Fired


class Event(msgspec.Struct):
    """One line of `opt --journal`; schemas/journal.schema.json is made from it.

    `number` counts the passes, from 1. `rule` is empty for what a pass did by itself; `numerics` is
    the rule's class. `value` is the node that was replaced; `names` are all values concerned.
    `was` and `became` are expressions, `became` is empty for what was removed. `where` is the place
    in the model's source.
    """

    number: int
    step: str = msgspec.field(name="pass")
    rule: str
    numerics: str
    value: str
    names: list[str]
    was: str
    became: str
    where: str


class PassEvents:
    """Collects the events of one run of passes: `after` is for `passes.run(…, texts=True)`."""

    def __init__(self, module: Module) -> None:
        self.module, self.events, self.number = module, list[Event](), 0

    def after(self, report: PassReport, module: Module) -> None:
        """Add what a pass did, from its journal or else from its graph before and after."""
        self.number += 1
        self.events += [self.fired(str(report.call), f) for f in report.journal]
        if not report.journal and module.graph is not self.module.graph:
            self.events += self.changes(str(report.call), module)
        self.module = module

    def at(self, key: str) -> str:
        """The place in the source that a key of the table of locations stands for."""
        known = self.module.locations.get(key)
        return known.at if known else key

    def fired(self, step: str, f: Fired) -> Event:
        """The event of a rule."""
        names = list(dict.fromkeys((*f.matched, f.produced)))
        return Event(self.number, step, f.rule, numerics_of(f.needs), f.matched[0], names, f.was,
                     f.became, self.at(f.where))

    def changes(self, step: str, module: Module) -> Iterable[Event]:
        """The events of a pass without rules: nodes that went and came, by the author's names."""
        before, after = (list(all_nodes(m.graph)) for m in (self.module, module))
        gone, come = _apart(before, after), _apart(after, before)
        for key in dict.fromkeys((*gone, *come)):
            was, became = ([_text(n) for n in side.get(key, ())] for side in (gone, come))
            if was == became:
                continue  # only an operand has another name
            nodes = [*gone.get(key, ()), *come.get(key, ())]
            names = [key, *(v.hint for n in nodes for v in n.outputs), *names_of(*nodes)]
            yield Event(self.number, step, "", "", key, list(dict.fromkeys(names)),
                        "; ".join(was), "; ".join(became), self.at(nodes[0].where))
        for group in module.graph.groups if not self.module.graph.groups else ():
            members = [v.hint for n in group.members for v in n.outputs]
            yield Event(self.number, step, "", "", group.root.hint, list(dict.fromkeys((
                group.root.hint, *members, *names_of(*group.members)))), ", ".join(members),
                f"one kernel ({group.kind})", self.at(group.members[-1].where))


def _apart(nodes: Iterable[Node], others: Iterable[Node]) -> dict[str, list[Node]]:
    """The nodes that the others do not contain, by their first author's name."""
    known, out = set(others), dict[str, list[Node]]()
    for node in nodes:
        if node not in known and node.outputs:
            out.setdefault(names_of(node)[0], []).append(node)
    return out


def _text(node: Node) -> str:
    """A node without the names that another pass gave: op, operands, attributes, type."""
    kind = node.outputs[0].type
    if is_constant(node):
        return f"constant {kind} {node.attrs['data'].digest[:15]}"
    args = [x.hint if isinstance(x, Value) else literal_text(x) for x in node.inputs]
    args += [f"{k}={attr_text(v)}" for k, v in shown_attrs(node).items()
             if not isinstance(v, Graph)]
    return f"{node.op.name}({', '.join(args)}): {kind}"


def write_journal(path: Path, events: Iterable[Event]) -> None:
    """Write a journal, one event a line."""
    files.write_bytes(path, "".join(
        visible(msgspec.json.encode(e).decode()) + "\n" for e in events).encode())


def read_journal(path: Path) -> list[Event]:
    """The events of a journal. Raises InputError GT3140 for a line that is none."""
    out = []
    for number, line in enumerate(files.read_bytes(path).splitlines(), 1):
        try:
            out.append(msgspec.json.decode(line, type=Event))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError("GT3140", f"not a journal: {error}", where=f"{path}:{number}",
                             hint="`graphtool opt MODEL --journal FILE` writes one") from error
    return out


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
    graph: bool = True  # false: of a build without its graphs; only its kernels are known


def concerns(wanted: Iterable[str], names: Iterable[str]) -> bool:
    """Whether one of the names is a wanted one, or was derived from it."""
    given = tuple(names)
    return any(n == w or n.startswith(f"{w}.") for w in wanted for n in given)


def lineage(name: str, before: Module, events: Sequence[Event], after: Module,
            steps: Iterable[tuple[str, str, str]], texts: Mapping[str, str], prefix: str
            ) -> Lineage:
    """The history of `name`: a value of the graph, what its author called so, or a kernel. `steps`
    are (kernel, label, plan) of the program, `texts` its C files, `prefix` the name of the model in
    C.

    Raises InputError GT3093 if neither the graph, a pass nor the program has such a name."""
    names, rows = value_names(before.graph), list(steps)
    node = next((n for n in before.graph.nodes if any(names[v] == name for v in n.outputs)), None)
    of_kernel = [row for row in rows if row[0] == name]  # it is the name of a kernel
    wanted = {name, *(names_of(node) if node is not None else ()),
              *(n for _, label, _ in of_kernel for n in label.split(" + "))}
    matches = [e for e in events if concerns(wanted, e.names)]
    known = {*names.values(), *(n for e in events for n in e.names), *(row[0] for row in rows),
             *names_of(*(n for n in before.graph.nodes if not is_constant(n)))}
    if name not in known and not matches:
        raise InputError("GT3093", f"there is no value {name!r}",
                         hint=near(name, sorted(known), "`graphtool show` lists them"))
    place = before.locations.get(node.where) if node is not None else None
    last_names = value_names(after.graph)
    last = [node_text(n, last_names) if n in after.graph.nodes else n.op.name
            for n in all_nodes(after.graph) if not is_constant(n) and concerns(wanted, (
                *names_of(n), *(v.hint for v in n.outputs)))]
    if not last:  # it became a part of others: those in the events, those that read it
        wanted |= {e.value for e in matches}
        wanted |= {n for r in before.graph.nodes if node is not None and set(r.inputs) & set(
            node.outputs) for n in names_of(r)}
    kernels = [_place(k, label, plan, texts, prefix) for k, label, plan in of_kernel or rows
               if concerns(wanted, label.split(" + "))]
    return Lineage(name, node_text(node, names) if node is not None else "",
                   place.at if place else node.where if node is not None else "",
                   place.text if place else "", matches, last, kernels)


def of_steps(name: str, steps: Iterable[tuple[str, str, str]], texts: Mapping[str, str],
             prefix: str) -> Lineage:
    """What a build without graphs knows of `name`: the kernels that compute it.

    Raises InputError GT3093 if none does."""
    rows = list(steps)
    matches = [(k, label, plan) for k, label, plan in rows if name == k or concerns(
        {name}, label.split(" + "))]
    if not matches:
        raise InputError("GT3093", f"there is no value {name!r}", hint=near(
            name, sorted({n for k, label, _ in rows for n in (k, *label.split(" + "))}),
            "`graphtool show` lists what the kernels compute"))
    return Lineage(name, "", "", "", [], [], [
        _place(k, label, plan, texts, prefix) for k, label, plan in matches], graph=False)


def recorded(module: Module) -> list[Event]:
    """The events that a graph's own history tells of: rules and notes, by value. What a node was
    and became is only in a journal."""
    out: list[Event] = []
    for value, lines in module.history.items():
        for one in lines:
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
