"""Which light nodes each kernel computes again, and which are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType, Value
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.passes.fuse import fuse

WEIGHTS = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
ROWS, FEW = TensorType(dtypes.float32, (128, 64)), TensorType(dtypes.float32, (2, 64))


def dense(x: Any) -> Any:
    return o.linear(x, x.builder.constant(WEIGHTS), None)


def normalised(x: Any) -> Any:
    """x is stored for the product of the last line, and x·x and 2·x need not be."""
    x = dense(x)
    mean = o.reduce_mean(x * x, axes=(1,))
    return o.tanh(x * 2.0 * o.rsqrt(mean + 1.0)) + x


def product_reads(x: Any) -> Any:
    """A product cannot compute 2·x where it reads it."""
    x = dense(x)
    return dense(x * 2.0) + o.tanh(o.reduce_sum(x, axes=(1,))) * x


def not_stored(x: Any) -> Any:
    """x is read by its absolute values only."""
    x = o.abs(dense(x))
    return x + o.tanh(o.reduce_sum(x, axes=(1,)))


def wider(x: Any) -> Any:
    """The half of x is stored in fewer bytes than x has."""
    x = dense(x)
    half = o.cast(x, dtype=dtypes.float16)
    total = o.tanh(o.reduce_sum(x, axes=(1,)))
    return o.cast(half * o.cast(total, dtype=dtypes.float16), dtype=dtypes.float32) * x


def centred(x: Any) -> Any:
    """x is stored; x - mean need not be, though only it reads the means."""
    x = dense(x)
    total = o.reduce_sum(x, axes=(0, 1))
    apart = x - total
    return apart * o.rsqrt(o.reduce_sum(apart * apart, axes=(0, 1)) + 1.0)


def stored(module: Module) -> Counter[str]:
    """How many values of each op kernels hand to other kernels."""
    graph = module.graph
    unit = {n: i for i, g in enumerate(graph.groups) for n in g.members}
    readers: dict[Value, set[object]] = {}
    for n in graph.nodes:
        for x in n.inputs:
            if isinstance(x, Value):
                readers.setdefault(x, set()).add(unit.get(n, n))
    return Counter(n.op.name for n in graph.nodes for v in n.outputs
                   if readers.get(v, set()) - {unit.get(n, n)})


def ready(function: Callable[[Any], Any], kind: TensorType = ROWS) -> Module:
    return passes.run(Module(trace(function, [kind], ["x"]), ("y",)))


def test_copies() -> None:
    module = ready(normalised)
    found = stored(module)
    assert not found["mul"], found
    assert Counter(n.op.name for n in module.graph.nodes)["mul"] >= 3
    assert not stored(ready(centred))["sub"]


@pytest.mark.parametrize(("function", "kind", "op"), [
    (product_reads, ROWS, "mul"), (not_stored, ROWS, "abs"), (wider, ROWS, "cast"),
    (normalised, FEW, "mul")])
def test_stored(function: Callable[[Any], Any], kind: TensorType, op: str) -> None:
    assert stored(ready(function, kind))[op]


def test_no_copy_is_the_same_graph() -> None:
    graph = ready(not_stored).graph
    assert fuse(graph).nodes is graph.nodes


@pytest.mark.parametrize("function", [normalised, product_reads, not_stored, wider, centred])
def test_results(function: Callable[[Any], Any], tmp_path: Path) -> None:
    module = Module(trace(function, [ROWS], ["x"]), ("y",))
    x = {"x": np.random.default_rng(2).normal(size=(128, 64)).astype(np.float32)}
    got = runtime.load(build(passes.run(module), tmp_path / "b")).run(x)
    np.testing.assert_allclose(got["y"], interp.run(module, x)["y"], rtol=2e-3, atol=2e-3)
