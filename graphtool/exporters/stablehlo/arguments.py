"""Parameters as arguments of `@main`, beside a file that holds them under the arguments' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool import transforms
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module, is_parameter
from graphtool.ir.text import value_names
from graphtool.transforms.training.state import opened, renamed


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
