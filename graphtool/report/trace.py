"""The trace of a build: what became of each node of its model, down to lines of C, and for which
nodes each kernel is. It is complete if no node is lost and no kernel has no origin."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from graphtool.escaping import spreadsheet
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
from graphtool.passes.journal import Event
from graphtool.report.lineage import Histories, Lineage, Place, Step

Became = Literal["kernels", "view", "constant", "merged", "removed", "unread", "lost"]


class Traced(msgspec.Struct):
    """A node of the model: its value, op, place and line in the model's source.

    It `became` a part of these `kernels`; a `view`, an address in the result of another node; a
    `constant`, computed at compile time; `merged` into what the nodes that read it became; or
    nothing: `removed` by a rule, or `unread` by any output. `lost`: none of these is known. `rules`
    are the passes and rules that changed it, each rule with its numerics class and the tier of its
    proof.
    """

    value: str
    op: str
    where: str
    source: str
    became: Became
    rules: list[str]
    kernels: list[Place]


class Trace(msgspec.Struct):
    """The trace of a build; `orphans` are kernels that no node of the model needs."""

    nodes: list[Traced]
    orphans: list[Place]

    @property
    def lost(self) -> list[str]:
        """The values of which nothing is known."""
        return [n.value for n in self.nodes if n.became == "lost"]


def trace(before: Module, events: Sequence[Event], after: Module, steps: Iterable[Step],
          texts: Mapping[str, str], prefix: str) -> Trace:
    """The trace of a build: the arguments are those of `Histories`."""
    histories = Histories(before, events, after, steps, texts, prefix)
    read = _read(before.graph)
    rows: dict[Node, Traced] = {}
    for n in reversed(before.graph.nodes):
        if n.outputs and not is_constant(n):
            history = histories.of(histories.names[n.outputs[0]])
            became = _became(history, n.outputs[0] in read)
            readers = [rows[r] for v in n.outputs for r in histories.readers.get(v, ())]
            rows[n] = _traced(history, n.op.name, became, readers)
    nodes = list(reversed(rows.values()))
    used = {p.kernel for n in nodes for p in n.kernels}
    return Trace(nodes, [p for p in histories.places.values() if p.kernel not in used])


def _became(x: Lineage, read: bool) -> Became:
    if not read:
        return "unread"
    if x.last:
        return "kernels" if x.kernels else "view"
    if any(e.step.startswith("fold") and not e.became for e in x.events):
        return "constant"  # the pass that computes what depends on no input took it away
    return "merged" if x.kernels else "removed" if x.events else "lost"


def _traced(x: Lineage, op: str, became: Became, readers: Sequence[Traced]) -> Traced:
    """The row of a node; one that is nowhere by its name is within what its readers became."""
    rules = dict.fromkeys(f"{e.step}.{e.rule} ({', '.join(filter(None, (e.numerics, e.tier)))})"
                          if e.rule else e.step for e in x.events)
    here = [p for p in x.kernels if p.where == x.where] or x.kernels
    kernels = [p for p in x.kernels if not p.where or p in here]
    if became == "lost" and readers:
        kernels = list({p.kernel: p for r in readers for p in r.kernels}.values())
        became = "merged" if kernels else readers[0].became
    return Traced(x.name, op, x.where, x.source, became, list(rules),
                  kernels if became in ("kernels", "merged") else [])


def _read(graph: Graph) -> set[Value]:
    """The values that an output of the graph depends on."""
    out, wanted = set[Value](), list(graph.outputs)
    made_by = {v: n for n in graph.nodes for v in n.outputs}
    while wanted:
        value = wanted.pop()
        if value in out:
            continue
        out.add(value)
        if node := made_by.get(value):
            out.update(node.outputs)
            wanted += [x for x in node.inputs if isinstance(x, Value)]
    return out


COLUMNS = ("value", "op", "where", "source", "became", "rules", "kernel", "plan", "function",
           "file", "first line", "last line", "test")
_NOWHERE, _NO_NODE = ("",) * 7, ("",) * 6


def trace_csv(t: Trace, tests: Mapping[str, str] | None = None) -> str:
    """The trace as a table: a line for each pair of a node and a kernel, for each node without
    kernels, and for each kernel without nodes. `tests` are the functions that test the kernels."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(map(spreadsheet, row) for row in _rows(t, tests or {}))
    return out.getvalue()


def _rows(t: Trace, tests: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for n in t.nodes:
        head = (n.value, n.op, n.where, n.source, n.became, "; ".join(n.rules))
        for p in n.kernels:
            yield (*head, *_place(p, tests))
        if not n.kernels:
            yield (*head, *_NOWHERE)
    for p in t.orphans:
        yield (*_NO_NODE, *_place(p, tests))


def _place(p: Place, tests: Mapping[str, str]) -> tuple[str, ...]:
    return (p.kernel, p.plan, p.function, p.file, str(p.first or ""), str(p.last or ""),
            tests.get(p.kernel, ""))
