"""Movement against numpy, pad against its definition, and the modules' names."""

from __future__ import annotations

import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphtool.ops
from graphtool import ops as o
from graphtool.errors import TypeMismatch
from graphtool.ir.op import OPS
from tests.torch_oracle import normal


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 5), st.integers(-6, 6), st.integers(-6, 6), st.integers(0, 3))
def test_pad_is_spread_then_edges(n: int, lo: int, hi: int, interior: int) -> None:
    x = np.arange(1.0, n + 1)
    spread = [9.0] * max((n - 1) * (interior + 1) + 1, 0)
    spread[::interior + 1] = x.tolist()
    line = [9.0] * lo + spread if lo > 0 else spread[-lo:]
    size = max(len(spread) + lo + hi, 0)
    want = (line + [9.0] * 50)[:size]
    if lo < 0 and -lo > len(spread):
        want = [9.0] * size
    np.testing.assert_array_equal(
        o.pad(x, lo=(lo,), hi=(hi,), interior=(interior,), value=9.0), want)


def test_movement_as_numpy() -> None:
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(o.transpose(x, perm=(2, 0, 1)), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(o.slice(x, start=(0, 1, 0), limit=(2, 3, 4), strides=(1, 1, 3)),
                                  x[:, 1:3, ::3])
    np.testing.assert_array_equal(o.reverse(x, axes=(0, -1)), x[::-1, :, ::-1])
    np.testing.assert_array_equal(o.stack(x, x, axis=-1), np.stack([x, x], -1))
    np.testing.assert_array_equal(o.concat(x, x[:, :1], axis=1), np.concatenate([x, x[:, :1]], 1))
    np.testing.assert_array_equal(o.broadcast(x[:1], shape=(5, 3, 4)),
                                  np.broadcast_to(x[:1], (5, 3, 4)))


@pytest.mark.parametrize("build", [
    lambda x: o.reshape(x, shape=(5,)), lambda x: o.transpose(x, perm=(0, 0)),
    lambda x: o.slice(x, start=(0, 0), limit=(9, 3), strides=(1, 1)),
    lambda x: o.slice(x, start=(0, 0), limit=(2, 3), strides=(0, 1)),
    lambda x: o.concat(x, x, axis=2), lambda x: o.broadcast(x, shape=(2, 4)),
    lambda x: o.reverse(x, axes=(2,)), lambda x: o.softmax(x, axis=5)])
def test_what_does_not_fit_is_refused(build: object) -> None:
    from graphtool.dtypes import float32
    from graphtool.ir.graph import TensorType
    from graphtool.ir.trace import trace
    with pytest.raises(TypeMismatch):
        trace(build, [TensorType(float32, (2, 3))])  # type: ignore[arg-type]


def test_no_module_hides_an_op() -> None:
    modules = {m.name for m in pkgutil.iter_modules(graphtool.ops.__path__)}
    assert not modules & set(OPS)
