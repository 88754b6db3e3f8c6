"""Kernels, bytes and memory: of the compiled program where the graph is fused, else at most."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.importers import import_source
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.report.stats import Stats, stats, stats_lines
from graphtool.target import named
from tests.cli.conftest import DIGITS
from tests.report.graphs import module

VECTOR = TensorType(dtypes.float32, (32,))
UNFUSED = ("simplify,fold,freeze,cse,decompose{layout_dependent=false},simplify,fold,layout,"
           "simplify,fold,select{march=x86-64-v3},simplify,fold,cse,dce")


def chain() -> Module:
    return module(trace(lambda x: o.relu(o.neg(o.exp(x))), [VECTOR]))


def figures(s: Stats) -> tuple[Any, ...]:
    return s.calls, s.bytes, s.peak, s.compiled


def test_three_ops_in_one_kernel_move_two_vectors() -> None:
    """Alone each op reads 128 bytes and writes 128."""
    assert figures(stats(chain())) == (3, 768, 256, False)
    assert figures(stats(passes.run(chain()))) == (1, 256, 0, True)


def test_lines_say_what_was_counted() -> None:
    before, after = (stats_lines(stats(m)) for m in (chain(), passes.run(chain())))
    assert before[4:7] == ["kernels      at most 3, each op alone, before weights are packed",
                           "bytes moved  at most 768 B", "peak memory  at most 256 B at neg"]
    assert after[4:7] == ["kernels      1", "bytes moved  256 B", "peak memory  0 B"]


@pytest.fixture(scope="module")
def digits() -> tuple[Stats, Stats]:
    """Of the demo's network just before fusion and just after it."""
    before = passes.run(import_source(DIGITS), UNFUSED)
    return stats(before), stats(passes.run(before, "fuse"))


def test_fusion_alone_raises_nothing(digits: tuple[Stats, Stats]) -> None:
    before, after = digits
    assert (before.calls, before.compiled, after.calls, after.compiled) == (20, False, 10, True)
    assert (before.flops, before.constant_bytes) == (after.flops, after.constant_bytes)
    assert (before.bytes, after.bytes) == ("139928*batch + 549928", "52040*batch + 549928")
    assert str(before.peak).startswith("18432*batch + ") and before.workspace == after.workspace
    assert after.peak == str(before.peak).replace("18432", "14592")


def test_bytes_by_op_are_those_between_kernels(digits: tuple[Stats, Stats]) -> None:
    before, after = ({r.op: r.bytes for r in s.ops} for s in digits)
    assert (before["le"], after["le"]) == ("20480*batch", 0)  # a mask never leaves its kernel
    assert before["reduce_window"] == after["reduce_window"]


def test_weights_packed_for_another_machine() -> None:
    """The program is then one for a target that can read them."""
    other = passes.run(import_source(DIGITS), supply={"target": named("armv8-a", 2)})
    assert stats(other).compiled


def test_what_is_not_lowered_has_no_program() -> None:
    """The groups are known, and the memory plan is not."""
    text = TensorType(dtypes.string, (2,))
    m = passes.run(module(trace(lambda _, x: o.relu(o.exp(x)), [text, VECTOR])))
    s = stats(m)
    assert s.fused and not s.compiled
    assert any(line.startswith("kernels      at most 1, each group alone")
               for line in stats_lines(s))
