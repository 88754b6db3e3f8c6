"""Dims called like a kernel's own iterators: the same results under any name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.dtypes import float32
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower.rename_dims import own_names
from graphtool.native import runtime
from graphtool.native.build import build
from graphtool.symbolic import Symbol, symbol
from tests.loops.programs import TARGET


def module(name: str) -> Module:
    def net(x: Any) -> Any:
        rng = np.random.default_rng(1)
        w = x.builder.constant(rng.standard_normal((5, 4, 3, 3)).astype(np.float32), "w")
        return o.softmax(o.relu(o.conv(x, w) + 0.5), axis=1)
    graph = trace(net, [TensorType(float32, (symbol(name, 1, 8), 4, 6, 6))], ["x"])
    return Module(graph, ("y",), {name: Symbol(name, 1, 8)})


@pytest.mark.parametrize("name", ["n", "oh", "i0", "v0", "t", "count", "d0", "x0", "batch"])
def test_any_name_will_do(name: str, tmp_path: Path) -> None:
    m = module(name)
    xs = made_up.random_inputs(m, 0, {name: 3})
    made = build(passes.run(m, supply={"target": TARGET}), tmp_path / "b", target=TARGET, jobs=2)
    np.testing.assert_allclose(runtime.load(made).run(xs)["y"], interp.run(m, xs)["y"], rtol=1e-5,
                               atol=1e-6)


def test_groups_survive() -> None:
    m = passes.run(module("n"), supply={"target": TARGET})
    renamed = own_names(m)
    assert set(renamed.symbols) == {"n_"}
    assert [g.kind for g in renamed.graph.groups] == [g.kind for g in m.graph.groups]
    assert own_names(renamed) is renamed
