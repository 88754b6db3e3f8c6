"""`show --stats`: the ops of a graph, their cost, and its symbolic dims.

Of a fused graph, kernels, bytes and memory are those of the compiled program.
"""

from __future__ import annotations

import msgspec

from graphtool.analysis import costs
from graphtool.ir.graph import Module, Node, is_constant
from graphtool.ir.op import CATEGORIES
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import value_names
from graphtool.report import structure
from graphtool.report.compiled import Traffic, alone, program_totals, selected
from graphtool.report.table import Column, Size, human, size
from graphtool.symbolic import Dim


class OpRow(msgspec.Struct):
    """All nodes of one op: their number, their flops, and the bytes that they read from and write
    to other kernels."""

    op: str
    category: str
    count: int
    flops: Size
    bytes: Size


OPS: tuple[Column[OpRow], ...] = (
    Column("op"), Column("category"), Column("count"), Column("FLOPs", lambda r: human(r.flops)),
    Column("bytes", lambda r: human(r.bytes, "B")))


class DimBounds(msgspec.Struct):
    """A symbolic dim and its bounds; null is unbounded."""

    name: str
    min: int | None
    max: int | None


class ResidualRow(msgspec.Struct):
    """A residual connection: `add` joins `skip` with a branch of `length` nodes."""

    add: str
    skip: str
    length: int


class FusionRow(msgspec.Struct):
    """A chain of ops that can be one kernel, such as `conv → relu`, and how often it occurs."""

    pattern: str
    count: int


class Stats(msgspec.Struct):
    """All of the report; schemas/stats.schema.json is made from it.

    `compiled`: the graph is fused, and calls, kernels, bytes and peak are those of its program:
    calls of kernels, different kernels, bytes that a run moves, and the arena, of which at most
    `workspace` is the kernels' own. Otherwise they are of the ops one by one; fusion makes them
    less. `selected`: kernels are chosen, and weights packed for them.
    """

    nodes: int
    ops: list[OpRow]
    categories: dict[str, int]
    params: int
    param_bytes: int
    constants: int
    constant_bytes: int
    flops: Size
    bytes: Size
    peak: Size
    peak_at: str
    dims: list[DimBounds]
    residuals: list[ResidualRow]
    fused: bool
    fusions: list[FusionRow]
    compiled: bool = False
    selected: bool = False
    calls: int = 0
    kernels: int = 0
    workspace: Size = 0


def stats(module: Module) -> Stats:
    """The report of a module; nodes inside regions count, their costs as often as they run."""
    graph = module.graph
    runs = [(n, times) for n, times in costs.executions(graph) if not is_constant(n)]
    nodes = [n for n, _ in runs]
    names = value_names(graph)
    top = costs.peak(graph)
    lowered = program_totals(module)
    cost = lowered or alone(module)
    groups = [g.members for g in graph.groups] or structure.chains(graph)
    weights = [n for n in all_nodes(graph) if is_constant(n)]
    params = [n.attrs["data"] for n in weights if n.attrs["param"]]
    constants = [n.attrs["data"] for n in weights if not n.attrs["param"]]
    return Stats(
        nodes=len(nodes), ops=_op_rows(runs, Traffic(graph)), categories=_categories(nodes),
        params=sum(w.size for w in params), param_bytes=sum(w.nbytes for w in params),
        constants=sum(w.size for w in constants),
        constant_bytes=sum(w.nbytes for w in constants),
        flops=size(costs.total(costs.flops, graph)),
        bytes=size(cost.bytes), peak=size(cost.arena),
        peak_at=names[top.node.outputs[0]] if top.node and lowered is None else "",
        dims=[DimBounds(s.name, s.lo, s.hi) for s in module.symbols.values()],
        residuals=[ResidualRow(names[r.add.outputs[0]], names[r.skip], r.length)
                   for r in structure.residuals(graph)],
        fused=bool(graph.groups),
        fusions=[FusionRow(p, n) for p, n in structure.patterns(groups)],
        compiled=bool(lowered and graph.groups), selected=selected(module),
        calls=cost.calls, kernels=cost.kernels, workspace=size(cost.workspace))


