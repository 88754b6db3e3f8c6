"""The error bound is never violated, and says something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.enclosure import exactly
from graphtool.analysis.gains import gains
from graphtool.dtypes import float32
from graphtool.errors import InputError, UsageError
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import symbol, symbols
from graphtool.transforms.reverse import vjp
from graphtool.verify import bounding
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


def residual(x: Any) -> Any:
    """Blocks with norms, attention between three tokens, a choice and a pool by the maximum."""
    y = o.reshape(x, shape=(x.shape[0], 3, 4))
    for _ in range(2):
        h = o.layer_norm(y * 3 + 1, axes=(2,), epsilon=0.1)
        scores = o.matmul(h, o.transpose(h, perm=(0, 2, 1))) * 0.5
        y = y + o.matmul(o.softmax(scores, axis=2), h) * 0.5
        y = y + o.select(o.gt(y, 0.1), y - 0.1, y * 0.25 - 0.025)
    return o.max_pool(o.reshape(y, shape=(x.shape[0], 1, 3, 4)), window=(1, 2), strides=(1, 2))


def deep(x: Any) -> Any:
    h = x
    for _ in range(6):
        h = h + o.relu(o.matmul(h, weights(x, 12, 12) * 0.3))
    return o.matmul(h, weights(x, 12, 3))


N = symbol("n", 1)
NETS = (mlp, conv, norm, softmax, gelu, int8, residual, deep)


def module(fn: Callable[[Any], Any], rows: int) -> Module:
    return Module(trace(fn, [TensorType(float32, (rows, 12))], ["x"]), ("y",))


@pytest.mark.parametrize("net", NETS)
def test_the_bound_holds(net: Callable[[Any], Any]) -> None:
    report = bound(module(net, 200), {}, {}, samples=9, seed=1)
    (row,) = report.outputs
    assert report.held and 0 < row.observed <= row.error
    most = {int8: 1.0, norm: 7.0, residual: 100.0}  # a row may be constant before a norm
    assert row.error < most.get(net, 0.1)


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


@pytest.mark.parametrize(("net", "factor"), [(mlp, 1.3), (deep, 3.0)])
def test_derivatives_tighten_it(net: Callable[[Any], Any], factor: float,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    given, m = {"x": RNG.random((20, 12)).astype(np.float32)}, module(net, 20)
    near = bound(m, {}, given, samples=1)
    monkeypatch.setattr(bounding, "sharpened", lambda graph, known, _: [
        known.found[v] for v in graph.outputs])
    far = bound(m, {}, given)
    assert near.held and near.outputs[0].error * factor < far.outputs[0].error


@pytest.mark.parametrize("net", [mlp, conv, softmax, deep])
def test_examples_apart_have_the_bound_of_each(net: Callable[[Any], Any]) -> None:
    given = RNG.random((3, 12)).astype(np.float32)
    m = Module(trace(net, [TensorType(float32, (N, 12))], ["x"]), ("y",), {"n": symbols(N)[0]})
    alone = [bound(m, {}, {"x": given[k:k + 1]}).outputs[0].error for k in range(3)]
    assert bound(m, {}, {"x": given}).outputs[0].error == pytest.approx(max(alone), rel=0.5)


def test_what_jumps_counts_whole() -> None:
    step = bound(module(lambda x: o.select(o.lt(x, 0.5), x, 9.0) * 1.5, 4), {}, {}, samples=6)
    assert step.held and step.outputs[0].error == pytest.approx(0, abs=1e-5)
    late = bound(module(lambda x: o.select(o.lt(x * 1.1, 0.5), x, 9.0) * 1.5, 4), {}, {}, samples=6)
    assert late.held and late.outputs[0].error > 12  # where x·1.1 rounds to 0.5 or not


@pytest.mark.parametrize("shape", [(3, 2, 3, 3), (4, 3, 1, 1), (2, 2, 4, 2)])
def test_no_convolution_lengthens_more_than_its_gain(shape: tuple[int, ...]) -> None:
    w = RNG.standard_normal(shape)
    def body(x: Any) -> Any:
        return o.conv(x, x.builder.constant(w), padding=((2, 2), (2, 2)), strides=(1, 1))
    graph = trace(body, [TensorType(dtypes.float64, (1, shape[1], 9, 9))], ["x"])
    node = graph.nodes[-1]
    gain = gains(node, [exactly(np.zeros((1, shape[1], 9, 9))), exactly(w)])[0]
    x = RNG.standard_normal((1, shape[1], 9, 9))
    back = vjp(graph, graph.inputs)
    for _ in range(40):  # the power iteration: x ← AᵀA·x
        x /= np.linalg.norm(x)
        (y,) = evaluate_graph(graph, [x], Setting())
        x = evaluate_graph(back, [x, y], Setting())[1]
    assert 0.6 * gain < np.linalg.norm(y) <= gain


def test_a_wrong_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphtool.analysis.enclosure import Precision
    monkeypatch.setattr(Precision, "sums", lambda self, terms, most: 0 * most)
    monkeypatch.setattr(Precision, "rounds", lambda self, most, units=1.0: 0 * most)
    assert not bound(module(mlp, 50), {}, {}, samples=1).held


def test_what_has_no_bound_is_named() -> None:
    with pytest.raises(InputError, match="GT0534"):
        bound(module(lambda x: o.floor(x), 2), {}, {})


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
