"""FLOPs, bytes and peak memory against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis import costs
from graphtool.ir.graph import TensorType
from graphtool.ir.op import OPS
from graphtool.ir.trace import trace
from graphtool.symbolic import Dim, symbol, text

F = dtypes.float32
B = symbol("B", 1, None)
CASES: list[tuple[Any, list[tuple[Dim, ...]], str, str]] = [  # op, shapes, FLOPs, bytes
    (lambda a, b: o.matmul(a, b), [(2, 3), (3, 5)], "60", "124"),
    (lambda a, b: o.matmul(a, b, transpose_a=True), [(3, 2), (3, 5)], "60", "124"),
    (lambda a, b: o.matmul(a, b), [(B, 3), (3, 5)], "30*B", "32*B + 60"),
    (lambda x, w: o.conv(x, w, padding=((1, 1), (1, 1))), [(1, 3, 8, 8), (4, 3, 3, 3)], "13824",
     "2224"),
    (lambda x, w: o.conv(x, w, groups=3), [(1, 3, 8, 8), (3, 1, 3, 3)], "1944", "1308"),
    (lambda a, b: o.add(a, b), [(4, 4), (4,)], "16", "144"),
    (lambda x: o.reduce_sum(x, axes=(1,)), [(4, 8)], "32", "144"),
    (lambda x: o.reshape(x, shape=(16,)), [(4, 4)], "0", "0"),
    (lambda x: o.transpose(x, perm=(1, 0)), [(4, 4)], "0", "128"),
    (lambda x: o.relu(x), [(4, 4)], "32", "128"),
    (lambda x, w, b: o.linear(x, w, b), [(2, 3), (5, 3), (5,)], "70", "144"),
]


@pytest.mark.parametrize(("op", "shapes", "flops", "moved"), CASES)
def test_costs_of_one_node(op: Any, shapes: list[tuple[Dim, ...]], flops: str, moved: str) -> None:
    (node,) = trace(op, [TensorType(F, s) for s in shapes]).nodes
    assert (text(costs.flops(node)), text(costs.bytes_moved(node))) == (flops, moved)


def test_every_op_has_a_cost() -> None:
    assert [op.name for op in OPS.values() if op.cost is None and op.decompose is None
            and op.category == "compute"] == []


def test_peak_counts_what_lives_at_once() -> None:
    t = TensorType(F, (4, 4))
    chain = trace(lambda x: o.exp(o.exp(o.exp(x))), [t])
    assert costs.peak(chain).bytes == 128  # an operand and its result
    skip = trace(lambda x: o.add(o.exp(y := o.exp(x)), y), [t])
    assert costs.peak(skip).bytes == 192
    views = trace(lambda x: o.exp(o.reshape(o.exp(x), shape=(16,))), [t])
    assert costs.peak(views).bytes == 128
    assert costs.peak(trace(lambda x: o.reshape(x, shape=(16,)), [t])).bytes == 0


def test_constants_are_not_intermediates() -> None:
    g = trace(lambda x: o.add(x, x.builder.constant(np.zeros((4, 4), np.float32))),
              [TensorType(F, (4, 4))])
    assert costs.peak(g).bytes == 64
