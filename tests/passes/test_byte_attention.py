"""Attention of quantised numbers in one kernel: found, declined, compiled as it is evaluated."""

from __future__ import annotations

from dataclasses import replace
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
from graphtool.kernels.choice.rules import rules_of
from graphtool.target import named
from tests.lower.test_amx import TARGETS
from tests.passes.test_integer import quantised, real

# heads; queries, keys; length of queries, of values
SIZES = [(2, 37, 70, 64, 130), (1, 65, 197, 100, 33),
         pytest.param((3, 32, 3, 4, 5), marks=pytest.mark.slow)]
USUAL = (2, 37, 70, 64, 64)


def attention(q: Any, k: Any, v: Any, low: int = 0, zero: int = 100) -> Any:
    """As a model quantised throughout writes it, with the zero points of weights and of scores."""
    scores = o.matmul(real(q, 0.02, 120), real(k, 0.025, 130), transpose_b=True)
    scores = real(quantised(scores, 0.05, 100), 0.05, zero)
    weights = real(quantised(o.softmax(scores, axis=-1), 1 / 255, low), 1 / 255, low)
    return quantised(o.matmul(weights, real(v, 0.03, 140)), 0.05, 127)


def module(sizes: tuple[int, ...], function: Any = attention,
           names: tuple[str, ...] = ("y",)) -> Module:
    heads, s, t, d, v = sizes
    shapes = ((heads, s, d), (heads, t, d), (heads, t, v))
    return Module(trace(function, [TensorType(dtypes.uint8, x) for x in shapes], ["q", "k", "v"]),
                  names)


def feeds(m: Module) -> dict[str, Any]:
    """Bytes of all values for values, and near their zero points for queries and keys."""
    rng = np.random.default_rng(3)
    return {name: (rng.integers(0, 256, x.type.shape) if name == "v" else
                   np.clip(rng.normal(125, 12, x.type.shape), 0, 255)).astype(np.uint8)
            for name, x in zip("qkv", m.graph.inputs, strict=True)}


def takes(m: Module, target: Any = TARGETS["tiles"], **more: Any) -> bool:
    after = passes.run(m, supply={"target": target, **more})
    return any(n.op is o.attend_bytes for n in after.graph.nodes)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_agrees(sizes: tuple[int, ...], target: str, tmp_path: Path) -> None:
    """With floats within a step, and C with the evaluator but where a sum lies between two
    steps."""
    before = module(sizes)
    after = passes.run(before, supply={"target": TARGETS[target]})
    assert any(n.op is o.attend_bytes for n in after.graph.nodes)
    xs = feeds(before)
    (want,), (same,) = interp.run(before, xs).values(), interp.run(after, xs).values()
    assert want.std() > 1
    assert np.abs(same.astype(int) - want).max() <= 1
    built = build(after, tmp_path / "b", target=replace(TARGETS[target], threads=2))
    for threads in (1, 2):
        (got,) = graphtool.load(built, threads=threads)(**xs).values()
        assert np.abs(got.astype(int) - same).max() <= 1
        assert (got != same).mean() < 0.001


@pytest.mark.parametrize("target", TARGETS)
def test_scores_at_the_ends_of_their_bytes(target: str, tmp_path: Path) -> None:
    """Steps so small that all weights are equal, and so large that one key has all of it."""
    def both(*x: Any) -> Any:
        return tuple(o.attend_bytes(*x, x[0].builder.constant(
            np.array([0, 255, 1.0, 7, step, 0, 255], np.float32))) for step in (1e-6, 3.0))
    m = module((2, 40, 33, 16, 8), both, ("y", "z"))
    rng = np.random.default_rng(0)
    xs = {name: rng.choice(np.array([0, 1, 254, 255], np.uint8), x.type.shape)
          for name, x in zip("qkv", m.graph.inputs, strict=True)}
    built = build(passes.run(m, "fuse", supply={"target": TARGETS[target]}), tmp_path / "b",
                  target=TARGETS[target])
    outs = graphtool.load(built)(**xs)
    for name, want in interp.run(m, xs).items():
        np.testing.assert_allclose(outs[name], want, atol=255)  # a weight between two steps
        assert (outs[name] == want).mean() > 0.99


def test_declines() -> None:
    assert takes(module(USUAL))
    assert not takes(module((2, 31, 70, 64, 64)))  # fewer queries than a block
    assert not takes(module((2, 37, 1025, 64, 64)))
    assert not takes(module(USUAL, lambda *x: attention(*x, low=1)))
    assert not takes(module(USUAL, lambda *x: attention(*x, zero=99)))
    assert not takes(module(USUAL), named("x86-64-v3"))
    assert not takes(module(USUAL), rules=rules_of("strict"))
