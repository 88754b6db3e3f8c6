"""Composites come back from their parts, in the spellings of exporters, and only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.dtypes import float32
from graphtool.ir.graph import Module
from graphtool.ir.op import OPS
from graphtool.passes import run
from graphtool.passes.recognise import RULES, recognise
from tests.passes.pass_samples import assert_same, module, values
from tests.passes.test_simplify import check, on

INF = float("inf")


def centred(x: Any) -> Any:
    return x - o.reduce_mean(x, axes=(1,))


def spread(x: Any, epsilon: float = 1e-5) -> Any:
    return o.reduce_mean(x * x, axes=(1,)) + epsilon


def tanh_gelu(x: Any, k: float = 0.044715) -> Any:
    return (x * 0.5) * (o.tanh((x + o.pow(x, 3.0) * k) * 0.7978845608028654) + 1.0)


def softmax(x: Any, axis: int) -> Any:
    e = o.exp(x - o.reduce_max(x, axes=(axis,)))
    return e / o.reduce_sum(e, axes=(axis,))


def plain(q: Any, k: Any, v: Any) -> Any:
    return o.matmul(o.softmax(o.matmul(q, k, transpose_b=True) * 0.5, axis=3), v)


Q = ("f32[2,4,3,4]", "f32[2,4,3,4]", "f32[2,4,3,5]")

def guarded(p: Any) -> Any:
    return o.select(o.is_nan(p), 0.0, p)


def scores(q: Any, k: Any) -> Any:
    return o.matmul(q, k, transpose_b=True) * 0.5


def full(x: Any, array: Any) -> Any:
    return x.builder.constant(np.asarray(array))


def flat(x: Any) -> Any:
    return o.reshape(x, shape=(8, *x.shape[2:]))


TRIANGLE = np.where(np.tri(3, dtype=bool), 0, -INF).astype(np.float32)
BAND = np.where(np.eye(3, dtype=bool), 0, -INF).astype(np.float32)
HEADS = ("f32[2,4,3,4]", "f32[2,2,3,4]", "f32[2,2,3,5]")


def repeated(x: Any) -> Any:
    d = x.shape[-1]
    wide = o.broadcast(o.reshape(x, shape=(2, 2, 1, 3, d)), shape=(2, 2, 2, 3, d))
    return o.reshape(wide, shape=(2, 4, 3, d))


def instances(x: Any, inner: tuple[int, ...], outer: tuple[int, ...]) -> Any:
    y = o.instance_norm(o.reshape(x, shape=inner), values(x, 2), values(x, 2))
    return o.reshape(y, shape=outer)


CASES: dict[str, tuple[Any, Any]] = {
    "silu": (on(lambda x: o.sigmoid(x) * x), on(lambda x: o.sigmoid(x) * o.neg(x))),
    "relu": (on(lambda x: o.select(o.le(x, 0), 0, x)), on(lambda x: o.select(o.lt(x, 1), 0, x))),
    "gelu_erf": (on(lambda x: x * (0.5 * (o.erf(x / 1.4142135381698608) + 1.0))),
                 on(lambda x: x * (0.5 * (o.erf(x / 1.5) + 1.0)))),
    "gelu_tanh": (on(tanh_gelu), on(lambda x: tanh_gelu(x, 0.05))),
    "softmax": (on(lambda x: softmax(x, 1)),
                on(lambda x: o.exp(x) / o.reduce_sum(o.exp(x), axes=(0,)))),
    "log_softmax": (on(lambda x: OPS["log_softmax"].decompose(x, axis=1)),
                    on(lambda x: x - o.reduce_max(x, axes=(1,)))),
    "layer_norm": (on(lambda x: (lambda c: c * o.rsqrt(spread(c)))(centred(x))),
                   on(lambda x: x * o.rsqrt(spread(centred(x))))),
    "layer_norm_by_root": (on(lambda x: (lambda c: c / o.sqrt(spread(c)))(centred(x))),
                           on(lambda x: x / o.sqrt(spread(centred(x))))),
    "rms_norm": (on(lambda x: x * o.rsqrt(spread(x))),
                 on(lambda x: o.neg(x) * o.rsqrt(spread(x)))),
    "rms_norm_by_root": (on(lambda x: x / o.sqrt(spread(x))),
                         on(lambda x: 1.0 / o.sqrt(spread(x)))),
    "layer_norm_scale": (on(lambda x: values(x, 4) * o.layer_norm(x, axes=(1,))),
                         on(lambda x: o.layer_norm(x, axes=(1,)) * values(x, 2, 3, 4))),
    "layer_norm_bias": (on(lambda x: o.layer_norm(x, values(x, 4), axes=(1,)) + values(x, 4)),
                        on(lambda x: o.layer_norm(x, axes=(1,)) + x)),
    "rms_norm_scale": (on(lambda x: o.rms_norm(x, axes=(1,)) * values(x, 4, param=True)),
                       on(lambda x: o.rms_norm(x, axes=(1,)) * x)),
    "group_norm": (on(lambda x: instances(x, (2, 2, 15), x.shape), "f32[2,6,5]"),
                   on(lambda x: instances(x, (3, 2, 10), x.shape), "f32[2,6,5]")),
    "attention": (on(plain, *Q), on(lambda q, k, v: o.matmul(o.softmax(
        o.matmul(q, k, transpose_b=True), axis=2), v), *Q)),
    "attention_groups": (on(lambda q, k, v: o.attention(q, repeated(k), repeated(v)), *HEADS),
                         on(lambda q, k, v: o.attention(q, repeated(k), v), HEADS[0], HEADS[1],
                            Q[2])),
    "attention_mask": (
        on(lambda q, k, v: o.attention(q, k, v, full(q, np.tri(3, dtype=bool))), *Q),
        on(lambda q, k, v: o.attention(q, k, v, full(q, BAND)), *Q)),
}

@pytest.mark.parametrize("name", CASES)
def test_fires(name: str) -> None:
    assert check(CASES[name][0], recognise, name)


@pytest.mark.parametrize("name", CASES)
def test_declines(name: str) -> None:
    assert not check(CASES[name][1], recognise, name)


def test_every_rule_has_a_case() -> None:
    assert {r.name for r in RULES} == set(CASES)


SPELLINGS: dict[str, tuple[Callable[..., Any], tuple[str, ...], dict[str, Any]]] = {
    "scale at q and k, keys transposed": (
        lambda q, k, v: o.matmul(o.softmax(o.matmul(q * 0.5**0.5, o.transpose(
            k * 0.5**0.5, perm=(0, 1, 3, 2))), axis=-1), v), Q, {"scale": None}),
    "another scale": (lambda q, k, v: o.matmul(o.softmax(o.matmul(
        q, k, transpose_b=True) / 3.0, axis=3), v), Q, {"scale": 1 / 3}),
    "no scale": (lambda q, k, v: o.matmul(o.softmax(o.matmul(
        q, k, transpose_b=True), axis=3), v), Q, {"scale": 1.0}),
    "causal, guarded": (lambda q, k, v: o.matmul(guarded(o.softmax(
        scores(q, k) + full(q, TRIANGLE), axis=3)), v), Q, {"causal": True}),
    "causal by select": (lambda q, k, v: o.matmul(o.softmax(o.select(
        full(q, np.tri(3, dtype=bool)), scores(q, k), -INF), axis=3), v), Q, {"causal": True}),
    "a constant mask": (lambda q, k, v: o.matmul(o.softmax(
        full(q, BAND) + scores(q, k), axis=3), v), Q, {"causal": False}),
    "an added mask": (lambda q, k, v, m: o.matmul(o.softmax(scores(q, k) + m, axis=3), v),
                      (*Q, "f32[2,1,3,3]"), {"causal": False}),
    "a bool mask turned into an added one": (
        lambda q, k, v, m: o.matmul(guarded(o.softmax(scores(q, k) + o.select(
            m, full(q, np.float32(0)), full(q, np.float32(-INF))), axis=3)), v),
        (*Q, "bool[2,1,3,3]"), {"causal": False}),
    "a position's bias, then a mask": (
        lambda q, k, v, b, m: o.matmul(o.softmax(
            full(q, BAND) * 0.25 + (scores(q, k) + b) + m, axis=3), v),
        (*Q, "f32[1,4,3,3]", "f32[2,1,1,3]"), {"causal": False}),
    "a bool mask over a bias": (
        lambda q, k, v, b, m: o.matmul(guarded(o.softmax(o.select(
            m, -INF, scores(q, k) + b), axis=3)), v),
        (*Q, "f32[1,4,3,3]", "bool[2,1,3,3]"), {"causal": False}),
    "heads as one axis inside": (
        lambda q, k, v, b: o.reshape(o.matmul(o.reshape(o.softmax(o.reshape(
            o.matmul(flat(q), flat(k), transpose_b=True) * 0.5 + flat(b), shape=(2, 4, 3, 3))
            + full(q, TRIANGLE / 2), axis=3), shape=(8, 3, 3)), flat(v)), shape=(2, 4, 3, 5)),
        (*Q, "f32[2,4,3,3]"), {"causal": False, "scale": None}),
    "grouped queries": (lambda q, k, v: plain(q, repeated(k), repeated(v)), HEADS, {}),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_attention(name: str) -> None:
    fn, types, attrs = SPELLINGS[name]
    m = module(fn, *types)
    new = run(m, "simplify,recognise,dce")
    (node,) = [n for n in new.graph.nodes if n.op.name == "attention"]
    assert {k: node.attrs[k] for k in attrs} == pytest.approx(attrs)
    assert not {n.op.name for n in new.graph.nodes} & {"softmax", "matmul", "broadcast"}
    assert_same(m, new)


def test_attention_in_shifted_windows() -> None:
    def fn(q: Any, k: Any, v: Any) -> Any:
        s = o.reshape(scores(q, k) + values(q, 1, 2, 3, 3), shape=(3, 4, 2, 3, 3))
        s = o.reshape(s + values(q, 1, 4, 1, 3, 3), shape=(12, 2, 3, 3))
        return o.matmul(o.softmax(s, axis=3), v)
    m = module(fn, *["f32[12,2,3,4]"] * 3)
    new = run(m, "simplify,recognise,fold,dce")
    assert ops(new) == {"attention", "constant"}
    assert_same(m, new)


def test_weights_that_are_read_stay() -> None:
    def both(q: Any, k: Any, v: Any) -> Any:
        p = o.softmax(scores(q, k), axis=3)
        return o.matmul(p, v), p
    assert "attention" not in ops(run(module(both, *Q), "recognise"))


def ops(m: Module) -> set[str]:
    return {n.op.name for n in m.graph.nodes}


@pytest.mark.parametrize("composite", [
    lambda x: o.gelu(x), lambda x: o.gelu(x, approximate="tanh"), lambda x: o.silu(x),
    lambda x: o.softmax(x, axis=1), lambda x: o.log_softmax(x, axis=0), lambda x: o.relu(x)])
def test_undoes_decompose(composite: Callable[..., Any]) -> None:
    m = module(composite, "f32[3,4]")
    apart = run(m, "decompose{keep=}")
    assert ops(run(apart, "recognise")) == ops(m)


def test_dtype_of_the_mask_is_kept() -> None:
    fn, types, _ = SPELLINGS["a bool mask turned into an added one"]
    new = run(module(fn, *types), "simplify,recognise")
    (node,) = [n for n in new.graph.nodes if n.op.name == "attention"]
    assert node.inputs[3].type.dtype is not float32  # type: ignore[union-attr]
