"""The history of one value of a model, from the source down to its lines of C."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from graphtool.errors import InputError, near
from graphtool.io.manifest_rows import StepRow
from graphtool.ir.graph import Module, Node, Value, is_constant, names_of
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import node_text, value_names
from graphtool.loops.program import INDICES_OF, Run
from graphtool.passes.journal import Event

T = TypeVar("T", bound=Hashable)


class Step(NamedTuple):
    """A kernel of a program: its name, the author's names that it computes, its plan, and the place
    in the model's source if it has a single one."""

    kernel: str
    label: str
    plan: str
    where: str

    @property
    def names(self) -> list[str]:
        """The author's names of what it computes, or of whose indices it checks."""
        return self.label.removeprefix(INDICES_OF).split(" + ")


def steps_of(rows: Iterable[Run | StepRow]) -> list[Step]:
    """The kernels of a program or of a build's manifest."""
    return [Step(r.kernel, r.label, next(iter(r.choice.us)) if r.choice else "", r.where)
            for r in rows]


class Place(msgspec.Struct):
    """A kernel that computes the value, or a part of it, and its function in the C: the line of its
    head, and the first and last line of all that belongs to it; 0 if no file has it."""

    kernel: str
    label: str
    plan: str
    where: str
    function: str
    file: str
    line: int
    first: int = 0
    last: int = 0


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


class _Index(Generic[T]):
    """Things by the names that they concern: a name stands for itself and what derives from it
    (`conv` for `conv.bias`)."""

    def __init__(self, rows: Iterable[tuple[T, Iterable[str]]]) -> None:
        self.rows: dict[str, dict[T, None]] = {}
        self.place: dict[T, int] = {}
        for thing, names in rows:
            self.place.setdefault(thing, len(self.place))
            for name in names:
                for prefix in _prefixes(name):
                    self.rows.setdefault(prefix, {})[thing] = None

    def of(self, names: Iterable[str]) -> list[T]:
        """What concerns one of the names, in the order in which it was given."""
        return sorted({t for n in names for t in self.rows.get(n, ())}, key=self.place.__getitem__)


def _prefixes(name: str) -> Iterable[str]:
    """The name, and those that it derives from."""
    yield name
    while name := name.rpartition(".")[0]:
        yield name


class Histories:
    """The histories of all values of a graph, `before`, that passes made into `after`.

    `events` are what the passes did, `steps` the kernels of the program, `texts` its C files,
    `prefix` the name of the model in C.
    """

    def __init__(self, before: Module, events: Sequence[Event], after: Module,
                 steps: Iterable[Step], texts: Mapping[str, str], prefix: str) -> None:
        self.before, self.events, self.steps = before, events, list(steps)
        self.names, self.last_names = value_names(before.graph), value_names(after.graph)
        self.nodes = {self.names[v]: n for n in before.graph.nodes for v in n.outputs}
        self.readers: dict[Value, list[Node]] = {}
        for n in before.graph.nodes:
            for x in n.inputs:
                if isinstance(x, Value):
                    self.readers.setdefault(x, []).append(n)
        self.top = set(after.graph.nodes)
        self.last = _Index((n, (*names_of(n), *(v.hint for v in n.outputs)))
                           for n in all_nodes(after.graph) if not is_constant(n))
        self.event = _Index((i, e.names) for i, e in enumerate(events))
        self.kernel = _Index((row, row.names) for row in self.steps)
        self.places = {row: place for row, place in zip(
            self.steps, places(self.steps, texts, prefix), strict=True)}

    def of(self, name: str) -> Lineage:
        """The history of `name`: a value of the graph, what its author called so, or a kernel.

        Raises InputError GT3093 if neither the graph, a pass nor the program has such a name."""
        node = self.nodes.get(name)
        of_kernel = [row for row in self.steps if row.kernel == name]
        wanted = {name, *(names_of(node) if node is not None else ()),
                  *(n for row in of_kernel for n in row.names)}
        matches = [self.events[i] for i in self.event.of(wanted)]
        if not matches and name not in (known := self._known()):
            raise InputError("GT3093", f"there is no value {name!r}",
                             hint=near(name, sorted(known), "`graphtool show` lists them"))
        place = self.before.locations.get(node.where) if node is not None else None
        last = [node_text(n, self.last_names) if n in self.top else n.op.name
                for n in self.last.of(wanted)]
        if not last:  # it became a part of others: those in the events, those that read it
            wanted |= {e.value for e in matches}
            wanted |= {n for v in (node.outputs if node is not None else ())
                       for r in self.readers.get(v, ()) for n in names_of(r)}
        kernels = [self.places[row] for row in of_kernel or self.kernel.of(wanted)]
        return Lineage(name, node_text(node, self.names) if node is not None else "",
                       place.at if place else node.where if node is not None else "",
                       place.text if place else "", matches, last, kernels)

    def _known(self) -> set[str]:
        return {*self.names.values(), *(n for e in self.events for n in e.names),
                *(row.kernel for row in self.steps),
                *names_of(*(n for n in self.before.graph.nodes if not is_constant(n)))}


def of_steps(name: str, steps: Iterable[Step], texts: Mapping[str, str], prefix: str) -> Lineage:
    """What a build without graphs knows of `name`: the kernels that compute it.

    Raises InputError GT3093 if none does."""
    rows = list(steps)
    of_kernel = [row for row in rows if row.kernel == name]
    matches = of_kernel or _Index((row, row.names) for row in rows).of([name])
    if not matches:
        raise InputError("GT3093", f"there is no value {name!r}", hint=near(
            name, sorted({n for row in rows for n in (row.kernel, *row.names)}),
            "`graphtool show` lists what the kernels compute"))
    return Lineage(name, "", "", "", [], [], places(matches, texts, prefix), graph=False)


# ---- places in the C ----------------------------------------------------------------------------

_HEAD = re.compile(r"void (\w+)\(")


def places(steps: Iterable[Step], texts: Mapping[str, str], prefix: str) -> list[Place]:
    """The place of each kernel in the C."""
    found = _functions(texts)
    return [Place(*row, name, *found.get(name, ("", 0, 0, 0)))
            for row in steps for name in [f"{prefix}_{row.kernel}"]]


def _functions(texts: Mapping[str, str]) -> dict[str, tuple[str, int, int, int]]:
    """Each function of the C files: file, line of its head, first and last line of it with the
    comment, the helpers and the macros before it."""
    out: dict[str, tuple[str, int, int, int]] = {}
    for file, text in texts.items():
        first = head = 0
        name = ""
        for number, line in enumerate(text.splitlines() if file.endswith(".c") else (), 1):
            if line.startswith("/* "):
                first = number
            elif match := _HEAD.match(line):
                name, head = match[1], number
            elif line == "}" and name:
                out[name] = (file, head, first or head, number)
                name, first = "", 0
    return out


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
        by = " " + ", ".join(filter(None, (e.rule, e.numerics, e.tier))) if e.rule else ""
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
