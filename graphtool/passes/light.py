"""What costs less to compute again than to read: light nodes of values that are stored anyway.

Of a kernel that makes x, 2·x and x², two kernels may read the last two later, as a normalisation
and its gradient do. All three would be stored. So each kernel that reads a light node of stored
values gets a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Value, is_constant, producers, readers_of
from graphtool.ir.replay import prune
from graphtool.passes.cse import widens
from graphtool.symbolic import known, product

LEAST = 4096  # elements; fewer are in a near cache
FEW = 64  # times as many elements as an operand that counts for nothing


def computed_again(graph: Graph) -> tuple[Graph, set[Node]]:
    """The graph with copies of light nodes, which have no groups, and the copies.

    `graph` has the groups that say what is stored.
    """
    copies, of = _Light(graph).copies(), producers(graph)
    nodes: list[Node] = []
    repeated: set[Node] = set()
    renamed: dict[Node, dict[Value, Value]] = {}
    for node in graph.nodes:
        for light, readers in copies.get(node, ()):
            again = _copied(light, of)
            nodes += again
            repeated.update(again)
            for r in readers:
                renamed.setdefault(r, {})[light.outputs[0]] = again[-1].outputs[0]
        nodes.append(_reading(node, renamed.get(node, {})))
    return prune(Graph(graph.inputs, tuple(nodes), graph.outputs)), repeated


def _copied(node: Node, made_by: Mapping[Value, Node]) -> list[Node]:
    """A copy of the node behind copies of the casts that widen its operands."""
    out: list[Node] = []
    renamed: dict[Value, Value] = {}
    widenings = [made_by[x] for x in dict.fromkeys(node.inputs)
                 if isinstance(x, Value) and x in made_by and widens(made_by[x])]
    for each in (*widenings, node):
        v = each.outputs[0]
        renamed[v] = Value(v.type, v.hint)
        out.append(replace(_reading(each, renamed), outputs=(renamed[v],)))
    return out


def _reading(node: Node, renamed: dict[Value, Value]) -> Node:
    if not renamed:
        return node
    inputs = tuple(renamed.get(x, x) if isinstance(x, Value) else x for x in node.inputs)
    return replace(node, inputs=inputs)


def _small(x: Value, v: Value) -> bool:
    """Whether reading x once more costs nothing beside v: the mean of a group."""
    return known(product(x.type.shape) * FEW, "<=", product(v.type.shape)) is True


class _Light:
    """What is stored in a graph with groups, and which light nodes need not be."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made_by = producers(graph)
        self.unit = {n: i for i, g in enumerate(graph.groups) for n in g.members}
        self.results = set(graph.outputs)
        self.readers = readers_of(graph)

    def copies(self) -> dict[Node, list[tuple[Node, list[Node]]]]:
        """By the node before which they come: light nodes, and the readers of each copy."""
        out: dict[Node, list[tuple[Node, list[Node]]]] = {}
        for node in self.graph.nodes:
            if not self.is_light(node):
                continue
            units: dict[object, list[Node]] = {}
            for r in self.outside(node.outputs[0]):
                units.setdefault(self.unit.get(r, r), []).append(r)
            if all(self.in_place(node, readers) for readers in units.values()):
                for readers in units.values():
                    out.setdefault(readers[0], []).append((node, readers))
        return out

    def is_light(self, node: Node) -> bool:
        """Whether it is one instruction and stored, as is what it reads, in no more bytes."""
        if Trait.LIGHT not in node.op.traits or Trait.ELEMENTWISE not in node.op.traits:
            return False
        v = node.outputs[0]
        return (v not in self.results and bool(self.outside(v))
                and known(LEAST, "<=", product(v.type.shape)) is not False
                and all(x.type.dtype.bytes <= v.type.dtype.bytes
                        and (_small(x, v) or self.stored(x, node))
                        for x in node.inputs if isinstance(x, Value)))

    def outside(self, v: Value) -> list[Node]:
        """The readers of a value that other kernels compute."""
        node = self.made_by.get(v)
        unit = self.unit.get(node, node) if node is not None else None
        return [r for r in self.readers.get(v, ()) if self.unit.get(r, r) != unit]

    def stored(self, x: Value, reader: Node) -> bool:
        """Whether a value is stored for others than this reader. Inputs do not count: a run may
        update them in place."""
        if (narrow := self.widened(x)) is not x:  # each reader widens for itself
            return self.stored(narrow, self.made_by[x])
        maker = self.made_by.get(x)
        if maker is None:
            return False
        return is_constant(maker) or x in self.results or any(
            r is not reader for r in self.outside(x))

    def widened(self, x: Value) -> Value:
        """The narrow value that x widens, or x itself."""
        maker = self.made_by.get(x)
        source = maker.inputs[0] if maker is not None and widens(maker) else x
        return source if isinstance(source, Value) else x

    def in_place(self, node: Node, readers: Iterable[Node]) -> bool:
        """Whether the kernel of these readers can compute the node where they need it, and reads
        one large value for it at most."""
        shape = node.outputs[0].type.shape
        fits = all((Trait.ELEMENTWISE in r.op.traits and r.outputs[0].type.shape == shape)
                   or Trait.REDUCTION in r.op.traits for r in readers)
        large = {self.widened(x) for x in node.inputs
                 if isinstance(x, Value) and x.type.shape == shape}
        return fits and len(large) == 1
