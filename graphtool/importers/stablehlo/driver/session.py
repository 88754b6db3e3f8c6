"""The state that all parts of one import share, and the places that its messages name: the
line of Python that JAX recorded, and its name scopes."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from graphtool.errors import InputError, Unsupported
from graphtool.front import Front, Refused
from graphtool.front.assumptions import Bounds, Facts, SizeKnowledge
from graphtool.importers.limits import Limits
from graphtool.importers.stablehlo.text.reader import fault
from graphtool.importers.stablehlo.text.tree import MlirModule, Operation, Origin
from graphtool.ir.graph import Location, Value
from graphtool.ir.requires import EXPECTED
from graphtool.symbolic import Condition, Dim, Poly, dim_of, maximum, symbols

# ---- places -------------------------------------------------------------------------------------

_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_MADE = re.compile(r"while|body|cond|scan|branch_\d+_fun|closed_call|checkpoint|jit|pjit|vmap"
                   r"|rematted_computation|custom_[jv]+p_call\w*")
_DEPTH = 200


class OperationLocations:
    """The table of source locations, filled as operations refer to it."""

    def __init__(self, origins: Mapping[str, Origin]) -> None:
        self.origins, self.table = origins, dict[str, Location]()

    def key(self, origin: Origin | None) -> str:
        """The key of an origin's Python line, added to the table; "" if it has none."""
        location = self._line(origin, "", 0)
        if location is None:
            return ""
        path, line, function = location
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
            if line := self._line(inner, name, depth + 1):
                return line
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


# ---- the state ----------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class BoundaryNames:
    """What the caller knows of the boundary: names of inputs and outputs in order, names of the
    inputs' open sizes, and the function; empty where the text itself says them."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    sizes: Sequence[Sequence[str | int]] = ()
    function: str = ""


# ---- what a program asserts of its open sizes, for the next round -------------------------------

Bound = tuple[int | None, int | None]


@dataclass
class Promises:
    """Bounds of open sizes, and pairs of sizes that must be equal, as a program asserts them."""

    bounds: dict[str, Bound] = field(default_factory=dict)
    pairs: list[tuple[Dim, Dim]] = field(default_factory=list)

    def keep(self, asked: Condition) -> bool:
        """Record that the comparison holds; False if it is of a kind that cannot be recorded."""
        match asked.sign:
            case "==":
                self.pairs.append((asked.a, asked.b))
            case "<" | "<=":
                low = asked.a + 1 if asked.sign == "<" else asked.a
                if not self._bounded(asked.b - low):
                    self.pairs.append((maximum(low, asked.b), asked.b))
            case _:
                return False
        return True

    def _bounded(self, d: Dim) -> bool:
        """Record 0 <= d as a bound of the one symbol in it, if it is ±symbol + number."""
        free = symbols(d) if isinstance(d, Poly) else ()
        if len(free) != 1:
            return False
        (s,) = free
        below, above = d - dim_of(s), d + dim_of(s)
        low, high = self.bounds.get(s.name, (None, None))
        if isinstance(below, int):  # 0 <= s + below
            low = -below if low is None else max(low, -below)
        elif isinstance(above, int):  # 0 <= above - s
            high = above if high is None else min(high, above)
        else:
            return False
        self.bounds[s.name] = low, high
        return True

    def better(self, facts: Facts) -> Facts:
        """The facts with these bounds."""
        merged = dict(facts.bounds)
        for name, (low, high) in self.bounds.items():
            lo, hi = merged.get(name, (None, None))
            lows = [n for n in (lo, low) if n is not None]
            highs = [n for n in (hi, high) if n is not None]
            merged[name] = max(lows, default=None), min(highs, default=None)
        return replace(facts, bounds=merged)


# ---- the session --------------------------------------------------------------------------------

class Session:
    """One import: the program, what is known of sizes, the builder, and what was refused."""

    def __init__(self, program: MlirModule, limits: Limits, facts: Facts,
                 dynamic: Mapping[str, Bounds], names: BoundaryNames) -> None:
        self.program, self.limits, self.dynamic, self.names = program, limits, dynamic, names
        self.started, self.visited, self.depth = time.monotonic(), 0, 0
        self.places = OperationLocations(program.origins)
        self.knowledge = SizeKnowledge(facts)
        self.builder = Front(self.knowledge)
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
            error.within(self.places.table[key].at)
        return error


def title(op: Operation) -> str:
    """The operation's name for a message; that of a custom call has its target."""
    target = op.attrs.get("call_target_name")
    return f"{op.name} @{target}" if target else op.name
