"""dce: dead-code elimination. Drops the nodes that no output needs; inputs stay."""

from __future__ import annotations

from graphtool.ir.graph import Graph
from graphtool.ir.prune import prune


def dce(graph: Graph) -> Graph:
    """The graph without dead nodes; itself where there are none."""
    return prune(graph)
