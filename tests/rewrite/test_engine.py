"""The language of the left sides, and what the engine promises."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.assume import Assumes, Assumption, Needs, Soundness, allowed
from graphtool.errors import InternalError
from graphtool.rewrite.engine import Rule, apply_rules, rule
from graphtool.rewrite.journal import Journal
from tests.passes.pass_samples import module, values

F = "f32[3,4]"


def mark(equation: Callable[..., Any], once: bool = False, needs: Needs = ()) -> Rule:
    """The rule `equation = erf(first parameter)`: erf shows where it fired."""
    first = next(iter(inspect.signature(equation).parameters))
    return dataclasses.replace(rule(equation, once=once, needs=needs)(equation), name="marked",
                               fn=lambda **bound: o.erf(bound[first]))


MATCH: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "an operand": (lambda x: o.exp(x), lambda x, y: o.exp(x), 1),
    "another op": (lambda x: o.exp(x), lambda x, y: o.log(x), 0),
    "commuted": (lambda x, z: z + o.exp(x), lambda x, y: o.exp(x) + y, 1),
    "commuted inside": (lambda x: (x + 1) * (x + 2), lambda x, y: (2 + x) * (1 + x), 1),
    "not commuted": (lambda x, z: z - o.exp(x), lambda x, y: o.exp(x) - y, 0),
    "the same twice": (lambda x: x * o.exp(x), lambda x, y: o.exp(x) * x, 1),
    "not the same": (lambda x: x * o.exp(x), lambda x, y: o.exp(x) * y, 0),
    "a literal": (lambda x: x + 2, lambda x, y: x + 2.0, 1),
    "another literal": (lambda x: x + 2, lambda x, y: x + 3, 0),
    "a rounded literal": (lambda x: x * 0.1, lambda x, y: x * float(np.float32(0.1)), 1),
    "a constant for a literal": (
        lambda x: x + 2, lambda x, y: x + x.builder.constant(np.full((1,), 2, np.float32)), 1),
    "a parameter for a literal": (
        lambda x: x + 2,
        lambda x, y: x + x.builder.constant(np.full((1,), 2, np.float32), "p", True), 0),
    "an attribute": (lambda x: o.reduce_sum(x, axes=(1,)), lambda x, y: o.reduce_sum(x, axes=(1,)),
                     1),
    "another attribute": (lambda x: o.reduce_sum(x, axes=(1,)),
                          lambda x, y: o.reduce_sum(x, axes=(0,)), 0),
    "a variable in an attribute": (lambda x, a: o.exp(o.reduce_sum(x, axes=(a,))),
                                   lambda x, y: o.exp(o.reduce_sum(x, axes=(0,))), 1),
    "an attribute twice": (
        lambda x, a: o.reduce_max(x, axes=a) - o.reduce_min(x, axes=a),
        lambda x, y: o.reduce_max(x, axes=(0,)) - o.reduce_min(x, axes=(1,)), 0),
    "a default that is not": (lambda x, z: o.matmul(x, z),
                              lambda x, y: o.matmul(x, y, transpose_b=True), 0),
    "an optional operand": (lambda x, w: o.linear(x, w), lambda x, y: o.linear(x, y), 1),
    "an optional operand given": (lambda x, w: o.linear(x, w),
                                  lambda x, y: o.linear(x, y, values(x, 3)), 0),
    "a variable for what is left out": (lambda x, w, b: o.linear(x, w, b),
                                        lambda x, y: o.linear(x, y), 1),
}


@pytest.mark.parametrize("name", MATCH)
def test_match(name: str) -> None:
    equation, fn, count = MATCH[name]
    graph = module(lambda x, y: _keep_shape(fn(x, y), x), F, F).graph
    journal = Journal()
    _quiet(graph, mark(equation), journal)
    assert len(journal) == count


def _keep_shape(y: Any, x: Any) -> Any:
    return o.reduce_sum(y, axes=(0, 1))


def _quiet(graph: Any, r: Rule, journal: Journal) -> None:
    """Apply; a marked rule may well change the shape, which the engine refuses after it fired."""
    try:
        apply_rules(graph, [r], journal=journal)
    except InternalError as error:
        assert error.code == "GT7604"
        journal.append(None)  # type: ignore[arg-type]


def test_once_wants_a_single_reader() -> None:
    r = mark(lambda x: o.exp(o.neg(x)), once=True)
    shared = module(lambda x: (lambda y: o.exp(y) + y)(o.neg(x)), F).graph
    assert apply_rules(shared, [r]) is shared
    assert apply_rules(module(lambda x: o.exp(o.neg(x)), F).graph, [r]).nodes[0].op.name == "erf"


def test_what_a_rule_makes_is_matched_again() -> None:
    halve = rule(lambda x: o.exp(x))(lambda x: o.log(o.neg(x)))
    finish = mark(lambda x: o.neg(x))
    graph = apply_rules(module(lambda x: o.exp(x), F).graph, [halve, finish])
    assert [n.op.name for n in graph.nodes] == ["erf", "log"]


def test_rules_that_never_end_are_stopped() -> None:
    def grow(x: Any) -> Any:
        return o.neg(x + 1.0)
    graph = apply_rules(module(lambda x: o.neg(x), F).graph, [rule(lambda x: o.neg(x))(grow)])
    assert len(graph.nodes) < 2000


def test_a_rule_may_not_change_the_type() -> None:
    wrong = rule(lambda x: o.exp(x))(lambda x: o.reshape(x, shape=(12,)))
    with pytest.raises(InternalError, match="turned f32"):
        apply_rules(module(lambda x: o.exp(x), F).graph, [wrong])


@pytest.mark.parametrize(("assume", "needs"), [
    ("nothing", []), ("finite", [("reassociated", "finite")]),
    ("normal", [("reassociated", "finite")])])
def test_what_a_match_assumes_must_be_allowed(assume: Assumption, needs: list[Any]) -> None:
    @rule(lambda x: o.exp(x), needs="reassociated", may="finite")
    def some(x: Any) -> Any:
        return Assumes(o.neg(x), "finite", "of a test")
    journal = Journal()
    apply_rules(module(lambda x: o.exp(x), F).graph, [some], allowed("approximate", assume),
                journal)
    assert [f.needs for f in journal] == needs and {f.why for f in journal} <= {"of a test"}


def test_a_rule_declares_what_it_may_assume() -> None:
    liar = rule(lambda x: o.exp(x))(lambda x: Assumes(o.neg(x), "finite", "not declared"))
    with pytest.raises(InternalError, match="assumes finite, and does not declare it"):
        apply_rules(module(lambda x: o.exp(x), F).graph, [liar])


@pytest.mark.parametrize("need", ["reassociated", "finite"])
def test_what_a_rule_always_needs_must_be_allowed(need: Soundness) -> None:
    graph = module(lambda x: o.exp(x), F).graph
    r = mark(lambda x: o.exp(x), needs=need)
    assert apply_rules(graph, [r], allowed("exact", "nothing")) is graph
    assert apply_rules(graph, [r], allowed("approximate", "normal")) is not graph


def test_sides_must_agree() -> None:
    with pytest.raises(InternalError, match="differ in their parameters"):
        rule(lambda x: o.exp(x))(lambda y: y)


def test_untouched_graph_is_the_same_object() -> None:
    graph = module(lambda x: o.exp(x), F).graph
    assert apply_rules(graph, [mark(lambda x: o.log(x))]) is graph


def test_journal_names_what_it_matched() -> None:
    journal = Journal()
    apply_rules(module(lambda x: o.exp(o.neg(x)), F).graph, [mark(lambda x: o.exp(o.neg(x)))],
                journal=journal)
    assert (journal[0].rule, journal[0].matched) == ("marked", ("exp", "neg"))
