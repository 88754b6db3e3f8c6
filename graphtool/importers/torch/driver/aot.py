"""A graph that AOTAutograd hands to a compiler as a `CapturedProgram`: plain inputs, no signature.

A result that is an input, a size or None needs no compiled code; `Output` tells these apart.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions
from torch._subclasses.fake_tensor import unset_fake_temporarily

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.importers.torch.driver.capture import without_kept
from graphtool.importers.torch.driver.captured import (
    CapturedProgram,
    GraphInput,
    GraphOutput,
    NamedValue,
    least,
)
from graphtool.importers.torch.driver.live import Nodes, array, bound
from graphtool.importers.torch.driver.settled import to_module
from graphtool.io.weights import weight
from graphtool.ir.graph import Module
from graphtool.symbolic import Dim, symbols


@dataclass(frozen=True, slots=True)
class Output:
    """One result of the graph: a library result by number, an input by number, or a size."""

    computed: int | None = None
    passed: int | None = None
    size: Dim | None = None
    strides: tuple[Dim, ...] | None = None  # where torch's layout is not the plain one


@dataclass(frozen=True, slots=True)
class CapturedModule:
    """A module and how to call it. `tensors`: the graph inputs that it takes, in its order;
    `sizes`: symbol → the input that holds it; `axes`: symbol → (input, axis) to read it from."""

    module: Module
    tensors: tuple[int, ...]
    sizes: Mapping[str, int]
    axes: Mapping[str, tuple[int, int]]
    outputs: tuple[Output, ...]


def decompositions() -> Any:
    """torch's decompositions to core ATen, without those of ops that we import whole.

    Resampling is decomposed: its gradient is then that of simple ops. Attention is not: torch's
    own decomposition leaves out what the gradient needs.
    """
    table, kept = core_aten_decompositions(), without_kept(core_aten_decompositions())
    return {op: fn for op, fn in table.items() if "flash_attention" not in str(op)
            and (op in kept or "upsample" in str(op))}


def captured(gm: fx.GraphModule, frozen: Mapping[int, torch.Tensor]) -> CapturedModule:
    """The module of a functional graph; inputs in `frozen` become constants.

    Raises UnsupportedError GT1101 with every call that cannot be imported.
    """
    with unset_fake_temporarily():  # constants are read as they are
        return _captured(gm, frozen)


def _captured(gm: fx.GraphModule, frozen: Mapping[int, torch.Tensor]) -> CapturedModule:
    holders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    nodes = Nodes(gm, _ranges(holders))
    calls = nodes.calls(gm.graph)
    place = {n.name: i for i, n in enumerate(holders)}
    is_tensor = [isinstance(n.meta.get("val"), torch.Tensor) for n in holders]
    sources = [GraphInput(n.name, "parameter", n.name, weight(array(frozen[i]))) if i in frozen else
               GraphInput(n.name, "user", n.name) for i, n in enumerate(holders)]
    sinks: list[GraphOutput] = []
    outputs = tuple(_output(nodes, x, place, sinks) for x in _results(gm))
    sizes, axes = _where_sizes_are(nodes, holders)
    program = CapturedProgram((*sources, *nodes.constants), calls, tuple(sinks), nodes.types,
                              nodes.symbols, {"source": "torch.compile"})
    tensors = tuple(i for i, t in enumerate(is_tensor) if t and i not in frozen)
    module = to_module(program)
    _need_sizes(module, outputs, (sizes.keys() | axes.keys()) - nodes.fresh.keys())
    return CapturedModule(module, tensors, sizes, axes, outputs)


def _need_sizes(module: Module, outputs: tuple[Output, ...], known: Container[str]) -> None:
    """Raises UnsupportedError GT1101 for results whose size depends on data: torch allocates them
    before the call. The backward graph has such sizes among its inputs."""
    graph = module.graph
    dims: list[Dim] = [d for v in (*graph.inputs, *graph.outputs) for d in v.type.shape]
    for group in outputs:
        dims += [*(group.strides or ()), *([] if group.size is None else [group.size])]
    late = sorted({s.name for d in dims for s in symbols(d) if s.name not in known})
    if late:
        raise UnsupportedError("GT1101", "the size of a tensor depends on the data", tuple(
            Unsupported(name, "torch.compile needs the sizes of all results before the call")
            for name in late))


def _ranges(holders: list[fx.Node]) -> dict[str, tuple[int | None, int | None]]:
    """The bounds of torch's symbols, from the environment that all sizes share."""
    dims = [d for n in holders if (v := n.meta.get("val")) is not None
            for d in (v.shape if isinstance(v, torch.Tensor) else (v,))
            if isinstance(d, torch.SymInt)]
    return {str(k): (least(str(k), bound(v.lower)), bound(v.upper))
            for d in dims[:1] for k, v in d.node.shape_env.var_to_range.items()}


def _results(gm: fx.GraphModule) -> tuple[Any, ...]:
    return tuple(next(n for n in gm.graph.nodes if n.op == "output").args[0])


def _output(nodes: Nodes, x: Any, place: Mapping[str, int], sinks: list[GraphOutput]) -> Output:
    match x:
        case None:
            return Output()
        case int():
            return Output(size=x)
        case fx.Node() if x.name in place:
            return Output(passed=place[x.name])
        case fx.Node() if isinstance(x.meta.get("val"), torch.SymInt | int):
            return Output(size=nodes.dim(x.meta["val"]))
    sinks.append(GraphOutput(NamedValue(x.name), "user", f"output_{len(sinks)}"))
    return Output(len(sinks) - 1, strides=_strides(nodes, x.meta.get("val")))


def _strides(nodes: Nodes, value: Any) -> tuple[Dim, ...] | None:
    if not isinstance(value, torch.Tensor) or value.is_contiguous():
        return None
    return tuple(nodes.dim(s) for s in value.stride())


def _where_sizes_are(nodes: Nodes, holders: list[fx.Node]) -> tuple[dict[str, int],
                                                                   dict[str, tuple[int, int]]]:
    sizes: dict[str, int] = {}
    axes: dict[str, tuple[int, int]] = {}
    for i, n in enumerate(holders):
        value = n.meta.get("val")
        if isinstance(value, torch.SymInt):
            sizes.setdefault(str(nodes.dim(value)), i)
        for axis, d in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(d, torch.SymInt):
                axes.setdefault(str(nodes.dim(d)), (i, axis))
    return sizes, axes