def _op_rows(runs: list[tuple[Node, Dim]], traffic: costs.Cost) -> list[OpRow]:
    by_op: dict[str, list[tuple[Node, Dim]]] = {}
    for n, times in runs:
        by_op.setdefault(n.op.name, []).append((n, times))
    rows = [OpRow(op, group[0][0].op.category, len(group), size(_sum(costs.flops, group)),
                  size(_sum(traffic, group))) for op, group in by_op.items()]
    return sorted(rows, key=lambda r: (-r.count, r.op))


def _sum(cost: costs.Cost, runs: list[tuple[Node, Dim]]) -> Dim:
    return sum((cost(n) * times for n, times in runs if not any(costs.regions(n))), 0)


def _categories(nodes: list[Node]) -> dict[str, int]:
    out = dict.fromkeys(CATEGORIES, 0)
    for n in nodes:
        out[n.op.category] = out.get(n.op.category, 0) + 1
    return out


# ---- text --------------------------------------------------------------------------------------

def stats_lines(s: Stats) -> list[str]:
    """The report as lines of text, without the table of ops."""
    kinds = ", ".join(f"{n} {name}" for name, n in s.categories.items() if n)
    dims = ", ".join(f"{d.name} in {d.min if d.min is not None else '-∞'}.."
                     f"{d.max if d.max is not None else '∞'}" for d in s.dims)
    out = [f"nodes        {s.nodes} ({kinds or 'none'})",
           f"parameters   {s.params:,} ({human(s.param_bytes, 'B')})",
           f"constants    {s.constants:,} ({human(s.constant_bytes, 'B')})",
           f"FLOPs        {human(s.flops)}",
           f"kernels      {kernels(s)}",
           f"bytes moved  {bounded(s, s.bytes)}",
           f"peak memory  {bounded(s, s.peak)}" + _peak(s),
           f"dims         {dims or 'all static'}",
           f"residuals    {len(s.residuals)}"]
    out += _residuals(s.residuals)
    groups = sum(f.count for f in s.fusions)
    out.append(f"{'fused' if s.fused else 'could be fused'}: {groups} group{'s' * (groups != 1)}")
    out += [f"  {f.count} × {f.pattern}" for f in s.fusions]
    return out


def _residuals(rows: list[ResidualRow]) -> list[str]:
    """A line for each length: the connection, or how many there are and the first of them."""
    by_length: dict[int, list[ResidualRow]] = {}
    for r in rows:
        by_length.setdefault(r.length, []).append(r)
    return [f"  {group[0].add} joins {group[0].skip} over {length} nodes" if len(group) == 1 else
            f"  {len(group)} over {length} nodes, the first: {group[0].add} joins {group[0].skip}"
            for length, group in by_length.items()]


def kernels(s: Stats) -> str:
    """How many kernels a run calls: `at most 13, …`, or `10 calls of 8`."""
    if not s.compiled:
        return f"at most {s.calls}, {basis(s)}"
    return f"{s.calls}" if s.calls == s.kernels else f"{s.calls} calls of {s.kernels}"


def bounded(s: Stats, x: Size) -> str:
    """Bytes of the compiled program, or before fusion an upper bound."""
    return human(x, "B") if s.compiled else f"at most {human(x, 'B')}"


def basis(s: Stats) -> str:
    """What was counted."""
    if s.compiled:
        return "the compiled program"
    unit = "each group" if s.fused else "each op"
    return f"{unit} alone" if s.selected else f"{unit} alone, before weights are packed"


def _peak(s: Stats) -> str:
    """Where the peak is, or what part of it is workspace."""
    if s.workspace:
        return f", of which {human(s.workspace, 'B')} are workspace"
    return f" at {s.peak_at}" if s.peak_at else ""
