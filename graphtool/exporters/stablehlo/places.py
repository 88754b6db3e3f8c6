"""Our source locations as locations of MLIR, collected in aliases behind the module."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphtool.escaping import mlir_string
from graphtool.ir.graph import Location

_LINE = re.compile(r"(?P<file>\S.*):(?P<line>\d+)(?: (?P<function>.*))?")


class Places:
    """The table of aliases `#loc1`, filled as lines refer to it."""

    def __init__(self, locations: Mapping[str, Location]) -> None:
        self.locations = locations
        self.aliases: dict[str, str] = {}

    def text(self, key: str) -> str:
        """The place of a node for a message; "" if it has none."""
        found = self.locations.get(key)
        return f"{found.at} {found.text}".strip() if found else ""

    def suffix(self, key: str) -> str:
        """` loc(#loc1)` behind an operation; "" for a node without a place."""
        found = self.locations.get(key)
        if found is None:
            return ""
        text = _location(found.at)
        if text not in self.aliases:
            self.aliases[text] = f"#loc{len(self.aliases) + 1}"
        return f" loc({self.aliases[text]})"

    def definitions(self) -> list[str]:
        """The lines that define the aliases."""
        return [f"{alias} = loc({text})" for text, alias in self.aliases.items()]


def _location(at: str) -> str:
    """`"MLP.forward"("mlp.py":9:0)` for `mlp.py:9 MLP.forward`; anything else is a name."""
    found = _LINE.fullmatch(at)
    if found is None:
        return mlir_string(at)
    line = f'{mlir_string(found["file"])}:{found["line"]}:0'
    return f'{mlir_string(found["function"])}({line})' if found["function"] else line
