"""Applies the rules of `rules.py` until none fires. It changes no number unless `numerics`
allows it."""

from __future__ import annotations

from graphtool.ir.graph import Graph
from graphtool.kernels.choice.rules import Rules, permitted
from graphtool.rewrite.engine import apply_rules
from graphtool.rewrite.journal import Journal
from graphtool.rewrite.rules import RULES


def simplify(graph: Graph, *, numerics: str = "exact",
             journal: Journal | None = None, rules: Rules | None = None) -> Graph:
    """The graph after all rewrite rules that make it simpler.

    `numerics` is the loosest class of rule that may fire: exact, reassociated (floats may round in
    another order), or approximate.
    """
    return apply_rules(graph, RULES, permitted(rules, numerics, "simplify"), journal)
