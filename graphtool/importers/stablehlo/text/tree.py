"""What the parser makes: types, operations in blocks, blocks in regions, functions in a program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# ---- types --------------------------------------------------------------------------------------

_SIZES = re.compile(r"(?:(?:\d+|\?)\s*x\s*)*")


@dataclass(frozen=True, slots=True)
class MlirType:
    """The type of a value: element type as MLIR writes it, and sizes; None is an open size.

    What is not a tensor has its whole text as `element` and no `shape`. `bounds` is the text
    behind the element type: the bounds of open sizes, or another dialect's remark.
    """

    element: str
    shape: tuple[int | None, ...] | None
    bounds: str = ""

    def __str__(self) -> str:
        if self.shape is None:
            return self.element
        sizes = "".join("?x" if d is None else f"{d}x" for d in self.shape)
        behind = f", {self.bounds}" if self.bounds else ""
        return f"tensor<{sizes}{self.element}{behind}>"


class Signature(NamedTuple):
    """The types of operands and of results, as written behind an operation."""

    operands: tuple[MlirType, ...]
    results: tuple[MlirType, ...]


def read_kind(text: str) -> MlirType:
    """The type that a token says."""
    if not text.startswith("tensor<"):
        return MlirType(text, None)
    inside = text[7:-1].strip()
    match = _SIZES.match(inside)
    assert match is not None
    sizes = [d.strip() for d in match[0].split("x")[:-1]]
    element, *behind = split(inside[match.end():])
    return MlirType(element, tuple(None if d == "?" else int(d) for d in sizes), ", ".join(behind))


def members(kind: MlirType) -> tuple[MlirType, ...] | None:
    """The types in a tuple's type; None for another type."""
    if not kind.element.startswith("tuple<"):
        return None
    return tuple(read_kind(t) for t in split(kind.element[6:-1]) if t)


def split(text: str) -> list[str]:
    """The parts of a list between commas that stand in no brackets."""
    return list(_parts(text))


def _parts(text: str) -> Iterator[str]:
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c in "<{[(") - (c in "}])" or (c == ">" and text[i - 1] != "-"))
        if c == "," and not depth:
            yield text[start:i].strip()
            start = i + 1
    yield text[start:].strip()


# ---- operations, blocks, programs ---------------------------------------------------------------

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
    kind: MlirType
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
class MlirModule:
    """A module: its functions by name, its attributes, and the locations that have an alias."""

    name: str
    attrs: Mapping[str, Any]
    functions: Mapping[str, Function]
    origins: Mapping[str, Origin]
    text: str
