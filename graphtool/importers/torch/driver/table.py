"""The table of handlers: ATen op → a function that says it in our ops.

A handler's signature is the ATen schema: the same arguments, in order, with the same defaults,
after the context. A name without an overload serves all overloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.errors import InternalError

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}


def aten(*names: str, namespace: str = "aten") -> Callable[[Handler], Handler]:
    """Declare the decorated function as the handler of `namespace.name` for each name."""
    def declare(handler: Handler) -> Handler:
        for name in names:
            key = f"{namespace}.{name}"
            if key in HANDLERS:
                raise InternalError("GT7201", f"{key} has two handlers")
            HANDLERS[key] = handler
        return handler
    return declare


def handler(target: str) -> Handler | None:
    """The handler of `aten.add.Tensor`: of that overload, else of the op."""
    return HANDLERS.get(target) or HANDLERS.get(target.rpartition(".")[0])
