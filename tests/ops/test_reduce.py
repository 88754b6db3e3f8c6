"""Reductions, arg-reductions and running ones against numpy and torch, ties and NaN included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import ops as o
from tests.torch_oracle import agree, normal

X = normal(3, 4, 5)
NAN = np.array([1.0, np.nan, 3.0, np.nan])


@pytest.mark.parametrize("axes", [(0,), (1, 2), (-1,), (0, 1, 2), ()])
def test_as_torch(axes: tuple[int, ...]) -> None:
    for name, theirs in (("sum", torch.sum), ("max", torch.amax), ("min", torch.amin)):
        if axes or name == "sum":
            agree(lambda x, n=name: getattr(o, f"reduce_{n}")(x, axes=axes),
                  lambda x, f=theirs: f(x, axes, keepdim=True) if axes else x * 1, [X])


def test_prod_has_gradients_at_zero() -> None:
    for zeros in ([], [1], [1, 3]):
        x = normal(2, 4)
        x[:, zeros] = 0
        agree(lambda x: o.reduce_prod(x, axes=(1,)), lambda x: x.prod(1, True), [x])
        agree(lambda x: o.reduce_prod(x, axes=(0, 1)), lambda x: x.prod().reshape(1, 1), [x])


@pytest.mark.parametrize(("name", "theirs"), [("max", torch.amax), ("min", torch.amin)])
def test_ties_share_evenly(name: str, theirs: Any) -> None:
    x = np.array([[1.0, 3, 3, 1], [2, 2, 2, 2]])
    agree(lambda x: getattr(o, f"reduce_{name}")(x, axes=(1,)),
          lambda x: theirs(x, 1, keepdim=True), [x])


def test_nan_is_the_extreme() -> None:
    assert np.isnan(o.reduce_max(NAN, axes=(0,)))[0]
    for kind in ("max", "min"):
        assert o.arg_reduce(NAN, kind=kind, axis=0)[0] == 1
        assert o.arg_reduce(NAN, kind=kind, axis=0, last=True)[0] == 3


def test_arg_reduce_ties() -> None:
    x = np.array([1, 3, 3, 1])
    assert [int(o.arg_reduce(x, kind=k, axis=0, last=n)[0])
            for k in ("max", "min") for n in (False, True)] == [1, 2, 0, 3]


@pytest.mark.parametrize(("kind", "theirs"), [
    ("sum", torch.cumsum), ("prod", torch.cumprod), ("max", lambda x, a: torch.cummax(x, a)[0]),
    ("min", lambda x, a: torch.cummin(x, a)[0])])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_as_torch(kind: str, theirs: Any, reverse: bool) -> None:
    def other(x: Any) -> Any:
        return theirs(x.flip(1), 1).flip(1) if reverse else theirs(x, 1)
    zeros, ties = X.copy(), np.array([[1.0, 2, 2, 1, 3, 3]])
    zeros[:, [1, 3]] = 0
    for x in (X, zeros, ties):
        agree(lambda x: o.cumulative(x, kind=kind, axis=1, reverse=reverse), other, [x])


@pytest.mark.parametrize("reverse", [False, True])
def test_exclusive_leaves_out_the_element_itself(reverse: bool) -> None:
    x = np.array([2, 3, 5, 7])
    want = {False: ([0, 2, 5, 10], [1, 2, 6, 30]), True: ([15, 12, 7, 0], [105, 35, 7, 1])}
    for kind, values in zip(("sum", "prod"), want[reverse], strict=True):
        got = o.cumulative(x, kind=kind, axis=0, reverse=reverse, exclusive=True)
        np.testing.assert_array_equal(got, values)


def test_half_precision_adds_in_float32() -> None:
    x = np.full(4096, 1.0, np.float16)
    assert o.reduce_sum(x, axes=(0,))[0] == 4096
