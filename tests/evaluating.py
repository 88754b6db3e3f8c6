"""What tests of graphs share: running one on arrays with the ops' reference meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool.ir.graph import Graph, Node
from graphtool.ir.op import evaluate
from graphtool.ir.replay import replay


def run(graph: Graph, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The graph's outputs on the given inputs."""
    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        out = evaluate(node.op, xs, node.attrs)
        return out if isinstance(out, tuple) else (out,)
    return replay(graph, arrays, apply)
