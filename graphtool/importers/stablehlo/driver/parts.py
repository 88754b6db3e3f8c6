"""Values that are several tensors, or that stand for others: complex numbers, tuples, tokens as
nothing, quantised integers.

A graph has tensors of numbers only. `flat` and `joined` go from a value of the text to its tensors
and back; control flow and bodies of reductions carry the tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from graphtool.front import regions
from graphtool.front.complex import Complex
from graphtool.importers.stablehlo.text.tree import MlirType, members, split

TOKEN = object()  # a value that only orders operations
_TOKENS = ("!stablehlo.token", "!mhlo.token")


@dataclass(frozen=True, slots=True)
class ValueTuple:
    """A tuple of values."""

    members: tuple[Any, ...]


PAIRED: dict[str, Callable[..., Any]] = {}
"""The handlers of operations with a complex operand or result, filled by their family."""


class ComplexCaptures(regions.OuterNames):
    """The names around a region; the parts of a complex number or of a tuple are brought each."""

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value."""
        match x:
            case Complex():
                return x.each(self.bring)
            case Quantised(stored, scale):
                return Quantised(self.bring(stored), scale)
            case ValueTuple(inner):
                return ValueTuple(tuple(map(self.bring, inner)))
            case _:
                return super().bring(x)


def is_complex(kind: MlirType) -> bool:
    """Whether a type has complex elements."""
    return kind.element.startswith("complex<") and kind.shape is not None


def real_kind(kind: MlirType) -> MlirType:
    """The type of the parts of a complex value; another type as it is."""
    return MlirType(kind.element[8:-1].strip(), kind.shape) if is_complex(kind) else kind


def is_token(kind: MlirType) -> bool:
    """Whether a value of the type only orders operations."""
    return kind.element in _TOKENS


def leaves(kind: MlirType, name: str = "") -> list[tuple[str, MlirType]]:
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
    if scale and kind.shape is not None:
        kind = MlirType(scale.storage, kind.shape)
    return [(name, kind)]


def flat(xs: Iterable[Any]) -> list[Any]:
    """The tensors of these values."""
    return [part for x in xs for part in _parts(x)]


def _parts(x: Any) -> Sequence[Any]:
    match x:
        case Complex():
            return x.parts
        case ValueTuple(inner):
            return flat(inner)
        case Quantised():
            return (x.stored,)
    return () if x is TOKEN else (x,)


def joined(kinds: Iterable[MlirType], parts: Iterable[Any]) -> list[Any]:
    """The values of these types that have these tensors."""
    rest = iter(parts)
    values = [_value(k, rest) for k in kinds]
    if next(rest, None) is not None:
        raise ValueError("more values than types")
    return values


def _value(kind: MlirType, rest: Iterator[Any]) -> Any:
    if is_token(kind):
        return TOKEN
    inner = members(kind)
    if inner is not None:
        return ValueTuple(tuple(_value(k, rest) for k in inner))
    if is_complex(kind):
        return Complex(_next(rest), _next(rest))
    scale = read_quantised(kind.element)
    return Quantised(_next(rest), scale) if scale else _next(rest)


def _next(rest: Iterator[Any]) -> Any:
    for x in rest:
        return x
    raise ValueError("fewer values than types")


# ---- quantised values: stored integers that stand for (stored − zero) · scale -------------------

_TYPE = re.compile(r"!quant\.uniform<(.*)>", re.DOTALL)
_STORAGE = re.compile(r"(\w+)(?:<(-?\d+):(-?\d+)>)?")


@dataclass(frozen=True, slots=True)
class Scale:
    """A quantised element type: integers of type `storage` between `low` and `high`, in steps of
    `scales` around `zeros`: one each, or one for each index along `axis`. `expressed` is the type
    of the numbers that they stand for."""

    storage: str
    low: int
    high: int
    expressed: str
    axis: int | None
    scales: tuple[float, ...]
    zeros: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quantised:
    """A value of a quantised type: the integers, and how they are read."""

    stored: Any
    scale: Scale

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the integers."""
        return tuple(self.stored.shape)

    @property
    def dtype(self) -> Any:
        """The type of the integers."""
        return self.stored.dtype


@cache
def read_quantised(element: str) -> Scale | None:
    """The quantised type that an element type is; None for another, and where the scales are those
    of blocks."""
    match = _TYPE.fullmatch(element)
    if match is None:
        return None
    head, *behind = split(match[1])
    parts = _at_colons(head)
    storage = _STORAGE.fullmatch(parts[0])
    if storage is None or len(parts) not in (2, 3) or not behind or (
            len(parts) == 3 and not parts[2].isdecimal()):
        return None
    rows = split(behind[0].strip("{}")) if behind[0].startswith("{") else behind
    scales, zeros = zip(*(_step(row) for row in rows), strict=True)
    bits = int(re.sub(r"\D", "", storage[1]) or 8)
    unsigned = storage[1].startswith("u")
    low = 0 if unsigned else -1 << (bits - 1)
    return Scale(re.sub(r"^u(?=\d)", "ui", storage[1]), int(storage[2] or low),
                 int(storage[3] or low + (1 << bits) - 1), parts[1].strip(),
                 int(parts[2]) if len(parts) == 3 else None, scales, zeros)


def _at_colons(head: str) -> list[str]:
    """`i8<-127:127>:f32:1` in its three parts."""
    inside = head.partition("<")[2].partition(">")[0]
    hidden = inside.replace(":", ";")
    return [p.replace(";", ":") for p in head.replace(f"<{inside}>", f"<{hidden}>").split(":")]


def _step(row: str) -> tuple[float, int]:
    scale, _, zero = row.partition(":")
    return float(scale), int(zero or 0)
