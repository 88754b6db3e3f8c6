"""What a template touches: areas of memory behind its pointers, rows that its hook is called with,
and when it does so. Its macros are numbers here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphtool.dtypes import DType, float32


@dataclass(frozen=True, slots=True)
class Area:
    """The elements that a template reads or writes from a pointer on.

    `strides` is None for an array without gaps, `at` has the extents of the pointer's arguments,
    but not of the thread that memory belongs to.
    `dtype` is that of the elements, None where any will do. `aligned`: the C reads whole vectors
    there, so it starts at a multiple of a vector's size. `decides`: the data there decide what else
    is touched, so they must be constants, which `Contract.tables` looks at. `writes`: the C
    writes there, though the pointer's row does not say so.
    """

    pointer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    at: tuple[int, ...] = ()
    dtype: DType | None = float32
    aligned: bool = False
    decides: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The extents of the indices for which a template calls its hook."""

    extents: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """When a template touches its operand and its results: in steps that follow each other, each
    of which reads before it writes.

    `reads` has the last step that reads each element of the pointer's area, `writes` the step in
    which the hook is called with each element of its rows; both broadcast to their shapes.
    """

    pointer: str
    reads: np.ndarray[Any, Any]
    writes: np.ndarray[Any, Any]


class Sizes(Protocol):
    """A use of a template whose macros are numbers, be it to check it or to run it."""

    @property
    def lanes(self) -> int:
        """Floats of a vector."""

    def get(self, macro: str, /) -> Any:
        """A macro's value, or its default."""

    def sizes(self, macros: str, /) -> list[Any]:
        """The values of several macros, whose names stand with blanks between."""

    def has(self, name: str, /) -> bool:
        """Whether a pointer or macro was given."""


class Numbers(Sizes, Protocol):
    """A use of a template that is checked."""

    def need(self, condition: bool, what: str) -> None:
        """Refuses the template unless the condition holds, which `what` says in words."""
