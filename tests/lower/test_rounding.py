"""Values of a half type are rounded in C and in the interpreter where the evaluator rounds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import rules_of
from graphtool.loops import interp as loops
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named
from tests.passes.pass_samples import module

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519, 65520, -7e4, 1e30, 2**-14,
                    2**-24, 2**-25, 1.5 * 2**-25, -3e-8, 1e-10, 1e-40, 3.4e38, 1 + 2**-11,
                    1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-9], np.float32)


def added(x: Any) -> Any:
    return o.cast(x + x * 3.3, dtype=dtypes.float32)


def several(x: Any) -> Any:
    return o.gelu(x), o.softmax(x, axis=1), o.reduce_sum(x * x, axes=(0,)) * 0.1, o.abs(x) - 1.0


def ready(m: Module, precision: str) -> Module:
    return passes.run(m, None, supply={"target": named("native"), "rules": rules_of(precision)})


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("fn", [added, several])
def test_c_rounds_where_the_evaluator_does(fn: Any, dtype: str, tmp_path: Path) -> None:
    m = module(fn, f"{dtype}[9,70]")
    x = made_up.random_inputs(m, 0)
    want = interp.run(m, x)
    got = runtime.load(build(ready(m, "default"), tmp_path / "m")).run(x)
    small = module(fn, f"{dtype}[2,5]")
    y = made_up.random_inputs(small, 0)
    again = loops.run(lower(ready(small, "default"), named("native")), y, {})
    for a, b in ((got, want), (again, interp.run(small, y))):
        for name, value in b.items():  # a sum or an exponential may differ in its own last place
            one = 2.0 ** -(10 if dtype == "f16" else 7)
            np.testing.assert_allclose(a[name].astype(np.float64), value.astype(np.float64),
                                       rtol=one, atol=1e-7)
            if fn is added:
                assert a[name].tobytes() == value.tobytes()


def test_fast_keeps_the_digits(tmp_path: Path) -> None:
    m = module(added, "f16[9,70]")
    x = made_up.random_inputs(m, 0)["x0"]
    (y,) = runtime.load(build(ready(m, "fast"), tmp_path / "m")).run({"x0": x}).values()
    wide, factor = x.astype(np.float32), np.float32(np.float16(3.3))
    assert np.abs(y - (wide + wide * factor)).max() < 1e-5  # 1e-2 where each is rounded


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_rounding_alone(dtype: str, tmp_path: Path) -> None:
    narrow = dtypes.dtype(dtype)
    m = module(lambda x: o.cast(o.cast(x, dtype=narrow), dtype=dtypes.float32) * 1.0, "f32[8192]")
    bits = np.random.default_rng(0).integers(0, 2**32, 8192, np.uint32).view(np.float32)
    x = np.concatenate([SPECIAL, bits])[:8192]
    (y,) = runtime.load(build(ready(m, "default"), tmp_path / "m")).run({"x0": x}).values()
    with np.errstate(all="ignore"):
        want = x.astype(narrow.numpy).astype(np.float32)
    np.testing.assert_array_equal(y, want)
    assert (np.signbit(y) == np.signbit(want))[~np.isnan(want)].all()
