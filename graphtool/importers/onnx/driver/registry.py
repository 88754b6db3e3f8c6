"""The table of handlers: one function for each ONNX operator, chosen by domain and opset version.

A handler's name is free. Its positional parameters are the operator's inputs (None for an omitted
one); its keyword-only parameters are the attributes with ONNX's own names and defaults. A parameter
called `ctx` receives the node's Context. Handlers never read protobuf.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Handler:
    """The handler of one operator, valid from opset `since` on.

    `fold` allows it to run on arrays at import; `sequences` allows inputs that are sequences.
    """

    name: str
    since: int
    fn: Callable[..., Any]
    fold: bool = True
    sequences: bool = False
    attrs: dict[str, str] = field(default_factory=dict)
    context: bool = False
    least: int = 0
    most: int = 0

    def wrong_kind(self, name: str, value: Any) -> bool:
        """Whether an attribute's value has another type than the handler declares."""
        kind = _KINDS.get(self.attrs[name].removesuffix(" | None"))
        return kind is not None and not isinstance(value, kind)

    def accepts(self, count: int) -> bool:
        """Whether the handler takes this number of inputs."""
        return self.least <= count <= self.most


_MANY = 1 << 30
_KINDS: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "str": str}
HANDLERS: dict[tuple[str, str], list[Handler]] = {}


def onnx_op(*names: str, since: int = 1, domain: str = "", fold: bool = True,
            sequences: bool = False) -> Callable[..., Any]:
    """A decorator that registers a function as the handler of `names` from opset `since` on."""
    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        add(names, fn, since, domain, fold, sequences)
        return fn
    return declare


def add(names: Iterable[str], fn: Callable[..., Any], since: int = 1, domain: str = "",
        fold: bool = True, sequences: bool = False) -> None:
    """Register a handler by a plain call, for operators that are rows of a table."""
    parameters = inspect.signature(fn).parameters.values()
    attrs = {p.name: str(p.annotation) for p in parameters if p.kind is p.KEYWORD_ONLY}
    context = attrs.pop("ctx", None) is not None
    inputs = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    least = sum(p.default is p.empty for p in inputs)
    for name in names:
        rows = HANDLERS.setdefault((domain, name), [])
        most = _MANY if several else len(inputs)
        rows.append(Handler(name, since, fn, fold, sequences, attrs, context, least, most))
        rows.sort(key=lambda h: h.since)


def find(domain: str, name: str, version: int) -> Handler | None:
    """The newest handler that is not newer than the model's opset, or None."""
    rows = HANDLERS.get((domain, name), [])
    return next((h for h in reversed(rows) if h.since <= version), None)
