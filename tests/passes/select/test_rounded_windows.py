"""In `fast`, the largest numbers of windows are found among rounded ones where only these are
read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import rules_of
from graphtool.passes import run
from graphtool.target import named
from tests.passes.pass_samples import module, values

WINDOWS = {"kind": "max", "window": (1, 3, 3, 1), "strides": (1, 2, 2, 1)}
AROUND = ((0, 0), (1, 1), (1, 1), (0, 0))


def network(kind: str = "max", padding: Any = AROUND, also: str = "", c: int = 32) -> Module:
    """A convolution to c channels, a pool and a convolution; `also` is what else reads a value
    between them."""
    def fn(x: Any) -> Any:
        y = o.relu(o.conv(x, values(x, c, 32, 1, 1), channels_last=True))
        z = o.reduce_window(y, **{**WINDOWS, "kind": kind}, padding=padding)
        last = o.conv(z, values(x, 64, c, 1, 1), channels_last=True)
        return {"": last, "image": (last, o.reduce_sum(y, axes=(1, 2))), "result": (last, z + 1.0),
                "branch": (last, o.conv(y, values(x, 8, c, 3, 3), channels_last=True))}[also]
    return module(fn, "f32[1,30,30,32]")


def pooled(before: Module, precision: str = "fast") -> tuple[Module, list[Any]]:
    done = run(before, None, supply={"target": named("amx"), "rules": rules_of(precision)})
    pools = [n for n in done.graph.nodes if n.op.name in ("pooled", "reduce_window")]
    return done, [n.inputs[0].type.dtype for n in pools]


@pytest.mark.parametrize("padding", [None, AROUND])
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("also", ["", "branch"])
def test_extremes_of_rounded_numbers(kind: str, padding: Any, also: str) -> None:
    before = network(kind, padding, also)
    done, read = pooled(before)
    assert read == [dtypes.bfloat16]
    x = {"x0": np.random.default_rng(0).standard_normal((1, 30, 30, 32)).astype(np.float32)}
    for want, got in zip(interp.run(before, x).values(), interp.run(done, x).values(),
                         strict=True):
        assert float(np.abs(got - want).max()) < 0.02 * float(np.abs(want).max())


@pytest.mark.parametrize(("kind", "also", "precision"), [
    ("sum", "", "fast"), ("max", "image", "fast"), ("max", "result", "fast"),
    ("max", "", "default")])
def test_what_is_read_in_full_stays_so(kind: str, also: str, precision: str) -> None:
    assert pooled(network(kind, also=also), precision)[1] == [dtypes.float32]


def test_few_channels_stay_as_they_are() -> None:
    assert pooled(network(c=12))[1] == [dtypes.float32]


def test_the_result_is_that_of_rounding_afterwards() -> None:
    """Rounding keeps the order, of infinities and NaN too."""
    x = np.random.default_rng(0).standard_normal((1, 9, 9, 16)).astype(np.float32)
    x[0, 4, 4, :3] = np.nan, np.inf, -np.inf

    def before(v: Any) -> Any:
        return o.cast(o.reduce_window(v, **WINDOWS), dtype=dtypes.bfloat16)

    def after(v: Any) -> Any:
        return o.reduce_window(o.cast(v, dtype=dtypes.bfloat16), **WINDOWS)
    (want,), (got,) = (tuple(interp.run(module(fn, "f32[1,9,9,16]"), {"x0": x}).values())
                       for fn in (before, after))
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(want, np.float32))
