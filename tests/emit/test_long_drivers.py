"""A long program is several functions: gcc takes more than twice as long for one function of twice
the length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import ops as o
from graphtool.dtypes import float32
from graphtool.emit import steps
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, symbol


def test_a_long_program_is_cut_into_functions(tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(x: Any) -> Any:
        for _ in range(6):
            x = o.transpose(o.cumulative(x, kind="sum", axis=0), perm=(1, 0))
        return x
    n = symbol("N", 1, 64)
    graph = trace(chain, [TensorType(float32, (n, 40))], ["x"])
    monkeypatch.setattr(steps, "MOST_STEPS", 2)
    module = Module(graph, ("y",), {"N": Symbol("N", 1, 64)})
    built = graphtool.build(module, tmp_path / "b")
    text = (built / "model.c").read_text()
    assert "GT_NOINLINE void steps1(const run_state *s, gt_worker *w, int64_t d0)" in text
    x = np.random.default_rng(0).standard_normal((17, 40)).astype(np.float32)
    want = graphtool.evaluate(module, {"x": x})["y"]
    for threads in (1, 2):
        got = graphtool.load(built, threads=threads)(x=x)["y"]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * np.abs(want).max())
