"""What the tables of forms of the exporters share: how a form enters a table and how it declines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from graphtool.errors import Signal

Form = Callable[..., Any]
F = TypeVar("F", bound=Form)


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
