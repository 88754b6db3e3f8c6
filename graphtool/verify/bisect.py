"""Which pass, and in it which rule, first changes what a graph computes.

The graph is evaluated after each pass. Within a pass that keeps a journal, a binary search over
the number of rules that may fire finds the first rule that changes the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from graphtool import interp, passes
from graphtool.ir.graph import Module
from graphtool.passes.arguments import PassCall
from graphtool.rewrite.engine import Fired, Journal
from graphtool.verify.compare import Difference, compare, worst

Array = np.ndarray[Any, Any]


class Guilty(msgspec.Struct):
    """The first pass after which the outputs differ, and the first of its rules that causes it."""

    number: int
    call: str
    rules: int
    rule: str
    matched: list[str]
    produced: str
    outputs: list[Difference]


class Bisection(msgspec.Struct):
    """`opt --bisect --json`; schemas/bisect.schema.json is made from it."""

    ok: bool
    passes: int
    guilty: Guilty | None


class Bisector:
    """A graph's outputs on some inputs, to be compared with those of its later forms."""

    def __init__(self, module: Module, inputs: Mapping[str, Array], atol: float | None,
                 rtol: float, supply: Mapping[str, Any]) -> None:
        self.inputs, self.atol, self.rtol, self.supply = inputs, atol, rtol, supply
        self.want = interp.run(module, inputs)

    def differences(self, module: Module) -> list[Difference]:
        """The outputs of the module against those of the original graph."""
        return compare(self.want, interp.run(module, self.inputs), self.atol, self.rtol)

    def same(self, module: Module) -> bool:
        """True if all outputs of the module are within tolerance."""
        return all(d.ok for d in self.differences(module))

    def after(self, module: Module, call: PassCall, limit: int | None = None) -> tuple[
            Module, Journal]:
        """(the module after a pass of which only the first `limit` rules fire, the pass's
        journal)."""
        journal = Journal(limit)
        return passes.run(module, [call], supply={**self.supply, "journal": journal}), journal


def bisect(module: Module, calls: Sequence[PassCall], inputs: Mapping[str, Array],
           atol: float | None, rtol: float, supply: Mapping[str, Any]) -> Bisection:
    """Run the passes one by one, and stop at the first after which the outputs differ."""
    at = Bisector(module, inputs, atol, rtol, supply)
    for number, call in enumerate(calls, 1):
        result, journal = at.after(module, call)
        if result.graph is not module.graph and not at.same(result):
            return Bisection(False, len(calls), _guilty(at, module, call, number, journal))
        module = result
    return Bisection(True, len(calls), None)


def _guilty(at: Bisector, module: Module, call: PassCall, number: int,
            journal: Journal) -> Guilty:
    fired = _first(at, module, call, len(journal)) if journal else None
    rows = at.differences(at.after(module, call)[0])
    if fired is None:
        return Guilty(number, str(call), len(journal), "", [], "", rows)
    return Guilty(number, str(call), len(journal), fired.rule, list(fired.matched),
                  fired.produced, rows)


def _first(at: Bisector, module: Module, call: PassCall, count: int) -> Fired:
    """The first of `count` rules after which the outputs differ, by binary search."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        if at.same(at.after(module, call, middle)[0]):
            good = middle
        else:
            bad = middle
    return at.after(module, call, bad)[1][bad - 1]


def bisect_lines(b: Bisection) -> list[str]:
    """The report as lines of text."""
    g = b.guilty
    if g is None:
        return [f"the outputs are the same after each of {b.passes} passes"]
    out = [f"the outputs differ after pass {g.number} of {b.passes}, {g.call}: {worst(g.outputs)}"]
    if g.rule:
        out += [f"  with the rule {g.rule}, one of {g.rules} that fired there",
                f"  it matched {', '.join(filter(None, g.matched))} and made {g.produced}"]
    return out
