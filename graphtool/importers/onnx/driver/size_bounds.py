"""Takes missing bounds of computed sizes from the shapes that the model declares for its
outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphtool.ir.graph import Node
from graphtool.ir.run_sizes import bare, defined
from graphtool.ir.trace import Tracer


def bounded(nodes: Sequence[Node], outputs: Mapping[str, Any],
            declared: Mapping[str, tuple[int, ...]]) -> list[Node]:
    """The nodes, with a bound for each size that is an axis of a declared output."""
    most: dict[str, int] = {}
    for name, x in outputs.items():
        shape = declared.get(name, ())
        if isinstance(x, Tracer) and x.ndim == len(shape):
            for d, n in zip(x.shape, shape, strict=True):
                size = bare(d)
                if size is not None:
                    most[size.name] = min(n, most.get(size.name, n))
    return [_limited(node, most) for node in nodes]


def _limited(node: Node, most: Mapping[str, int]) -> Node:
    size = defined(node)
    if size is None or size.name not in most or node.attrs.get("most", 0) is not None:
        return node
    return replace(node, attrs={**node.attrs, "most": most[size.name]})
