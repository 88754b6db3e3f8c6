"""Dims called like a kernel's own iterators: the same results under any name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.dtypes import float32
from graphtool.emit.statuses import rule_statuses
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops.dim_names import by_author, in_program
from graphtool.loops.interp import run as execute
from graphtool.lower import lower
from graphtool.lower.rename_dims import own_names
from graphtool.native import runtime
from graphtool.symbolic import Equation, Symbol, divides, symbol
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


# ---- the author's names --------------------------------------------------------------------------

PAIRS = [("n", "n_"), ("k0", "k0_"), ("batch", "m"), ("n", 'a "b"\n*/'), ("s__", "t)"), ("é", "2")]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_messages_have_the_names_of_the_author(pair: tuple[str, str], tmp_path: Path) -> None:
    a, b = (symbol(name, 1, 8, step=step) for name, step in zip(pair, (1, 2), strict=True))
    graph = trace(lambda x, y: (o.relu(x), o.neg(y)),
                  [TensorType(float32, (a, 4)), TensorType(float32, (b, a))], ["x", "y"])
    m = Module(graph, ("p", "q"), {pair[0]: Symbol(pair[0], 1, 8),
                                   pair[1]: Symbol(pair[1], 1, 8, None, 2)},
               requires=(Equation(a, b),))
    program = lower(passes.run(m, supply={"target": TARGET}), TARGET)
    bad = {"x": np.zeros((3, 4), np.float32), "y": np.zeros((2, 3), np.float32)}
    odd = {"x": np.zeros((3, 4), np.float32), "y": np.zeros((3, 3), np.float32)}
    made = build(passes.run(m, supply={"target": TARGET}), tmp_path / "b", target=TARGET, jobs=2)
    model = runtime.load(made)
    told = [f"{m.requires[0]} does not hold: 3 and 2", f"{divides(m.symbols[pair[1]])} does not"]
    for inputs, text in zip((bad, odd), told, strict=True):
        for run in (lambda x: interp.run(m, x), lambda x: execute(program, x, {}), model.run):
            with pytest.raises(InputError) as caught:
                run(inputs)
            assert text in caught.value.message
    assert {d.name for d in model.manifest.dims} == set(m.symbols)
    assert {s.text for s in rule_statuses(program)} == {
        f"{m.requires[0]} does not hold", f"{divides(m.symbols[pair[1]])} does not hold"}


@given(st.sampled_from(["n", "i0", "acc", "k", "x", "", "é"]), st.integers(0, 3))
def test_each_name_has_one_in_a_program(stem: str, more: int) -> None:
    name = stem + "_" * more
    assert by_author(in_program(name)) == name
    assert own_names(module("n_")).symbols.keys() == {"n__"}
