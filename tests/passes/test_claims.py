"""What was assumed is recorded, kept in files, told, and derived again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphtool import ops as o
from graphtool import passes
from graphtool.assume import Assumed, Assumption, allowed, joined, strongest
from graphtool.errors import InputError, InternalError
from graphtool.integrations.git.merge import merge
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import rules_of
from graphtool.passes.select.goal import Goal
from graphtool.report.why import why_graph, why_lines
from graphtool.target import named
from tests.kernels.special_numbers import MODELS
from tests.passes.pass_samples import module

MASKED = module(lambda q, k, v, m: o.matmul(o.softmax(
    o.matmul(q, k, transpose_b=True) + m, axis=3), v), *("f32[1,2,4,8]",) * 3, "f32[4,4]")
ROW = Assumed("finite", "recognise.attention",
              "a row that a mask hides throughout is 0, not NaN", ("matmul#1",))


def ready(model: Module, assume: Assumption = "finite", names: str | None = None) -> Module:
    return passes.run(model, names, supply={"target": named("x86-64-v3"),
                                            "rules": rules_of(assume=assume)})


def finite(model: Module) -> set[str]:
    return {r.by for r in model.assumes if r.needs == "finite"}


@pytest.mark.parametrize(("name", "by"), [
    ("winograd", {"select.winograd"}),
    ("groups as one", {"select", "select.conv_direct"}),
    ("image smaller than its window", {"select", "select.conv_direct"}),
    ("volume smaller than its window", {"select", "select.conv_direct"}),
    ("pixel under moving weights", {"select", "select.gemm"}),
    ("transposed, weights move", {"select", "select.conv_direct"}),
    ("causal attention", {"select.attend"}), ("few bits", {"select.linear_f32"}),
    ("one pixel", set()), ("dilated", set()), ("product", set())])
def test_who_assumes_finite_numbers_is_recorded(name: str, by: set[str]) -> None:
    assert finite(ready(MODELS[name])) == by
    assert finite(ready(MODELS[name], "nothing")) == set()


def test_a_rule_is_recorded_and_kept_through_later_passes(tmp_path: Path) -> None:
    found = ready(MASKED)
    assert "recognise.attention" in finite(found)
    for file in ("a.graph.json", "a.gt"):
        serial.save(found, tmp_path / file)
        assert serial.load(tmp_path / file).assumes == found.assumes
    told = "\n".join(why_lines(why_graph(found)))
    assert f"assumes   finite, by recognise.attention: {ROW.why}" in told


def test_what_was_assumed_cannot_be_taken_back() -> None:
    made = ready(MASKED, names="recognise")
    with pytest.raises(InputError, match=r"finite numbers, by recognise\.attention") as caught:
        ready(made, "nothing")
    assert caught.value.code == "GT0636" and ready(made).graph.nodes


def test_a_pass_that_does_not_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    best = Goal.best

    def silent(self: Goal, *args: object, **kwargs: object) -> object:
        found = best(self, *args, **kwargs)  # type: ignore[arg-type]
        self.assumed.clear()
        return found
    monkeypatch.setattr(Goal, "best", silent)
    with pytest.raises(InternalError, match="winograd assumes finite numbers") as caught:
        ready(MODELS["winograd"])
    assert caught.value.code == "GT7115"


def test_a_pass_that_assumes_what_it_may_not_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphtool.kernels.choice.rules.Rules.allows", lambda *_: True)
    with pytest.raises(InternalError, match="assumes finite numbers, and nothing may") as caught:
        ready(MODELS["winograd"], "nothing")
    assert caught.value.code == "GT7114"


def test_one_filter() -> None:
    assert allowed("exact", "nothing") == {"exact"}
    assert allowed("reassociated", "finite") == {"exact", "reassociated", "finite"}
    assert allowed(assume="normal") == {"exact", "reassociated", "approximate", "finite", "normal"}
    assert strongest([]) == "nothing" and strongest(["finite", "normal", "nothing"]) == "normal"
    assert joined([ROW, replace(ROW, values=("y", "matmul#1"))]) == (
        replace(ROW, values=("matmul#1", "y")),)


def test_a_listing_names_a_class_that_there_is() -> None:
    text = 'input x: f32[2]\nassumes wild: "simplify.x", "why", x\nreturn x\n'
    with pytest.raises(InputError, match="'wild' is no class of soundness"):
        serial.loads(text)
    (row,) = serial.loads(text.replace("wild", "finite")).assumes
    assert row == Assumed("finite", "simplify.x", "why", ("x",))


def test_a_merge_keeps_what_both_sides_assumed() -> None:
    base = replace(MASKED, assumes=())
    ours, theirs = (replace(base, assumes=(replace(ROW, by=by),)) for by in ("a.a", "b.b"))
    found = merge(*(serial.dumps(m, embed=True).encode() for m in (base, ours, theirs)))
    assert {r.by for r in serial.loads(found.text).assumes} == {"a.a", "b.b"}
