"""The activations that are stored between kernels although no layer reads them: what means, pools,
softmax and additions read. With all of them on grids, a quantised model keeps no floats in memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

from graphtool import dtypes
from graphtool.ir.facets import BROADCAST
from graphtool.ir.graph import Graph, Node, Value, is_constant, producers
from graphtool.passes.quantise.layers import Layer, moved, origins, stays


def stored_activations(graph: Graph, layers: Collection[Layer]) -> list[Value]:
    """The float32 values, in order, that a kernel would store as floats if only the inputs of the
    layers were integers.

    A kernel applies elementwise functions to its result before it stores it. An elementwise
    function of the results of several kernels runs in the first one that no other of them needs,
    and reads the others from memory. Any other op reads all of its operands from memory.
    """
    made_by = producers(graph)
    position = {v: i for i, n in enumerate(graph.nodes) for v in n.outputs}
    weighted = {layer.node for layer in layers}
    known = {u for layer in layers for v in layer.read for u in moved(v, made_by)}
    kernels: dict[Value, frozenset[Value]] = {}
    out: list[Value] = []
    for node in graph.nodes:
        reads = _computed(node, made_by)
        merged = frozenset[Value]().union(*(kernels.get(v, frozenset()) for v in reads
                                            if v not in known))
        apart = node.op.axes is not BROADCAST and not stays(node)
        for v in node.outputs:
            kernels[v] = frozenset((v,)) if apart else merged
        if node in weighted or stays(node) or is_constant(node):
            continue
        if not apart:
            reads.sort(key=position.__getitem__)
            needed = _needed(reads, graph, position)
            here = next((v for v in reads if v not in needed), None)
            reads = [v for v in reads if here is not None and not kernels[v] <= kernels[here]]
        for stored in dict.fromkeys(u for v in reads for u in origins(v, made_by)):
            if stored not in known and stored in made_by and not is_constant(made_by[stored]):
                known.update(moved(stored, made_by))
                out.append(stored)
    return out


def _computed(node: Node, made_by: dict[Value, Node]) -> list[Value]:
    """The operands in float32 that a run computes."""
    return list(dict.fromkeys(
        v for v in node.inputs if isinstance(v, Value) and v in made_by
        and v.type.dtype is dtypes.float32 and not is_constant(made_by[v])))


def _needed(reads: list[Value], graph: Graph, position: dict[Value, int]) -> set[Value]:
    """The values, ordered by position, that others of them are computed from.

    Goes back from the last node and ends where no answer is open any more, so that a mask which
    every layer reads costs one layer each time and not all that precede it.
    """
    pending = [-position[v] for v in reads]
    seen, out = set(pending), set[Value]()
    heapq.heapify(pending)
    while pending and len(out) < len(reads) - 1:
        for x in graph.nodes[-heapq.heappop(pending)].inputs:
            if isinstance(x, Value) and position.get(x, -1) >= position[reads[0]]:
                if x in reads:
                    out.add(x)
                if -position[x] not in seen:
                    seen.add(-position[x])
                    heapq.heappush(pending, -position[x])
    return out
