"""Computes forward values again in the backward pass instead of keeping them, within a limit of
bytes.

The values to keep are a minimum cut: keeping a value costs its bytes, computing a node again costs
its work times a price. A low price computes much again. Of the prices tried, the plan with the
least work within the limit is chosen; values for which there is still room are then kept after all.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from graphtool import ops as o
from graphtool.analysis import costs
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import Graph, Module, Node, Operand, Value, is_constant, producers
from graphtool.ir.replay import ancestors
from graphtool.ir.run_sizes import sizes_of
from graphtool.ir.trace import Builder, Tracer
from graphtool.ops.costs import nbytes
from graphtool.passes.arguments import UNITS
from graphtool.passes.remat.min_cut import Network
from graphtool.symbolic import at_least_sizes

# the greatest number of plans, for prices between keeping everything and keeping nothing
PLANS = 32
TRIES = 48  # the greatest number of nodes that may be kept after all
# the greatest number of plans whose arena is measured: each takes as long as a build without a
# compiler
MEASURED = 8
Arena = Callable[[Module], int]  # a function from a module to the bytes of its arena when compiled


@dataclass(frozen=True)
class RematPlan:
    """The nodes to compute again, the memory peak of the graph that does so, and its work in
    FLOPs."""

    again: frozenset[Node]
    peak: int
    flops: int


def remat(module: Module, *, budget: str, arena: Arena | None = None) -> Module:
    """The module with some values computed again instead of kept, so that its memory peak fits
    `budget`.

    The budget is in bytes (96MiB), or a fraction between the least possible peak (0) and the peak
    when everything is kept (1). The peak is the compiled step's arena if the driver can compute it,
    else an estimate. Only a graph with gradients can gain: its first output is the loss. Symbolic
    dimensions count with their least sizes. Raises InputError GT0620 if the budget is too small.
    """
    plans = curve(module, arena)
    limit = _limit(budget, plans)
    fitting = [p for p in plans if p.peak <= limit]
    if not fitting:
        raise InputError("GT0620", f"the peak cannot be {limit:,} bytes: at least "
                                   f"{min(p.peak for p in plans):,} are needed",
                         hint="`graphtool opt --stats` lists what there is")
    best = min(fitting, key=lambda p: (p.flops, p.peak))
    if arena is None:
        best = _fewer(module.graph, best, limit)
    return replace(module, graph=recomputed(module.graph, best.again)) if best.again else module


_BUDGET = re.compile(r"(\d+)\s*([a-z]*)|(0?\.\d+|[01]\.0*)", re.IGNORECASE)


def _limit(budget: str, plans: Sequence[RematPlan]) -> int:
    match = _BUDGET.fullmatch(budget.strip())
    if match and match[1] and match[2].lower() in UNITS and (match[2] or int(match[1]) > 1):
        return int(match[1]) * UNITS[match[2].lower()]
    if not match or match[2]:
        raise UsageError("GT0603", f"remat: budget cannot be {budget!r}",
                         hint="bytes as in 96MiB, or a fraction from 0 to 1")
    least, most = min(p.peak for p in plans), plans[0].peak
    return least + int((most - least) * float(budget))


# ---- plans -------------------------------------------------------------------------------------

def curve(module: Module, arena: Arena | None = None) -> list[RematPlan]:
    """Plans from keeping everything to computing the most again, each with a lower peak."""
    return _thinned(_estimated(module.graph)) if arena is None else _measured(module, arena)


def _estimated(graph: Graph) -> list[RematPlan]:
    return [_judged(graph, again) for again in _Work(graph).choices()]


def _thinned(plans: Sequence[RematPlan]) -> list[RematPlan]:
    """The plans for which no other plan needs both less memory and less work."""
    best: list[RematPlan] = []
    for plan in sorted(plans, key=lambda p: (p.flops, p.peak)):
        if not best or plan.peak < best[-1].peak:
            best.append(plan)
    return best


def _measured(module: Module, arena: Arena) -> list[RematPlan]:
    """The estimated plans with the size of their arena.

    The arena also has the scratch memory of kernels, packed operands and gaps between buffers, so
    the plans may be in another order.
    """
    graph = module.graph
    plans = _thinned(_estimated(graph))
    step = max(1, -(-len(plans) // MEASURED))
    chosen = [*plans[:-1:step], plans[-1]]  # the first and the last plan are always measured
    tried = {p.again: p for plan in chosen for p in (plan, _fewer(graph, plan, plan.peak))}
    return _thinned([replace(p, peak=arena(replace(module, graph=recomputed(graph, p.again))))
                     for p in tried.values()])


def _judged(graph: Graph, again: frozenset[Node]) -> RematPlan:
    new = recomputed(graph, again)
    peak = costs.peak(new, costs.placeless(new))
    return RematPlan(again, at_least_sizes(peak.bytes), sum(_flops(n) for n in again))


def _fewer(graph: Graph, plan: RematPlan, limit: int) -> RematPlan:
    """Compute fewer nodes again: keep those with the most work for their bytes, as long as the
    peak allows it."""
    def gain(node: Node) -> tuple[float, int]:
        size = sum(at_least_sizes(nbytes(v.type)) for v in node.outputs)
        return -_flops(node) / max(size, 1), order[node]
    order = {n: i for i, n in enumerate(graph.nodes)}
    for node in sorted((n for n in plan.again if _flops(n)), key=gain)[:TRIES]:
        less = _judged(graph, plan.again - {node})
        if less.peak <= limit:
            plan = less
    return plan


def _flops(node: Node) -> int:
    return at_least_sizes(costs.flops(node))


def _moved(node: Node) -> int:
    return at_least_sizes(costs.bytes_moved(node))


class _Work:
    """The network of a graph: the forward values that other nodes read, their bytes, and the
    work to compute them again."""

    def __init__(self, graph: Graph) -> None:
        self.made_by = producers(graph)
        forward = set(ancestors(graph, graph.outputs[:1]))
        self.nodes = [n for n in graph.nodes if n in forward and not is_constant(n)]
        self.values = [v for n in self.nodes for v in n.outputs]
        free = set(graph.outputs)
        self.bytes = {v: 0 if v in free else at_least_sizes(nbytes(v.type))
                      for v in self.values}
        # moving a byte costs about as much as an operation; + 1, because no node is free
        self.work = {n: _flops(n) + _moved(n) + 1 for n in self.nodes}
        self.wanted = {x for n in graph.nodes if n not in forward for x in n.inputs
                       if isinstance(x, Value) and x in self.bytes}

    def choices(self) -> list[frozenset[Node]]:
        """The sets of nodes to compute again, from none to the most. Between two prices with
        different sets, a price in the middle is tried."""
        ratios = [r for n, w in self.work.items()
                  if (r := sum(self.bytes[v] for v in n.outputs) / w)]
        plans: list[frozenset[Node]] = [frozenset()]
        if not ratios or not self.wanted:
            return plans
        low, high = min(ratios) / 2**12, max(ratios) * 2**12
        pending = deque([(high, frozenset[Node](), low, self.chosen(low))])
        while pending and len(plans) < PLANS:
            dear, less, cheap, more = pending.popleft()
            plans += [more] if more not in plans else []
            if less != more and dear > cheap * 1.05:
                middle = math.sqrt(dear * cheap)
                again = self.chosen(middle)
                pending += [(dear, less, middle, again), (middle, again, cheap, more)]
        return plans

    def chosen(self, price: float) -> frozenset[Node]:
        """The nodes to compute again if an operation costs so many bytes."""
        unit = 1 << 20  # prices are fractions, but capacities must be integers
        at = {n: i for i, n in enumerate(self.nodes)}
        out = {v: len(at) + i for i, v in enumerate(self.values)}
        source, sink = len(at) + len(out), len(at) + len(out) + 1
        endless = unit * (sum(self.bytes.values()) + 1)
        network = Network(sink + 1)
        for n in self.nodes:
            network.edge(source, at[n], min(int(unit * price * self.work[n]), endless))
            for v in n.outputs:
                network.edge(at[n], out[v], unit * self.bytes[v])
                if v in self.wanted:
                    network.edge(out[v], sink, endless)
            for x in n.inputs:
                if isinstance(x, Value) and x in out:
                    network.edge(out[x], at[n], endless)
        near = network.cut(source, sink)
        return self.needed(frozenset(n for n in self.nodes if at[n] not in near))

    def needed(self, again: Collection[Node]) -> frozenset[Node]:
        """Of these, what leads to a value that the rest reads. A size is computed once."""
        again = {n for n in again if not sizes_of(n)}
        pending, seen = [v for v in self.wanted if self.made_by[v] in again], set[Node]()
        while pending:
            node = self.made_by[pending.pop()]
            if node not in seen:
                seen.add(node)
                pending += [x for x in node.inputs if isinstance(x, Value)
                            and self.made_by.get(x) in again]
        return frozenset(seen)


# ---- the graph ---------------------------------------------------------------------------------

def needed(graph: Graph, again: Collection[Node]) -> frozenset[Node]:
    """Of these forward nodes, what leads to a value that the backward pass reads."""
    return _Work(graph).needed(again)


def recomputed(graph: Graph, again: Collection[Node]) -> Graph:
    """The graph in which all but the forward pass reads what these nodes give from copies of them,
    each made where it is first read. A barrier before them keeps them from being merged."""
    if not again:
        return graph
    forward = set(ancestors(graph, graph.outputs[:1]))
    builder = Builder()
    copies = _Copies(builder, producers(graph), again)
    for node in graph.nodes:
        if node in forward or is_constant(node):
            builder.add(node)
            continue
        inputs = tuple(copies.of(x) for x in node.inputs)
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        builder.add(replace(node, inputs=inputs) if changed else node)
    return Graph(graph.inputs, tuple(builder.nodes), graph.outputs)


class _Copies:
    """Copies of forward nodes, and the barriers in front of them."""

    def __init__(self, builder: Builder, made_by: Mapping[Value, Node],
                 again: Collection[Node]) -> None:
        self.builder, self.made_by, self.again = builder, made_by, again
        self.copies: dict[Value, Value] = {}
        self.held: dict[Value, Value] = {}  # behind a barrier

    def of(self, v: Operand) -> Operand:
        """What stands for the operand, once all that leads to it is copied."""
        pending = [self.made_by[v]] if isinstance(v, Value) and v in self.made_by else []
        while pending:
            node = pending[-1]
            before = [self.made_by[x] for x in node.inputs if isinstance(x, Value)
                      and x in self.made_by and self.made_by[x] in self.again
                      and x not in self.copies]
            if node not in self.again or node.outputs[0] in self.copies:
                pending.pop()
            elif before:
                pending += before
            else:
                self._copy(pending.pop())
        return self.copies.get(v, v) if isinstance(v, Value) else v

    def _copy(self, node: Node) -> None:
        operands = tuple(self.copies[x] if isinstance(x, Value) and x in self.copies
                         else self._barrier(x) for x in node.inputs)
        fresh = tuple(Value(v.type, f"{v.hint}.again") for v in node.outputs)
        self.builder.add(replace(node, inputs=operands, outputs=fresh))
        self.copies.update(zip(node.outputs, fresh, strict=True))

    def _barrier(self, x: Operand) -> Operand:
        if not isinstance(x, Value) or (
                x in self.made_by and is_constant(self.made_by[x])):
            return x
        if x not in self.held:
            with self.builder.scope(f"{x.hint}.again"):
                self.held[x] = o.barrier(Tracer(x, self.builder)).value
        return self.held[x]


