"""The operators that the generator knows: one function a kind, one row an operator.

Each function of a row adds one node or a few to a growing graph and raises Unfit where it cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.lab.fuzz.growing import Growing, Unfit

Grow = Callable[[Growing], Any]
ROWS: dict[str, Grow] = {}


def op(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function under the names; with several it gets the name as `op`."""
    def registered(grow: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            ROWS[name] = partial(grow, op=name) if len(names) > 1 else grow
        return grow
    return registered


def kinds(row: str, letters: str) -> dict[str, str]:
    """The same dtypes for each of the operators in `row`."""
    return dict.fromkeys(row.split(), letters)


def need(condition: bool) -> None:
    """Raises Unfit unless the condition holds."""
    if not condition:
        raise Unfit("the operands do not fit")
