"""What a graph costs once it is compiled: it is lowered, and the figures are the program's.

Before fusion nobody knows that; then the figures are those of the ops alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.analysis import costs
from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Graph, Group, Module, Node, Value
from graphtool.ir.run_sizes import all_nodes
from graphtool.loops.program import Program
from graphtool.loops.totals import Totals, totals
from graphtool.ops.costs import nbytes
from graphtool.symbolic import Dim, at_least_sizes
from graphtool.target import TABLE, Target, detect, named

FREE = (Lowering.VIEW, Lowering.DATA)


def program_totals(module: Module) -> Totals | None:
    """The totals of the program that the graph is lowered to; None if it is neither fused nor
    selected, or cannot be lowered."""
    if not any(g.groups for g in _graphs(module.graph)) and not selected(module):
        return None
    program = program_of(module)
    return None if program is None else totals(program)


def cost_of(module: Module) -> tuple[Totals, bool]:
    """The totals of the compiled program of a fused graph; else those of the ops alone, as upper
    bounds, and false."""
    lowered = program_totals(module)
    return lowered or alone(module), bool(lowered and module.graph.groups)


def program_of(module: Module) -> Program | None:
    """The program that the graph is lowered to; None if it cannot be lowered.

    The target is this machine, or the first of the table whose vectors the packed weights fit.
    """
    for target in _targets():
        try:
            from graphtool.lower import lower  # late: a graph without groups does not need it
            return lower(module, target)
        except GraphtoolError as error:
            if error.code != "GT2004":
                return None
    return None


def selected(module: Module) -> bool:
    """Whether kernels have been chosen."""
    return any(n.attrs.get("plan") is not None for n in all_nodes(module.graph))


def _targets() -> Iterator[Target]:
    here = detect()
    yield here
    yield from (named(name, here.threads) for name, row in TABLE.items() if row.lanes != here.lanes)


def alone(module: Module) -> Totals:
    """The totals where each group, and each op outside of them, is a kernel that reads its operands
    once. Weights are as they are, and workspace is unknown."""
    traffic = Traffic(module.graph)
    calls = len({traffic.kernel.get(n, n) for n in all_nodes(module.graph)
                 if n.op.lowering not in FREE})
    peak = costs.peak(module.graph, traffic.inner)
    return Totals(calls, calls, costs.total(traffic, module.graph), peak.bytes, 0)


class Traffic:
    """The bytes of each node that leave or enter its kernel: all where nothing is fused."""

    def __init__(self, graph: Graph) -> None:
        self.kernel: dict[Node, Group] = {}
        self.group_of: dict[Value, Group] = {}
        self.inner: set[Value] = set()  # made and used in one kernel only
        for g in _graphs(graph):
            groups = {n: group for group in g.groups for n in group.members}
            group_of = {v: group for n, group in groups.items() for v in n.outputs}
            used = {x for n in g.nodes for x in n.inputs
                    if isinstance(x, Value) and x in group_of and group_of[x] is not groups.get(n)}
            self.kernel |= groups
            self.group_of |= group_of
            self.inner |= group_of.keys() - used - set(g.outputs)

    def __call__(self, node: Node) -> Dim:
        """The bytes, never negative at the least sizes."""
        group = self.kernel.get(node)
        whole = costs.bytes_moved(node)
        if group is None:
            return whole
        inner = [v for v in node.outputs if v in self.inner] + [
            x for x in dict.fromkeys(node.inputs)
            if isinstance(x, Value) and self.group_of.get(x) is group]
        rest = whole - sum((nbytes(v.type) for v in inner), 0)
        return rest if at_least_sizes(rest) > 0 else 0


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for inner in costs.regions(node):
            yield from _graphs(inner)
