"""Types of StableHLO: `tensor<2x?xf32>` as a `Kind`, functions from kinds to kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_TENSOR = re.compile(r"tensor<\s*((?:(?:\d+|\?)\s*x\s*)*)([^,]*?)\s*(?:,.*)?>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a value: element type as MLIR writes it, and sizes; None is an open size.

    What is not a tensor has its whole text as `element` and no `shape`.
    """

    element: str
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return self.element
        sizes = "".join("?x" if d is None else f"{d}x" for d in self.shape)
        return f"tensor<{sizes}{self.element}>"


class Signature(NamedTuple):
    """The types of operands and of results, as written behind an operation."""

    operands: tuple[Kind, ...]
    results: tuple[Kind, ...]


def read_kind(text: str) -> Kind:
    """The type that a token says."""
    found = _TENSOR.fullmatch(text)
    if found is None:
        return Kind(text, None)
    sizes = [d.strip() for d in found[1].split("x")[:-1]]
    return Kind(found[2], tuple(None if d == "?" else int(d) for d in sizes))
