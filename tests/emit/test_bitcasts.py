"""The bits of each element type read as every other of its size: all pairs, in C as in Python."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import interp as loops
from graphtool.lower import lower
from graphtool.target import named
from tests.lower.compiling import compiled

TYPES = tuple(d for d in dtypes.TABLE if d.bits <= 64)
PAIRS = tuple((a, b) for a, b in product(TYPES, TYPES) if a.bits == b.bits)


def every(dtype: DType) -> np.ndarray[Any, Any]:
    """All bit patterns of up to 8 bits, else 256 of them."""
    if dtype is dtypes.bool_:
        return np.arange(256) % 2 == 1
    count = min(1 << dtype.bits, 256)
    if dtype.is_integer and dtype.is_packed:  # the sign fills the byte
        return np.arange(dtype.low, dtype.high + 1).astype(dtype.numpy)
    step = (1 << dtype.bits) // count
    fields = [n * step + n % step for n in range(count)]
    return np.array(fields, f"u{dtype.bytes}").view(dtype.numpy)


def raw(x: np.ndarray[Any, Any]) -> list[int]:
    """The bits of the elements. All NaNs are one, because C computes narrow floats in float32;
    so are the two ways to write a negative number of less than a byte."""
    dtype = dtypes.of_numpy(x.dtype)
    with np.errstate(all="ignore"):
        nan = np.isnan(x.astype(np.float64)) if dtype.is_float else np.zeros(x.shape, bool)
    bits = x.view(f"u{x.itemsize}").tolist()
    return [-1 if n else b & (1 << dtype.bits) - 1 for b, n in zip(bits, nan.tolist(),
                                                                   strict=True)]


def test_all_pairs_of_types(tmp_path: Path) -> None:
    """Stored as they are, and read again by a computation in the same kernel."""
    def both(*xs: Any) -> tuple[Any, ...]:
        out: list[Any] = []
        for (_, to), x in zip(PAIRS, xs, strict=True):
            y = o.bitcast(x, dtype=to)
            out += [y, o.select(o.eq(y, y), y, o.bitcast(x, dtype=to))]
        return tuple(out)
    arrays = [every(a) for a, _ in PAIRS]
    names = [f"{a.short}_{b.short}" for a, b in PAIRS]
    graph = trace(both, [TensorType(a, x.shape) for (a, _), x in zip(PAIRS, arrays, strict=True)],
                  names)
    module = Module(graph, tuple(f"{n}_{i}" for n in names for i in (1, 2)))
    inputs = dict(zip(names, arrays, strict=True))
    expected = interp.run(module, inputs)
    program = lower(module, named("x86-64", threads=1))
    ways = (("C", compiled(module, tmp_path / "b").run(inputs)),
            ("Python", loops.run(program, inputs, {})))
    wrong = [f"{name} in {where}" for where, found in ways for name, want in expected.items()
             if found[name].dtype != want.dtype or raw(found[name]) != raw(want)]
    assert not wrong, wrong
