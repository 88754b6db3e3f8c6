"""The boxes and arrows of a drawing, and how Graphviz and Mermaid are told of them. Decides which
parts of a graph become boxes."""

from __future__ import annotations

from dataclasses import dataclass

from graphtool.escaping import dot as quoted
from graphtool.escaping import mermaid as escaped
from graphtool.ir.graph import Graph, Module, Node, Operand, Value, is_constant
from graphtool.ir.text import attr_text, literal_text, shown_attrs, value_names

_LONGEST = 44  # characters of a line in a box


@dataclass(frozen=True)
class Box:
    """One box with its lines of text; the first line is the title."""

    id: str
    kind: str  # input | output | constant | compute | data | shape | control | memory | group
    lines: tuple[str, ...]
    tip: str = ""


@dataclass(frozen=True)
class Arrow:
    """An arrow from one box to another; the label is the tensor's type, or empty."""

    start: str
    end: str
    label: str = ""


@dataclass(frozen=True)
class Picture:
    """A drawing without positions: boxes, and arrows between them."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def picture(module: Module, constants: bool = False, groups: bool = False) -> Picture:
    """The boxes of a module, in execution order; constants appear in the text of their readers."""
    return _Drawing(module, constants, groups).picture()


class _Drawing:
    def __init__(self, module: Module, constants: bool, groups: bool) -> None:
        self.module, self.constants = module, constants
        self.graph: Graph = module.graph
        self.names = value_names(self.graph)
        self.home: dict[Value, str] = {}  # the box that a value comes out of
        self.group = {n: g for g in self.graph.groups for n in g.members} if groups else {}
        self.boxes: dict[str, Box] = {}
        self.arrows: dict[tuple[str, str], str] = {}

    def picture(self) -> Picture:
        for i, v in enumerate(self.graph.inputs):
            self.home[v] = f"i{i}"
            self.boxes[f"i{i}"] = Box(f"i{i}", "input", (_cut(self.names[v]), str(v.type)))
        for i, node in enumerate(self.graph.nodes):
            self.place(i, node)
        for node in self.graph.nodes:
            self.connect(node)
        for i, (name, v) in enumerate(zip(self.module.output_names, self.graph.outputs,
                                          strict=True)):
            self.boxes[f"o{i}"] = Box(f"o{i}", "output", (_cut(name), str(v.type)))
            if v in self.home:
                self.arrows[self.home[v], f"o{i}"] = ""
        return Picture(tuple(self.boxes.values()),
                       tuple(Arrow(a, b, label) for (a, b), label in self.arrows.items()))

    def place(self, i: int, node: Node) -> None:
        if not self.constants and self.fixed(node):
            return
        group = self.group.get(node)
        if group is None:
            box = Box(f"n{i}", "constant" if is_constant(node) else node.op.category,
                      self.lines(node), self.tip(node))
        else:
            box = Box(f"g{self.graph.groups.index(group)}", "group",
                      (_cut(self.names[group.root]),
                       _cut(" → ".join(m.op.name for m in group.members)),
                       str(group.root.type)), group.kind)
        for v in node.outputs:
            self.home[v] = box.id
        self.boxes[box.id] = box

    def fixed(self, node: Node) -> bool:
        """Whether the node is a constant, or a view of constants only."""
        values = [x for x in node.inputs if isinstance(x, Value)]
        return is_constant(node) or (
            bool(values) and node.op.category in ("shape", "data")
            and all(x not in self.home for x in values)
            and not any(v in self.graph.outputs for v in node.outputs))

    def connect(self, node: Node) -> None:
        here = self.home.get(node.outputs[0]) if node.outputs else None
        for x in node.inputs:
            if isinstance(x, Value) and x in self.home and here and self.home[x] != here:
                self.arrows.setdefault((self.home[x], here), str(x.type))

    def lines(self, node: Node) -> tuple[str, ...]:
        """The op with its constants, literals and attributes; then the name and the type."""
        if is_constant(node):
            return _cut(self.names[node.outputs[0]]), str(node.outputs[0].type)
        extras = [self.operand(x) for x in node.inputs
                  if not (isinstance(x, Value) and x in self.home)]
        extras += [f"{k}={attr_text(v)}" for k, v in shown_attrs(node).items()]
        lines = [node.op.name, *(_cut(e) for e in extras if e)]
        return (*lines, ", ".join(str(v.type) for v in node.outputs))

    def operand(self, x: Operand) -> str:
        if isinstance(x, Value):
            return f"{self.names[x]}: {x.type}"
        return literal_text(x)

    def tip(self, node: Node) -> str:
        place = self.module.locations.get(node.where)
        name = self.names[node.outputs[0]] if node.outputs else node.op.name
        return name + (f" — {place.at} {place.text}".rstrip() if place else "")


def _cut(text: str) -> str:
    """The text in one line; a long text loses its middle part."""
    text = " ".join(text.split())
    if len(text) <= _LONGEST:
        return text
    half = (_LONGEST - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


# ---- colours ------------------------------------------------------------------------------------

FILL = {"input": "#e8f1fb", "output": "#e8f1fb", "constant": "#f2f2f2", "compute": "#fdebd0",
        "data": "#e5f5e0", "shape": "#f0e9f7", "control": "#fbe3e4", "memory": "#e0f3f3",
        "group": "#fff6cc"}
STROKE = {"input": "#3b75af", "output": "#3b75af", "constant": "#888888", "compute": "#c77b1e",
          "data": "#4a9a3f", "shape": "#8457aa", "control": "#c0444a", "memory": "#2b8c8c",
          "group": "#b59a00"}


# ---- Graphviz -----------------------------------------------------------------------------------

def dot(p: Picture) -> str:
    """The dot text of a graph drawn from top to bottom; names are escaped, ids are generated."""
    lines = ["digraph graphtool {", "  rankdir=TB; nodesep=0.3; ranksep=0.35;",
             '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
             '  edge [color="#667788", arrowsize=0.6, fontname="Helvetica", fontsize=8];']
    lines += [f"  {_dot_box(b)}" for b in p.boxes]
    lines += [f"  {a.start} -> {a.end};" for a in p.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_box(b: Box) -> str:
    shape = ", shape=ellipse" if b.kind in ("input", "output") else ""
    return (f"{b.id} [label={quoted(*b.lines)}, tooltip={quoted(b.tip)}, "
            f'fillcolor="{FILL[b.kind]}", color="{STROKE[b.kind]}"{shape}];')


# ---- Mermaid ------------------------------------------------------------------------------------

def mermaid(p: Picture) -> str:
    """A flowchart from top to bottom; text is escaped, ids are generated."""
    kinds = sorted({b.kind for b in p.boxes})
    lines = ["flowchart TB"]
    lines += [f"  {_mermaid_box(b)}:::{b.kind}_" for b in p.boxes]
    lines += [f"  {a.start} --> {a.end}" for a in p.arrows]
    lines += [f"  classDef {k}_ fill:{FILL[k]},stroke:{STROKE[k]},color:#000" for k in kinds]
    return "\n".join(lines) + "\n"


def _mermaid_box(b: Box) -> str:
    label = "<br/>".join(map(escaped, b.lines))
    left, right = ("([", "])") if b.kind in ("input", "output") else ("[", "]")
    return f'{b.id}{left}"{label}"{right}'
