"""Chains that quantise are found in each of their forms, and in no other; and the reverse."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import dequantising, quantising, rounding, to_bytes
from graphtool.ir.graph import TensorType, producers
from graphtool.ir.trace import trace

X = TensorType(dtypes.float32, (4,))
Q = TensorType(dtypes.int8, (4,))
FORMS = [  # the operand of the cast, its zero and bounds, and whether it is a rounded number
    (lambda x: o.round(x / 0.5), (None, ()), True),
    (lambda x: o.round(x / 0.5) + 3.0, (3.0, ()), True),
    (lambda x: o.clamp(o.round(x / 0.5), -9.0, 9.0), (None, (-9.0, 9.0)), True),
    (lambda x: o.clamp(o.round(x / 0.5) + 3.0, -9.0, 9.0), (3.0, (-9.0, 9.0)), True),
    (lambda x: o.clamp(o.round(x / 0.5), -9.0, 9.0) + 3.0, None, True),
    (lambda x: o.round(x / 0.5) + 3.0 + 4.0, None, True),
    (lambda x: o.round(x * 2.0), None, True), (lambda x: o.round(x), None, True),
    (lambda x: x / 0.5 + 3.0, None, False), (lambda x: x, None, False)]


@pytest.mark.parametrize(("body", "found", "rounded"), FORMS)
def test_numbers_that_are_quantised(body: Any, found: Any, rounded: bool) -> None:
    graph = trace(lambda x: o.cast(body(x), dtype=dtypes.int8), [X])
    cast, made = graph.nodes[-1], producers(graph)
    chain = quantising(cast.inputs[0], made)
    assert to_bytes(cast) and (rounding(cast.inputs[0], made)[0] is not None) is rounded
    assert (chain and (chain.x, chain.scale, chain.zero, chain.bounds)) == (
        found and (graph.inputs[0], 0.5, *found))


@pytest.mark.parametrize(("body", "zeros"), [
    (lambda q: q * 0.5, [None]), (lambda q: o.mul(0.5, q), [None]),
    (lambda q: (q - 3.0) * 0.5, [3.0]),
    (lambda q: (q - 3.0) * q, [3.0, None]), (lambda q: o.sub(3.0, q) * 0.5, []),
    (lambda q: (q - 3.0 - 4.0) * 0.5, []), (lambda q: q / 0.5, [])])
def test_numbers_that_were_quantised(body: Any, zeros: list[float | None]) -> None:
    graph = trace(lambda q: body(o.cast(q, dtype=dtypes.float32)), [Q])
    found = list(dequantising(graph.nodes[-1], producers(graph)))
    assert [d.zero for d in found] == zeros and all(d.x is graph.inputs[0] for d in found)
