"""Conditions on open sizes that a graph computes, as `Expand` to a given shape does: N is 1 or 4.

Equations between sizes are a module's own. Other conditions are nodes, which end in one that must
have a value within bounds. Those that depend on sizes alone can be tried before a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Value, is_constant
from graphtool.ir.op import evaluate
from graphtool.ir.run_sizes import definitions, size_in_result
from graphtool.symbolic import Dim, Poly, substitute

Array = np.ndarray[Any, Any]
_SMALL = 64  # elements of a value that is computed here
_TRIES = 256


def allowed(graph: Graph, sizes: Mapping[str, Dim]) -> bool:
    """Whether all conditions hold that depend on these sizes alone."""
    known = _known(graph, sizes) if definitions(graph) else {}
    for node in graph.nodes:
        size = size_in_result(node)
        if size is None or node.inputs[0] not in known:
            continue
        value, most = int(known[node.inputs[0]]), substitute(node.attrs["most"], sizes)
        if value < (size.lo or 0) or (isinstance(most, int) and value > most):
            return False
    return True


def candidates(graph: Graph, names: Sequence[str], first: Mapping[str, Dim]) -> Iterator[
        dict[str, int]]:
    """Values of the sizes `names` to be tried: those of `first`, 1, and the numbers that the graph
    computes from sizes."""
    numbers = {int(x) for x in _known(graph, first).values() if x.ndim == 0 and x.dtype.kind == "i"}
    rows = [list(dict.fromkeys([size, 1, *sorted(n for n in numbers if n > 0)])) for name in names
            if isinstance(size := first[name], int)]
    if len(rows) == len(names):
        for values in islice(product(*rows), _TRIES):
            yield dict(zip(names, values, strict=True))


def _known(graph: Graph, sizes: Mapping[str, Dim]) -> dict[Any, Array]:
    """The small values that depend on sizes alone."""
    known: dict[Any, Array] = {}
    for node in graph.nodes:
        known.update(zip(node.outputs, _computed(node, known, sizes), strict=False))
    return known


def _computed(node: Node, known: Mapping[Any, Array], sizes: Mapping[str, Dim]) -> list[Array]:
    """The values of a node that depends on sizes alone; none for any other node."""
    xs = [known.get(x) if isinstance(x, Value) else x for x in node.inputs]
    attrs = {k: substitute(a, sizes) if isinstance(a, Poly) else a for k, a in node.attrs.items()}
    shapes = [[d for d in v.type.shape if isinstance(d, int)] for v in node.outputs]
    if is_constant(node) or node.op.traits & (Trait.RANDOM | Trait.SIZE) or any(
            x is None for x in xs) or any(
            isinstance(a, Poly | Graph) for a in attrs.values()) or any(
            len(shape) < v.type.rank or math.prod(shape) > _SMALL
            for shape, v in zip(shapes, node.outputs, strict=True)):
        return []
    y = evaluate(node.op, xs, attrs)
    return [np.asarray(v) for v in (y if isinstance(y, tuple) else (y,))]
