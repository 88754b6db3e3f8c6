"""Proofs of rewrite rules: the engine applies the rule to a graph with open sizes, and z3 shows
that both graphs have equal elements, at every place and for all numbers.

What an element is says the ops' own `lower`, from which the C is made too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.assume import allowed
from graphtool.dtypes import bool_, int64
from graphtool.errors import GraphtoolError
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant
from graphtool.ir.trace import Builder
from graphtool.loops.ir import Apply, Const, Index
from graphtool.loops.pull import Names, Pull, apply, index, iterator
from graphtool.rewrite.engine import Rule, apply_rules
from graphtool.rewrite.journal import Journal
from graphtool.symbolic import known, symbol_of, symbols
from tests.lab.proofs.terms import READ, Reading, Terms, Unsupported, same

FEW = 16  # constants of so many elements are known numbers
EVERYTHING = allowed("approximate", "normal")


@dataclass(frozen=True)
class Outcome:
    """What became of one graph: `proved` by a reading, `declined` by the rule, `refuted` with a
    counterexample, or `open`, where z3 found neither."""

    word: str
    detail: str = ""


def attempt(rule: Rule, graph: Graph, seconds: int = 20) -> Outcome:
    """Apply the rule to a graph and prove that it keeps every element."""
    journal = Journal()
    after = apply_rules(graph, [rule], EVERYTHING, journal)
    if not journal:
        return Outcome("declined")
    needs = {need for fired in journal for need in fired.needs}
    rounds: Reading = "real" if needs & {"reassociated", "approximate"} else "ieee"
    why = ""
    readings: tuple[Reading, ...] = ("bits", rounds)
    for reading in readings:
        try:
            outcome = equal(graph, after, reading, "finite" in needs, seconds)
        except (Unsupported, z3.Z3Exception, GraphtoolError) as error:
            outcome = Outcome("open", f"{type(error).__name__} {error}")
        if outcome.word == "proved":
            return outcome
        why = f"{why}; {reading}: {outcome.word} {outcome.detail}"
    return Outcome("open", why)


def equal(before: Graph, after: Graph, reading: Reading, finite: bool, seconds: int) -> Outcome:
    """Whether the first outputs of two graphs have equal elements."""
    names = Names()  # one for both, so that an index that is read from data is the same in both
    left, right = (Pulls(g, names).of(g.outputs[0]) for g in (before, after))
    if before.outputs[0].type != after.outputs[0].type:
        return Outcome("refuted", "the types differ")
    idx = tuple(symbol_of(iterator(f"i{k}", d)) for k, d in enumerate(left.shape))
    terms = Terms(reading, names)
    for d in (x for g in before.inputs for x in g.type.shape if not isinstance(x, int)):
        for s in symbols(d):
            terms.symbol(s)
    for i in idx:
        terms.dim(i)  # its bounds
    a, b = terms.term(left.at(idx)), terms.term(right.at(idx))
    solver = z3.Solver()
    solver.set("timeout", seconds * 1000)
    solver.add(*terms.facts)
    if finite:
        solver.add(*(z3.Not(z3.Or(z3.fpIsNaN(x), z3.fpIsInf(x))) for x, t in terms.reads
                     if t.is_float and z3.is_fp(x)))
    solver.add(z3.Not(same(a, b)))
    answer = solver.check()
    if answer == z3.unsat:
        return Outcome("proved", reading)
    return Outcome("refuted", str(solver.model())[:300]) if answer == z3.sat else Outcome("open")


class Pulls:
    """The elements of a graph's values. Composites are their decompositions."""

    def __init__(self, graph: Graph, names: Names) -> None:
        self.made_by = {v: n for n in graph.nodes for v in n.outputs}
        self.names = names
        self.memo: dict[Value, Pull] = {}

    def of(self, v: Value) -> Pull:
        """The elements of a value."""
        if v not in self.memo:
            self.memo[v] = self.pulled(v, self.made_by.get(v))
        return self.memo[v]

    def pulled(self, v: Value, node: Node | None) -> Pull:
        if node is None:
            return leaf(v.hint, v)
        if is_constant(node):
            return constant(node.attrs["data"], v)
        if node.op.lower is not None:
            xs = [self.operand(x) for x in node.inputs]
            out = node.op.lower(self.names, *xs, **node.attrs)
            assert isinstance(out, Pull)
            return out
        if node.op.decompose is None:
            raise Unsupported(node.op.name)
        builder = Builder()
        parts = node.op.decompose(*(builder.traced(x) if isinstance(x, Value) else x
                                    for x in node.inputs), **node.attrs)
        part = parts[node.outputs.index(v)] if isinstance(parts, tuple) else parts
        self.made_by |= builder.made_by
        return self.of(part.value)

    def operand(self, x: Operand) -> Any:
        return self.of(x) if isinstance(x, Value) else x


def constant(data: Weight, v: Value) -> Pull:
    """The elements of a constant: numbers if there are few, else as of an input."""
    if data.size > FEW:
        return leaf(data.digest, v)
    flat = [Const(x.item(), v.type.dtype) for x in data.source.reshape(-1)]

    def at(idx: tuple[Any, ...]) -> Any:
        place: Any = 0
        for i, d in zip(idx, data.shape, strict=True):
            place = place * d + (i if d != 1 else 0)
        out: Any = flat[-1]
        for k, x in enumerate(flat[:-1]):
            out = x if out is x else apply("select", apply("eq", index(place), index(k),
                                                           dtype=bool_), x, out, dtype=x.dtype)
        return out
    return Pull(v.type.dtype, v.type.shape, at)


def leaf(name: str, v: Value) -> Pull:
    """The elements of an input, each read by its indices; an axis of size 1 has one index."""
    def at(idx: tuple[Any, ...]) -> Any:
        places = [0 if known(d, "==", 1) is True else i
                  for i, d in zip(idx, v.type.shape, strict=True)]
        return Apply(READ + name, tuple(Index(i, int64) for i in places), v.type.dtype)
    return Pull(v.type.dtype, v.type.shape, at)

