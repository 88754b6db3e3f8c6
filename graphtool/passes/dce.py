"""dce: dead-code elimination. Removes the nodes that no output needs; inputs are kept."""

from __future__ import annotations

from graphtool.ir.graph import Graph
from graphtool.ir.replay import prune


def dce(graph: Graph) -> Graph:
    """The graph without dead nodes; the same graph if there are none."""
    return prune(graph)
