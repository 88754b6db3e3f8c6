"""fuse: says which nodes one kernel computes. It adds annotations; it changes no nodes, but copies
light ones (`light`).

A template group is a kernel and the elementwise nodes that follow it. A nest group is an
elementwise or reducing node and those of its producers that only the group reads and that are cheap
to compute in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from graphtool import ops as o
from graphtool.analysis.evaluations import too_often
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Graph, Group, Node, Value, producers, readers_of
from graphtool.kernels.record import sums
from graphtool.passes.cse import widens
from graphtool.passes.light import computed_again
from graphtool.passes.reading import (
    joins_columns,
    moves_freely,
    repeats,
    trailing,
    transposes,
    widens_integers,
    widens_operands,
    writes_by_indices,
)

_ROOTS = Trait.ELEMENTWISE | Trait.REDUCTION | Trait.WINDOWED | Trait.NEST
ROWS = 80  # the greatest number of nodes that are computed on a template's finished rows
INLINE = 40  # the greatest number of nodes that compute in a nest: above it the C only grows


def fuse(graph: Graph) -> Graph:
    """The graph with its table of groups, and copies of light nodes beside their readers."""
    fused = Fuser(graph).run()
    lighter, copies = computed_again(fused)
    return Fuser(lighter, copies).run() if copies else fused


class Fuser:
    """The groups of one graph; and for each node outside every group, why it was not fused. The
    `copies` are for the kernels that read them."""

    def __init__(self, graph: Graph, copies: Collection[Node] = ()) -> None:
        self.graph = graph
        self.copies = copies
        self.made_by = producers(graph)
        self.position = {n: i for i, n in enumerate(graph.nodes)}
        self.readers = readers_of(graph)
        self.results = set(graph.outputs)
        self.taken: set[Node] = set()
        self.kernel: dict[Node, tuple[Node, ...]] = {}  # a template's node → the nodes of its group
        self.groups: list[Group] = []

    def run(self) -> Graph:
        """The graph with its fusion groups, in the order of their roots."""
        for node in self.graph.nodes:
            if node.op.lowering is Lowering.TEMPLATE:
                self.template(node)
        for node in reversed(self.graph.nodes):
            if node not in self.taken and (
                    _roots_nest(node) or widens_operands(node, self.made_by)):
                self.nest(node)
        order = sorted(self.groups, key=lambda g: self.position[self.made_by[g.root]])
        return Graph(self.graph.inputs, self.graph.nodes, self.graph.outputs, tuple(order))

    # ---- templates -------------------------------------------------------------------------

    def template(self, root: Node) -> None:
        """The kernel and the elementwise nodes of its shape that can run on its finished rows."""
        members = [root]
        inside = {root}
        shape = root.outputs[0].type.shape
        frontier = list(self.readers.get(root.outputs[0], ()))
        while frontier:
            node = min(frontier, key=self.position.__getitem__)
            frontier.remove(node)
            if node in inside or self.left_out(node, inside, root, shape):
                continue
            members.append(node)
            inside.add(node)
            frontier += self.readers.get(node.outputs[0], ())
        self.leave(inside, members)
        last = members[-1].outputs[0]
        self.bring(inside, root)
        self.sum_rows(inside, root)
        self.taken |= inside
        order = tuple(sorted(inside, key=self.position.__getitem__))
        self.kernel |= dict.fromkeys(order, order)
        self.groups.append(Group(last, order, "template"))

    def leave(self, inside: set[Node], members: list[Node]) -> None:
        """Keep a widening cast out of the group if its reader outside can widen the numbers
        itself; and with it what makes real numbers of bytes, so that the bytes are stored."""
        for node in self.dequantised(inside, members):
            inside.discard(node)
            members.remove(node)
        for node in members[:0:-1]:
            v = node.outputs[0]
            if widens(node) and v not in self.results and inside.isdisjoint(
                    self.readers.get(v, ())):
                inside.discard(node)
                members.remove(node)

    def dequantised(self, inside: set[Node], members: Sequence[Node]) -> list[Node]:
        """The last members, if they compute (q - zero)·scale of bytes q for one node outside of the
        group that can compute it from the bytes just as well; empty if there are none."""
        chain: list[Node] = []
        node, reader = members[-1], self.readers.get(members[-1].outputs[0], ())
        if len(reader) != 1 or reader[0] in inside or node.outputs[0] in self.results or not (
                reader[0].op.traits & (Trait.ELEMENTWISE | Trait.REDUCTION)):
            return []
        while node in inside and len(chain) < 3:
            chain.append(node)
            x = node.inputs[0]
            if not isinstance(x, Value) or x in self.results or len(self.readers[x]) != 1:
                return []
            if Trait.CONVERTS in node.op.traits:
                return chain if x.type.dtype.bytes == 1 < node.outputs[0].type.dtype.bytes else []
            if node.op not in (o.sub, o.mul) or isinstance(node.inputs[1], Value):
                return []
            node = self.made_by[x]
        return []

    def left_out(self, node: Node, inside: set[Node], root: Node, shape: object) -> str:
        """Why the node cannot run on the template's finished rows; empty if it can."""
        if node in self.copies:
            return "its reader computes it from a value that is stored"
        if node.op.lowering is Lowering.TEMPLATE:
            return "a group has at most one template, and both nodes are templates"
        if len(inside) >= ROWS:
            return f"there are {ROWS} nodes already that run on the template's finished rows"
        if Trait.ELEMENTWISE not in node.op.traits:
            return (f"{node.op.name} is not elementwise; only elementwise ops can run on a "
                    f"template's finished rows")
        if node.outputs[0].type.shape != shape:
            return "it has another shape than the template's result"
        if any(self.depends(self.made_by[x], inside, self.position[root])
               for x in node.inputs if isinstance(x, Value) and x in self.made_by
               and self.made_by[x] not in inside):
            return ("it also reads a value that another kernel computes from the group, so the "
                    "group would not be convex")
        if self.widens_stored(node):
            return "it widens a value that is stored in fewer bytes; readers widen it themselves"
        return "it belongs to another group already" if node in self.taken else ""

    def widens_stored(self, node: Node) -> bool:
        """Whether the node is a cast of a narrow value that is stored anyway, as a view or for
        another template."""
        x = node.inputs[0]
        if Trait.CONVERTS not in node.op.traits or not isinstance(x, Value):
            return False
        stored = x in self.results or any(Trait.ELEMENTWISE not in r.op.traits
                                          for r in self.readers[x])
        return stored and x.type.dtype.bytes == 1 < node.outputs[0].type.dtype.bytes

    def bring(self, inside: set[Node], root: Node) -> None:
        """Add elementwise producers of the same shape that only the group reads, the template
        itself not among the readers: it needs its operands before any row is finished.

        An example is what an optimizer computes from its state alone, before it uses the gradient.
        Outside of the group each would be a pass over memory. What another template can finish in
        fewer bytes than its sums have is left to it.
        """
        shape = root.outputs[0].type.shape
        frontier = [n for n in inside if n is not root]
        while frontier and len(inside) < 2 * ROWS:
            for x in frontier.pop().inputs:
                if not isinstance(x, Value) or x.type.shape != shape:
                    continue
                maker = self.made_by.get(x)
                if maker is None or maker in inside or maker in self.taken or (
                        Trait.ELEMENTWISE not in maker.op.traits or x in self.results
                        or any(r not in inside or r is root for r in self.readers[x])
                        or self.finishes(maker)):
                    continue
                inside.add(maker)
                frontier.append(maker)

    def finishes(self, node: Node) -> bool:
        """Whether the node makes numbers narrower that come from a template's finished rows."""
        v = node.outputs[0]
        wide = [x for x in node.inputs if isinstance(x, Value) and x.type.shape == v.type.shape]
        if not any(x.type.dtype.bytes > v.type.dtype.bytes for x in wide):
            return False
        pending = [self.made_by[x] for x in wide if x in self.made_by]
        while pending:
            maker = pending.pop()
            if maker.op.lowering is Lowering.TEMPLATE:
                return True
            if Trait.ELEMENTWISE in maker.op.traits and maker not in self.taken:
                pending += [self.made_by[x] for x in maker.inputs if isinstance(x, Value)
                            and x.type.shape == v.type.shape and x in self.made_by]
        return False

    def sum_rows(self, inside: set[Node], root: Node) -> None:
        """Add a sum along the rows that the group stores anyway: these rows are in the first
        cache."""
        axes = sums(root.op)
        if not axes:
            return
        shape = root.outputs[0].type.shape
        for v in (n.outputs[0] for n in inside):
            apart = [r for r in self.readers.get(v, ()) if r not in inside]
            sums_ = [r for r in apart if r.op is o.reduce_sum and tuple(
                a % len(shape) for a in r.attrs["axes"]) == axes and r not in self.taken]
            if sums_ and v.type == root.outputs[0].type and (len(apart) > 1 or v in self.results):
                inside.add(sums_[0])
                return

    def depends(self, node: Node, inside: set[Node], oldest: int) -> bool:
        """Whether the node is computed from a member, or from a kernel that is."""
        stack, seen = [node], {node}
        while stack:
            here = stack.pop()
            if here in inside:
                return True
            for x in (x for n in self.kernel.get(here, (here,)) for x in n.inputs):
                maker = self.made_by.get(x) if isinstance(x, Value) else None
                if maker is not None and maker not in seen and (
                        self.position[self.kernel.get(maker, (maker,))[-1]] >= oldest):
                    seen.add(maker)
                    stack.append(maker)
        return False

    # ---- nests -----------------------------------------------------------------------------

    def nest(self, root: Node) -> None:
        """The root and every producer, from there backwards, that only the group reads; but what
        loops would compute too often is left out, and what it needs."""
        apart = self.not_for_indices(root)
        inside = self.grown(root, apart)
        while not writes_by_indices(root) and (dear := too_often(inside, root)) is not None:
            apart.add(dear)
            inside = self.grown(root, apart)
        if len(inside) > 1:
            self.taken |= inside
            members = tuple(sorted(inside, key=self.position.__getitem__))
            self.groups.append(Group(root.outputs[0], members, "nest"))

    def not_for_indices(self, root: Node) -> set[Node]:
        """The producers of a scatter's operands other than its indices, and of what it overwrites:
        they have kernels of their own."""
        if not writes_by_indices(root):
            return set()
        indexing = root.op.indexing
        assert indexing is not None
        others = {x for i, x in enumerate(root.inputs) if i != indexing.indices}
        return {n for x in others if isinstance(x, Value) for n in (
            self.made_by.get(x), *self.readers[x]) if n is not None}

    def grown(self, root: Node, apart: set[Node]) -> set[Node]:
        """The root and its producers that can be computed in place, without those in `apart`."""
        inside = {root}
        frontier = [root]
        while frontier and sum(not n.op.movement for n in inside) < INLINE:
            node = max(frontier, key=self.position.__getitem__)
            frontier.remove(node)
            for x in node.inputs:
                maker = self.made_by.get(x) if isinstance(x, Value) else None
                if maker is not None and maker not in inside and maker not in apart and (
                        maker not in self.taken) and not self.kept_apart(maker, node, inside):
                    inside.add(maker)
                    frontier.append(maker)
        self.trim(inside, root)
        return inside

    def kept_apart(self, maker: Node, reader: Node, inside: set[Node]) -> str:
        """The reason why `maker` is not computed where `reader` needs it; empty if it is."""
        if len(maker.outputs) != 1 or maker.op.lower is None:
            return f"{maker.op.name} has its own kernel and cannot be part of a loop nest"
        v = maker.outputs[0]
        if v in self.results:
            return "it is an output of the graph, so it is stored anyway"
        if any(r not in inside for r in self.readers[v]):
            return "other nodes read it too, and each would compute it again"
        if maker.op.movement & (Movement.ONCE | Movement.REPEATS):
            return "" if moves_freely(maker) else (
                "a group cannot contain a general reshape: reading through it needs divisions for "
                "each element")
        product = any(Trait.CONTRACTION in n.op.traits for n in self.onwards(reader, inside))
        if product and widens_integers(maker):
            return ""
        if product or Trait.WINDOWED in reader.op.traits:
            return f"{reader.op.name} would compute each element once for every window"
        if writes_by_indices(reader):
            return "" if Trait.ELEMENTWISE in maker.op.traits else (
                f"{reader.op.name} computes only elementwise values in place")
        if joins_columns(maker, reader):
            return ""
        if reader.op.category == "memory" or reader.op.indexing is not None:
            return "" if Trait.ELEMENTWISE in maker.op.traits and not repeats(v, reader) else (
                f"{reader.op.name} reads elements several times, or reads a value that is not "
                f"elementwise")
        return self.beside(maker, inside)

    def beside(self, maker: Node, inside: set[Node]) -> str:
        """The same for a value that is neither moved nor read through a window."""
        if Trait.REDUCTION in maker.op.traits:
            # a reader that sums over rows would compute each row's result once per column
            if not all("axes" in n.attrs and trailing(n) for n in (maker, *inside)
                       if Trait.REDUCTION in n.op.traits):
                return "only a reduction over the innermost axes can be computed in place"
            return "" if not self.transposed(maker, inside) else (
                "a transpose lies between: each element would sum its row again")
        if Trait.CONTRACTION in maker.op.traits:
            shape = maker.outputs[0].type.shape
            return "" if all(Trait.ELEMENTWISE in n.op.traits and n.outputs[0].type.shape == shape
                             for n in inside) else (
                "a product is computed in place only for elementwise nodes of its shape")
        if Trait.ELEMENTWISE not in maker.op.traits and maker.op not in (o.gather, o.iota):
            return f"{maker.op.name} is always computed by itself"
        return "it belongs to another group already" if maker in self.taken else ""

    def transposed(self, maker: Node, inside: set[Node]) -> bool:
        """Whether a member that is computed from this node moves the innermost axis."""
        return any(transposes(n) for n in self.onwards(maker, inside))

    def onwards(self, node: Node, inside: set[Node]) -> Iterator[Node]:
        """The node, and the members that are computed from it, each once."""
        pending, seen = [node], {node}
        while pending:
            here = pending.pop()
            yield here
            new = inside.intersection(self.readers.get(here.outputs[0], ())) - seen
            seen |= new
            pending += new

    def trim(self, inside: set[Node], root: Node) -> None:
        """Remove movement at the group's edge: outside of the group it is a view and costs
        nothing."""
        changed = True
        while changed:
            changed = False
            for node in list(inside):
                if node is root or not node.op.movement or node.op.lowering is not Lowering.VIEW:
                    continue
                x = node.inputs[0]
                if isinstance(x, Value) and self.made_by.get(x) not in inside:
                    inside.discard(node)
                    changed = True


def _roots_nest(node: Node) -> bool:
    if writes_by_indices(node):
        return True
    return node.op.lower is not None and len(node.outputs) == 1 and bool(node.op.traits & _ROOTS)
