"""A complex value as two real ones, and the table of what operations do with such pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphtool.importers.stablehlo.text.types import Kind


@dataclass(frozen=True, slots=True)
class Pair:
    """A complex value: its real and its imaginary part, values of one type."""

    real: Any
    imag: Any

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of either part."""
        return tuple(self.real.shape)


PAIRED: dict[str, Callable[..., Any]] = {}
"""The handlers of operations with a complex operand or result, filled by their family."""


def is_complex(kind: Kind) -> bool:
    """Whether a type has complex elements."""
    return kind.element.startswith("complex<") and kind.shape is not None


def real_kind(kind: Kind) -> Kind:
    """The type of the parts of a complex value; another type as it is."""
    return Kind(kind.element[8:-1].strip(), kind.shape) if is_complex(kind) else kind
