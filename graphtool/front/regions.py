"""The names that a region of control flow sees, and the outside values that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.ir.graph import Value
from graphtool.ir.trace import Builder, Tracer


class Captures(dict[str, Any]):
    """The names around a region. A value becomes an input of the region when it is first read;
    each importer says in `bring` what becomes of what else its names stand for."""

    def __init__(self, outer: Mapping[str, Any], builder: Builder) -> None:
        super().__init__()
        self.outer, self.builder = outer, builder
        self.taken: dict[Value, Tracer] = {}

    def __missing__(self, name: str) -> Any:
        found = self[name] = self.bring(self.outer[name])
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.outer

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value; what is no tensor stays as it is."""
        if not isinstance(x, Tracer):
            return x
        if x.value not in self.taken:
            self.taken[x.value] = self.builder.input(x.type, x.value.hint)
        return self.taken[x.value]
