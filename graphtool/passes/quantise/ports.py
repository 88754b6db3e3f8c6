"""Inputs and outputs of a quantised model as bytes: the steps of a grid instead of float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Graph, Module, TensorType, Value, producers
from graphtool.ir.text import value_names
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.quantise.grids import Grid, grid_of, quantised, real
from graphtool.passes.quantise.layers import moved
from graphtool.passes.quantise.rewrite import LayerChoice

PortType = Literal["float", "int8", "uint8"]
PORT_TYPES: tuple[PortType, ...] = get_args(PortType)
_SHARES = (o.softmax, o.sigmoid)  # their results are from 0 to 1, whatever the examples were


@dataclass(frozen=True, eq=False)
class Ports:
    """The grids of inputs and outputs; none of a port that keeps its type."""

    grids: Mapping[Value, Grid] = field(default_factory=dict)
    signed: bool = False

    def agreed(self, graph: Graph, chosen: Sequence[LayerChoice]) -> list[LayerChoice]:
        """The layers; those that read an input read its own bytes."""
        made_by, inputs = producers(graph), self.grids.keys() & {*graph.inputs}
        return [replace(c, grid=_typed(c.grid, self.signed)) if c.grid is not None and (
            inputs.intersection(moved(c.layer.x, made_by))) else c for c in chosen]


NO_PORTS = Ports()


def ports(module: Module, io: PortType, seen: Mapping[Value, Grid]) -> Ports:
    """The ports as bytes of a type, on the grids of what was `seen`."""
    made_by = producers(module.graph)
    grids = {v: grid_of(0.0, 255 / 256) if v in made_by and made_by[v].op in _SHARES else grid
             for v, grid in seen.items()}
    return Ports({v: _typed(g, io == "int8") for v, g in grids.items()}, io == "int8")


def _typed(grid: Grid, signed: bool) -> Grid:
    """The same real numbers as bytes with or without a sign."""
    kind = dtypes.int8 if signed else dtypes.uint8
    by = 0 if grid.dtype is kind else -128 if signed else 128
    return Grid(grid.scale, grid.zero + by, kind)


def with_bytes(module: Module, before: Graph, ends: Ports,
               chosen: Sequence[LayerChoice]) -> Module:
    """The module whose ports have the grids of the ports of the graph `before`.

    `meta["grids"]` has them by name: the scale and the zero point q0 of real numbers
    (q - q0)·scale.
    """
    if not ends.grids:
        return module
    grids = dict(ends.grids)
    for c in chosen:  # an input has the grid of the layer that reads it
        if c.grid is not None and c.layer.x in grids:
            grids[c.layer.x] = c.grid
    graph, names = module.graph, value_names(module.graph)
    first, last = Builder(), Builder()
    inputs, outputs = [], []
    meta: dict[str, dict[str, list[float]]] = {"inputs": {}, "outputs": {}}
    for v in graph.inputs:
        grid = grids.get(v)
        if grid is None:
            inputs.append(v)
            continue
        inputs.append(Value(TensorType(grid.dtype, v.type.shape), v.hint))
        with first.scope(f"{v.hint}.real"):
            real(Tracer(inputs[-1], first), grid.scale, grid.zero)
        first.nodes[-1] = replace(first.nodes[-1], outputs=(v,))
        meta["inputs"][names[v]] = [grid.scale, grid.zero]
    for old, v, name in zip(before.outputs, graph.outputs, module.output_names, strict=True):
        grid = grids.get(old)
        if grid is None:
            outputs.append(v)
            continue
        with last.scope(f"{v.hint}.bytes"):
            outputs.append(quantised(Tracer(v, last), grid).value)
        meta["outputs"][name] = [grid.scale, grid.zero]
    graph = Graph(tuple(inputs), (*first.nodes, *graph.nodes, *last.nodes), tuple(outputs))
    return replace(module, graph=graph, meta={**module.meta, "grids": meta})
