"""What can make a run fail: indices and computed sizes out of range. It happens before the run
overwrites a donated input, so that a run that fails leaves the state as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node
from graphtool.ir.run_sizes import all_nodes, defined
from graphtool.loops.program import Bind, Kernel, Run, Step, runs
from graphtool.lower.index_checks import IndexChecks
from graphtool.lower.storage import Storage
from graphtool.lower.units import Point, Unit


def decisive(graph: Graph, units: Sequence[Unit]) -> set[Point]:
    """What must run before it is known whether the run fails: the producers of indices that are
    checked, nodes that define sizes, and loops and branches with either inside."""
    point: dict[Node, Point] = {n: n for n in graph.nodes}
    point |= {n: u for u in units for n in u.nodes}
    checks = IndexChecks(graph)
    out = {point[n] for n in graph.nodes if defined(n) is not None or _fails_inside(n)}
    out |= {point[checks.made[v]] for u in units for v in checks.read(u) if v in checks.made}
    return out


def _fails_inside(node: Node) -> bool:
    return any(n.op in (o.gather, o.scatter) or defined(n) is not None
               for a in node.attrs.values() if isinstance(a, Graph) for n in all_nodes(a))


def early(steps: Sequence[Step], kernels: Sequence[Kernel],
          buffers: Mapping[str, Storage]) -> list[Step]:
    """The steps, with each check of indices right after the last step that writes what it reads."""
    made = {k.name: k for k in kernels}

    def written(s: Step) -> set[str]:
        return {a for r in runs((s,)) for a, p in zip(r.args, made[r.kernel].params, strict=True)
                if not p.const}
    out: list[Step] = []
    writes: list[set[str]] = []
    for s in steps:
        at = len(out)
        if isinstance(s, Run) and any(buffers[a].space == "check" for a in s.args):
            while at and not isinstance(out[at - 1], Bind) and writes[at - 1].isdisjoint(s.args):
                at -= 1
        out.insert(at, s)
        writes.insert(at, written(s))
    return out
