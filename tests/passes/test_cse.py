"""Equal nodes merge: by attributes, literals, contents of constants, either order of operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.passes.cse import cse
from tests.passes.pass_samples import module, values

MERGED: dict[str, tuple[Callable[..., Any], int]] = {
    "same": (lambda x, y: o.exp(x) + o.exp(x), 2),
    "commuted": (lambda x, y: (x * y) - (y * x), 2),
    "not commuted": (lambda x, y: (x - y) * (y - x), 3),
    "chains": (lambda x, y: o.neg(o.exp(x)) * o.neg(o.exp(x)), 3),
    "attributes differ": (lambda x, y: o.reduce_sum(x, axes=(0,)) + o.reduce_sum(x, axes=(1,)), 3),
    "kinds of literal differ": (lambda x, y: (x + 1) * (x + 1.0), 3),
    "signs of zero differ": (lambda x, y: (x * 0.0) - (x * -0.0), 3),
    "constants by content": (
        lambda x, y: (x + values(x, 3, name="a")) * (x + values(x, 3, name="b")), 3),
    "parameters stay apart": (
        lambda x, y: (x + values(x, 3, name="a", param=True)) * (
            x + values(x, 3, name="b", param=True)), 5),
    "types of constants differ": (
        lambda x, y: o.gather(x, x.builder.constant(np.zeros((1, 1), np.int32)), axes=(0,))
        + o.gather(x, x.builder.constant(np.zeros((1, 1), np.int64)), axes=(0,)), 5),
}


@pytest.mark.parametrize("name", MERGED)
def test_merges(name: str) -> None:
    fn, count = MERGED[name]
    assert len(cse(module(fn, "f32[3,3]", "f32[3,3]").graph).nodes) == count


def test_same_graph_where_nothing_repeats() -> None:
    graph = module(lambda x: o.exp(x) + 1.0, "f32[2]").graph
    assert cse(graph) is graph
