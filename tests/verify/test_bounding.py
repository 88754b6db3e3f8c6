"""The error bound is never violated, and says something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import float32
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.verify.bounding import bound

RNG = np.random.default_rng(3)


def weights(x: Any, *shape: int) -> Any:
    return x.builder.constant(RNG.standard_normal(shape).astype(np.float32))


def mlp(x: Any) -> Any:
    h = o.relu(o.linear(x, weights(x, 16, 12), weights(x, 16)))
    return o.linear(o.tanh(o.linear(h, weights(x, 8, 16), None)), weights(x, 4, 8), None)


def conv(x: Any) -> Any:
    image = o.reshape(x, shape=(x.shape[0], 1, 3, 4))
    y = o.relu(o.conv(image, weights(x, 5, 1, 3, 3), padding=((1, 1), (1, 1))))
    return o.avg_pool(y, window=(3, 4))


def norm(x: Any) -> Any:
    y = o.layer_norm(x * 3 + 2.5, weights(x, 12), weights(x, 12), axes=(1,))
    return o.rms_norm(o.linear(y, weights(x, 12, 12), None), axes=(1,))


def softmax(x: Any) -> Any:
    return o.softmax(o.linear(x, weights(x, 6, 12), None), axis=1)


def gelu(x: Any) -> Any:
    return o.gelu(x) + o.silu(x) / 3.0 - o.exp(o.neg(x))


def int8(x: Any) -> Any:
    q = o.cast(o.clamp(o.round(x / 0.013) + 3.0, -128.0, 127.0), dtype=dtypes.int8)
    y = (o.cast(q, dtype=float32) - 3.0) * 0.013
    return o.linear(y, weights(x, 4, 12), None)


NETS = (mlp, conv, norm, softmax, gelu, int8)


def module(fn: Callable[[Any], Any], rows: int) -> Module:
    return Module(trace(fn, [TensorType(float32, (rows, 12))], ["x"]), ("y",))


@pytest.mark.parametrize("net", NETS)
def test_the_bound_holds(net: Callable[[Any], Any]) -> None:
    report = bound(module(net, 200), {}, {}, samples=9, seed=1)
    (row,) = report.outputs
    assert report.held and 0 < row.observed <= row.error
    assert row.error < {int8: 1.0, norm: 7.0}.get(net, 0.1)  # a row may be constant before a norm


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
def test_the_bound_holds_for_100_000_inputs(net: Callable[[Any], Any]) -> None:
    report = bound(module(net, 1000), {}, {}, samples=100, seed=2)
    assert report.held and report.outputs[0].observed > 0


def test_a_bound_of_given_inputs_is_tighter() -> None:
    given = {"x": RNG.random((200, 12)).astype(np.float32)}
    net = module(mlp, 200)
    near, far = bound(net, {}, given, samples=1), bound(net, {"x": (0.0, 1.0)}, {})
    assert near.held and near.outputs[0].error < far.outputs[0].error / 2


def test_a_wrong_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphtool.analysis.enclosure import Precision
    monkeypatch.setattr(Precision, "sums", lambda self, terms, most: 0 * most)
    monkeypatch.setattr(Precision, "rounds", lambda self, most, units=1.0: 0 * most)
    assert not bound(module(mlp, 50), {}, {}, samples=1).held


def test_what_has_no_bound_is_named() -> None:
    with pytest.raises(InputError, match="GT0534"):
        bound(module(lambda x: o.select(o.lt(x, 0.0), x, 1.0), 2), {}, {})


def test_the_function_of_the_api_is_the_verb() -> None:
    m = module(mlp, 3)
    wide, narrow = (graphtool.bound(m, {"x": (0.0, most)}, samples=3) for most in (2.0, 1.0))
    assert wide.held and 0 < narrow.outputs[0].error < wide.outputs[0].error
    assert wide.outputs == bound(m, {"x": (0.0, 2.0)}, {}, 3).outputs
    exact = graphtool.bound(m, inputs={"x": np.ones((3, 12), np.float32)})
    assert exact.outputs[0].error < narrow.outputs[0].error
    for ranges in ({"z": (0.0, 1.0)}, {"x": (1.0, 0.0)}, {"x": (0.0, float("nan"))}):
        with pytest.raises(UsageError) as error:
            graphtool.bound(m, ranges)
        assert error.value.code == "GT3174"
