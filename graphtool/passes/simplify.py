"""Applies the rules of `rules.py` until none fires. Changes no number unless it is told it may."""

from __future__ import annotations

from graphtool.errors import UsageError
from graphtool.ir.graph import Graph
from graphtool.passes.rewrite import NUMERICS, Journal, apply_rules
from graphtool.passes.rules import RULES


def simplify(graph: Graph, *, numerics: str = "exact", journal: Journal | None = None) -> Graph:
    """The graph in its simplest form. `numerics` is the loosest class of rule that may fire:

    exact, reassociated (floats may round in another order), or approximate.
    """
    for known in NUMERICS:
        if known == numerics:
            return apply_rules(graph, RULES, known, journal)
    raise UsageError("GT0605", f"simplify: unknown numerics class {numerics!r}",
                     hint=f"one of {', '.join(NUMERICS)}")
