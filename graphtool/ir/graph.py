"""The graph IR: five frozen records that hold data only. Functions elsewhere act on them.

A `Value` is an identity: one graph input or one node output defines it. Constants are nodes of the
op `constant`, so a Graph is closed: it contains everything it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from graphtool.assume import Assumed
from graphtool.errors import UsageError, near
from graphtool.io.manifest_rows import Choice
from graphtool.io.weights import Weight
from graphtool.ir.facets import Lowering
from graphtool.ir.op import Op
from graphtool.ir.types import TensorType as TensorType
from graphtool.symbolic import Equation, Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One tensor in the graph. `hint` is its preferred name; files make names unique."""

    type: TensorType
    hint: str

    def __repr__(self) -> str:
        return f"<Value {self.hint}: {self.type}>"


Operand = Value | int | float | bool | None
"""A literal takes its type from the other operands; `None` is an optional operand left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One application of an op. `where` names an entry of the module's table of locations.

    `of` has the author's names of the values that the node computes, entirely or in part; passes
    keep them. If it is empty, the node has its own name only.
    """

    op: Op
    inputs: tuple[Operand, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[Value, ...]
    where: str = ""
    of: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Node {self.op.name}: {', '.join(v.hint for v in self.outputs)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Nodes that one kernel computes: `root` is the value it is named after."""

    root: Value
    members: tuple[Node, ...]
    kind: str  # "nest" | "template"


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A graph; it is closed: every operand is an input or the output of an earlier node."""

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    groups: tuple[Group, ...] = ()

    def __repr__(self) -> str:
        ins = ", ".join(f"{v.hint}: {v.type}" for v in self.inputs)
        outs = ", ".join(str(v.type) for v in self.outputs)
        return f"<Graph ({ins}) -> ({outs}), {len(self.nodes)} nodes>"


@dataclass(frozen=True, slots=True)
class Location:
    """The source of a node: `mlp.py:9 MLP.forward` and the text of the line, or an ONNX node's
    name."""

    at: str
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A graph with its names, locations and metadata.

    `donations` pairs (output, input) that share one buffer; `initial` gives the first contents of a
    donated input (if absent: zeros). `history` has, by the name of a value, the rules that made it
    and notes; `choices`, by the first result of a node with a plan, the alternatives of that plan.
    `diff` ignores both. `requires` has the sizes that must be equal, though the shapes of the
    inputs may differ in them; what a symbol's step requires stands in the symbol. `kept` has arrays
    by name that no node reads, but that belong to the state of the source: a model that is written
    back needs them (`meta["state_dict"]` says what that state is). `assumes` has what the rewrites
    assumed that made the graph. `modules` has the author's class by the path of a module of the
    source, `{"layer1.0.conv1": "Conv2d"}`; it is for people only, and `diff` ignores it too.
    """

    graph: Graph
    output_names: tuple[str, ...]
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    locations: Mapping[str, Location] = field(default_factory=dict)
    donations: tuple[tuple[int, int], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    initial: Mapping[int, Weight] = field(default_factory=dict)
    history: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    choices: Mapping[Value, Choice] = field(default_factory=dict)
    requires: tuple[Equation, ...] = ()
    kept: Mapping[str, Weight] = field(default_factory=dict)
    assumes: tuple[Assumed, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return repr(self.graph).replace("<Graph", "<Module", 1)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in the order of a run, weights and constants among them."""
        return self.graph.nodes

    @property
    def inputs(self) -> dict[str, TensorType]:
        """The types of the inputs by name, in their order."""
        names = value_names(self.graph)
        return {names[v]: v.type for v in self.graph.inputs}

    @property
    def outputs(self) -> dict[str, TensorType]:
        """The types of the outputs by name, in their order."""
        return {n: v.type for n, v in zip(self.output_names, self.graph.outputs, strict=True)}

    def node(self, name: str) -> Node:
        """The node that computes the value of this name, as the listing has it; @NAME is a weight.

        Raises UsageError GT3165 if there is none."""
        names = value_names(self.graph)
        by_name = {names[v]: n for n in self.graph.nodes for v in n.outputs}
        if name not in by_name:
            what = "an input, no node" if name in self.inputs else "no node"
            raise UsageError("GT3165", f"{name!r} is {what} of this graph",
                             hint=near(name, by_name, "graphtool.show lists the names"))
        return by_name[name]


def names_of(*nodes: Node) -> tuple[str, ...]:
    """The author's names of the values that the nodes compute, each once, in order."""
    return tuple(dict.fromkeys(
        name for n in nodes for name in n.of or tuple(v.hint for v in n.outputs[:1])))


def joined_names(*nodes: Node) -> str:
    """The author's names as the label of a kernel: `block1.conv + block1.bn`."""
    return " + ".join(names_of(*nodes))


def kernel_label(graph: Graph) -> Callable[[Sequence[Node]], str]:
    """The label of the kernel that computes some nodes: their names, first that of its convolution
    or product. Left out are the names of those that another kernel computes, whose operand it
    prepares, and the parts `x.div` of what it computes whole, `x`."""
    heavy = [n for n in graph.nodes if n.op.lowering is Lowering.TEMPLATE]
    owned = set(names_of(*heavy))

    def label(nodes: Sequence[Node]) -> str:
        first = first_computed(nodes)
        mine = names_of(first) if first in heavy else ()
        shown = dict.fromkeys((*mine, *(n for n in names_of(*nodes) if n not in owned or not mine)))
        return " + ".join(n for n in shown if n in mine or not any(
            n.startswith(f"{whole}.") for whole in shown))
    return label


def first_computed(nodes: Sequence[Node]) -> Node:
    """What a kernel of these nodes is about: its convolution, product or other template, or else
    the first node."""
    return next((n for n in nodes if n.op.lowering is Lowering.TEMPLATE), nodes[0])


def own_names(node: Node) -> tuple[str, ...]:
    """`of`, if it says more than the node's own name does."""
    return () if node.of == tuple(v.hint for v in node.outputs[:1]) else node.of


def producers(graph: Graph) -> dict[Value, Node]:
    """The node that defines each value; graph inputs are absent."""
    return {v: node for node in graph.nodes for v in node.outputs}


def readers_of(graph: Graph) -> dict[Value, list[Node]]:
    """The nodes that read each value, in order; a value that no node reads is absent."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                readers.setdefault(x, []).append(node)
    return readers


def is_constant(node: Node | None) -> TypeGuard[Node]:
    """Whether the node is a constant array of the model. False for None, a graph input."""
    return node is not None and node.op.lowering is Lowering.DATA


def is_parameter(node: Node | None) -> TypeGuard[Node]:
    """Whether the node holds an array that training may change."""
    return is_constant(node) and bool(node.attrs["param"])


def use_counts(graph: Graph) -> dict[Value, int]:
    """How often each value is read, including graph outputs."""
    counts: dict[Value, int] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                counts[x] = counts.get(x, 0) + 1
    for v in graph.outputs:
        counts[v] = counts.get(v, 0) + 1
    return counts


def value_names(graph: Graph) -> dict[Value, str]:
    """A unique name for each value: its hint, followed by `#2` and so on if it is taken."""
    names: dict[Value, str] = {}
    taken: set[str] = set()
    counters: dict[str, int] = {}
    constants = [n for n in graph.nodes if is_constant(n)]
    others = [n for n in graph.nodes if not is_constant(n)]

    def give(v: Value, hint: str) -> None:
        name = hint or "value"
        while name in taken:
            counters[hint] = counters.get(hint, 1) + 1
            name = f"{hint}#{counters[hint]}"
        taken.add(name)
        names[v] = name

    for v in graph.inputs:
        give(v, v.hint)
    for node in constants:
        hint = node.outputs[0].hint
        give(node.outputs[0], hint if hint.startswith("@") else f"@{hint}")
    for node in others:
        for v in node.outputs:
            give(v, v.hint)
    return names
