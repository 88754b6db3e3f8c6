"""Puts trained weights back into a graph: the parameters by name, with new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError
from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
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


def joined(parts: Sequence[Array]) -> Array:
    """One array of its real part, or of its real and imaginary parts."""
    if len(parts) == 1:
        return parts[0]
    out = np.empty(parts[0].shape, np.complex64)
    out.real, out.imag = parts
    return out


def split(name: str, x: Array, parts: int, code: str, where: str) -> list[Array]:
    """The parts that `joined` joins to x. Raises InputError with the code if x is not complex, and
    has two."""
    if parts == 1:
        return [x]
    if x.dtype.kind != "c":
        raise InputError(code, f"{name} is {x.dtype}, complex numbers are expected", where=where)
    return [x.real, x.imag]


def with_weights(module: Module, arrays: Mapping[str, Array], where: str = "") -> tuple[
        Module, int]:
    """The module with new values for each constant that has the name of an array; and the number of
    such constants. Parameters of integers take the ones nearest to real numbers.

    Names that the graph does not have are ignored. Raises InputError GT0618 if no name matches, or
    an array does not fit.
    """
    arrays = _by_arrays(module, arrays, where)
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
                         hint=_unnamed(module, arrays))
    g = module.graph
    kept = {n: _kept(n, w, arrays, where) for n, w in module.kept.items()}
    return replace(module, graph=Graph(g.inputs, tuple(nodes), g.outputs, g.groups),
                   kept=kept), count


def _unnamed(module: Module, arrays: Mapping[str, Array]) -> str:
    """Why the arrays of a file have no name of the graph."""
    if all(name.startswith("sha256:") for name in arrays):
        return ("these are the weights of a graph, by their hashes: name the graph, "
                "GRAPH.graph.json, in place of its weights")
    if "training" in module.meta:
        return ("the parameters of a training step are inputs: put the weights into the graph "
                "before `grad`, or start from them by `graphtool train --start FILE`")
    return "use the model before optimisation, which keeps its parameters"


def _kept(name: str, old: Weight, arrays: Mapping[str, Array], where: str) -> Weight:
    fit = fitted(arrays.get(name, old.source), old.shape, old.dtype)
    if isinstance(fit, str):
        raise InputError("GT0618", f"{name} {fit}", where=where)
    return weight(fit)


def _by_arrays(module: Module, arrays: Mapping[str, Array], where: str) -> dict[str, Array]:
    """The arrays by the names that they have in the graph: complex ones in parts, tied ones once.

    Raises InputError GT0618 if two tied ones differ.
    """
    out = dict(arrays)
    for name, parts in map(parts_of, module.meta.get("state_dict", ())):
        pieces = split(name, arrays[name], len(parts), "GT0618", where) if name in arrays else []
        for part, x in zip(parts, pieces, strict=False):
            if part in out and not np.array_equal(out[part], x, equal_nan=True):
                raise InputError("GT0618", f"{name} has other numbers than {part}, to which it is "
                                           f"tied", where=where)
            out[part] = x
    return out


def parts_of(entry: str | Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """An entry of `meta["state_dict"]`: torch's name, and the arrays of the graph that hold it."""
    return (entry, (entry,)) if isinstance(entry, str) else (entry[0], tuple(entry[1:]))


def state_dict(module: Module, constants: Mapping[Value, Weight], state: Mapping[str, bool]) -> (
        tuple[dict[str, list[str]], dict[str, Weight]]):
    """What a checkpoint of the model has: by torch's names the arrays that hold each, two for a
    complex array; and the arrays that training does not change.

    `state` has the names of the training's state, and whether each is the model's. A source that
    is not torch has the latter alone. Of complex128, which safetensors lacks, each part is one.
    """
    names = value_names(module.graph)
    every = {names[v].lstrip("@"): w for v, w in constants.items()} | dict(module.kept)
    model: dict[str, list[str]] = {}
    for name, parts in map(parts_of, module.meta.get("state_dict", ())):
        kinds = {every[p].dtype for p in parts if p in every}
        if len(parts) > 1 and kinds != {dtypes.float32}:
            model |= {p: [p] for p in parts}
        else:
            model[name] = list(parts)
    fixed = {n: w for n, w in every.items() if n not in state}
    model = {n: parts for n, parts in model.items() if all(p in state or p in fixed for p in parts)}
    held = {p for parts in model.values() for p in parts}
    model |= {n: [n] for n, trained in state.items() if trained and n not in held}
    return model, {p: fixed[p] for p in sorted(held) if p in fixed}
