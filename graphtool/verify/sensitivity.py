"""How far the roundings of all nodes together can move an output: a backward pass of enclosures.

Each computed value v differs by some δ, |δ| ≤ own, from what its node gives in real arithmetic for
the computed operands. By the mean value theorem the output differs by Σ ∂y/∂v·δ, with derivatives
somewhere between no δ and all of them. All values on this way are in the tubes of the forward
analysis, so interval arithmetic over the tubes encloses the derivatives. Where paths cancel, as in
x − mean(x) or in a product of matrices, their derivatives are added before a magnitude is taken.

What jumps (a rounding to whole numbers, a choice that errors may change) has no derivative: nothing
flows through it, and its whole error of the forward analysis counts as its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from graphtool.analysis.enclosure import Array, Enclosure, exactly
from graphtool.analysis.error_bound import Errors, enclosures, flattened, is_smooth
from graphtool.analysis.gains import lengths
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.replay import prune
from graphtool.ir.trace import Builder
from graphtool.transforms.reverse import backward

MOST_ROWS = 64  # outputs of so many elements, or of so many for each example, are sharpened


def sharpened(graph: Graph, known: Errors, apart: Collection[Value]) -> list[Enclosure]:
    """The enclosures of the outputs of a flat graph, each with the smaller one of both errors.

    `known` are its errors. `apart` are the values that have examples along axis 0 which no node
    mixes, all of one count; empty if there are none.
    """
    out = []
    for v in graph.outputs:
        x = known.found[v]
        each = x.lo.shape[v in apart:]
        if v.type.dtype.is_float and x.err.any() and np.prod(each) <= MOST_ROWS:
            x = Enclosure(x.lo, x.hi, np.minimum(x.err, _error(graph, v, known, apart)))
        out.append(x)
    return out


def _error(graph: Graph, y: Value, known: Errors, apart: Collection[Value]) -> Array:
    """Σ |∂y/∂v|·|δ| over all values v, for each element of an output; ∞ where it is not known."""
    tubes, count = known.found, known.count
    smooth = [n for n in graph.nodes if is_smooth(n, tubes)]
    through = {v for n in smooth for v in n.outputs}
    weights = {v: e if v in through else tubes[v].err for v, e in known.own.items()}
    sources = [v for v, w in weights.items() if v.type.dtype.is_float and w.any()]
    shape = tubes[y].lo.shape
    unknown = np.full(shape, np.inf)
    if y in apart and not all(v in apart for v in sources):
        return unknown
    try:
        back, seed = _back(graph, smooth, y, sources)
        varying = [v for v in back.inputs if v is seed or v in known.own]
        total = np.zeros(shape)
        for at in np.ndindex(*shape[y in apart:]):
            place: Any = (slice(None), *at) if y in apart else at
            start = np.zeros(shape)
            start[place] = 1.0
            given = [exactly(start) if v is seed else tubes[v].about() for v in back.inputs]
            slopes = enclosures(back, given, count, varying, exact=True)
            total[place] = sum(_moved(slopes, g, weights[v])
                               for v, g in zip(sources, back.outputs, strict=True))
    except GraphtoolError:
        return unknown  # an op has no derivative, or no enclosure of it
    return np.where(np.isnan(total), np.inf, total * (1 + 1e-9))


def _back(graph: Graph, smooth: list[Node], y: Value, sources: list[Value]) -> tuple[Graph, Value]:
    """A flat graph of the derivatives by all sources, and its input from which they start."""
    builder = Builder()
    for node in graph.nodes:
        builder.add(node)
    seed = builder.input(y.type, "seed")
    slopes = backward(builder, smooth, [(y, seed)], sources)
    known = (*graph.inputs, *(v for n in graph.nodes for v in n.outputs), seed.value)
    new = flattened(prune(Graph(known, tuple(builder.nodes[len(graph.nodes):]),
                                tuple(s.value for s in slopes))))
    used = {x for n in new.nodes for x in n.inputs} | {*new.outputs}
    return Graph(tuple(v for v in known if v in used), new.nodes, new.outputs), seed.value


def _moved(slopes: Errors, v: Value, weight: Array) -> Any:
    """Σ |∂y/∂v|·|δ| over the elements of a value, for each example. The errors of the derivatives
    count by each, or by their length."""
    g, count = slopes.found[v], slopes.count
    if v not in slopes.length:  # a constant
        by_length = np.full(count, np.inf)
    else:
        by_length = slopes.length[v] * lengths(weight, count) + _sums(g.real().most, weight, count)
    sums = np.fmin(_sums(g.most, weight, count), by_length)
    return sums if count > 1 else sums[0]


def _sums(slope: Array, weight: Array, count: int) -> Array:
    parts = np.where(weight > 0, slope * weight, 0.0)
    return np.asarray(parts.reshape(count, -1).sum(axis=1))
