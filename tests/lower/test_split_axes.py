"""Axes whose index is divided become two loops, and the results stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.target import named

TARGET = named("native", 2)
# function, operand, whether its C still divides
CASES: dict[str, tuple[Callable[..., Any], TensorType, bool]] = {
    "bytes": (lambda x: o.pack_int(x, nr=32), TensorType(dtypes.int8, (64, 96)), False),
    "bytes across": (lambda x: o.pack_int(x, nr=16, transpose=True),
                     TensorType(dtypes.int8, (40, 30)), False),
    "words": (lambda x: o.pack_int(x, nr=16), TensorType(dtypes.int16, (10, 20)), False),
    "one group": (lambda x: o.reshape(o.pack_int(x, nr=4), shape=(3, 4, 16)),
                  TensorType(dtypes.int8, (16, 12)), False),
    "two divisors": (lambda x: o.pack_int(o.reshape(x, shape=(8, 30)), nr=6),
                     TensorType(dtypes.int8, (15, 16)), True)}


@pytest.mark.parametrize("name", CASES)
def test_loops_do_not_divide(name: str, tmp_path: Path) -> None:
    fn, type_, divides = CASES[name]
    module = Module(trace(fn, [type_], ["x"]), ("y",))
    text = emit(lower(module, TARGET, name="m"))["m_kernels0.c"].partition("void m_k0")[2]
    assert divides or (" % " not in text and " / " not in text)
    low = 0 if type_.dtype.is_integer else 1
    x = (np.arange(np.prod(type_.shape)).reshape(type_.shape) % 251 - low).astype(  # type: ignore[arg-type]
        type_.dtype.numpy)
    got = runtime.load(build(module, tmp_path / "b", target=TARGET), 2).run({"x": x})["y"]
    np.testing.assert_array_equal(got, interp.run(module, {"x": x})["y"])
