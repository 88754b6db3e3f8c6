"""Short reductions along memory are vectors of their own; windows that slide are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named
from tests.passes.pass_samples import module


def heads(x: Any, s: Any) -> Any:
    return o.reduce_sum(x * s, axes=(2,))


def spread(x: Any, _: Any) -> Any:
    return o.reduce_max(x, axes=(0,))


def normalised(x: Any, _: Any) -> Any:
    mean = o.reshape(o.reduce_mean(x, axes=(2,)), shape=(3, 20, 1))
    return o.transpose(x - mean, perm=(2, 0, 1))


# function, types of the inputs, and a line of C that shows which loop is a vector
CASES = {
    "heads": (heads, ("f32[20,4,16]", "f32[4,16]"), "for (int64_t r0 = 0; r0 < 16; r0++)"),
    "few": (heads, ("f32[20,4,5]", "f32[4,5]"), "acc0 += x0[i0 * 20 + i1 * 5 + 4]"),
    "open": (heads, ("f32[B,4,16]", "f32[4,16]"), "for (int64_t r0 = 0; r0 < 16; r0++)"),
    "first": (spread, ("f32[16,4,32]", "f32[1]"), "acc0 = gt_max_f32(acc0, x0["),
    "across": (normalised, ("f32[3,20,24]", "f32[1]"), "for (int64_t r0 = 0; r0 < 24; r0++)"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind(name: str, tmp_path: Path) -> None:
    function, types, line = CASES[name]
    graph = passes.run(module(function, *types), supply={"march": "x86-64-v3"})
    texts = emit(lower(graph, named("x86-64-v3")))
    assert any(line in text for text in texts.values()), texts
    inputs = made_up.random_inputs(graph, 1)
    got = runtime.load(build(graph, tmp_path / "b", target="x86-64-v3")).run(inputs)
    for key, want in interp.run(graph, inputs).items():
        np.testing.assert_allclose(got[key], want, rtol=1e-5, atol=1e-5)
