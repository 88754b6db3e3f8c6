"""Reports on a graph that plug-ins add: `show --report NAME` prints one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from graphtool.ir.graph import Module


@dataclass(frozen=True, slots=True)
class Report:
    """A report on a graph: `of` makes it, `lines` are its text. Its `type` is a msgspec.Struct,
    whose JSON `--json` prints and whose schema `graphtool schema NAME` does."""

    name: str
    type: type
    of: Callable[[Module], Any]
    lines: Callable[[Any], Iterable[str]]


REPORTS: dict[str, Report] = {}
