"""What the exporters' tables of forms share: the tensors that a form takes, how a form enters a
table, and how it declines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from graphtool.dtypes import DType
from graphtool.errors import Signal
from graphtool.ir.types import TensorType
from graphtool.symbolic import Dim

Form = Callable[..., Any]
F = TypeVar("F", bound=Form)


@dataclass(frozen=True)
class Ref:
    """One of our values: its name in the exported text and its type."""

    name: str
    type: TensorType

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape; sizes may be symbolic."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype


class Declined(Signal):
    """Raised by a form for what it cannot write; its text is the reason for the user."""


def into(table: dict[str, Form], names: tuple[str, ...]) -> Callable[[F], F]:
    """Register a function in the table as the form of the ops `names`."""
    def declare(fn: F) -> F:
        for name in names:
            table[name] = fn
        return fn
    return declare


def takes(condition: bool, reason: str = "") -> None:
    """Decline unless the condition holds."""
    if not condition:
        raise Declined(reason)
