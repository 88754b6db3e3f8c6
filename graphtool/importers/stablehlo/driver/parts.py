"""Values that are several tensors: complex numbers as pairs, tuples, tokens as nothing.

A graph has tensors of numbers only. `flat` and `joined` go from a value of the text to its tensors
and back; control flow and bodies of reductions carry the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphtool.importers.stablehlo.driver.quantised import Quantised, read_quantised
from graphtool.importers.stablehlo.text.types import Kind, members

TOKEN = object()  # a value that only orders operations
_TOKENS = ("!stablehlo.token", "!mhlo.token")


@dataclass(frozen=True, slots=True)
class Pair:
    """A complex value: its real and its imaginary part, values of one type."""

    real: Any
    imag: Any

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of either part."""
        return tuple(self.real.shape)


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple of values."""

    members: tuple[Any, ...]


PAIRED: dict[str, Callable[..., Any]] = {}
"""The handlers of operations with a complex operand or result, filled by their family."""


def is_complex(kind: Kind) -> bool:
    """Whether a type has complex elements."""
    return kind.element.startswith("complex<") and kind.shape is not None


def real_kind(kind: Kind) -> Kind:
    """The type of the parts of a complex value; another type as it is."""
    return Kind(kind.element[8:-1].strip(), kind.shape) if is_complex(kind) else kind


def is_token(kind: Kind) -> bool:
    """Whether a value of the type only orders operations."""
    return kind.element in _TOKENS


def leaves(kind: Kind, name: str = "") -> list[tuple[str, Kind]]:
    """The tensors that a value of this type is made of: their names, and types as graphs have
    them."""
    if is_token(kind):
        return []
    inner = members(kind)
    if inner is not None:
        return [leaf for i, k in enumerate(inner) for leaf in leaves(k, f"{name}.{i}")]
    if is_complex(kind):
        return [(f"{name}.real", real_kind(kind)), (f"{name}.imag", real_kind(kind))]
    scale = read_quantised(kind.element)
    return [(name, Kind(scale.storage, kind.shape) if scale and kind.shape is not None else kind)]


def flat(xs: Iterable[Any]) -> list[Any]:
    """The tensors of these values."""
    return [part for x in xs for part in _parts(x)]


def _parts(x: Any) -> Sequence[Any]:
    match x:
        case Pair(real, imag):
            return (real, imag)
        case Group(inner):
            return flat(inner)
        case Quantised():
            return (x.stored,)
    return () if x is TOKEN else (x,)


def joined(kinds: Iterable[Kind], parts: Iterable[Any]) -> list[Any]:
    """The values of these types that have these tensors."""
    rest = iter(parts)
    made = [_value(k, rest) for k in kinds]
    if next(rest, None) is not None:
        raise ValueError("more values than types")
    return made


def _value(kind: Kind, rest: Iterator[Any]) -> Any:
    if is_token(kind):
        return TOKEN
    inner = members(kind)
    if inner is not None:
        return Group(tuple(_value(k, rest) for k in inner))
    if is_complex(kind):
        return Pair(_next(rest), _next(rest))
    scale = read_quantised(kind.element)
    return Quantised(_next(rest), scale) if scale else _next(rest)


def _next(rest: Iterator[Any]) -> Any:
    for x in rest:
        return x
    raise ValueError("fewer values than types")
