"""What the `onnx` package knows about an operator, as plain data that is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx

_OPTION = onnx.defs.OpSchema.FormalParameterOption


@dataclass(frozen=True)
class FormalParameter:
    """One formal input or output. `kind` names its type; the last may stand for `many`, which may
    be `varied` in type."""

    name: str
    required: bool
    types: frozenset[str]
    kind: str
    many: bool
    varied: bool


@dataclass(frozen=True)
class Operator:
    """An operator in one opset: arity, parameters, and by name the type of each attribute."""

    since: int
    deprecated: bool
    inputs: tuple[FormalParameter, ...]
    outputs: tuple[FormalParameter, ...]
    input_counts: tuple[int, int]
    output_counts: tuple[int, int]
    attributes: dict[str, int]
    needed: tuple[str, ...]


def plain_domain(domain: str) -> str:
    """The domain's name; `ai.onnx` and the empty name are one domain."""
    return "" if domain == "ai.onnx" else domain


def schema(domain: str, name: str, version: int) -> Any:
    """The schema object of the operator in this opset, or None."""
    try:
        return onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def operator(domain: str, name: str, version: int) -> Operator | None:
    """The operator in this opset, or None if `onnx` has none."""
    s = schema(domain, name, version)
    if s is None:
        return None
    attributes = s.attributes
    return Operator(
        s.since_version, s.deprecated, tuple(map(_parameter, s.inputs)),
        tuple(map(_parameter, s.outputs)), (s.min_input, s.max_input),
        (s.min_output, s.max_output), {k: int(a.type) for k, a in attributes.items()},
        tuple(k for k, a in attributes.items() if a.required))


def _parameter(p: Any) -> FormalParameter:
    many = p.option == _OPTION.Variadic
    return FormalParameter(p.name, p.option == _OPTION.Single, frozenset(p.types), p.type_str, many,
                           many and not p.is_homogeneous)


@cache
def readable(domain: str, name: str, version: int) -> int:
    """The opset by which an operator is read in a model of this opset: its first one, if that is
    later, and the last one before it was removed."""
    known = operator(domain, name, version)
    if known is None:
        return max(version, first_version(domain, name) or version)
    return known.since - 1 if known.deprecated else version


def version_of(node: Any, opsets: Mapping[str, int]) -> int:
    """The opset version for reading a node, given the model's versions by domain; 1 if it has
    none."""
    domain = plain_domain(node.domain)
    return readable(domain, node.op_type, opsets.get(domain, 1))


@cache
def latest(domain: str, name: str) -> Operator | None:
    """The operator as its last version that was not removed has it, or None if `onnx` has none."""
    newest = onnx.defs.onnx_opset_version()
    return operator(domain, name, readable(domain, name, newest))


@cache
def domains() -> frozenset[str]:
    """The domains whose operators `onnx` defines."""
    return frozenset(s.domain for s in onnx.defs.get_all_schemas())


@cache
def first_version(domain: str, name: str) -> int | None:
    """The first opset that has the operator, or None."""
    versions = [s.since_version for s in onnx.defs.get_all_schemas_with_history()
                if s.domain == domain and s.name == name]
    return min(versions, default=None)
