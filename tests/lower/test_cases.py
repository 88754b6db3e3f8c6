"""Every case of the table of ops, compiled, against the evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphtool import interp
from graphtool.ir.facets import Lowering
from graphtool.target import named
from tests.cases import CASES, Case
from tests.lower.compiling import compiled, faults, merged, optimised

CHUNK = 120  # cases in one library: few compiler runs, and still a failure is soon found
# what rounds activations is rounded as the kernel can: test_nbits has the bounds
EVEN = [c for c in CASES if c.attrs.get("activations") != "q8"]
PLAIN = [c for c in EVEN if c.attrs.get("bound") is None and (
    c.op.lowering is not Lowering.NONE)]


def chunks(cases: list[Case]) -> list[object]:
    return [pytest.param(cases[i:i + CHUNK], id=f"{cases[i].name}…")
            for i in range(0, len(cases), CHUNK)]


@pytest.mark.parametrize("cases", chunks(PLAIN))
def test_each_op_alone_equals_the_evaluator(cases: list[Case], tmp_path: Path) -> None:
    module, inputs = merged(cases)
    assert faults(compiled(module, tmp_path).run(inputs), interp.run(module, inputs)) == []


@pytest.mark.parametrize("params", [False, True], ids=["inputs", "constants"])
@pytest.mark.parametrize("cases", chunks(EVEN))
def test_the_pipeline_equals_the_evaluator(cases: list[Case], params: bool,
                                           tmp_path: Path) -> None:
    module, inputs = merged(cases, 1, params)
    model = compiled(optimised(module), tmp_path, target=named("native", threads=3), eager=True)
    model.threads = 3
    assert faults(model.run(inputs), interp.run(module, inputs)) == []


def test_a_wrong_value_would_be_seen() -> None:
    module, inputs = merged(CASES[:1])
    (name, want), = interp.run(module, inputs).items()
    assert len(faults({name: want * 1.001}, {name: want})) == 1
    assert len(faults({name: want[:1]}, {name: want})) == 1


def test_every_op_has_a_compiled_form() -> None:
    """Without the default passes' decompositions what remains would be a list here."""
    left = {c.op.name for c in CASES if c not in PLAIN and c.op.decompose is None}
    assert left == set()
