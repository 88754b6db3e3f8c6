"""Puts trained weights back into a graph: the parameters by name, with new values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.errors import InputError
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node, is_constant
from graphtool.ir.text import value_names
from graphtool.transforms.training.rounded import held, integers

Array = np.ndarray[Any, Any]


def with_weights(module: Module, arrays: Mapping[str, Array], where: str = "") -> tuple[
        Module, int]:
    """The module with new values for each constant that has the name of an array; and the number of
    such constants. Parameters of integers take the ones nearest to real numbers.

    Names that the graph does not have are ignored. Raises InputError GT0618 if no name matches, or
    a shape differs.
    """
    names, quantised = value_names(module.graph), held(module.graph)
    nodes: list[Node] = []
    count = 0
    for node in module.graph.nodes:
        name = names[node.outputs[0]].removeprefix("@") if is_constant(node) else ""
        if name not in arrays:
            nodes.append(node)
            continue
        old, new = node.attrs["data"], arrays[name]
        if old.shape != new.shape:
            raise InputError("GT0618", f"{name} has the shape {list(new.shape)}, "
                                       f"expected {list(old.shape)}", where=where)
        if node in quantised and new.dtype.kind == "f":
            new = integers(quantised[node], new)
        data = weight(new.astype(old.dtype.numpy))
        nodes.append(replace(node, attrs={**node.attrs, "data": data}))
        count += 1
    if not count:
        raise InputError("GT0618", "no array has the name of a parameter", where=where,
                         hint="use the model before optimisation, which keeps its parameters")
    g = module.graph
    return replace(module, graph=Graph(g.inputs, tuple(nodes), g.outputs, g.groups)), count
