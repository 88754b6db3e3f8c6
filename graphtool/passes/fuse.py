"""fuse: says which nodes one kernel computes. An annotation; the nodes stay as they are.

Template groups: a kernel with the elementwise nodes that follow it. Nest groups: an elementwise or
reducing node with all that only it reads and that is cheap to compute in place.
"""

from __future__ import annotations

from graphtool import ops as o
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Graph, Group, Node, Value, producers
from graphtool.kernels.record import sums_rows
from graphtool.ops.indexing import reshape_blocks
from graphtool.passes.cse import widens
from graphtool.symbolic import known, product

_ROOTS = Trait.ELEMENTWISE | Trait.REDUCTION | Trait.WINDOWED | Trait.NEST
INLINE = 40  # members of a nest at most: beyond, the C grows faster than it gains


def fuse(graph: Graph) -> Graph:
    """The graph with its table of groups."""
    return Fuser(graph).run()


class Fuser:
    """The groups of one graph; and for each node outside every group, why it was not fused."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made = producers(graph)
        self.position = {n: i for i, n in enumerate(graph.nodes)}
        self.readers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for x in node.inputs:
                if isinstance(x, Value):
                    self.readers.setdefault(x, []).append(node)
        self.results = set(graph.outputs)
        self.taken: set[Node] = set()
        self.kernel: dict[Node, tuple[Node, ...]] = {}  # the members of a node's template
        self.groups: list[Group] = []

    def run(self) -> Graph:
        """The graph with its fusion groups, in the order of their roots."""
        for node in self.graph.nodes:
            if node.op.lowering is Lowering.TEMPLATE:
                self.template(node)
        for node in reversed(self.graph.nodes):
            if node not in self.taken and _roots_nest(node):
                self.nest(node)
        order = sorted(self.groups, key=lambda g: self.position[self.made[g.root]])
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
        """Keep a widening cast out of the group if its reader elsewhere can widen the numbers
        itself."""
        for node in members[:0:-1]:
            v = node.outputs[0]
            if widens(node) and v not in self.results and inside.isdisjoint(
                    self.readers.get(v, ())):
                inside.discard(node)
                members.remove(node)

    def left_out(self, node: Node, inside: set[Node], root: Node, shape: object) -> str:
        """Why the node cannot run on the template's finished rows; empty if it can."""
        if node.op.lowering is Lowering.TEMPLATE:
            return "a group has one template, and both are one"
        if Trait.ELEMENTWISE not in node.op.traits:
            return (f"{node.op.name} is not elementwise: on a template's finished rows only "
                    "elementwise ops run")
        if node.outputs[0].type.shape != shape:
            return "what runs on a template's rows has the shape of its result"
        if any(self.depends(self.made[x], inside, self.position[root])
               for x in node.inputs if isinstance(x, Value) and x in self.made
               and self.made[x] not in inside):
            return "groups are convex: it also reads what another kernel computes from the group"
        if self.widens(node):
            return "what it widens is stored in fewer bytes: readers widen it themselves"
        return "it belongs to another group already" if node in self.taken else ""

    def widens(self, node: Node) -> bool:
        """A cast of bytes that are stored anyway, as a view or another template reads them."""
        x = node.inputs[0]
        if node.op is not o.cast or not isinstance(x, Value):
            return False
        stored = x in self.results or any(Trait.ELEMENTWISE not in r.op.traits
                                          for r in self.readers[x])
        return stored and x.type.dtype.bytes == 1 < node.outputs[0].type.dtype.bytes

    def bring(self, inside: set[Node], root: Node) -> None:
        """Elementwise producers of the same shape that only the group reads: what an optimizer
        makes of its state before the gradient comes, say. They would be a pass over memory each.
        """
        shape = root.outputs[0].type.shape
        frontier = [n for n in inside if n is not root]
        while frontier:
            for x in frontier.pop().inputs:
                if not isinstance(x, Value) or x.type.shape != shape:
                    continue
                maker = self.made.get(x)
                if maker is None or maker in inside or maker in self.taken or (
                        Trait.ELEMENTWISE not in maker.op.traits or x in self.results
                        or any(r not in inside for r in self.readers[x])):
                    continue
                inside.add(maker)
                frontier.append(maker)

    def sum_rows(self, inside: set[Node], root: Node) -> None:
        """A sum along the rows of what the group stores anyway: they are in the first cache."""
        if not sums_rows(root.op.name):
            return
        shape = root.outputs[0].type.shape
        for v in (n.outputs[0] for n in inside):
            apart = [r for r in self.readers.get(v, ()) if r not in inside]
            sums = [r for r in apart if r.op is o.reduce_sum and tuple(
                a % len(shape) for a in r.attrs["axes"]) == (2,) and r not in self.taken]
            if sums and v.type == root.outputs[0].type and (len(apart) > 1 or v in self.results):
                inside.add(sums[0])
                return

    def depends(self, node: Node, inside: set[Node], oldest: int) -> bool:
        """Whether the node is computed from a member, or waits for a kernel that is."""
        stack, seen = [node], {node}
        while stack:
            here = stack.pop()
            if here in inside:
                return True
            for x in (x for n in self.kernel.get(here, (here,)) for x in n.inputs):
                maker = self.made.get(x) if isinstance(x, Value) else None
                if maker is not None and maker not in seen and (
                        self.position[self.kernel.get(maker, (maker,))[-1]] >= oldest):
                    seen.add(maker)
                    stack.append(maker)
        return False

    # ---- nests -----------------------------------------------------------------------------

    def nest(self, root: Node) -> None:
        """The root and, backwards from it, every producer that only the group reads."""
        inside = {root}
        frontier = [root]
        while frontier and len(inside) < INLINE:
            node = max(frontier, key=self.position.__getitem__)
            frontier.remove(node)
            for x in node.inputs:
                maker = self.made.get(x) if isinstance(x, Value) else None
                if maker is not None and maker not in inside and maker not in (
                        self.taken) and not self.kept_apart(maker, node, inside):
                    inside.add(maker)
                    frontier.append(maker)
        self.trim(inside, root)
        if len(inside) > 1:
            self.taken |= inside
            members = tuple(sorted(inside, key=self.position.__getitem__))
            self.groups.append(Group(root.outputs[0], members, "nest"))

    def kept_apart(self, maker: Node, reader: Node, inside: set[Node]) -> str:
        """Why `maker` is not computed where `reader` needs it; empty if it is."""
        if len(maker.outputs) != 1 or maker.op.lower is None:
            return f"{maker.op.name} is a kernel of its own kind, no part of a loop nest"
        v = maker.outputs[0]
        if v in self.results:
            return "it is an output of the graph, so it is stored anyway"
        if any(r not in inside for r in self.readers[v]):
            return "others read it too, and each would compute it again"
        if maker.op.movement & (Movement.ONCE | Movement.REPEATS):
            return "" if _moves_freely(maker) else (
                "a group has no general reshape: reading through it divides at each element")
        if Trait.WINDOWED in reader.op.traits or Trait.CONTRACTION in reader.op.traits:
            return f"{reader.op.name} would compute each element once for every window"
        if reader.op.category == "memory" or reader.op.indexing is not None:
            return "" if Trait.ELEMENTWISE in maker.op.traits and not _repeats(v, reader) else (
                f"{reader.op.name} takes elements several times, or of what is not elementwise")
        return self.beside(maker, inside)

    def beside(self, maker: Node, inside: set[Node]) -> str:
        """The same for what is neither moved nor read through a window."""
        if Trait.REDUCTION in maker.op.traits:
            # a reader that sums over rows would compute each row's result once per column
            if not (maker.op.name.startswith("reduce_") and _trailing(maker) and all(
                    "axes" in n.attrs and _trailing(n) for n in inside
                    if Trait.REDUCTION in n.op.traits)):
                return "a reduction is computed in place over the innermost axes only"
            return "" if not self.transposed(maker, inside) else (
                "its rows are transposed on the way: each element would sum its row again")
        if Trait.ELEMENTWISE not in maker.op.traits and maker.op not in (o.gather, o.iota):
            return f"{maker.op.name} is computed for itself"
        return "it belongs to another group already" if maker in self.taken else ""

    def transposed(self, maker: Node, inside: set[Node]) -> bool:
        """Whether a member that is computed from this one moves the innermost axis."""
        pending = [maker]
        seen: set[Node] = set()
        while pending:
            node = pending.pop()
            if _transposes(node):
                return True
            new = inside.intersection(self.readers.get(node.outputs[0], ())) - seen
            seen |= new
            pending += new
        return False

    def trim(self, inside: set[Node], root: Node) -> None:
        """Movement at the group's edge stays outside: there it is a view and costs nothing."""
        changed = True
        while changed:
            changed = False
            for node in list(inside):
                if node is root or not node.op.movement or node.op.lowering is not Lowering.VIEW:
                    continue
                x = node.inputs[0]
                if isinstance(x, Value) and self.made.get(x) not in inside:
                    inside.discard(node)
                    changed = True


