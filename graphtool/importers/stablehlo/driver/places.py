"""Where an operation came from: the line of Python that JAX recorded, and its name scopes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphtool.importers.stablehlo.text.tree import Origin
from graphtool.ir.graph import Location

_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_MADE = re.compile(r"while|body|cond|scan|branch_\d+_fun|closed_call|checkpoint|jit|pjit|vmap"
                   r"|rematted_computation|custom_[jv]+p_call\w*")
_DEPTH = 200


class Places:
    """The table of source locations, filled as operations refer to it."""

    def __init__(self, origins: Mapping[str, Origin]) -> None:
        self.origins, self.table = origins, dict[str, Location]()

    def key(self, origin: Origin | None) -> str:
        """The key of an origin's Python line, added to the table; "" if it has none."""
        found = self._line(origin, "", 0)
        if found is None:
            return ""
        path, line, function = found
        place = Location(f"{path}:{line} {function}".rstrip())
        key = f"{path}:{line}"
        if self.table.get(key, place) != place:
            key = place.at
        self.table[key] = place
        return key

    def scope(self, origin: Origin | None) -> str:
        """The scopes that the author named (`jax.named_scope`), joined by dots."""
        o, depth = self._resolved(origin), 0
        while o is not None and o.kind == "call" and depth < _DEPTH:
            o, depth = self._resolved(o.inner[0]), depth + 1
        if o is None or o.kind != "name" or "/" not in o.text:
            return ""
        parts = [p for p in o.text.split("/")[:-1]
                 if p.isidentifier() and not _MADE.fullmatch(p)]
        return ".".join(parts)

    def _resolved(self, origin: Origin | None) -> Origin | None:
        depth = 0
        while origin is not None and origin.kind == "alias" and depth < _DEPTH:
            origin, depth = self.origins.get(origin.text), depth + 1
        return origin

    def _line(self, origin: Origin | None, function: str, depth: int
              ) -> tuple[str, int, str] | None:
        """File, line and function of the innermost frame that has a file."""
        o = self._resolved(origin)
        if o is None or depth > _DEPTH:
            return None
        if o.kind == "file":
            below = _PACKAGES.sub("", o.text).replace("\\", "/")
            if re.match(r"/|[A-Za-z]:", below):
                below = below.rpartition("/")[2]
            return below, o.line, function
        for inner in o.inner:
            name = o.text if o.kind == "name" and "/" not in o.text else function
            if found := self._line(inner, name, depth + 1):
                return found
        return None


def argument_name(origin: Origin | None) -> str:
    """The path that JAX gives an argument, `p['w1']`, as a name: `p.w1`; "" if it gives none."""
    if origin is None or origin.kind != "name":
        return ""
    return path_name(origin.text)


def path_name(path: str) -> str:
    """A path in a tree, `result[0]['loss'].x`, as a name: `result.0.loss.x`."""
    dotted = re.sub(r"\[(?:<flat index )?['\"]?([^\]'\">]*)['\"]?>?\]", r".\1", path)
    return dotted.strip(".").replace("..", ".")
