"""The loop over rows that a network may begin with: its nodes, the rows of an iteration, and about
how many bytes are live in it and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from graphtool import ops as o
from graphtool.analysis.rows import PADDED_WINDOWS, Seen
from graphtool.analysis.rows import seen as seen_along
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant, producers, readers_of
from graphtool.ops.costs import nbytes
from graphtool.ops.reduce import identity

ROW = 1  # the axis of rows: images are channels last
COLUMN = 2
TERMS = 32  # the most elements of a row that one iteration adds to each sum


def windowed(node: Node) -> bool:
    """Whether the node is a convolution of one image of bytes."""
    return node.attrs.keys() >= PADDED_WINDOWS and rows_of(node.outputs[0]) > 0


def pooled(node: Node) -> bool:
    """Whether the node pools one image, all rows alike: what gives positions in the whole image
    has no `axes`."""
    a = node.attrs
    one = len(node.inputs) == 1 and rows_of(node.outputs[0]) > 0
    return one and Trait.WINDOWED in node.op.traits and node.op.axes is not None and (
        a["window"][0] == a["window"][-1] == 1 and a.get("strides") is not None
        and not a.get("base_dilation"))


def stored(v: Value, readers: Mapping[Value, list[Node]]) -> bool:
    """Whether a window sees the image, so that it must be in memory."""
    return any(windowed(r) or pooled(r) for r in readers.get(v, ()))


def padded(node: Node) -> bool:
    """Whether the node pads one image."""
    a = node.attrs
    return node.op is o.pad and rows_of(node.outputs[0]) > 0 and not any(a["interior"] or ()) and (
        min(*a["lo"], *a["hi"]) >= 0 == a["lo"][0] == a["hi"][0])


def seen(node: Node) -> Seen:
    """The rows that a node of the loop sees of an image."""
    if padded(node):
        return Seen(1, node.attrs["lo"][ROW], 1)
    of = seen_along(node, ROW)
    assert of is not None
    return of


def row_padding(node: Node) -> tuple[int, int]:
    """How many rows a node sees above and below of an image."""
    a = node.attrs
    if padded(node):
        return a["lo"][ROW], a["hi"][ROW]
    if pooled(node):
        return a["padding"][ROW] if a.get("padding") else (0, 0)
    return a["padding"][0] if windowed(node) else (0, 0)


def without_rows(node: Node) -> dict[str, Any]:
    """The attributes that change if an image has no padding above and below."""
    a = node.attrs
    if not any(row_padding(node)):
        return {}
    if padded(node):
        return {k: tuple(0 if i == ROW else n for i, n in enumerate(a[k])) for k in ("lo", "hi")}
    at = ROW if pooled(node) else 0
    return {"padding": tuple((0, 0) if i == at else n for i, n in enumerate(a["padding"]))}


def padding_of(node: Node) -> float | None:
    """What a node sees above and below of an image; None if it sees nothing."""
    if not any(row_padding(node)):
        return None
    return node.attrs["value"] if padded(node) else node.attrs["zero"] if windowed(
        node) else identity(node.attrs["kind"], node.outputs[0].type.dtype)


def rows_of(x: Operand) -> int:
    """The rows of one image of fixed sizes; 0 for what is none."""
    shape = x.type.shape if isinstance(x, Value) else ()
    fixed = [d for d in shape if isinstance(d, int) and d > 0]
    return fixed[ROW] if len(fixed) == len(shape) == 4 and fixed[0] == 1 else 0


@dataclass
class Plan:
    """A loop over `nodes` that ends with the last image, or with its sum `end`.

    Iteration t computes the rows [band·t − late, band·t − late + band) of an image, after the rows
    before them that are carried. With `units` of 1, 2 and 4 there is a loop of two iterations in
    the loop, and one more in that: loop k computes band/units[k] rows in an iteration, of the
    images whose band it divides. `source` is the node that sees the input, of which `whole` are
    the views.
    """

    graph: Graph
    end: Node
    last: Value
    nodes: list[Node]
    whole: set[Operand]
    source: Node
    band: dict[Operand, int] = field(default_factory=dict)
    late: dict[Operand, int] = field(default_factory=dict)
    units: tuple[int, ...] = (1,)
    images: dict[Node, list[Value]] = field(init=False)

    def __post_init__(self) -> None:
        made = {n.outputs[0] for n in self.nodes}
        self.images = {n: [x for x in n.inputs if isinstance(x, Value) and x in made]
                       for n in self.nodes}

    @property
    def sums(self) -> bool:
        """Whether the loop gives the sum of its last image."""
        return self.last is not self.end.outputs[0]

    @property
    def length(self) -> int:
        """The number of iterations."""
        return -(-(rows_of(self.last) + self.late[self.last]) // self.band[self.last])

    def loop(self, x: Operand) -> int:
        """The innermost loop that computes whole rows of the image."""
        return max(k for k, unit in enumerate(self.units) if self.band[x] % unit == 0)

    def rows(self, x: Operand, loop: int) -> int:
        """How many rows of an image one iteration of a loop gives."""
        return self.band[x] // self.units[loop]

    def counts(self, loop: int) -> tuple[int, ...]:
        """The number of iterations of the loops up to this one."""
        return self.length, *(b // a for a, b in pairwise(self.units[:loop + 1]))

    def carried(self) -> dict[tuple[int, Value], int]:
        """For each loop, of the images that its nodes read, how many rows are carried."""
        out = dict[tuple[int, Value], int]()
        for node, images in self.images.items():
            for x in images:
                key = self.loop(node.outputs[0]), x
                out[key] = max(out.get(key, 0), self.back(node, x))
        return {key: rows for key, rows in out.items() if rows}

    def leaving(self, loop: int) -> list[Value]:
        """The images of a loop and of those in it that are read outside."""
        read = {x for node, images in self.images.items()
                if self.loop(node.outputs[0]) < loop for x in images}
        return [v for n in self.nodes for v in n.outputs if self.loop(v) >= loop and v in read]

    def back(self, node: Node, x: Value) -> int:
        """How many rows before a band of x the node sees."""
        return -seen(node).first(-self.late[node.outputs[0]]) - self.late[x]

    def reached(self, node: Node) -> int:
        """How many rows of its operand the node sees in an iteration."""
        v = node.outputs[0]
        return seen(node).count(self.rows(v, self.loop(v)))

    def outside(self, v: Operand) -> set[float]:
        """What windows see outside of an image."""
        return {fill for n, images in self.images.items()
                if v in images and (fill := padding_of(n)) is not None}

    def masked(self, v: Value) -> bool:
        """Whether rows are computed that are outside of the image, and seen."""
        beyond = self.late[v] > 0 or self.length * self.band[v] > rows_of(v)
        return beyond and (bool(self.outside(v)) or (self.sums and v is self.last))


def plans(graph: Graph) -> Iterator[Plan]:
    """The loops that the graph may begin with: each ends with bytes that a window sees, or with a
    sum over an image."""
    nodes, images, whole = _by_rows(graph)
    readers = readers_of(graph)
    for end in graph.nodes:
        last = end.inputs[0] if _summed(end) else end.outputs[0]
        if isinstance(last, Value) and last in images and (
                _summed(end) or stored(last, readers)):
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
        if windowed(node) or pooled(node) or padded(node):
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
    """Set the rows of an iteration of each image; whether there is one answer, and one padding of
    each image."""
    p.band[p.last] = 1
    for node in reversed(p.nodes):
        rows = p.band[node.outputs[0]] * seen(node).stride
        if any(p.band.setdefault(x, rows) != rows or len(p.outside(x)) > 1
               for x in p.images[node]):
            return False
    given = dict[Value, int]()
    p.late = _late(p, given)
    for v in (v for n in p.nodes for v in n.outputs if v.type.dtype.bytes == 1):
        tried = [given | {v: late} for late in reversed(range(p.late[v]))]
        given = min([given, *tried], key=lambda g: _held(replace(p, late=_late(p, g))))
        p.late = _late(p, given)
    return True


def _late(p: Plan, given: Mapping[Value, int]) -> dict[Operand, int]:
    """How late each image is: as is given, or else as late as its readers allow, so that bytes
    wait, and not their sums."""
    least = dict[Operand, int]()
    for node in p.nodes:
        least[node.outputs[0]] = max(
            [0, *(seen(node).least_late(least[x]) for x in p.images[node])])
    late: dict[Operand, int] = {p.last: least[p.last]}
    for node in reversed(p.nodes):
        y = node.outputs[0]
        late[y] = max(least[y], given.get(y, late[y]))
        for x in p.images[node]:
            bound = seen(node).most_late(late[y])
            late[x] = min(late.get(x, bound), bound)
    return late


def _held(p: Plan) -> int:
    """The bytes of the rows that are carried."""
    return sum(row_bytes(v) * rows for (_, v), rows in p.carried().items())


def row_bytes(v: Value) -> int:
    """The bytes of a row of an image."""
    return bytes_of(v) // rows_of(v)


def bytes_of(v: Value) -> int:
    """The bytes of a value of fixed sizes, else 0."""
    n = nbytes(v.type)
    return n if isinstance(n, int) else 0
