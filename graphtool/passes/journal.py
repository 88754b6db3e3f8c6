"""What the passes did to a graph: one event for each application of a rule, and for each node that
a pass without rules changed. A journal is JSON lines, one event each, in the order of the passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from graphtool.assume import numerics_of
from graphtool.errors import InputError
from graphtool.escaping import visible
from graphtool.io import files
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant, names_of
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import attr_text, literal_text, shown_attrs
from graphtool.passes import PassReport
from graphtool.rewrite.journal import Fired


class Event(msgspec.Struct):
    """One line of `opt --journal`; schemas/journal.schema.json is made from it.

    `number` counts the passes, from 1. `rule` is empty for what a pass did by itself; `numerics` is
    the rule's class, `tier` that of its proof. `value` is the node that was replaced; `names` are
    all values concerned. `was` and `became` are expressions, `became` is empty for what was
    removed. `where` is the place in the model's source.
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
    tier: str = ""


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
                     f.became, self.at(f.where), f.tier)

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
