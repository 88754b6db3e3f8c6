"""Elements that are read at positions from data, in strips; constant positions, in runs; scatters
that compute their indices; sums over tall columns and over images, in rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named
from tests.passes.pass_samples import module


def columns(x: Any, i: Any) -> Any:
    return o.transpose(o.gather(x, i, axes=(1,)), perm=(1, 0))


def elements(x: Any, i: Any) -> Any:
    return o.gather(x, i, axes=(1,), batch=1) * 2.0


def rounded(x: Any, i: Any) -> Any:
    return o.cast(o.round(columns(x, i) * 20.0) + 3.0, dtype=dtypes.uint8)


def pairs(x: Any, i: Any, j: Any) -> Any:
    at = o.concat(o.reshape(i, shape=(300, 1)), o.reshape(j, shape=(300, 1)), axis=1)
    return o.select(o.lt(i, 4), o.gather(x, at, axes=(0, 1)), 0.5)


def reflected(x: Any) -> Any:
    table = [*range(5, 0, -1), *range(70), *range(68, 60, -1)]
    return columns(x, x.builder.constant(np.array(table, np.int64).reshape(-1, 1)))


def jumping(x: Any) -> Any:
    table = np.arange(70, dtype=np.int64) * 37 % 70
    return columns(x, x.builder.constant(table.reshape(-1, 1)))


def written(x: Any, i: Any, u: Any) -> Any:
    last = o.select(o.lt(i, 20), i + 20, i)
    return o.scatter(x, o.reshape(last, shape=(60, 40, 1)), u, axes=(1,), batch=1, kind="add")


def across(x: Any, i: Any, u: Any) -> Any:
    x, i, u = (o.transpose(v, perm=(1, 0)) for v in (x, i, u))
    y = o.scatter(x, o.reshape(i + 1, shape=(70, 30, 1)), u, axes=(1,), batch=1, kind="add")
    return o.transpose(y, perm=(1, 0))


def summed(x: Any, i: Any, u: Any) -> Any:
    return o.scatter(x, o.reshape(i, shape=(300, 1)), u, axes=(0,), batch=0, kind="add")


def standardised(x: Any) -> Any:
    d = x - o.reshape(o.reduce_mean(x, axes=(2, 3)), shape=(2, 3, 1, 1))
    return d / o.sqrt(o.reshape(o.reduce_mean(d * d, axes=(2, 3)), shape=(2, 3, 1, 1)) + 1e-5)


ROW = "gt_row_at_f32("
# function, types of the inputs, what all indices are below, texts that the C has, and ones it lacks
CASES: dict[str, tuple[Any, tuple[str, ...], int, tuple[str, ...], tuple[str, ...]]] = {
    "columns": (columns, ("f32[9,50]", "i64[300,1]"), 50, (ROW,), ()),
    "elements": (elements, ("f32[9,50]", "i64[9,259,1]"), 50, (ROW,), ()),
    "rounded": (rounded, ("f32[9,50]", "i64[300,1]"), 50, (ROW, "gt_row_round_u8("), ()),
    "rounded at bytes": (lambda x, i: rounded(x, o.cast(i, dtype=dtypes.int32)),
                         ("f32[9,50]", "u8[300,1]"), 50, (ROW, "gt_row_round_u8("), ()),
    "pairs": (pairs, ("f32[6,7]", "i64[300]", "i64[300]"), 6, (ROW,), ()),
    "short": (columns, ("f32[9,50]", "i64[7,1]"), 50, (), (ROW,)),
    "runs": (reflected, ("f32[40,70]",), 1, (), (ROW, "at0")),
    "no runs": (jumping, ("f32[40,70]",), 1, (ROW,), ()),
    "written": (written, ("f32[60,40]", "i64[60,40]", "f32[60,40]"), 20,
                ("const int64_t at0",), ()),
    "across": (across, ("f32[40,70]", "i64[30,70]", "f32[30,70]"), 39,
               ("y0[at0 * 70 + i2]",), ()),
    "wide rows": (summed, ("f32[60,64]", "i64[300]", "f32[300,64]"), 60,
                  ("gt_part(64, t, threads)",), ()),
    "narrow rows": (summed, ("f32[60,7]", "i64[300]", "f32[300,7]"), 60, (), ("gt_part(",)),
    "tall": (lambda x: o.reduce_sum(x, axes=(0,)), ("f32[37,128]",), 1, ("r0 * 128]",),
             ("acc0",)),
    "image": (standardised, ("f32[2,3,9,11]",), 1, ("gt_part(99, t, threads)",), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_interpreter(name: str, tmp_path: Path) -> None:
    function, types, below, has, lacks = CASES[name]
    best = passes.run(module(function, *types), supply={"march": "native"})
    text = "".join(t for n, t in emit(lower(best, named("native"))).items()
                   if "_kernels" in n and n.endswith(".c"))
    assert all(t in text for t in has), text
    assert not any(t in text for t in lacks), text
    inputs = made_up.random_inputs(best, 1)
    rng = np.random.default_rng(2)
    for key, x in inputs.items():
        if x.dtype.kind == "i":
            inputs[key] = rng.integers(0, below, x.shape)
    got = runtime.load(build(best, tmp_path / "b", target="native")).run(inputs)
    for key, want in interp.run(best, inputs).items():
        np.testing.assert_allclose(got[key], want, rtol=1e-5, atol=1e-5)
