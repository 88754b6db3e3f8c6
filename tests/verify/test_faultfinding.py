"""A wrong rule, planted among the right ones: it is named, and its graph made small."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool import passes
from graphtool.analysis import made_up
from graphtool.ir.graph import Module
from graphtool.rewrite.engine import rule
from graphtool.target import named
from graphtool.verify.bisect import bisect, bisect_lines
from graphtool.verify.reducer import Reducer, command_fails, compiled_differs, passes_change
from tests.passes.pass_samples import SAMPLES, module

TARGET = named("x86-64", 1)


@rule(lambda x: o.tanh(x))
def wrong_tanh(x: Any) -> Any:
    return o.sigmoid(x)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    simplify = sys.modules["graphtool.passes.simplify"]  # the package's attribute is the function
    monkeypatch.setattr(simplify, "RULES", (wrong_tanh, *simplify.RULES))


@pytest.fixture
def large() -> Module:
    def fn(x: Any, y: Any) -> Any:
        for _ in range(6):
            x = o.exp(-(x + 0.0) * 1.0)
        return o.matmul(x, o.tanh(y) + y) * 2.0
    return module(fn, "f32[4,4]", "f32[4,4]", names=["x", "y"])


def test_the_rule_is_named(planted: None, large: Module) -> None:
    xs = made_up.random_inputs(large, 0)
    found = bisect(large, passes.calls("cse,simplify,dce"), xs, None, 1e-4, {"target": TARGET})
    assert not found.ok and found.guilty
    assert (found.guilty.call, found.guilty.rule) == ("simplify", "wrong_tanh")
    assert found.guilty.rules > 5
    assert "the rule wrong_tanh" in "\n".join(bisect_lines(found))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_default_passes_are_innocent(name: str) -> None:
    xs = made_up.random_inputs(SAMPLES[name], 0)
    found = bisect(SAMPLES[name], passes.calls(), xs, None, 1e-4, {"target": TARGET})
    assert found.ok and found.guilty is None and found.passes == len(passes.calls())


def test_a_graph_shrinks_to_the_fault(planted: None, large: Module) -> None:
    xs = made_up.random_inputs(large, 0)
    fault = passes_change("simplify", TARGET, None, 1e-4)
    assert fault(large, xs)
    small, held = Reducer(large, xs, fault).run()
    assert [n.op.name for n in small.graph.nodes] == ["tanh"]
    assert fault(small, held) and list(held) == ["y"]
    np.testing.assert_array_equal(held["y"], xs["y"])


def test_compiled_code_as_the_fault(planted: None, large: Module) -> None:
    xs = made_up.random_inputs(large, 0)
    fault = compiled_differs("simplify,fuse", TARGET, None, 1e-4)
    assert fault(large, xs)
    small, _ = Reducer(large, xs, fault, tries=12).run()
    assert "tanh" in {n.op.name for n in small.graph.nodes}
    assert len(small.graph.nodes) < len(large.graph.nodes)


def test_right_code_shows_no_fault(large: Module) -> None:
    xs = made_up.random_inputs(large, 0)
    assert not passes_change("simplify", TARGET, None, 1e-4)(large, xs)


def test_a_command_as_the_fault(large: Module) -> None:
    xs = made_up.random_inputs(large, 0)
    fault = command_fails("grep -q matmul {graph} && test -s {inputs} && exit 7; exit 0")
    assert fault(large, xs)
    small, _ = Reducer(large, xs, fault).run()
    assert [n.op.name for n in small.graph.nodes] == ["matmul"]
    assert not command_fails("true")(large, xs)


def test_the_number_of_tries_is_a_bound(planted: None, large: Module) -> None:
    xs = made_up.random_inputs(large, 0)
    reducer = Reducer(large, xs, passes_change("simplify", TARGET, None, 1e-4), tries=1)
    assert reducer.fault(large, xs)
    reducer.run()
    assert reducer.tried == 1


def test_an_output_does_not_become_an_input() -> None:
    def fn(x: Any) -> Any:
        first = o.tanh(x)
        return first, o.abs(o.exp(first))
    two = module(fn, "f32[3]", names=["x"])
    small, held = Reducer(two, made_up.random_inputs(two, 0),
                          lambda m, xs: len(m.graph.outputs) == 2).run()
    assert len(small.graph.outputs) == 2 and set(held) == {"x", "exp"}
