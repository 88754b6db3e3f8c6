"""gather, scatter and the dynamic slices against torch and plain loops, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import ops as o
from graphtool.errors import InputError
from tests.torch_oracle import agree, normal

ROWS = np.array([[4], [1], [4]])


def test_gather_as_indexing() -> None:
    x = normal(5, 4, 3)
    agree(lambda x, i: o.gather(x, i, axes=(0,)), lambda x, i: x[i[:, 0]], [x, ROWS])
    agree(lambda x, i: o.gather(x, i, axes=(1, 0)), lambda x, i: x[i[:, 1], i[:, 0]],
          [x, np.array([[0, 4], [3, 1], [0, 4]])])
    agree(lambda x, i: o.gather(x, i, axes=(0, 2)), lambda x, i: x[i[:, 0], :, i[:, 1]],
          [x, np.array([[0, 2], [3, 1]])])


def test_batched_gather_is_take_along_axis() -> None:
    i = np.random.default_rng(0).integers(0, 4, (5, 2))
    agree(lambda x, i: o.gather(x, o.reshape(i, shape=(5, 2, 1)), axes=(1,), batch=1),
          lambda x, i: torch.gather(x, 1, i), [normal(5, 4), i])


def test_scatter_add_as_torch() -> None:
    agree(lambda x, i, u: o.scatter(x, i, u, axes=(0,), kind="add"),
          lambda x, i, u: x.index_add(0, i[:, 0], u), [normal(5, 3), ROWS, normal(3, 3, seed=1)])


@pytest.mark.parametrize(("kind", "reduce"), [
    ("mul", "prod"), ("min", "amin"), ("max", "amax"), ("add", "sum")])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_scatter_reduce_as_torch(kind: str, reduce: str, zeros: int) -> None:
    x, u = normal(5), normal(6, seed=1)
    i = np.array([[4], [1], [4], [0], [1], [4]])
    if kind == "mul":
        u[:zeros * 2:2] = 0
    agree(lambda x, i, u: o.scatter(x, i, u, axes=(0,), kind=kind),
          lambda x, i, u: x.scatter_reduce(0, i[:, 0], u, reduce), [x, i, u])


def test_scatter_extremes_share_ties_as_torch() -> None:
    x, u = np.array([1.0, 5, 2, 7]), np.array([5.0, 5, 1, 2])
    agree(lambda x, i, u: o.scatter(x, i, u, axes=(0,), kind="max"),
          lambda x, i, u: x.scatter_reduce(0, i[:, 0], u, "amax"),
          [x, np.array([[1], [1], [2], [2]]), u])


def test_scatter_set_the_last_wins_and_has_the_gradient() -> None:
    from graphtool import transforms
    from graphtool.dtypes import float64, int64
    from graphtool.ir.graph import TensorType
    from graphtool.ir.trace import trace
    from tests.evaluating import run
    graph = trace(lambda x, i, u: o.scatter(x, i, u, axes=(0,)), [
        TensorType(float64, (4,)), TensorType(int64, (3, 1)), TensorType(float64, (3,))])
    joint = transforms.vjp(graph, [graph.inputs[0], graph.inputs[2]])
    y, gx, gu = run(joint, [np.zeros(4), np.array([[2], [0], [2]]), np.array([1.0, 2, 3]),
                            np.array([10.0, 20, 30, 40])])
    np.testing.assert_array_equal(y, [2, 0, 3, 0])
    np.testing.assert_array_equal(gx, [0, 20, 0, 40])
    np.testing.assert_array_equal(gu, [0, 10, 30])


@pytest.mark.parametrize("start", [(1, 2), (9, -3)])
def test_dynamic_slices_clamp(start: tuple[int, int]) -> None:
    x, u = normal(5, 6), normal(2, 3)
    at: Any = [np.array(s) for s in start]
    a, b = min(max(start[0], 0), 3), min(max(start[1], 0), 3)
    np.testing.assert_array_equal(o.dynamic_slice(x, *at, sizes=(2, 3)), x[a:a + 2, b:b + 3])
    y = x.copy()
    y[a:a + 2, b:b + 3] = u
    np.testing.assert_array_equal(o.dynamic_update_slice(x, u, *at), y)


@pytest.mark.parametrize("bad", [5, -1])
def test_an_index_out_of_range_is_an_error(bad: int) -> None:
    with pytest.raises(InputError, match=f"index {bad} is out of range") as error:
        o.gather(normal(5), np.array([[0], [bad]]), axes=(0,))
    assert error.value.code == "GT0501"
