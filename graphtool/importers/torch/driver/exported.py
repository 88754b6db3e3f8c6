"""A live `torch.export` program as a `CapturedProgram`: its signature, weights, and names of
outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from graphtool.errors import InputError
from graphtool.importers.torch.driver.captured import (
    CallPlace,
    CapturedProgram,
    GraphInput,
    GraphOutput,
    NamedValue,
    least,
    output_name,
)
from graphtool.importers.torch.driver.exprs import conditions
from graphtool.importers.torch.driver.live import Nodes, bound, held
from graphtool.importers.torch.driver.provenance import clean_path
from graphtool.io.weights import Weight
from graphtool.symbolic import Symbol


def read(exported: ExportedProgram, wanted: Mapping[str, Symbol],
         renamed: Mapping[str, str], meta: Mapping[str, Any],
         places: Mapping[str, CallPlace]) -> CapturedProgram:
    """The CapturedProgram of a torch.export program. `renamed` maps torch's symbol names to the
    user's, `wanted` has their symbols; `places` maps file names of an fx replay to source places.
    """
    ranges = {str(k): (least(str(k), bound(v.lower)), bound(v.upper))
              for k, v in exported.range_constraints.items()}
    nodes = Nodes(exported.graph_module, ranges, renamed, wanted, places)
    calls = nodes.calls(exported.graph)
    sources = (*_sources(exported), *nodes.constants)
    program = CapturedProgram(sources, calls, _sinks(exported), nodes.types, nodes.symbols, meta)
    return replace(program, conditions=conditions(exported._guards_code or (), program))


def _sources(exported: ExportedProgram) -> tuple[GraphInput, ...]:
    signature, out = exported.graph_signature, []
    for spec in signature.input_specs:
        name = getattr(spec.arg, "name", "")
        match spec.kind:
            case InputKind.USER_INPUT:
                out.append(GraphInput(name, "user", name))
            case InputKind.PARAMETER:
                trained = exported.state_dict[spec.target].requires_grad
                out.append(GraphInput(name, "parameter", clean_path(spec.target or name),
                                      _weight(exported, spec.target), trained, str(spec.target)))
            case InputKind.BUFFER:
                out.append(GraphInput(name, "buffer", clean_path(spec.target or name),
                                      _weight(exported, spec.target),
                                      state=str(spec.target) if spec.persistent else ""))
            case InputKind.CONSTANT_TENSOR:
                out.append(GraphInput(name, "constant", clean_path(spec.target or name),
                                      _weight(exported, spec.target)))
            case InputKind.TOKEN:  # orders effects; calls stand in that order anyway
                continue
            case _:
                raise InputError("GT1106", f"inputs of the kind {spec.kind.name} are not "
                                           "supported", where=name)
    return tuple(out)


def _weight(program: ExportedProgram, name: str | None) -> Weight:
    tensor = program.state_dict.get(name or "")
    tensor = tensor if tensor is not None else program.constants.get(name or "")
    if not isinstance(tensor, torch.Tensor):
        raise InputError("GT1106", f"the constant {name!r} is not a tensor")
    return held(tensor)


def _sinks(exported: ExportedProgram) -> tuple[GraphOutput, ...]:
    signature = exported.graph_signature
    keys = {s.arg.name: clean_path(s.target or "") for s in signature.input_specs
            if s.kind in (InputKind.BUFFER, InputKind.PARAMETER)}
    by_target = {s.target: keys[s.arg.name] for s in signature.input_specs
                 if s.arg.name in keys}
    names = iter(_output_names(exported))
    out: list[GraphOutput] = []
    for spec in signature.output_specs:
        value = getattr(spec.arg, "name", None)
        match spec.kind:
            case OutputKind.USER_OUTPUT | OutputKind.LOSS_OUTPUT:
                name = next(names)
                constant = getattr(spec.arg, "value", None)
                if value is not None and not hasattr(spec.arg, "value"):
                    out.append(GraphOutput(NamedValue(value), "user", name))
                elif constant is not None and isinstance(constant, (int, float)):
                    out.append(GraphOutput(constant, "user", name))
            case OutputKind.BUFFER_MUTATION | OutputKind.PARAMETER_MUTATION:
                out.append(GraphOutput(NamedValue(str(value)), "state", by_target[spec.target]))
            case OutputKind.USER_INPUT_MUTATION:
                out.append(GraphOutput(NamedValue(str(value)), "state", str(spec.target)))
            case OutputKind.TOKEN:
                continue
            case _:
                raise InputError("GT1106", f"outputs of the kind {spec.kind.name} are not "
                                           "supported", where=str(value))
    return tuple(out)


def _output_names(exported: ExportedProgram) -> list[str]:
    spec = exported.call_spec.out_spec
    if spec is None:
        return []
    tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    names = {}
    for path, i in pytree.tree_flatten_with_path(tree)[0]:
        names[i] = output_name(tuple(_step(key) for key in path))
    return [names.get(i, f"output_{i}") for i in range(spec.num_leaves)]


def _step(key: Any) -> str | int:
    match key:
        case pytree.SequenceKey(idx=i):
            return int(i)
        case pytree.MappingKey(key=name) | pytree.GetAttrKey(name=name):
            return str(name)
        case _:
            return str(key).strip(".[]'")
