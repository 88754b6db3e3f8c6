"""The loop over rows that a network may begin with: its nodes, the rows of an iteration, and about
how many bytes are live in it and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from graphtool import ops as o
from graphtool.analysis.rows import PADDED_WINDOWS, Seen
from graphtool.analysis.rows import seen as seen_along
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant, producers, readers_of
from graphtool.ops.costs import nbytes

ROW = 1  # the axis of rows: images are channels last
COLUMN = 2
TERMS = 32  # the most elements of a row that one iteration adds to each sum


def windowed(node: Node) -> bool:
    """Whether the node is a convolution of one image of bytes."""
    return node.attrs.keys() >= PADDED_WINDOWS and rows_of(node.outputs[0]) > 0


def pooled(node: Node) -> bool:
    """Whether the node pools one image, whose rows are not padded, all of them alike: what gives
    positions in the whole image has no `axes`."""
    a = node.attrs
    one = len(node.inputs) == 1 and rows_of(node.outputs[0]) > 0
    return one and Trait.WINDOWED in node.op.traits and node.op.axes is not None and (
        a["window"][0] == a["window"][-1] == 1 and a.get("strides") is not None
        and a.get("padding") is not None and not any(a["padding"][ROW])
        and not a.get("base_dilation"))


def _stored(v: Value, readers: Mapping[Value, list[Node]]) -> bool:
    """Whether a window sees the image, so that it must be in memory."""
    return any(windowed(r) or pooled(r) for r in readers.get(v, ()))


def seen(node: Node) -> Seen:
    """The rows that a node of the loop sees of an image."""
    of = seen_along(node, ROW)
    assert of is not None
    return of


def rows_of(x: Operand) -> int:
    """The rows of one image of fixed sizes; 0 for what is none."""
    shape = x.type.shape if isinstance(x, Value) else ()
    fixed = [d for d in shape if isinstance(d, int) and d > 0]
    return fixed[ROW] if len(fixed) == len(shape) == 4 and fixed[0] == 1 else 0


@dataclass
class Plan:
    """A loop over `nodes` that ends with the last image, or with its sum `end`.

    Iteration t computes the rows [band·t − late, band·t − late + band) of an image, after the
    `carried` rows before them. `source` is the node that sees the input, of which `whole` are the
    views.
    """

    graph: Graph
    end: Node
    last: Value
    nodes: list[Node]
    whole: set[Operand]
    source: Node
    band: dict[Operand, int] = field(default_factory=dict)
    late: dict[Operand, int] = field(default_factory=dict)
    carried: dict[Value, int] = field(default_factory=dict)

    @property
    def sums(self) -> bool:
        """Whether the loop gives the sum of its last image."""
        return self.last is not self.end.outputs[0]

    @property
    def length(self) -> int:
        """The number of iterations."""
        return -(-(rows_of(self.last) + self.late[self.last]) // self.band[self.last])

    def images(self, node: Node) -> list[Value]:
        """The images of the loop that a node reads."""
        made = {n.outputs[0] for n in self.nodes}
        return [x for x in node.inputs if isinstance(x, Value) and x in made]

    def back(self, node: Node, x: Value) -> int:
        """How many rows before a band of x the node sees."""
        return -seen(node).first(-self.late[node.outputs[0]]) - self.late[x]

    def reached(self, node: Node) -> int:
        """How many rows of its operand the node sees."""
        return seen(node).count(self.band[node.outputs[0]])

    def padded(self, v: Value) -> Node | None:
        """A node whose windows see rows outside of the image; what they see is its zero."""
        return next((n for n in self.nodes if v in n.inputs and windowed(n)
                     and any(n.attrs["padding"][0])), None)

    def masked(self, v: Value) -> bool:
        """Whether rows are computed that are outside of the image, and seen."""
        outside = self.late[v] > 0 or self.length * self.band[v] > rows_of(v)
        return outside and (self.padded(v) is not None or (self.sums and v is self.last))


def best_plan(graph: Graph) -> Plan | None:
    """The loop with which the fewest bytes are live at once, if they are fewer than without."""
    found = [(max(_loop_peak(p), _peak(graph, graph.nodes.index(p.end) + 1)), p)
             for p in plans(graph)]
    least, best = min(found, key=lambda f: f[0], default=(0, None))
    return best if least < _peak(graph, 0) else None


def plans(graph: Graph) -> Iterator[Plan]:
    """The loops that the graph may begin with: each ends with bytes that a window sees, or with a
    sum over an image."""
    nodes, images, whole = _by_rows(graph)
    readers = readers_of(graph)
    for end in graph.nodes:
        last = end.inputs[0] if _summed(end) else end.outputs[0]
        if isinstance(last, Value) and last in images and (
                _summed(end) or _stored(last, readers)):
            plan = _planned(graph, end, last, nodes, whole)
            if plan is not None:
                yield plan


def _by_rows(graph: Graph) -> tuple[list[Node], set[Operand], set[Operand]]:
    """The nodes from the start that compute images row by row, these images, and the inputs with
    their views."""
    made = producers(graph)
    nodes, images, whole = list[Node](), set[Operand](), set[Operand](graph.inputs)

    def fixed(x: Operand) -> bool:
        """Whether the operand is a constant."""
        return not isinstance(x, Value) or is_constant(made.get(x))

    def by_rows(node: Node, of: list[Operand]) -> bool:
        if windowed(node) or pooled(node):
            return of == [node.inputs[0]] and all(map(fixed, node.inputs[1:]))
        rows = rows_of(node.outputs[0])
        return rows > 0 and Trait.ELEMENTWISE in node.op.traits and all(
            rows_of(x) == rows if x in of else fixed(x) and _one_row(x) for x in node.inputs)
    for node in graph.nodes:
        of = [x for x in node.inputs if x in images or x in whole]
        if of and node.op.movement and all(x in whole for x in node.inputs):
            whole |= set(node.outputs)
        elif of and by_rows(node, of):
            images.add(node.outputs[0])
            nodes.append(node)
    return nodes, images, whole


def _one_row(x: Operand) -> bool:
    """Whether an operand of an elementwise node is the same for all rows."""
    return not isinstance(x, Value) or x.type.rank < 3 or x.type.shape[-3] == 1


def _summed(node: Node) -> bool:
    """Whether the node sums an image whose rows are short."""
    return (node.op is o.reduce_sum and node.attrs["axes"] == (ROW, COLUMN)
            and rows_of(node.inputs[0]) > 0
            and node.inputs[0].type.shape[COLUMN] <= TERMS)  # type: ignore[union-attr]


def _planned(graph: Graph, end: Node, last: Value, nodes: list[Node], whole: set[Operand]
             ) -> Plan | None:
    """The plan of the loop that ends with a node; None if it is not the only reader of its images,
    or the input is read in two places."""
    inner, images = list[Node](), {n.outputs[0] for n in nodes}
    needed: set[Operand] = {last}
    for node in reversed(nodes):
        if node.outputs[0] in needed:
            inner.insert(0, node)
            needed |= set(node.inputs)
    made = {n.outputs[0] for n in inner}
    outside = {*graph.outputs, *(x for n in graph.nodes if n not in inner and n is not end
                                 for x in n.inputs)}
    sources = [n for n in inner for x in n.inputs if x in whole]
    leaving = made & outside - ({last} if last is end.outputs[0] else set())
    if leaving or len(sources) != 1 or not images:
        return None
    plan = Plan(graph, end, last, inner, whole, sources[0])
    return plan if _banded(plan) else None


def _banded(p: Plan) -> bool:
    """Set the rows of an iteration of each image; whether there is one answer."""
    p.band[p.last] = 1
    for node in reversed(p.nodes):
        rows = p.band[node.outputs[0]] * seen(node).stride
        if any(p.band.setdefault(x, rows) != rows for x in p.images(node)):
            return False
    for node in p.nodes:
        p.late[node.outputs[0]] = max(
            (seen(node).least_late(p.late[x]) for x in p.images(node)), default=0)
    most: dict[Operand, int] = {p.last: p.late[p.last]}
    for node in reversed(p.nodes):  # as late as readers allow: so bytes wait, and not their sums
        p.late[node.outputs[0]] = late = most[node.outputs[0]]
        for x in p.images(node):
            bound = seen(node).most_late(late)
            most[x] = min(most.get(x, bound), bound)
    for node in p.nodes:
        for x in p.images(node):
            p.carried[x] = max(p.carried.get(x, 0), p.back(node, x))
    return True


# ---- bytes -------------------------------------------------------------------------------------

def _bytes(v: Value) -> int:
    n = nbytes(v.type)
    return n if isinstance(n, int) else 0


def _loop_peak(p: Plan) -> int:
    """About the most bytes that are live in the loop: what is carried, the result, and the rows
    that a convolution sees."""
    row = {v: _bytes(v) // rows_of(v) for v in p.carried}
    held = _bytes(p.end.outputs[0]) + sum(row[v] * n for v, n in p.carried.items())
    return held + max((row[v] * (n + p.band[v]) for v, n in p.carried.items() if n), default=0)


def _peak(graph: Graph, start: int) -> int:
    """About the most bytes of images that are live at once in the nodes from `start`, where a
    result may take the place of its operand."""
    readers, at = readers_of(graph), {n: i for i, n in enumerate(graph.nodes)}
    change = [0] * (len(graph.nodes) + 1)
    for i, node in enumerate(graph.nodes):
        v = node.outputs[0]
        last = max((at[r] for r in readers.get(v, ())), default=i)
        if last >= start and not (node.op.movement or is_constant(node)) and _stored(v, readers):
            change[max(i, start)] += _bytes(v)
            change[last] -= _bytes(v)
    return max(accumulate(change))
