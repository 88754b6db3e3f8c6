"""What several loops over a row read is computed once where the result has bytes; a softmax divides
by means of an inverse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.target import named


def to_bytes(x: Any, scale: float, zero: float = 0.0) -> Any:
    return o.cast(o.round(x / scale) + zero, dtype=dtypes.uint8)


def softmax_of_bytes(x: Any) -> Any:
    return to_bytes(o.softmax(x, axis=-1), 1 / 255)


def norm_between_bytes(x: Any) -> Any:
    real = o.cast(o.cast(to_bytes(x, 0.03, 117.0), dtype=dtypes.int32) - 117,
                  dtype=dtypes.float32) * 0.03
    centred = real - o.reduce_mean(real, axes=(1,))
    scale = o.rsqrt(o.reduce_mean(centred * centred, axes=(1,)) + 1e-5)
    return to_bytes(centred * scale, 0.04, 128.0)


def without_greatest(x: Any) -> Any:
    y = o.exp(x)
    return to_bytes(y / o.reduce_sum(y, axes=(1,)), 1 / 255)


def greatest_of_others(x: Any) -> Any:
    y = o.exp(x - o.reduce_max(x * 0.5, axes=(1,)))
    return to_bytes(y / o.reduce_sum(y, axes=(1,)), 1 / 255)


# name: function, length of a row, texts that its C has, and texts that it lacks
CASES: dict[str, tuple[Callable[..., Any], int, tuple[str, ...], tuple[str, ...]]] = {
    "softmax": (softmax_of_bytes, 197,
                ("kept_acc1[1576]", "gt_exponentials_f32(", "] * over_acc1"), ()),
    "softmax, long": (softmax_of_bytes, 1500, ("over_acc1 = 1.0f / acc1",), ("kept_",)),
    "softmax, short": (softmax_of_bytes, 9, ("kept_acc1[72]",), ("gt_exponentials",)),
    "floats": (lambda x: o.softmax(x, axis=-1), 70,
               ("gt_exponentials_f32(y0", "acc1, over_acc1)"), ("kept_acc",)),
    "norm": (norm_between_bytes, 96, ("kept_acc0[768]",), ("over_acc",)),
    "greatest of others": (greatest_of_others, 50, ("kept_acc1[400]",),
                           ("over_acc", "_exponentials")),
    "no greatest": (without_greatest, 50, ("kept_acc0[400]",), ("over_acc",)),
}


def rows(n: int) -> Any:
    """Numbers, then rows with an infinity, with NaN, and with nothing but infinities."""
    x = np.random.default_rng(0).normal(0, 3, (30, n)).astype(np.float32)
    x[1, 3], x[2, 5], x[3, 7], x[4], x[5] = np.inf, -np.inf, np.nan, -np.inf, 90.0
    x[6] *= 30
    return x


@pytest.mark.parametrize(("name", "march"), [*((name, "native") for name in CASES),
                                             ("softmax", "x86-64-v3"), ("norm", "x86-64")])
def test_agrees_with_the_evaluator(name: str, march: str, tmp_path: Path) -> None:
    function, n, there, missing = CASES[name]
    target = named(march, 2)
    graph = trace(function, [TensorType(dtypes.float32, (30, n))], ["x"])
    module = passes.run(Module(graph, ("y",)), supply={"target": target})
    built = build(module, tmp_path / "build", target=target, jobs=2)
    text = "".join(p.read_text() for p in built.glob("*_kernels*.c"))
    assert all(t in text for t in there) and not any(t in text for t in missing), text
    with np.errstate(all="ignore"):
        want = interp.run(module, {"x": rows(n)})["y"]
    for threads in (1, 2):
        got = runtime.load(built, threads).run({"x": rows(n)})["y"]
        if want.dtype == np.float32:
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-37)
        else:  # an exponential and a sum may differ in the last bit, and a byte then by 1
            apart = np.abs(got.astype(int) - want)
            assert apart.max() <= 1 and (apart > 0).mean() < 0.002
