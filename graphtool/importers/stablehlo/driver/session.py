"""The state that all parts of one import share, and the places that its messages name."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphtool.errors import InputError, Unsupported
from graphtool.importers.assumptions import Assuming, Bounds, Facts, Found
from graphtool.importers.limits import Limits
from graphtool.importers.stablehlo.driver.places import Places
from graphtool.importers.stablehlo.driver.promises import Promises
from graphtool.importers.stablehlo.driver.registry import Refused
from graphtool.importers.stablehlo.text.lexer import fault
from graphtool.importers.stablehlo.text.tree import Operation, Program
from graphtool.ir.expected import EXPECTED
from graphtool.ir.graph import Value
from graphtool.ir.trace import Builder
from graphtool.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Names:
    """What the caller knows of the boundary: names of inputs and outputs in order, names of the
    inputs' open sizes, and the function; empty where the text itself says them."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    sizes: Sequence[Sequence[str | int]] = ()
    function: str = ""


class Session:
    """One import: the program, what is known of sizes, the builder, and what was refused."""

    def __init__(self, program: Program, limits: Limits, facts: Facts,
                 dynamic: Mapping[str, Bounds], names: Names) -> None:
        self.program, self.limits, self.dynamic, self.names = program, limits, dynamic, names
        self.started, self.visited, self.depth = time.monotonic(), 0, 0
        self.places = Places(program.origins)
        self.found = Found(facts)
        self.builder: Builder = Assuming(self.found)
        self.outer = self.builder
        self.promises = Promises()
        self.sizes: dict[str, Dim] = {}  # the open sizes of inputs and of our own nodes by name
        self.wanted: set[Value] = set()  # results of our own nodes: these stay, read or not
        self.expected: dict[str, Any] = {}  # what the program says must be true, by its place
        self.refusals: dict[tuple[str, str], list[str]] = {}

    def expect(self, op: Operation, holds: Any) -> None:
        """Add a truth value to the outputs: what the program says must be true. Raises Refused in
        a region, whose values are none of the program's."""
        if self.builder is not self.outer:
            raise Refused("an expectation in a region of another operation is not supported")
        line = self.line(op)
        name, n = f"{EXPECTED}line{line}", 2
        while name in self.expected:
            name, n = f"{EXPECTED}line{line}_{n}", n + 1
        self.expected[name] = holds

    def refuse(self, name: str, reason: str, place: str) -> None:
        """Record that an operation is not supported, with the reason and its place."""
        places = self.refusals.setdefault((name, reason), [])
        if place and place not in places:
            places.append(place)

    def unsupported(self) -> tuple[Unsupported, ...]:
        """Everything refused so far, one entry for each name and reason."""
        return tuple(Unsupported(name, reason, tuple(places))
                     for (name, reason), places in self.refusals.items())

    @cached_property
    def ends(self) -> list[int]:
        """The offsets at which lines end: to count them for each operation takes seconds where
        weights of megabytes stand in the text."""
        return [m.start() for m in re.finditer("\n", self.program.text)]

    def line(self, op: Operation) -> int:
        """The line of an operation, from 1."""
        return bisect_left(self.ends, op.at) + 1

    def place(self, op: Operation) -> str:
        """The place of an operation for a message: its line, and that of the Python source."""
        line = f"line {self.line(op)}"
        key = self.places.key(op.origin)
        return f"{self.places.table[key].at} ({line})" if key else line

    def fault(self, op: Operation, code: str, message: str, hint: str = "") -> InputError:
        """The error for a fault in an operation, with its line and column, to be raised."""
        error = fault(self.program.text, op.at, message, code, hint)
        if key := self.places.key(op.origin):
            error.where = f"{self.places.table[key].at}\n{error.where}"
        return error


def title(op: Operation) -> str:
    """The operation's name for a message; that of a custom call has its target."""
    target = op.attrs.get("call_target_name")
    return f"{op.name} @{target}" if target else op.name
