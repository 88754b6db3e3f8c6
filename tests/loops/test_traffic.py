"""The bytes of each step against what its shapes say."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import ops as o
from graphtool.ir.graph import Module
from graphtool.loops.program import runs
from graphtool.loops.totals import moved
from graphtool.lower import lower
from graphtool.passes import run
from graphtool.symbolic import text
from graphtool.target import named
from tests.passes.pass_samples import module, values


def bytes_of(m: Module) -> list[str]:
    program = lower(run(m, None, supply={"march": "x86-64-v3"}), named("x86-64-v3", threads=2))
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    dims = frozenset(s.name for s in program.dims)
    found = [moved(s, kernels[s.kernel], buffers, dims) for s in runs(program.steps)]
    return [text(d) if not isinstance(d, int) else str(d) for d in found]


def test_an_elementwise_step_reads_and_writes_each_element_once() -> None:
    assert bytes_of(module(lambda x, y: o.tanh(x * y + x), "f32[30,40]", "f32[30,40]")) == [
        str(3 * 30 * 40 * 4)]


def test_open_dims_stay_in_the_number() -> None:
    assert bytes_of(module(lambda x: o.exp(x), "f32[B,6]")) == ["48*B"]


def test_a_gather_counts_the_rows_it_takes_and_not_the_table() -> None:
    checked, found = bytes_of(module(lambda i: o.embedding(values(i, 5000, 8), i), "i64[10]"))
    assert int(checked) == 10 * 8 + 2 * 4 and int(found) <= 10 * 8 * (8 + 4 + 4)


@pytest.mark.parametrize("n", [64, 96])
def test_a_product_reads_its_operands_once(n: int) -> None:
    def fn(x: Any) -> Any:
        return o.relu(o.matmul(x, values(x, n, n)))
    assert sum(map(int, bytes_of(module(fn, f"f32[{n},{n}]")))) >= 3 * n * n * 4
