"""Scalar ops against torch: values and gradients at kinks, integers by C's rules, casts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import ops as o
from graphtool.dtypes import BY_NAME
from graphtool.errors import TypeMismatch
from tests.cases import INTEGERS
from tests.torch_oracle import agree, normal

ANYWHERE = np.array([-800, -2.5, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2.5, 40.0])
POSITIVE = np.array([1e-8, 0.5, 1, 2.5, 300.0])
INSIDE = np.array([-0.999, -0.5, 0, 1e-9, 0.3, 0.99])
UNARY: list[tuple[str, Any, Any]] = [
    ("neg", torch.neg, ANYWHERE), ("abs", torch.abs, ANYWHERE), ("sign", torch.sign, ANYWHERE),
    ("floor", torch.floor, ANYWHERE), ("ceil", torch.ceil, ANYWHERE),
    ("round", torch.round, ANYWHERE), ("trunc", torch.trunc, ANYWHERE),
    ("exp", torch.exp, ANYWHERE), ("expm1", torch.expm1, ANYWHERE), ("log", torch.log, POSITIVE),
    ("log1p", torch.log1p, POSITIVE), ("sqrt", torch.sqrt, POSITIVE),
    ("rsqrt", torch.rsqrt, POSITIVE), ("sigmoid", torch.sigmoid, ANYWHERE),
    ("sin", torch.sin, ANYWHERE), ("cos", torch.cos, ANYWHERE), ("tan", torch.tan, ANYWHERE),
    ("asin", torch.asin, INSIDE), ("acos", torch.acos, INSIDE), ("atan", torch.atan, ANYWHERE),
    ("sinh", torch.sinh, INSIDE), ("cosh", torch.cosh, INSIDE), ("tanh", torch.tanh, ANYWHERE),
    ("asinh", torch.asinh, ANYWHERE), ("acosh", torch.acosh, POSITIVE + 1.1),
    ("atanh", torch.atanh, INSIDE), ("erf", torch.erf, ANYWHERE),
    ("erfc", torch.erfc, ANYWHERE), ("erf_inv", torch.erfinv, INSIDE),
    ("lgamma", torch.lgamma, POSITIVE),
]


@pytest.mark.parametrize(("name", "theirs", "x"), UNARY, ids=lambda x: x if isinstance(x, str)
                         else "")
def test_unary_as_torch(name: str, theirs: Any, x: Any) -> None:
    agree(getattr(o, name), theirs, [x], 1e-9)


def test_digamma_as_torch() -> None:
    x = np.array([-2.5, -0.1, 1e-3, 0.5, 1, 12.0])
    agree(o.digamma, torch.digamma, [x], 1e-8)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma_as_torch(n: int) -> None:
    x = np.array([-3.3, -0.5, 0.1, 0.7, 3, 12, 40, 1e5])
    agree(lambda x: o.polygamma(n, x), lambda x: torch.polygamma(n, x), [x], 1e-8)


@pytest.mark.parametrize(("name", "theirs"), [
    ("igamma", torch.special.gammainc), ("igammac", torch.special.gammaincc)])
def test_incomplete_gamma_functions_of_large_numbers(name: str, theirs: Any) -> None:
    """Their sums have terms in proportion to √a: beyond 10⁵ an expansion takes their place."""
    a = np.repeat([9e4, 2e5, 1e6, 1e300], 5)
    x = a + np.sqrt(a) * np.tile([-3.0, -0.1, 0.0, 0.1, 3.0], 4)
    agree(getattr(o, name), theirs, [a, x], 1e-8, grads=False)


@pytest.mark.parametrize(("name", "theirs"), [
    ("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
    ("rem", torch.fmod), ("mod", torch.remainder), ("max", torch.maximum), ("min", torch.minimum),
    ("atan2", torch.atan2)])
def test_binary_as_torch(name: str, theirs: Any) -> None:
    agree(getattr(o, name), theirs, [normal(3, 1, 4), normal(2, 1, seed=3)])


def test_ties_split_evenly() -> None:
    x = np.array([1.0, 2, 3])
    agree(o.max, torch.maximum, [x, x[::-1].copy()])
    agree(o.min, torch.minimum, [x, x[::-1].copy()])


def test_pow_as_torch_at_zero_too() -> None:
    a = np.array([0.0, 0, 2, 3, 0.5, -2])
    b = np.array([2.0, 1, 0, -1, 2.5, 3])
    agree(lambda a: o.pow(a, a.builder.constant(b)), lambda a: torch.pow(a, torch.tensor(b)), [a])
    agree(lambda b: o.pow(2.0, b), lambda b: torch.pow(2.0, b), [b])
    agree(o.pow, torch.pow, [np.abs(normal(4)), normal(4, seed=2)])
    for exponent in (0.0, 1.0, 2.0, 3):
        agree(lambda a, n=exponent: o.pow(a, n), lambda a, n=exponent: torch.pow(a, n), [a])


def test_clamp_passes_the_gradient_at_its_bounds() -> None:
    x = np.array([-2.0, -1, 0, 1, 2])
    agree(lambda x: o.clamp(x, -1.0, 1.0), lambda x: torch.clamp(x, -1, 1), [x])
    agree(lambda x: o.clamp(x, None, 1.0), lambda x: torch.clamp(x, max=1), [x])
    agree(lambda x, a, b: o.clamp(x, a, b), torch.clamp,
          [normal(3, 4), np.full(4, -0.4), np.full((3, 1), 0.3)])


def test_a_guarded_operand_does_not_leak_nan() -> None:
    x = np.array([0.0, 4.0])
    agree(lambda x: o.select(o.gt(x, 0), o.sqrt(o.select(o.gt(x, 0), x, 1.0)), x),
          lambda x: torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1.0)), x), [x])


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_follow_c(name: str) -> None:
    info = np.iinfo(BY_NAME[name].numpy)
    values = [info.min, info.max, 0, 1, 2, 3, 7, *([-1, -2, -7] if info.min else [])]
    a, b = (np.array(v, BY_NAME[name].numpy).reshape(-1)
            for v in zip(*[(i, j) for i in values for j in values], strict=True))
    wrap = 2**info.bits

    def wrapped(x: int) -> int:
        return (x - info.min) % wrap + info.min
    pairs = [(int(i), int(j)) for i, j in zip(a, b, strict=True)]
    quotients = [0 if not j else int(abs(i) // abs(j) * (1 if (i < 0) == (j < 0) else -1))
                 for i, j in pairs]
    for got, want in ((o.add(a, b), [i + j for i, j in pairs]),
                      (o.mul(a, b), [i * j for i, j in pairs]), (o.div(a, b), quotients),
                      (o.rem(a, b), [i - j * q if j else 0
                                     for (i, j), q in zip(pairs, quotients, strict=True)]),
                      (o.mod(a, b), [i % j if j else 0 for i, j in pairs])):
        np.testing.assert_array_equal(got, np.array([wrapped(w) for w in want], a.dtype))


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts(name: str) -> None:
    bits = BY_NAME[name].bits
    x = np.array([5, 5, 5, 5], BY_NAME[name].numpy)
    n = np.array([0, 1, bits - 1, min(bits, 100)], BY_NAME[name].numpy)
    np.testing.assert_array_equal(o.shift_right(x, n), [5, 2, 0, 0])
    np.testing.assert_array_equal(o.shift_left(x, n)[[0, 1, 3]], [5, 10, 0])


def test_casts_are_total() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 300, -300, 2.7, -2.7], np.float32)
    np.testing.assert_array_equal(o.cast(x, dtype=BY_NAME["i8"]), [0, 127, -128, 127, -128, 2, -2])
    np.testing.assert_array_equal(o.cast(x, dtype=BY_NAME["u8"]), [0, 255, 0, 255, 0, 2, 0])
    np.testing.assert_array_equal(o.cast(x, dtype=BY_NAME["i64"])[:3], [0, 2**63 - 1, -2**63])
    np.testing.assert_array_equal(o.cast(x, dtype=BY_NAME["bool"]), [True] * 7)


@pytest.mark.parametrize(("operands", "part"), [
    ([np.ones(2, np.float32), np.ones(3, np.float32)], "do not broadcast"),
    ([np.ones(2, np.float32), np.ones(2)], "element types differ"),
    ([np.ones(2, np.int64), 0.5], "does not fit"),
    ([np.ones(2, np.int8), 300], "does not fit"), ([np.ones(2, np.uint8), -1], "does not fit"),
    ([np.ones(2, bool), np.ones(2, bool)], "not defined on bool")])
def test_misfits_are_named(operands: Any, part: str) -> None:
    from graphtool.dtypes import of_numpy
    from graphtool.ir.graph import TensorType
    from graphtool.ir.trace import trace
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    literals = [x for x in operands if not isinstance(x, np.ndarray)]
    with pytest.raises(TypeMismatch, match=part) as error:
        trace(lambda *xs: o.add(*xs, *literals), [TensorType(of_numpy(x.dtype), x.shape)
                                                  for x in arrays])
    assert error.value.code == "GT0412" and error.value.message.startswith("add: ")
