"""Loops that differ only in where they begin in a buffer are one kernel of a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import interp as loops
from graphtool.loops.proofs import proofs
from graphtool.loops.serial import dumps
from graphtool.loops.serial import loads as read
from graphtool.loops.verify import verify
from graphtool.loops.verify_memory import verify_memory
from graphtool.lower import lower
from graphtool.target import named

SM_90 = named("sm_90")
PLANES = 5


def planes(columns: int) -> Module:
    """Each plane of an array, turned over: the loops differ in where they read."""
    def fn(x: Any) -> list[Any]:
        parts = (o.slice(x, start=(i, 0, 0), limit=(i + 1, 4, columns), strides=(1, 1, 1))
                 for i in range(PLANES))
        return [o.transpose(part * 2.0, perm=(0, 2, 1)) for part in parts]
    graph = trace(fn, [TensorType(dtypes.float32, (PLANES, 4, columns))], ["x"])
    return Module(graph, tuple(f"y{i}" for i in range(PLANES)))


def test_a_run_passes_the_place() -> None:
    """It counts pieces of 16 bytes, and the artifact holds it."""
    m = planes(12)
    program = lower(m, SM_90, name="model")
    (kernel,) = program.kernels
    assert [n.dtype for n in kernel.numbers] == [dtypes.int64]
    assert [step.numbers for step in program.steps] == [(12 * i,) for i in range(PLANES)]
    again = read(dumps(program))
    assert dumps(again) == dumps(program)
    verify(again)
    xs = {"x": np.arange(PLANES * 48, dtype=np.float32).reshape(PLANES, 4, 12)}
    want = interp.run(m, xs)
    assert all(np.array_equal(y, want[name]) for name, y in loops.run(again, xs, {}).items())
    assert not any(k.outside for k in proofs(again).kernels)


@pytest.mark.parametrize("further", [1, -100])
def test_a_place_outside_of_the_buffer_is_refused(further: int) -> None:
    program = lower(planes(12), SM_90, name="model")
    verify_memory(program)
    steps = tuple(replace(s, numbers=(s.numbers[0] + further,)) for s in program.steps)
    with pytest.raises(InputError, match="GT0375"):
        verify_memory(replace(program, steps=steps))


def test_places_that_are_not_aligned_stay_in_the_text() -> None:
    """Planes of 36 bytes: pieces of 16 bytes could not be read of them."""
    program = lower(planes(9), SM_90, name="model")
    assert len(program.kernels) == 1  # 4·9 elements: a multiple of 16 bytes
    x = TensorType(dtypes.float32, (PLANES, 9))
    rows = trace(lambda x: [o.exp(o.slice(x, start=(i, 0), limit=(i + 1, 9), strides=(1, 1)))
                            for i in range(PLANES)], [x], ["x"])
    apart = lower(Module(rows, tuple(f"y{i}" for i in range(PLANES))), SM_90, name="model")
    assert len(apart.kernels) == 4  # the first and the last plane begin alike
