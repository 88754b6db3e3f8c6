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
from graphtool.assume import numerics_of
from graphtool.ir.bind import uniquely_named
from graphtool.ir.graph import Module
from graphtool.passes.arguments import PassCall
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.rewrite.journal import Fired, Journal
from graphtool.verify.compare import Difference, compare, worst

Array = np.ndarray[Any, Any]


class Guilty(msgspec.Struct):
    """The first pass after which the outputs differ, and the application of a rule that causes it:
    the `application`th of `rules` in the pass, at the place `where`. `alone`: without this one
    application the pass is right."""

    number: int
    call: str
    rules: int
    rule: str
    matched: list[str]
    produced: str
    outputs: list[Difference]
    application: int = 0
    where: str = ""
    was: str = ""
    became: str = ""
    numerics: str = ""
    alone: bool = False


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

    def after(self, module: Module, call: PassCall, limit: int | None = None,
              without: tuple[str, str] | None = None) -> tuple[Module, Journal]:
        """(the module after a pass in which only the first `limit` rules fire, and the rule and
        value of `without` never; the pass's journal)."""
        journal = Journal(limit, without, texts=True)
        return passes.run(module, [call], supply={**self.supply, "journal": journal}), journal


def bisect(module: Module, calls: Sequence[PassCall], inputs: Mapping[str, Array],
           atol: float | None, rtol: float, supply: Mapping[str, Any]) -> Bisection:
    """Run the passes one by one, and stop at the first after which the outputs differ.

    Before each, all values get unique names, which identify an application."""
    at = Bisector(module, inputs, atol, rtol, supply)
    for number, call in enumerate(calls, 1):
        module = uniquely_named(module)
        result, journal = at.after(module, call)
        if result.graph is not module.graph and not at.same(result):
            return Bisection(False, len(calls), _guilty(at, module, call, number, journal))
        module = result
    return Bisection(True, len(calls), None)


def _guilty(at: Bisector, module: Module, call: PassCall, number: int,
            journal: Journal) -> Guilty:
    rows = at.differences(at.after(module, call)[0])
    if not journal:
        return Guilty(number, str(call), 0, "", [], "", rows)
    candidates = _first(at, module, call, len(journal))
    guilty = next(((i, f) for i, f in candidates.items() if at.same(
        at.after(module, call, without=(f.rule, f.matched[0]))[0])), None)
    which, f = guilty or list(candidates.items())[-1]
    place, alone = module.locations.get(f.where), guilty is not None
    return Guilty(number, str(call), len(journal), f.rule, list(f.matched), f.produced, rows, which,
                  place.at if place else f.where, f.was, f.became, numerics_of(f.needs), alone)


def _first(at: Bisector, module: Module, call: PassCall, count: int) -> dict[int, Fired]:
    """The first of `count` rules after which the outputs differ, by its number, by binary search.

    If it fired on what another rule emitted, that rule follows: it fired for this one's sake."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        if at.same(at.after(module, call, middle)[0]):
            good = middle
        else:
            bad = middle
    return dict(enumerate(at.after(module, call, bad)[1][bad - 1:], bad))


def bisect_outcome(b: Bisection, source: str) -> Outcome:
    """A finding for the first pass that changes the outputs, at the place of the rule's node."""
    lines, g = bisect_lines(b), b.guilty
    findings = [] if g is None else [Finding(
        f"opt/{g.rule or g.call.partition('{')[0]}", next(iter(g.matched), g.call), "error",
        lines[0] + (f"; {g.was} → {g.became}" if g.rule else ""), g.where, source)]
    return outcome("opt", source, lines[0], findings, lines)


def bisect_lines(b: Bisection) -> list[str]:
    """The report as lines of text."""
    g = b.guilty
    if g is None:
        return [f"the outputs are the same after each of {b.passes} passes"]
    out = [f"the outputs differ after pass {g.number} of {b.passes}, {g.call}: {worst(g.outputs)}"]
    if g.rule:
        where = f", at {g.where}" if g.where else ""
        out += [f"  with the rule {g.rule} ({g.numerics}), application {g.application} of "
                f"{g.rules} in the pass{where}",
                f"  it matched {', '.join(filter(None, g.matched))} and made {g.produced}",
                f"  - {g.was}", f"  + {g.became}",
                "  without this one application the pass is right" if g.alone else
                "  without it the outputs still differ: others are wrong too"]
    return out
