"""The table of handlers: ATen op → a function that says it in our ops.

A handler's signature is the ATen schema: the same arguments, in order, with the same defaults,
after the context. A name without an overload serves all overloads. Some calls the converter treats
in a way of its own.
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


# ---- calls that are treated apart ---------------------------------------------------------------

# calls that check or annotate, and compute nothing
IGNORED = frozenset(f"aten.{name}" for name in (
    "_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
    "sym_constrain_range_for_size", "_functional_assert_async", "_functional_assert_scalar",
    "_linalg_check_errors"))
PROMISES = ("aten._assert_scalar", "aten._functional_assert_scalar")
SIZED = frozenset(f"aten.{name}" for name in (  # whose handlers define sizes
    "nonzero", "masked_select", "index", "_unsafe_index", "_unique2", "_unique",
    "unique_consecutive", "unique_dim", "repeat_interleave", "bincount"))
