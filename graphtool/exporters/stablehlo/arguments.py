"""Arguments of functions: what is said of their sizes; parameters as arguments of `@main`, beside a
file that holds them under the arguments' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool import transforms
from graphtool.escaping import mlir_string
from graphtool.exporters.stablehlo.text import attribute
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module, TensorType, is_parameter
from graphtool.ir.text import value_names
from graphtool.symbolic import symbols, text
from graphtool.transforms.training.state import opened, renamed

SIZES, BOUNDS, STEPS = "graphtool.sizes", "graphtool.bounds", "graphtool.steps"
OWN_SIZE = "graphtool.size"  # the name of the size that is an argument


def with_arguments(module: Module) -> tuple[Module, Mapping[str, Weight]]:
    """The module with its parameters as inputs after its own, and the parameters by these names.

    Parameters inside regions are included. One of a type that safetensors lacks (int4, float8)
    stays a constant.
    """
    graph, count = transforms.lifted(module.graph), len(module.graph.inputs)
    held = {n.outputs[0]: n.attrs["data"] for n in graph.nodes
            if is_parameter(n) and n.attrs["data"].dtype.safetensors}
    graph = renamed(opened(graph, tuple(held)), {v: v.hint.removeprefix("@") for v in held})
    names = value_names(graph)
    return replace(module, graph=graph), {
        names[v]: w for v, w in zip(graph.inputs[count:], held.values(), strict=True)}


def sizes_of(type: TensorType) -> dict[str, str]:
    """The attribute of an argument that has open sizes: their names, as `"batch, 3"`."""
    free = any(symbols(d) for d in type.shape)
    return {SIZES: mlir_string(", ".join(map(text, type.shape)))} if free else {}


def told_of(type: TensorType) -> dict[str, str]:
    """The attributes of an argument that has open sizes: their names, bounds and steps."""
    free = {s.name: s for d in type.shape for s in symbols(d)}
    bounds = {n: [s.lo] if s.hi is None else [s.lo, s.hi] for n, s in free.items()
              if (s.lo, s.hi) != (1, None) and s.lo is not None}
    steps = {n: [s.step, s.offset] for n, s in free.items() if s.step > 1}
    return {**sizes_of(type), **({BOUNDS: attribute(bounds)} if bounds else {}),
            **({STEPS: attribute(steps)} if steps else {})}


def braced(told: Mapping[str, str]) -> str:
    """Attributes behind the type of an argument; "" for none."""
    return f" {{{', '.join(f'{k} = {x}' for k, x in told.items())}}}" if told else ""
