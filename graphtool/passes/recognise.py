"""Finds composites that an exporter took apart, by their own decompositions where it can."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import Graph
from graphtool.ir.op import OPS
from graphtool.passes.rewrite import Journal, Rule, apply_rules, rule


def _whole(op: str, *operands: str, **attrs: Any) -> Any:
    """The decomposition of an op, as a pattern."""
    return OPS[op].decompose(*operands, **attrs)  # type: ignore[misc]


@rule(lambda x: _whole("silu", x))
def silu(x: Any) -> Any:  # x · σ(x)
    return o.silu(x)


def recognise(graph: Graph, *, journal: Journal | None = None) -> Graph:
    """The graph with every composite whole that its parts amount to."""
    return apply_rules(graph, RULES, "approximate", journal)


RULES: tuple[Rule, ...] = (silu,)
