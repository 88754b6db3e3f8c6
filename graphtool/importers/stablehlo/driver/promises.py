"""What a program asserts of its open sizes: equal sizes, steps and bounds, for the next round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from graphtool.importers.assumptions import Facts
from graphtool.importers.stablehlo.driver.values import Asked
from graphtool.symbolic import Dim, Poly, dim_of, maximum, symbols

Bound = tuple[int | None, int | None]


@dataclass
class Promises:
    """Bounds of open sizes, and pairs of sizes that must be equal, as a program asserts them."""

    bounds: dict[str, Bound] = field(default_factory=dict)
    pairs: list[tuple[Dim, Dim]] = field(default_factory=list)

    def keep(self, asked: Asked) -> bool:
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
