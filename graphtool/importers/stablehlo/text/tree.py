"""What the parser makes: operations in blocks, blocks in regions, functions in a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphtool.importers.stablehlo.text.types import Kind, Signature


@dataclass(frozen=True, slots=True)
class Origin:
    """A location: `kind` is file, name, call, fused or alias; `text` the path, name or alias."""

    kind: str
    text: str = ""
    line: int = 0
    inner: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function or of a block: name, type, attributes and location."""

    name: str
    kind: Kind
    attrs: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """A block of operations with arguments; StableHLO has one block in a region."""

    arguments: tuple[Argument, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `results` are the names of its values, `%1#0` and `%1#1` for `%1:2`; `at` is
    its offset in the text. Attributes have the names of the generic form."""

    name: str
    operands: tuple[str, ...]
    attrs: Mapping[str, Any]
    regions: tuple[Region, ...]
    results: tuple[str, ...]
    signature: Signature
    at: int
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function; `body` is None if it is only declared."""

    name: str
    public: bool
    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    body: tuple[Operation, ...] | None
    at: int


@dataclass(frozen=True, slots=True)
class Program:
    """A module: its functions by name, its attributes, and the locations that have an alias."""

    name: str
    attrs: Mapping[str, Any]
    functions: Mapping[str, Function]
    origins: Mapping[str, Origin]
    text: str
