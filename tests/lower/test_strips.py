"""Loops that round, or read float16, do so by rows; what may not be read stays where it is."""

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


def narrowed(x: Any) -> Any:
    return o.cast(x, dtype=dtypes.float16)


def chained(x: Any, y: Any) -> Any:
    return o.exp(x * y) + o.relu(x)


def padded(x: Any) -> Any:
    return o.pad(x, lo=(1, 3), hi=(0, 2), value=0.5) * 3.0


def picked(x: Any, i: Any) -> Any:
    return o.gather(x, i, axes=(0,)) * 2.0


def quantised(x: Any) -> Any:
    return o.cast(o.round(x / 0.02) + 3.0, dtype=dtypes.uint8)


def centred(x: Any) -> Any:
    real = o.cast(x, dtype=dtypes.float32) * 0.25
    return o.cast(o.round(real - o.reduce_mean(real, axes=(1,))), dtype=dtypes.int8)


# function, types of the inputs, and the rows that its C has
CASES = {
    "cast": (narrowed, ("f32[2,300]",), {"gt_row_cast_f16"}),
    "cast of a transposed": (lambda x: narrowed(o.transpose(x, perm=(1, 0))) * 2.0,
                             ("f32[40,50]",), {"gt_row_cast_f16"}),
    "both ways": (chained, ("f16[3,70]", "f16[3,70]"), {"gt_row_of_f16", "gt_row_cast_f16"}),
    "not here": (lambda x, y: o.select(o.gt(y, 0.0), o.pad(x, lo=(0, 9), hi=(0, 9), value=1.0), y),
                 ("f16[3,70]", "f16[3,88]"), {"gt_row_of_f16"}),
    "open": (chained, ("f16[B,B]", "f16[B,B]"), {"gt_row_of_f16", "gt_row_cast_f16"}),
    "one for all": (chained, ("f16[3,70]", "f16[3,1]"), {"gt_row_of_f16", "gt_row_cast_f16"}),
    "edges": (padded, ("f16[5,90]",), {"gt_row_of_f16", "gt_row_cast_f16"}),
    "picked rows": (picked, ("f16[4,90]", "i64[5,1]"), {"gt_row_of_f16", "gt_row_cast_f16"}),
    "picked": (picked, ("f16[90]", "i64[50,1]"), {"gt_row_cast_f16"}),
    "bytes": (quantised, ("f32[7,100]",), {"gt_row_round_u8"}),
    "bytes of float16": (quantised, ("f16[7,100]",), {"gt_row_of_f16"}),
    "bfloat16": (lambda x: o.cast(x * 1.5, dtype=dtypes.bfloat16), ("f32[99]",),
                 {"gt_row_cast_bf16"}),
    "sums of bytes": (centred, ("u8[5,100]",), {"gt_row_of_u8"}),
    "short": (chained, ("f16[3,9,4]", "f16[1,9,1]"), set()),
    "a copy": (lambda x: o.concat(x, x, axis=1), ("f16[3,90]",), set()),
}


@pytest.mark.parametrize(("name", "march"), [*((name, "native") for name in CASES),
                                             ("cast", "x86-64"), ("both ways", "x86-64")])
def test_agrees_with_the_evaluator(name: str, march: str, tmp_path: Path) -> None:
    function, types, rows = CASES[name]
    best = passes.run(module(function, *types), supply={"march": march})
    text = "".join(t for n, t in emit(lower(best, named(march))).items() if "_kernels" in n
                   and n.endswith(".c"))
    assert {r for r in ("gt_row_of_f16", "gt_row_cast_f16", "gt_row_round_u8", "gt_row_cast_bf16",
                        "gt_row_of_u8") if r in text} == rows
    inputs = made_up.random_inputs(best, 1)
    for x in inputs.values():
        if x.dtype.kind == "f":
            x.flat[:4] = np.nan, np.inf, -np.inf, -0.0
    got = runtime.load(build(best, tmp_path / "b", target=march)).run(inputs)
    for key, want in interp.run(best, inputs).items():
        np.testing.assert_allclose(got[key].astype(np.float32), want.astype(np.float32),
                                   rtol=2e-3 if "f16" in types[0] else 0)
