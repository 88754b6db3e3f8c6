"""`opt --stats` with remat: what peaks of memory can be had, and for how much work."""

from __future__ import annotations

import msgspec

from graphtool.analysis import costs, peak_memory
from graphtool.ir.graph import Module
from graphtool.passes.remat import Arena, curve
from graphtool.report.stats import human


class RecomputeRow(msgspec.Struct):
    """A plan: its peak (the arena of the compiled step), that as a share of keeping everything,
    and its extra work."""

    peak: int
    share: float
    nodes: int
    flops: int
    extra: float


def recompute_rows(module: Module, arena: Arena | None = None) -> list[RecomputeRow]:
    """From keeping everything to the least memory."""
    plans = curve(module, arena)
    most = max(plans[0].peak, 1)
    total = max(peak_memory.at_least_sizes(costs.total(costs.flops, module.graph)), 1)
    return [RecomputeRow(p.peak, p.peak / most, len(p.again), p.flops, p.flops / total)
            for p in plans]


def recompute_table(rows: list[RecomputeRow]) -> list[tuple[str, str, str, str, str]]:
    """The rows as text, below the head ("budget", "share", "computed again", "FLOPs", "extra")."""
    return [(human(r.peak, "B"), f"{r.share:.0%}", f"{r.nodes} nodes", human(r.flops),
             f"{r.extra:.2%}") for r in rows]
