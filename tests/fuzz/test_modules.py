"""Random torch modules: what they are made of, and how a fault is blamed on a line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from graphtool import ops as o
from graphtool import transforms
from graphtool.ir.graph import Graph, Module
from tests import torch_export
from tests.lab.fuzz import module_gradients
from tests.lab.fuzz.compiled import compiled
from tests.lab.fuzz.module_checks import ROWS, case, evaluated
from tests.lab.fuzz.module_edges import EDGES
from tests.lab.fuzz.module_gradients import ONLY_NAN, OUR_NAN
from tests.lab.fuzz.module_quirks import quirk


def test_each_row_grows() -> None:
    assert [n for n in ROWS if not any(case(seed, [n]).lines for seed in range(20))] == []


def test_a_seed_is_a_module() -> None:
    one, two = case(7), case(7)
    assert one.lines == two.lines
    assert one.source(one.lines, [*one.inputs], one.outputs).startswith("def forward(self, v0")
    assert all(torch.equal(a, b) for a, b in zip(one.tensors(), two.tensors(), strict=True))


def test_what_is_in_the_modules() -> None:
    cases = [case(seed) for seed in range(120)]
    assert {c.capture for c in cases} == {"export", "fx"}
    assert any(c.training for c in cases) and any(c.dynamic for c in cases)
    assert {"float32", "float64", "int64", "bool", "uint8", "float16", "bfloat16"} <= {
        t.rpartition(" ")[2] for c in cases for t in c.typed}
    assert any(c.layers for c in cases)


@pytest.mark.parametrize("seed", [2, 5])
def test_slice(seed: int) -> None:
    found = evaluated(case(seed))
    assert found.module is not None and compiled([found]).total() == 1
    assert not found.findings


def test_each_row_of_the_edges_grows() -> None:
    assert [n for n in EDGES if not any(case(s, [n], edges=True).lines for s in range(20))] == []


@pytest.mark.parametrize("first", [0, 200, 400])
def test_modules_at_the_edges(first: int) -> None:
    """Whole numbers at their limits, views, writes through them, casts and mixed types."""
    torch_export.install()
    found = [evaluated(case(s, edges=True)) for s in range(first, first + 8)]
    compiled([e for e in found if e.case.inputs])
    assert [f for e in found for f in e.findings] == []
    assert sum(e.status == "right" for e in found) > 4


def sinh_for_tanh(model: Any, *args: Any, **kwargs: Any) -> Module:
    """What an importer with a fault would make."""
    from graphtool.importers.torch import import_torch
    module = import_torch(model, *args, **kwargs)
    nodes = (replace(n, op=o.sinh) if n.op is o.tanh else n for n in module.graph.nodes)
    return replace(module, graph=replace(module.graph, nodes=tuple(nodes)))


def test_a_planted_fault_is_blamed_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.lab.fuzz.module_checks.import_torch", sinh_for_tanh)
    made = [c for s in range(40) if {"tanh", "abs"} <= set((c := case(
        s, ["tanh", "abs", "sign"])).ops) and not c.dynamic][:4]  # of tiny numbers both are alike
    blamed = {f.cause for c in made for f in evaluated(c).findings}
    assert "torch: value in tanh (value)" in blamed
    # of the largest numbers sinh overflows as well
    assert blamed <= {"torch: value in tanh (value)", "torch: value in tanh (inf), tanh (value)"}


def test_gradients_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    made = next(c for s in range(40) if (c := case(s, ["nn.Linear", "tanh"], True)).layers)
    assert evaluated(made, True).findings == []

    right = transforms.vjp

    def twice(graph: Graph, wrt: Any, at: Any) -> Graph:
        joint = right(graph, wrt, at)
        count = len(graph.outputs)
        return replace(joint, outputs=(*joint.outputs[:count], *joint.outputs[:count:-1],
                                       joint.outputs[count]))
    monkeypatch.setattr(module_gradients.transforms, "vjp", twice)
    assert "gradient: " in (cause := evaluated(made, True).findings[0].cause) and "off" in cause


def test_a_gradient_through_nan_is_no_judge() -> None:
    """torch's is NaN for both operands of a logaddexp of NaN; without one it must be ours."""
    made = case(119, (), True)
    found = evaluated(made, True)
    assert found.status == "explained" and "NaN" in found.why
    assert quirk(made, "gradient: input off") == ""
    assert quirk(made, f"gradient: input {OUR_NAN}") == ""  # of rows with a xlogy
    numbers = replace(made, values={n: t.nan_to_num() if t.is_floating_point() else t
                                    for n, t in made.values.items()})
    assert quirk(numbers, f"gradient: input {ONLY_NAN}") == ""


def test_infinite_gradients_cancel_or_not() -> None:
    """exp overflows: which sums of weights' gradients are ∞ − ∞ is a matter of their order."""
    assert evaluated(case(510129, (), True), True).findings == []
