"""The table of handlers: one function for each operation.

A handler's first parameter is the Context. Its other positional parameters are the operands; its
keyword-only parameters are the attributes that have a meaning here, under their names in the
generic form. An attribute that only speaks of speed or of placement stands in `IGNORED`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphtool.errors import InternalError

IGNORED = frozenset((
    "precision_config", "indices_are_sorted", "unique_indices", "algorithm", "result_accuracy",
    "is_host_transfer", "compare_type", "is_stable", "has_side_effect", "api_version", "sharding",
    "version", "known_nonnegative"))


@dataclass(frozen=True)
class Handler:
    """The handler of one operation. An `elementwise` one may run on operands of any equal shape,
    so it may occur in the body of a reduction. `attrs` says which attributes have no default; with
    `others` it allows any further ones."""

    name: str
    fn: Callable[..., Any]
    elementwise: bool = False
    attrs: dict[str, bool] = field(default_factory=dict)
    least: int = 0
    most: int = 0
    others: bool = False


_MANY = 1 << 30
HANDLERS: dict[str, Handler] = {}
NODE = "graphtool.node"
NODES: dict[str, Callable[..., Any]] = {}
"""Handlers for operations that our exporter marks as a node: the mark is read as that node, and not
simplified."""


def stablehlo(*names: str, elementwise: bool = False) -> Callable[..., Any]:
    """A decorator that registers a function as the handler of these operations. A name without a
    dialect is one of StableHLO."""
    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            add(name, fn, elementwise)
        return fn
    return declare


def node(*names: str) -> Callable[..., Any]:
    """A decorator that registers a function as the handler of these operations where they are
    marked as nodes."""
    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        NODES.update((f"stablehlo.{name}", fn) for name in names)
        return fn
    return declare


def add(name: str, fn: Callable[..., Any], elementwise: bool = False) -> None:
    """Register a handler by a plain call, for operations that are rows of a table."""
    full = name if "." in name or name in ("call", "return") else f"stablehlo.{name}"
    if full in HANDLERS:
        raise InternalError("GT7201", f"{full} has two handlers")
    parameters = list(inspect.signature(fn).parameters.values())[1:]
    attrs = {p.name: p.default is p.empty for p in parameters if p.kind is p.KEYWORD_ONLY}
    operands = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    HANDLERS[full] = Handler(full, fn, elementwise, attrs,
                             sum(p.default is p.empty for p in operands),
                             _MANY if several else len(operands),
                             any(p.kind is p.VAR_KEYWORD for p in parameters))
