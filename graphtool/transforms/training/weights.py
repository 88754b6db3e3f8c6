"""Puts trained weights back into a graph: the parameters by name, with new values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node, is_constant
from graphtool.ir.text import value_names
from graphtool.transforms.training.rounded import held, integers

Array = np.ndarray[Any, Any]


def fitted(x: Array, shape: tuple[int, ...], row: DType) -> Array | str:
    """x as values of a parameter of that shape and type; or why it cannot be one."""
    if x.shape != shape:
        return f"has the shape {list(x.shape)}, expected {list(shape)}"
    out = dtypes.converted(x, row)
    if out is None:
        return f"is {x.dtype}, and {row.name} does not have all of its numbers"
    if row.is_float and np.isnan(out).any():
        return "has NaN"
    return out


def with_weights(module: Module, arrays: Mapping[str, Array], where: str = "") -> tuple[
        Module, int]:
    """The module with new values for each constant that has the name of an array; and the number of
    such constants. Parameters of integers take the ones nearest to real numbers.

    Names that the graph does not have are ignored. Raises InputError GT0618 if no name matches, or
    an array does not fit.
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
        real = node in quantised and new.dtype.kind == "f"
        fit = fitted(new, old.shape, dtypes.float32 if real else old.dtype)
        if isinstance(fit, str):
            raise InputError("GT0618", f"{name} {fit}", where=where)
        data = weight(integers(quantised[node], fit) if real else fit)
        nodes.append(replace(node, attrs={**node.attrs, "data": data}))
        count += 1
    if not count:
        raise InputError("GT0618", "no array has the name of a parameter", where=where,
                         hint="use the model before optimisation, which keeps its parameters")
    g = module.graph
    return replace(module, graph=Graph(g.inputs, tuple(nodes), g.outputs, g.groups)), count
