"""Sorting and top-k against torch (stable) and numpy, ties and NaN included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import ops as o
from graphtool.dtypes import BY_NAME
from tests.cases import INTEGERS
from tests.torch_oracle import agree, normal

TIES = np.array([[2.0, 1, np.nan, 1, 2, np.inf, -np.inf, 1], [0, -0.0, 0, 5, 5, np.nan, np.nan, 1]])


@pytest.mark.parametrize("descending", [False, True])
def test_sort_as_torch(descending: bool) -> None:
    for x, axis in ((normal(3, 4, 2), 1), (TIES, 1), (normal(5), 0)):
        agree(lambda x, axis=axis: o.sort(x, axis=axis, descending=descending),
              lambda x, axis=axis: torch.sort(x, dim=axis, descending=descending,
                                                 stable=True), [x],
              grads=not np.isnan(x).any())


@pytest.mark.parametrize("largest", [False, True])
def test_top_k(largest: bool) -> None:
    agree(lambda x: o.top_k(x, k=3, axis=1, largest=largest),
          lambda x: torch.topk(x, 3, 1, largest), [normal(2, 6, 2)])


@pytest.mark.parametrize("largest", [False, True])
def test_of_equal_ones_the_first_comes_first(largest: bool) -> None:
    values, indices = o.top_k(np.array([1, 3, 3, 1, 3, 1]), k=4, axis=0, largest=largest)
    np.testing.assert_array_equal(indices, [1, 2, 4, 0] if largest else [0, 3, 5, 1])
    np.testing.assert_array_equal(values, [3, 3, 3, 1] if largest else [1, 1, 1, 3])


@pytest.mark.parametrize("name", [*INTEGERS, "bool", "f16", "bf16"])
def test_every_type(name: str) -> None:
    x: Any = np.array([3, 0, 2, 1, 3]).astype(BY_NAME[name].numpy)
    for descending in (False, True):
        values, _ = o.sort(x, axis=0, descending=descending)
        want = sorted(x.astype(np.float64), reverse=descending)
        np.testing.assert_array_equal(values.astype(np.float64), want)
        assert values.dtype == x.dtype