def _roots_nest(node: Node) -> bool:
    return node.op.lower is not None and len(node.outputs) == 1 and bool(node.op.traits & _ROOTS)


def _trailing(node: Node) -> bool:
    """The reduced axes are the innermost, so each result is computed once per row of readers."""
    shape = node.inputs[0].type.shape if isinstance(node.inputs[0], Value) else ()
    axes = {a % len(shape) for a in node.attrs["axes"]}
    kept = [i for i, d in enumerate(shape) if i not in axes and d != 1]
    return not kept or all(a > kept[-1] for a in axes if shape[a] != 1)


def _transposes(node: Node) -> bool:
    """Whether it is a transpose that puts another axis of several elements innermost, or packs
    panels of columns.
    """
    x = node.inputs[0]
    if node.op is not o.transpose or not isinstance(x, Value):
        return node.op.category == "memory"
    order = [p for p in node.attrs["perm"] if x.type.shape[p] != 1]
    return bool(order) and order[-1] != max(order)


def _repeats(v: Value, reader: Node) -> bool:
    """Whether the reader takes the elements of v several times each."""
    return known(product(v.type.shape), "<", product(reader.outputs[0].type.shape)) is True


def _moves_freely(node: Node) -> bool:
    """Whether reading through it costs no division: only splitting reshapes do not."""
    if node.op is not o.reshape:
        return True
    x = node.inputs[0]
    if not isinstance(x, Value):
        return False
    before, after = x.type.shape, node.outputs[0].type.shape
    return all(sum(d != 1 for d in before[xs]) <= 1
               for xs, _ in reshape_blocks(before, after))
