"""Products with packed weights of few bits at every vector width: many rows and few, slabs of
columns, rows of weights that fill no panel; with exact activations and with rounded ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.packed import UNIT
from graphtool.kernels.linear_nbits import WIDENED
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named

Array = np.ndarray[Any, Any]
Case = tuple[int, int, int, int, int, bool]
MARCHES = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "generic")
CASES: list[Case] = [  # rows, columns, rows of weights, bits, block, with zero points
    (33, WIDENED + 70, 41, 4, 32, True), (16, 90, 70, 8, 16, False), (20, 130, 9, 2, 64, True),
    (15, 96, 40, 4, 32, False), (17, 64, 33, 4, 128, False), (45, 100, 33, 4, 32, False)]
FEW: list[Case] = [  # a row and several, a last panel and a last block that are not full
    (1, 1000, 130, 4, 32, False), (1, 70, 16, 8, 32, True), (2, 96, 111, 2, 16, False),
    (5, 130, 79, 2, 64, True), (13, 200, 125, 4, 32, True), (24, 300, 111, 8, 128, False),
    (3, 64, 81, 4, 8, True)]


def products(cases: Sequence[Case], seed: int, **attrs: Any) -> tuple[Module, dict[str, Array]]:
    """A module of one product for each case, and operands for it."""
    rng, xs, calls = np.random.default_rng(seed), {}, []
    for i, (m, k, n, bits, block, shifted) in enumerate(cases):
        blocks = -(-k // block)
        xs[f"x{i}"] = rng.standard_normal((m, k)).astype(np.float32)
        tables = [rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
                  rng.random((n, blocks), np.float32)]
        tables += [rng.random((n, blocks), np.float32) * 9] if shifted else []
        calls.append(lambda x, tables=tables, bits=bits, block=block: o.linear_nbits(
            x, *map(x.builder.constant, tables), bits=bits, block=block, **attrs))
    graph = trace(lambda *xs: tuple(c(x) for c, x in zip(calls, xs, strict=True)),
                  [TensorType(dtypes.float32, x.shape) for x in xs.values()], list(xs))
    return Module(graph, tuple(f"y{i}" for i in range(len(cases)))), xs


def built(module: Module, path: Path, march: str, text: str = "") -> Any:
    """The library of the module for this target."""
    ready = passes.run(module, *([text] if text else []), supply={"target": named(march)})
    return graphtool.load(build(ready, path, target=named(march)))


@pytest.mark.part(2)
@pytest.mark.parametrize("march", MARCHES)
def test_rows(march: str, tmp_path: Path) -> None:
    module, xs = products(CASES, 0)
    got = built(module, tmp_path / "b", march)(**xs)
    for name, y in interp.run(module, xs).items():
        np.testing.assert_allclose(got[name], y, rtol=1e-4, atol=1e-5 * np.abs(y).max())


@pytest.mark.part(2)
@pytest.mark.parametrize("march", MARCHES)
def test_few_rows(march: str, tmp_path: Path) -> None:
    module, xs = products(FEW, 4)
    xs["x2"][1, 95] = np.nan
    ready = passes.run(module, supply={"target": named(march)})
    assert sum(n.op.name == "linear_f32" for n in ready.graph.nodes) == len(FEW)
    got = graphtool.load(build(ready, tmp_path / "b", target=named(march)))(**xs)
    for name, y in interp.run(module, xs).items():
        np.testing.assert_allclose(got[name], y, rtol=1e-4, atol=1e-5 * np.nanmax(np.abs(y)))


@pytest.mark.part(2)
@pytest.mark.parametrize("march", MARCHES)
def test_an_open_number_of_rows(march: str, tmp_path: Path) -> None:
    """Few rows and many by one library."""
    _, xs = products([(50, 100, 75, 4, 32, True)], 5)
    rng, rows = np.random.default_rng(5), symbol("n", 0, 60)
    tables = [rng.integers(0, 256, (75, 4, 16)).astype(np.uint8),
              rng.random((75, 4), np.float32), rng.random((75, 4), np.float32) * 9]
    graph = trace(lambda x: o.linear_nbits(x, *map(x.builder.constant, tables), bits=4, block=32),
                  [TensorType(dtypes.float32, (rows, 100))], ["x"])
    module = Module(graph, ("y",), {"n": Symbol("n", 0, 60)})
    library = built(module, tmp_path / "b", march)
    for count in (0, 1, 7, 24, 25, 50):
        x = xs["x0"][:count]
        want = interp.run(module, {"x": x})["y"]
        np.testing.assert_allclose(library(x=x)["y"], want, rtol=1e-4, atol=1e-4)


# rows, columns, rows of weights, bits, block, with zero points: one row and few, the last of them
# beyond a tile; blocks of one step of a matrix unit, of two, and of less than one; K within a block
ROUNDED: list[Case] = [
    (1, 1024, 50, 4, 32, False), (1, 70, 16, 8, 32, True), (5, 130, 41, 2, 64, True),
    (33, 200, 37, 4, 32, False), (40, 96, 16, 4, 16, True), (8, 300, 33, 8, 128, False),
    (17, 64, 1, 4, 8, True), (19, 100, 20, 8, 4, False), (130, 9000, 18, 4, 32, False),
    (12, 96, 24, 4, 96, False)]


@pytest.mark.part(6)
@pytest.mark.parametrize("march", MARCHES)
def test_activations_of_8_bits(march: str, tmp_path: Path) -> None:
    module, xs = products(ROUNDED, 1, activations="q8")
    xs["x3"][:, 64:96] = 0.0
    xs["x4"][7] = 1e-35
    got = built(module, tmp_path / "b", march)(**xs)
    for (name, y), case in zip(interp.run(module, xs).items(), ROUNDED, strict=True):
        if named(march).amx and case[0] >= UNIT:  # in bfloat16, which has more digits
            assert np.sqrt(np.mean((got[name] - y)**2) / np.mean(y**2)) < 0.01
        else:
            np.testing.assert_allclose(got[name], y, rtol=1e-4, atol=2e-6 * np.abs(y).max())


def test_many_rows_in_bfloat16(tmp_path: Path) -> None:
    module, xs = products(ROUNDED, 1, activations="q8")
    target = named("amx")
    ready = passes.run(module, supply={"target": target})
    assert {"linear_bf16", "linear_q8"} <= {n.op.name for n in ready.graph.nodes}
    got = graphtool.load(build(ready, tmp_path / "b", target=named("native")))(**xs)
    for name, y in interp.run(ready, xs).items():
        np.testing.assert_allclose(got[name], y, rtol=1e-3, atol=2e-4 * np.abs(y).max())


@pytest.mark.part(4)
@pytest.mark.parametrize("march", MARCHES)
def test_a_row_that_is_not_finite_gives_no_number(march: str, tmp_path: Path) -> None:
    module, xs = products([(3, 70, 20, 4, 32, False), (20, 70, 20, 4, 32, True)], 2,
                          activations="q8")
    xs["x0"][1, 69], xs["x1"][5, 3], xs["x1"][19, 40] = np.nan, np.inf, -np.inf
    got = built(module, tmp_path / "b", march)(**xs)
    for name, y in interp.run(module, xs).items():
        assert np.array_equal(np.isfinite(got[name]), np.isfinite(y))
    assert np.isnan(got["y0"]).all(1).tolist() == [False, True, False]
    assert np.flatnonzero(~np.isfinite(got["y1"]).any(1)).tolist() == [5, 19]
    assert np.isfinite(got["y1"][0]).all()
