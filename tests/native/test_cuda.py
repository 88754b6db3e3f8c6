"""What models compute whose kernels are in CUDA: built as for a GPU, and run by a driver on the
processor. All but the device is what a user gets: the emitted text, the C around it, the library,
its loader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import InputError, UnsupportedError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named
from tests.lower.compiling import compiled, faults, merged, optimised
from tests.native.cuda.models import (
    LOOPS,
    MODELS,
    ON_THE_DRIVER,
    RNG,
    inputs_of,
    module,
)
from tests.passes.pass_samples import SAMPLES

pytestmark = ON_THE_DRIVER


@pytest.mark.part(2)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_the_graph_does(name: str, tmp_path: Path) -> None:
    m = module(name)
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    for n in (33, 1, 0, 64) if m.symbols else (33,):
        xs = inputs_of(name, n)
        assert not faults(model(**xs), interp.run(m, xs))


@pytest.mark.part(2)
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples(name: str, tmp_path: Path) -> None:
    model = runtime.load(graphtool.build(SAMPLES[name], tmp_path / "b", target="cuda"))
    for seed in range(2):
        xs = made_up.random_inputs(SAMPLES[name], seed)
        assert not faults(model(**xs), interp.run(SAMPLES[name], xs), 1e-4, 1e-4)


@pytest.mark.part(16)
@pytest.mark.parametrize("part", range(16))
def test_ops(part: int, tmp_path: Path) -> None:
    """Every case of the table that loops can compute, many in one library."""
    m, xs = merged(LOOPS[part::16])
    model = compiled(optimised(m, named("sm_90")), tmp_path / "b", target="sm_90")
    assert not faults(model(**xs), interp.run(m, xs))


def test_index_checks_and_computed_sizes(tmp_path: Path) -> None:
    """What a kernel finds out is read from the device: failed checks, sizes, conditions."""
    def pick(x: Any, i: Any) -> Any:
        return o.gather(x, i, axes=(0,))
    types = [TensorType(dtypes.float32, (5, 3)), TensorType(dtypes.int64, (4, 1))]
    m = Module(trace(pick, types, ["x", "i"]), ("y",))
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    x = RNG.standard_normal((5, 3)).astype(np.float32)
    got = model(x=x, i=np.array([[0], [4], [2], [1]]))
    np.testing.assert_array_equal(got["y"], x[[0, 4, 2, 1]])
    with pytest.raises(InputError) as told:
        model(x=x, i=np.array([[0], [5], [2], [1]]))
    assert told.value.code == "GT0501"


def test_an_op_without_a_definition_says_what_is_missing() -> None:
    graph = trace(lambda x: o.all_reduce(x, kind="sum"), [TensorType(dtypes.float32, (4, 9))],
                  ["x"])
    m = passes.run(Module(graph, ("y",), {}), None, supply={"march": "sm_90"})
    with pytest.raises(UnsupportedError) as told:
        lower(m, named("sm_90"))
    assert "has no text in the language cuda" in str(told.value)
