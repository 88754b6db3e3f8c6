"""Every case of the table of ops, compiled, against the evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool import interp
from graphtool.dtypes import DType, bfloat16, float16
from graphtool.ir.facets import Lowering, Trait
from graphtool.target import named
from tests.cases import CASES, Case, narrow_cases
from tests.closeness import largest, steps
from tests.lower.compiling import compiled, faults, merged, optimised

CHUNK = 120  # cases in one library: few compiler runs, and still a failure is soon found
EVERY = 8  # one of so many compiles by default, whatever op it is of
# what rounds activations is rounded as the kernel can: test_nbits has the bounds
EVEN = [c for c in CASES if c.attrs.get("activations") != "q8"]
PLAIN = [c for c in EVEN if c.attrs.get("bound") is None and (
    c.op.lowering is not Lowering.NONE)]


def chunks(cases: list[Case]) -> list[tuple[list[Case], str, bool]]:
    """Cases, their name, and whether they are slow: all but the first of each op and element type,
    and each EVERY-th."""
    seen: set[object] = set()
    usual, others = list[Case](), list[Case]()
    for n, c in enumerate(cases):
        kind = (c.op, *(a.dtype for a in c.operands[:1] if hasattr(a, "dtype")))
        (usual if kind not in seen or n % EVERY == 0 else others).append(c)
        seen.add(kind)
    return [(some[i:i + CHUNK], f"{some[i].name}…{end}", some is others)
            for some, end in ((usual, ""), (others, "more")) for i in range(0, len(some), CHUNK)]


def marks(slow: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if slow else []


@pytest.mark.parametrize("cases", [pytest.param(some, id=name, marks=marks(slow))
                                   for some, name, slow in chunks(PLAIN)])
def test_each_op_alone_equals_the_evaluator(cases: list[Case], tmp_path: Path) -> None:
    module, inputs = merged(cases)
    assert faults(compiled(module, tmp_path).run(inputs), interp.run(module, inputs)) == []


@pytest.mark.parametrize(("cases", "params"), [  # by default each chunk in one of the two ways
    pytest.param(some, params, id=f"{name}-{'constants' if params else 'inputs'}",
                 marks=marks(slow or (n + params) % 2 == 1))
    for n, (some, name, slow) in enumerate(chunks(EVEN)) for params in (False, True)])
def test_the_pipeline_equals_the_evaluator(cases: list[Case], params: bool,
                                           tmp_path: Path) -> None:
    module, inputs = merged(cases, 1, params)
    model = compiled(optimised(module), tmp_path, target=named("native", threads=3), eager=True)
    model.threads = 3
    assert faults(model.run(inputs), interp.run(module, inputs)) == []


def narrow_sample(dtype: DType, seed: int) -> list[Case]:
    """One case of each op that rounds more than once, of sizes up to the type's largest number."""
    found: dict[str, Case] = {}
    for c in narrow_cases(dtype, seed):
        if c.op.lowering is Lowering.NONE or c.op.traits & (Trait.REDUCTION | Trait.WINDOWED):
            found.setdefault(c.op.name, c)
    return list(found.values())


@pytest.mark.parametrize(("dtype", "seed"), [
    (float16, 0), pytest.param(float16, 1, marks=pytest.mark.slow),
    pytest.param(bfloat16, 0, marks=pytest.mark.slow)], ids=str)
def test_narrow_floats_are_computed_in_float32_in_c(dtype: DType, seed: int,
                                                    tmp_path: Path) -> None:
    module, inputs = merged(narrow_sample(dtype, seed))
    want = interp.run(module, inputs)
    got = compiled(optimised(module), tmp_path).run(inputs)
    assert not [name for name, y in want.items() if y.dtype == dtype.numpy
                and steps(got[name], y.astype(np.float32), min(largest(y), 6e4)) > 2]


def test_a_wrong_value_would_be_seen() -> None:
    module, inputs = merged(CASES[:1])
    (name, want), = interp.run(module, inputs).items()
    assert len(faults({name: want * 1.001}, {name: want})) == 1
    assert len(faults({name: want[:1]}, {name: want})) == 1


def test_every_op_has_a_compiled_form() -> None:
    """Without the default passes' decompositions what remains would be a list here."""
    left = {c.op.name for c in CASES if c not in PLAIN and c.op.decompose is None}
    assert left == set()
