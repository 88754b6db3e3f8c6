"""`opt --stats` with remat: the peaks of memory that can be reached, and their extra work."""

from __future__ import annotations

import msgspec

from graphtool.analysis import costs
from graphtool.ir.graph import Module
from graphtool.passes.remat import Arena, curve
from graphtool.report.sizes import human
from graphtool.report.table import Column
from graphtool.symbolic import at_least_sizes


class RecomputeRow(msgspec.Struct):
    """A plan: its peak in bytes (the arena of the compiled step), that peak relative to the peak
    without recomputation, and the extra work."""

    peak: int
    share: float
    nodes: int
    flops: int
    extra: float


def recompute_rows(module: Module, arena: Arena | None = None) -> list[RecomputeRow]:
    """The plans, from no recomputation to the least memory."""
    plans = curve(module, arena)
    most = max(plans[0].peak, 1)
    total = max(at_least_sizes(costs.total(costs.flops, module.graph)), 1)
    return [RecomputeRow(p.peak, p.peak / most, len(p.again), p.flops, p.flops / total)
            for p in plans]


PLANS: tuple[Column[RecomputeRow], ...] = (
    Column("budget", lambda r: human(r.peak, "B")), Column("share", lambda r: f"{r.share:.0%}"),
    Column("computed again", lambda r: f"{r.nodes} nodes"),
    Column("FLOPs", lambda r: human(r.flops)), Column("extra", lambda r: f"{r.extra:.2%}"))
