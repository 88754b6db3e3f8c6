"""Quantised values: stored integers, and what they stand for: (stored − zero) · scale."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from graphtool.importers.stablehlo.text.types import split

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
    found = _TYPE.fullmatch(element)
    if found is None:
        return None
    head, *behind = split(found[1])
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
