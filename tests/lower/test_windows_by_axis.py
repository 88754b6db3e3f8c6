"""Windows that overlap along memory are reduced over the other axes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.kernels.choice.rules import rules_of
from graphtool.native import runtime
from tests.passes.pass_samples import module

# kind, type of the input, attributes, and how many reductions there are
CASES: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "stride 2": ("max", "f32[2,3,9,37]", {"window": (1, 1, 3, 3), "strides": (1, 1, 2, 2),
                                          "padding": ((0, 0), (0, 0), (1, 1), (1, 1))}, 2),
    "stride 1": ("min", "f32[2,3,5,20]", {"window": (1, 1, 3, 5),
                                          "padding": ((0, 0), (0, 0), (1, 1), (2, 0))}, 2),
    "sum": ("sum", "f64[1,4,8,19]", {"window": (1, 1, 2, 3)}, 2),
    "dilated": ("max", "f32[1,2,11,23]", {"window": (1, 1, 3, 3),
                                          "window_dilation": (1, 1, 2, 3)}, 2),
    "whole": ("max", "i32[3,6,7,18]", {"window": (1, 2, 3, 3), "strides": (1, 1, 2, 2),
                                       "padding": ((0, 0), (1, 0), (0, 2), (1, 1))}, 2),
    "open": ("max", "f32[B,2,9,16]", {"window": (1, 1, 3, 3), "strides": (1, 1, 2, 2),
                                      "padding": ((0, 0), (0, 0), (1, 1), (1, 1))}, 2),
    "apart": ("max", "f32[2,3,8,36]", {"window": (1, 1, 2, 2), "strides": (1, 1, 2, 2)}, 1),
    "one axis": ("max", "f32[2,3,36]", {"window": (1, 1, 3)}, 1),
    "rounded": ("sum", "f16[1,4,8,19]", {"window": (1, 1, 2, 3)}, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_evaluator(name: str, tmp_path: Path) -> None:
    kind, given, attrs, count = CASES[name]
    m = module(lambda x: o.reduce_window(x, kind=kind, **attrs), given)
    best = passes.run(m, supply={"march": "native"})
    assert sum(n.op is o.reduce_window for n in best.graph.nodes) == count
    model = runtime.load(build(best, tmp_path / "b"))
    rng = np.random.default_rng(0)
    (port,) = model.inputs
    shape = tuple(d if isinstance(d, int) else 7 for d in m.graph.inputs[0].type.shape)
    x = rng.integers(-99, 99, shape).astype(m.graph.inputs[0].type.dtype.numpy)
    for special in (0, np.nan, -np.inf, np.inf) if x.dtype.kind == "f" else (0,):
        x.flat[rng.integers(0, x.size, 5)] = special
        for key, want in interp.run(m, {port.name: x}).items():
            np.testing.assert_array_equal(model.run({port.name: x})[key], want)


def test_the_order_of_sums_is_kept_where_it_counts() -> None:
    m = module(lambda x: o.reduce_window(x, kind="sum", window=(1, 1, 3, 3)), "f32[1,4,8,19]")
    strict = passes.run(m, supply={
        "march": "native", "rules": rules_of("strict")})
    assert sum(n.op is o.reduce_window for n in strict.graph.nodes) == 1
