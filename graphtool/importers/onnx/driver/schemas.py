"""What the `onnx` package knows about an operator, as plain data that is read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx

_OPTION = onnx.defs.OpSchema.FormalParameterOption


@dataclass(frozen=True)
class Parameter:
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
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    input_counts: tuple[int, int]
    output_counts: tuple[int, int]
    attributes: dict[str, int]
    needed: tuple[str, ...]


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


def _parameter(p: Any) -> Parameter:
    many = p.option == _OPTION.Variadic
    return Parameter(p.name, p.option == _OPTION.Single, frozenset(p.types), p.type_str, many,
                     many and not p.is_homogeneous)


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
