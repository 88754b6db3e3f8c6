"""Conditions on open sizes that a graph computes, as `Expand` to a given shape does: N is 1 or 4.

Equations between sizes are a module's own; other conditions are nodes, which end in a `size` that
must have one value. Those that depend on sizes alone can be tried before a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, Value, is_constant
from graphtool.ir.op import evaluate
from graphtool.symbolic import Dim, Poly, substitute, symbols

Array = np.ndarray[Any, Any]
_SMALL = 64   # elements of a value that is computed here
_TRIES = 256


def allowed(graph: Graph, sizes: Mapping[str, Dim]) -> bool:
    """Whether all conditions hold that depend on these sizes alone."""
    if not any(n.op is o.size for n in graph.nodes):
        return True
    known: dict[Value, Array] = {}
    for node in graph.nodes:
        values = _computed(node, known, sizes)
        if node.op is o.size and values:
            low = max((s.lo or 0 for s in symbols(node.attrs["size"])), default=0)
            most = substitute(node.attrs["most"], sizes)
            if int(values[0]) < low or (isinstance(most, int) and int(values[0]) > most):
                return False
        known.update(zip(node.outputs, values, strict=False))
    return True


def candidates(graph: Graph, names: list[str], first: Mapping[str, Dim]) -> Iterator[
        dict[str, int]]:
    """Values of the sizes `names` to be tried: those of `first`, 1, and the numbers that the graph
    compares sizes with."""
    numbers = sorted({n.attrs["of"] for n in graph.nodes if n.op is o.dim
                      and isinstance(n.attrs["of"], int)})
    rows = [list(dict.fromkeys([size, 1, *numbers])) for n in names
            if isinstance(size := first[n], int)]
    if len(rows) == len(names):
        for values in islice(product(*rows), _TRIES):
            yield dict(zip(names, values, strict=True))


def _computed(node: Node, known: Mapping[Value, Array], sizes: Mapping[str, Dim]) -> list[Array]:
    """The values of a node that depends on sizes alone; none for any other node."""
    if node.op is o.dim:
        n = substitute(node.attrs["of"], sizes)
        return [np.asarray(n, np.int64)] if isinstance(n, int) else []
    if is_constant(node):
        return []
    xs = [known.get(x) if isinstance(x, Value) else x for x in node.inputs]
    if not xs or any(x is None for x in xs):
        return []
    if node.op is o.size:
        return [np.asarray(xs[0])]
    if any(isinstance(a, Poly) for a in node.attrs.values()) or any(
            not all(isinstance(d, int) for d in v.type.shape) for v in node.outputs):
        return []
    y = evaluate(node.op, xs, node.attrs)
    values = [np.asarray(v) for v in (y if isinstance(y, tuple) else (y,))]
    return values if all(v.size <= _SMALL for v in values) else []
