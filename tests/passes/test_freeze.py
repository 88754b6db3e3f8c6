"""Parameters become constants, and factors and terms join the layer before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphtool import ops as o
from graphtool.passes import run
from graphtool.passes.freeze import RULES, freeze
from tests.passes.pass_samples import SAMPLES, assert_same, module, positive, values
from tests.passes.test_simplify import check, on

X = "f32[2,4,6,6]"


def _conv(x: Any, **attrs: Any) -> Any:
    return o.conv(x, values(x, 4, 2, 3, 3), groups=2, **attrs)


def _lines(x: Any) -> Any:
    return o.linear(x, values(x, 5, 4), values(x, 5))


CASES: dict[str, tuple[Any, Any]] = {
    "detach_nothing": (on(lambda x: o.detach(x)), on(lambda x: x + 1.0)),
    "checkpoint_nothing": (on(lambda x: o.checkpoint(x, region=1, edge="in")),
                           on(lambda x: x + 1.0)),
    "batch_norm_affine": (
        on(lambda x: o.batch_norm(x, positive(x, 4), values(x, 4), values(x, 4),
                                  positive(x, 4)), X),
        on(lambda x, v: o.batch_norm(x, positive(x, 4), values(x, 4), values(x, 4), v * v),
           X, "f32[4]")),
    "conv_factor": (on(lambda x: _conv(x) * values(x, 4, 1, 1), X),
                    on(lambda x: _conv(x) * values(x, 4), X)),
    "matmul_factor": (on(lambda x: o.matmul(x, values(x, 5, 4), transpose_b=True) * values(x, 5)),
                      on(lambda x: o.matmul(values(x, 5, 3), x) * values(x, 5, 1))),
    "linear_factor": (on(lambda x: _lines(x) * 0.5), on(lambda x: _lines(x) * values(x, 3, 1))),
    "linear_term": (on(lambda x: values(x, 1, 5) + _lines(x)),
                    on(lambda x: _lines(x) + values(x, 3, 1))),
    "factor_of_sum": (on(lambda x: (_conv(x) + values(x, 4, 1, 1)) * values(x, 4, 1, 1), X),
                      on(lambda x: (o.exp(x) + values(x, 4)) * values(x, 4))),
    "factor_before_transpose": (
        on(lambda x: o.transpose(_lines(x), perm=(1, 0)) * values(x, 5, 1)),
        on(lambda x: o.transpose(o.exp(x), perm=(1, 0)) * values(x, 4, 1))),
    "sum_of_terms": (on(lambda x: x + values(x, 4) + values(x, 3, 4)),
                     on(lambda x: x + values(x, 4) + values(x, 3, 1))),
    "product_of_factors": (on(lambda x: x * values(x, 4) * 2.0), on(lambda x: o.exp(x) * 2.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_fires(name: str) -> None:
    assert check(CASES[name][0], freeze, name)


@pytest.mark.parametrize("name", CASES)
def test_declines(name: str) -> None:
    assert not check(CASES[name][1], freeze, name)


def test_every_rule_has_a_case() -> None:
    assert {r.name for r in RULES} == set(CASES)


JOINED: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "conv, bias, batch norm, scale": (
        lambda x: o.batch_norm(_conv(x) + values(x, 4, 1, 1), positive(x, 4), values(x, 4),
                               values(x, 4), positive(x, 4)) * 3.0, ["conv", "add"]),
    "channels last": (
        lambda x: o.conv(x, values(x, 4, 6, 3, 3), channels_last=True) * values(x, 4), ["conv"]),
    "two readers": (lambda x: (lambda y: (y * 2.0) + o.exp(y))(_conv(x)),
                    ["conv", "mul", "exp", "add"]),
}


@pytest.mark.parametrize("name", JOINED)
def test_joins(name: str) -> None:
    fn, wanted = JOINED[name]
    m = module(fn, X)
    new = run(m, "freeze")
    assert [n.op.name for n in new.graph.nodes if n.op.name != "constant"] == wanted
    assert_same(m, new, rtol=1e-4)


def test_no_parameter_is_left() -> None:
    nodes = run(SAMPLES["convnet"], "freeze").graph.nodes
    assert not [n for n in nodes if n.op.name == "constant" and n.attrs["param"]]


def test_names_of_weights_stay() -> None:
    hints = {n.outputs[0].hint for n in run(SAMPLES["convnet"], "freeze").graph.nodes}
    assert "w" in hints


def test_exact_only_freezes() -> None:
    new = run(SAMPLES["convnet"], "freeze{numerics=exact}")
    assert "batch_norm" in {n.op.name for n in new.graph.nodes}
