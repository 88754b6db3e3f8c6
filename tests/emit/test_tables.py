"""Bytes by a table of bytes: where the loop is one call, and that no entry is confused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.emit.c import emit
from graphtool.ir.graph import Module
from graphtool.lower import lower
from graphtool.target import named
from tests.lower.compiling import compiled
from tests.passes.pass_samples import module

CALL = "gt_row_by_table("
TABLE = np.random.default_rng(3).permutation(256)


def looked_up(table: Any, types: str) -> Module:
    """A constant table at bytes, in an image of which the rows have a border."""
    def function(x: Any) -> Any:
        at = o.reshape(o.cast(x, dtype=dtypes.int64), shape=(*x.type.shape, 1))
        return o.pad(o.gather(x.builder.constant(table), at, axes=(0,)), lo=(0, 1), hi=(0, 2),
                     value=7)
    return passes.run(module(function, types), supply={"target": named("x86-64", 2)})


def text(m: Module) -> str:
    return "".join(t for n, t in emit(lower(m, named("x86-64", 2))).items() if "_kernels" in n)


@pytest.mark.parametrize(("table", "types", "found"), [
    (TABLE.astype(np.uint8), "u8[5,131]", True),
    ((TABLE - 128).astype(np.int8), "u8[5,131]", True),
    (TABLE.astype(np.uint8)[:255], "u8[5,131]", False),  # its end would be read
    (TABLE.astype(np.uint8), "i8[5,131]", False),
    (TABLE.astype(np.int16), "u8[5,131]", False),
])
def test_where_a_row_is_looked_up(table: Any, types: str, found: bool) -> None:
    assert (CALL in text(looked_up(table, types))) == found


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "native"])
def test_every_entry_is_found(target: str, tmp_path: Path) -> None:
    m = looked_up(TABLE.astype(np.uint8), "u8[5,131]")
    x = np.resize(np.arange(256), (5, 131)).astype(np.uint8)
    (want,) = interp.run(m, {"x0": x}).values()
    model = compiled(m, tmp_path / "m", eager=True, target=target)
    for model.threads in (1, 2):
        (got,) = model.run({"x0": x}).values()
        np.testing.assert_array_equal(got, want)
