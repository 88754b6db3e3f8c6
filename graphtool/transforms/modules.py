"""Transforms of modules: derivatives (`jvp`, `vjp`, `jacobian`) and many examples at once
(`vmap`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphtool import transforms
from graphtool.errors import InputError, UsageError, listed, near
from graphtool.ir.graph import Graph, Module, Value
from graphtool.ir.text import value_names
from graphtool.symbolic import Dim, Symbol, symbol_of
from graphtool.transforms import vmap as examples
from graphtool.transforms.training.state import renamed
from graphtool.transforms.training.wrt import check_hooks, selected


def jvp(module: Module, wrt: Sequence[str] = ("inputs",), bound: int | None = None) -> Module:
    """The module with an input `NAME.tangent` for each value of `wrt`, and `tangent.OUTPUT`
    after its outputs: the derivative along the tangents. `bound` is for loops that have no
    bound."""
    graph, values, outputs = _of(module, wrt, (), bound)
    return _derived(module, transforms.jvp(graph, values, list(outputs)),
                    [f"tangent.{n}" for n in outputs.values()])


def vjp(module: Module, wrt: Sequence[str] = ("inputs",), of: Sequence[str] = (),
        bound: int | None = None) -> Module:
    """The module with an input `OUTPUT.cotangent` for each output `of` (all of floats), and
    `cotangent.NAME` after its outputs for each value of `wrt`: the products of the cotangents with
    the Jacobians. Raises UsageError GT3037 for an unknown output."""
    graph, values, outputs = _of(module, wrt, of, bound)
    joint = transforms.vjp(graph, values, list(outputs))
    given = dict(zip(joint.inputs[len(graph.inputs):], outputs.values(), strict=True))
    joint = renamed(joint, {v: f"{n}.cotangent" for v, n in given.items()})
    return _derived(module, joint, [f"cotangent.{n}" for n in _names(graph, values)])


def jacobian(module: Module, wrt: Sequence[str] = ("inputs",), of: Sequence[str] = (),
             bound: int | None = None) -> Module:
    """The module with `jacobian.OUTPUT.NAME` after its outputs, for each output `of` (all of
    floats) and each value of `wrt`: the axes of the output, then those of the value. Raises
    UsageError GT3037 for an unknown output, InputError GT0646 for an open size."""
    graph, values, outputs = _of(module, wrt, of, bound)
    return _derived(module, transforms.jacobian(graph, values, list(outputs)), [
        f"jacobian.{n}.{x}" for n in outputs.values() for x in _names(graph, values)])


def _of(module: Module, wrt: Sequence[str], of: Sequence[str], bound: int | None) -> tuple[
        Graph, list[Value], dict[int, str]]:
    """The graph to differentiate, by what, and the names of which outputs by their places."""
    check_hooks(module)
    graph = transforms.lifted(module.graph)
    if bound is not None:
        graph = transforms.bounded(graph, bound)
    floats = {n: i for i, (n, v) in enumerate(zip(module.output_names, graph.outputs, strict=True))
              if v.type.dtype.is_float}
    for name in of:
        if name not in floats:
            raise UsageError("GT3037", f"there is no float output {name}", hint=near(
                name, floats, f"the float outputs are {listed(list(floats))}"))
    return graph, selected(graph, value_names(graph), wrt), {floats[n]: n for n in of or floats}


def _names(graph: Graph, values: Sequence[Value]) -> list[str]:
    names = value_names(graph)
    return [names[v].removeprefix("@") for v in values]


def _derived(module: Module, graph: Graph, names: Sequence[str]) -> Module:
    """The module with this graph, whose last outputs have these names."""
    return replace(module, graph=graph, donations=(),
                   output_names=(*module.output_names, *names))


def vmap(module: Module, in_axes: Mapping[str, int | None] | None = None,
         size: int | str = "examples") -> Module:
    """The module over `size` examples; size is a number or the name of a dimension.

    Each input has one more axis, axis 0 unless `in_axes` gives another (None: the input is the same
    for all examples); the outputs have it as axis 0. Raises InputError GT0622 for an axis that an
    input cannot have, UsageError GT3037 for unknown names.
    """
    names = value_names(module.graph)
    wanted = dict(in_axes or {})
    axes = []
    for v in module.graph.inputs:
        axis = wanted.pop(names[v], 0)
        if axis is not None and not -v.type.rank - 1 <= axis <= v.type.rank:
            raise InputError("GT0622", f"{names[v]} is {v.type}, its new axis cannot be axis "
                                       f"{axis}")
        axes.append(None if axis is None else axis % (v.type.rank + 1))
    if wanted:
        known = [names[v] for v in module.graph.inputs]
        raise UsageError("GT3037", f"there is no input {', '.join(wanted)}",
                         hint=near(next(iter(wanted)), known, f"the inputs are {listed(known)}"))
    if all(a is None for a in axes):
        raise InputError("GT0622", "no input has an axis of examples")
    symbols = dict(module.symbols)
    count: Dim = size if isinstance(size, int) else 0
    if isinstance(size, str):
        if size in symbols:
            raise UsageError("GT3037", f"the graph already has a dimension {size!r}",
                             hint="give another name, or a number: --size 8")
        symbols[size] = Symbol(size, 1, None)
        count = symbol_of(symbols[size])
    return replace(module, graph=examples.vmap(module.graph, axes, count), symbols=symbols,
                   donations=(), initial={})
