"""A plan is data of its node, an estimate is history: what files keep, and what `diff` ignores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.cli.faults import run
from graphtool.errors import InputError, InternalError
from graphtool.ir import listing, serial
from graphtool.ir.graph import Graph, Module, Node, TensorType
from graphtool.ir.op import OPS
from graphtool.ir.plan import Plan, chosen_plan
from graphtool.ir.replay import planned
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify
from graphtool.kernels.choice import machine
from graphtool.loops import serial as loops
from graphtool.loops.program import runs
from graphtool.lower import lower
from graphtool.report.diff import diff
from graphtool.report.why import why_graph, why_lines
from graphtool.target import TABLE

V4 = TABLE["x86-64-v4"]


def test_a_plan_is_called_as_its_op() -> None:
    """Or as the op whose gradient it is."""
    kinds = {(op.name, form.kind) for op in OPS.values() for form in op.plans}
    assert kinds and all(kind in (name, name.removesuffix("_grad")) for name, kind in kinds)


WINOGRAD = Plan("winograd", (("tile", 4), ("group", 40)))


def layers(x: Any, p: Any) -> Any:
    """A convolution, a product, and a recurrence in a branch."""
    y = o.conv(x, np.ones((32, 32, 3, 3), np.float32), channels_last=True)
    wide = o.matmul(o.reshape(y, shape=(196, 32)), np.ones((32, 48), np.float32))

    def steps(p: Any) -> Any:
        return o.recurrence(p, p.builder.constant(np.ones((1, 64, 256), np.float32)),
                            kind="lstm")[0]

    def first(p: Any) -> Any:
        return o.slice(p, start=(0,) * 4, limit=(20, 1, 1, 64), strides=(1,) * 4) + 1.0
    taken, other = (trace(branch, [p.type]) for branch in (steps, first))
    positive = o.reshape(o.gt(o.reduce_max(p, axes=(0, 1, 2, 3)), 0.0), shape=())
    return wide, o.cond(positive, p, then=taken, orelse=other)[0]


def optimised() -> Module:
    graph = trace(layers, [TensorType(dtypes.float32, (1, 16, 16, 32)),
                           TensorType(dtypes.float32, (20, 1, 1, 256))])
    return passes.run(Module(graph, ("y", "z")), supply={"target": V4})


def plan_of(module: Module, kind: str) -> Plan:
    """The plan of the node that is computed by a kind of kernel."""
    (plan,) = (n.attrs["plan"] for n in planned(module.graph) if n.attrs["plan"].kind == kind)
    assert isinstance(plan, Plan)
    return plan


def with_plan(module: Module, plan: Plan) -> Module:
    """The module with another plan for its convolution."""
    def other(n: Node) -> Node:
        return n if n.op.name != "winograd" else Node(
            n.op, n.inputs, {**n.attrs, "plan": plan}, n.outputs, n.where)
    old = module.graph
    return replace(module, graph=Graph(old.inputs, tuple(map(other, old.nodes)), old.outputs))


def inner(steps: list[Any]) -> Iterator[Any]:
    """The rows of steps, those of branches included."""
    for row in steps:
        yield row
        yield from inner([*row.get("then", ()), *row.get("orelse", ())])


def test_two_cost_models_with_the_same_choices_are_no_difference(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = optimised()
    monkeypatch.setattr(machine, "UNITS", 1.9)
    monkeypatch.setattr(machine, "LATENCY", 4.2)
    two = optimised()
    before, after = list(one.choices.values()), list(two.choices.values())
    assert [chosen_plan(c) for c in before] == [chosen_plan(c) for c in after] and before != after
    assert diff(one, two).equal
    paths = [tmp_path / f"{name}.graph.json" for name in "ab"]
    for module, path in zip((one, two), paths, strict=True):
        serial.save(module, path)
    assert run(["diff", *map(str, paths)]) == 0


def test_another_choice_is_a_change_of_the_plan() -> None:
    one = optimised()
    (change,) = diff(one, with_plan(one, WINOGRAD)).changes
    assert (change.kind, change.op) == ("changed", "winograd")
    assert change.detail == f"plan {plan_of(one, 'winograd')} → {WINOGRAD}"


def test_files_keep_plans_and_choices() -> None:
    """Plans as objects whose keys have an order, choices apart from the nodes; also in a loop."""
    one = optimised()
    text = serial.dumps(one, embed=True)
    again = serial.loads(text)
    assert serial.dumps(again, embed=True) == text
    assert list(again.choices.values()) == list(one.choices.values())
    nodes = [line for line in text.splitlines() if '"plan": ' in line]
    assert any('"plan": {"kind": "winograd", "tile": 4, "group": ' in line for line in nodes)
    assert not any(" µs" in line or '"us"' in line for line in nodes)
    row = next(r for r in json.loads(text)["choices"] if r["site"].startswith("recurrence"))
    assert row["id"].partition("/")[0] == json.loads(text)["regions"][0]["id"]


def test_a_listing_keeps_plans_and_choices() -> None:
    """All of them in the full form; the plans alone in the one that `show` prints."""
    one = optimised()
    text = listing.dumps(one, embed=True)
    again = serial.loads(text)
    assert listing.dumps(again, embed=True) == text
    assert sorted(map(repr, again.choices.values())) == sorted(map(repr, one.choices.values()))
    short = "\n".join(listing.listing(one, listing.ListingStyle("embed")))
    assert f"plan={plan_of(one, 'winograd')}" in short and "cost" not in short
    assert diff(one, serial.loads(short)).equal


def test_the_program_says_over_what_a_kernel_was_chosen() -> None:
    one = optimised()
    told = [r.choice for r in runs(lower(one, V4).steps) if r.choice]
    assert {t.site for t in told} == {c.site for c in one.choices.values()}
    program = lower(one, V4)
    assert loops.dumps(loops.loads(loops.dumps(program))) == loops.dumps(program)


def test_a_plan_that_was_edited_is_told_as_it_is() -> None:
    other = with_plan(optimised(), WINOGRAD)
    (told,) = (k for k in why_graph(other).kernels if k.op == "winograd")
    assert (told.kernel, told.us) == (str(WINOGRAD), 0.0) and len(told.rivals) > 1
    bare = replace(other, choices={})
    assert "over what it was chosen is not recorded" in "\n".join(why_lines(why_graph(bare)))


@pytest.mark.parametrize(("plan", "words"), [
    (Plan("gemm", (("nv", 2),)), "winograd is not computed by gemm"),
    (Plan("winograd", (("group", 28), ("tile", 4))), "has other parameters than"),
    (Plan("winograd", (("tile", 4), ("groups", 28))), "has other parameters than"),
    (Plan("winograd", (("tile", 4), ("group", 0))), "group is 1 or more"),
    (Plan("winograd", (("tile", 4), ("group", 28), ("shared", 2))), "shared is 0 to 1"),
    (Plan("winograd", (("tile", 2), ("group", 28))), "tiles of 4, and winograd{tile=2,group=28}")])
def test_a_plan_that_the_kernel_does_not_take(plan: Plan, words: str) -> None:
    with pytest.raises((InternalError, InputError), match=re.escape(words)):
        verify(with_plan(optimised(), plan).graph)


@pytest.mark.parametrize("edit", [('"tile": 4', '"tile": "4"'), ('"kind": "winograd", ', ""),
                                  ('"group": ', '"groups": ')])
def test_a_plan_in_a_file_that_is_none(edit: tuple[str, str]) -> None:
    text = serial.dumps(optimised(), embed=True)
    with pytest.raises(InputError, match="GT035"):
        serial.loads(text.replace(*edit))
