"""Outputs donated from inputs: updated in place, whatever else reads the donors, on two threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower.units import Unit, schedule
from graphtool.native import runtime

N = 96
SQUARE = TensorType(dtypes.float32, (N, N))


def update(p: Any, m: Any, x: Any) -> Any:
    """Two states in one kernel, one of which is made of the other's new value."""
    new = m * 0.9 + o.matmul(x, p, transpose_a=True)
    return p - new * 0.1, new


def swap(p: Any, m: Any, x: Any) -> Any:
    return m, p


def crossed(p: Any, m: Any, x: Any) -> Any:
    return p + m * x, m - p


def transposed(p: Any, m: Any, x: Any) -> Any:
    return o.transpose(p, perm=(1, 0)) + x, m * 2.0


def row_sums(p: Any, m: Any, x: Any) -> Any:
    return p - o.reduce_sum(p, axes=(1,)), m + o.reduce_max(p, axes=(0,))


def read_late(p: Any, m: Any, x: Any) -> Any:
    new = p * 0.5 + x
    return new, o.matmul(new, p) + m


def unchanged(p: Any, m: Any, x: Any) -> Any:
    return p, m + p


def permuted(p: Any, m: Any, x: Any) -> Any:
    return o.transpose(m, perm=(1, 0)), o.reverse(p, axes=(0,))


def shifted(p: Any, m: Any, x: Any) -> Any:
    """Parts of one state, each moved on by new rows once all that reads that part has run."""
    top, rest = p.take(0, 0, 40), p.take(0, 40, N)
    long = o.concat(top, x.take(0, 0, 8), axis=0)
    more = o.concat(rest, o.matmul(long.take(0, 8, 48), x).take(0, 0, 3), axis=0)
    return o.concat(long.take(0, 8, 48), more.take(0, 3, N - 37), axis=0), m + o.reduce_sum(
        more, axes=(0,))


def exchanged(p: Any, m: Any, x: Any) -> Any:
    return o.concat(p.take(0, 48, N), p.take(0, 0, 48), axis=0), o.concat(
        m.take(1, 8, N), x.take(1, 0, 8), axis=1)


CASES: list[Callable[..., Any]] = [update, swap, crossed, transposed, row_sums, read_late,
                                   unchanged, permuted, shifted, exchanged]


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("threads", [1, 2])
def test_in_place(case: Callable[..., Any], threads: int, tmp_path: Path) -> None:
    graph = trace(lambda p, m, x: (*case(p, m, x), o.reduce_sum(x * p, axes=(1,))),
                  [SQUARE] * 3, ["p", "m", "x"])
    module = Module(graph, ("p", "m", "s"), donations=((0, 0), (1, 1)))
    rng = np.random.default_rng(0)
    inputs = {n: rng.standard_normal((N, N)).astype(np.float32) for n in "pmx"}
    want = interp.run(replace(module, donations=()), inputs)
    again = interp.run(module, {**inputs, "p": want["p"], "m": want["m"]})
    build(passes.run(module), tmp_path / "b")
    model = runtime.load(tmp_path / "b", threads)
    held = {n: a.copy() for n, a in inputs.items()}
    found = model.run(held)
    assert all(np.array_equal(held[n], inputs[n]) for n in "pmx")
    found = model.run(held, out={n: held[n] for n in "pm"})
    assert found["p"] is held["p"] and found["m"] is held["m"]
    for name, a in want.items():
        np.testing.assert_allclose(found[name], a, rtol=2e-4, atol=2e-4, err_msg=name)
    model.call()
    for name, a in again.items():
        np.testing.assert_allclose(found[name], a, rtol=2e-3, atol=2e-3 * np.abs(a).max())


def test_overwriting_units_keep_the_order_of_the_graph() -> None:
    graph = trace(lambda *xs: tuple(x + 1.0 for x in xs), [SQUARE] * 12)
    made = {n: Unit((n,), n.outputs, "nest", "") for n in reversed(graph.nodes)}
    ordered = [made[n] for n in graph.nodes]
    assert schedule(graph, ordered, {unit: set() for unit in ordered}) == ordered
