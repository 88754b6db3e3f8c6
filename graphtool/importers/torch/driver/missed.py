"""Collects everything in a program that cannot be imported, so that one error lists all of it."""

from __future__ import annotations

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.importers.torch.driver import provenance
from graphtool.importers.torch.driver.captured import Call


class Missed:
    """(name, reason) → source places; true if it is not empty."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, str], list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.places)

    def add(self, call: Call, reason: str, name: str = "") -> None:
        """Adds a call, under `name` or the name of its target."""
        self.places.setdefault((name or call.target, reason), []).append(
            provenance.describe(call.place))

    def at_boundary(self, name: str, reason: str) -> None:
        """Adds an input or an output, which has no source place."""
        self.places[name, reason] = [""]

    def take(self, inner: Missed) -> None:
        """Adds everything that an inner graph has collected."""
        for key, places in inner.places.items():
            self.places.setdefault(key, []).extend(places)

    def check(self) -> None:
        """Raises UnsupportedError GT1101 with all items if there are any."""
        if not self:
            return
        items = tuple(Unsupported(name, reason, tuple(places))
                      for (name, reason), places in self.places.items())
        count = sum(len(i.places) for i in items)
        raise UnsupportedError("GT1101", f"{count} call{'s' * (count > 1)} cannot be imported "
                                         "from torch", items,
                               hint="write them with other torch functions, or leave this part "
                                    "of the model out of the export")
