"""Products and convolutions of small integers at every vector width, against numpy's integers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import interp as loops
from graphtool.lower import lower
from graphtool.target import named

Array = np.ndarray[Any, Any]
TARGETS = {"native": {}, "native without dot products": {"dot8": False}, "x86-64-v4": {},
           "x86-64-v3": {}, "x86-64": {}, "generic": {}}
EXTREME = {np.uint8: (0, 256), np.int8: (-128, 128)}


def target(name: str) -> Any:
    return replace(named(name.split()[0]), **TARGETS[name])


def random(rng: np.random.Generator, shape: tuple[int, ...], kind: type) -> Array:
    """Any value, the ends of the range often."""
    low, high = EXTREME[kind]
    x = rng.integers(low, high, shape)
    ends = rng.integers(0, 4, shape)
    return np.where(ends == 0, low, np.where(ends == 1, high - 1, x)).astype(kind)


U8, I8 = np.uint8, np.int8
PRODUCTS: dict[str, Any] = {  # x, w, type of x, its zero point, type of w, its zero point
    "plain": ((6, 32), (32, 48), U8, 0, I8, 0), "odd": ((5, 7), (7, 33), U8, 128, I8, 0),
    "one row": ((1, 70), (70, 200), U8, 3, I8, 0), "two": ((2, 9), (9, 150), I8, -5, I8, 0),
    "signed": ((15, 65), (65, 17), I8, 7, I8, 0), "unsigned": ((9, 31), (31, 20), U8, 9, U8, 131),
    "batch": ((3, 2, 9, 10), (10, 24), U8, 100, I8, 0),
    "deep": ((29, 259), (259, 40), U8, 1, I8, 3),
    "column": ((40, 6), (6, 1), U8, 200, I8, 0)}
CONVS: dict[str, Any] = {  # x, w, type of x, its zero point, attributes
    "3x3": ((1, 9, 11, 16), (40, 16, 3, 3), U8, 120, {"padding": ((1, 1), (1, 1))}),
    "3x3 by tiles": ((2, 17, 18, 33), (70, 33, 3, 3), U8, 120, {"padding": ((1, 1), (1, 1))}),
    "3x3 signed": ((1, 12, 9, 24), (20, 24, 3, 3), I8, -128, {"padding": ((0, 2), (1, 0))}),
    "stem": ((1, 20, 23, 3), (17, 3, 7, 7), U8, 128,
             {"padding": ((3, 3), (3, 3)), "strides": (2, 2)}),
    "1x1": ((2, 5, 7, 6), (19, 6, 1, 1), I8, 3, {}),
    "1x1 stride": ((1, 9, 9, 10), (12, 10, 1, 1), U8, 0, {"strides": (2, 2)}),
    "dilated": ((1, 12, 12, 5), (8, 5, 3, 3), U8, 9, {"rhs_dilation": (2, 2)}),
    "groups": ((1, 8, 8, 12), (24, 3, 3, 3), U8, 5,
               {"groups": 4, "padding": ((1, 0), (0, 2))}),
    "whole": ((2, 4, 5, 6), (9, 6, 4, 5), U8, 77, {}),
    "row": ((2, 30, 6), (10, 6, 5), I8, 1, {"padding": ((2, 2),), "strides": (3,)}),
    "depthwise": ((1, 9, 17, 37), (37, 1, 3, 3), U8, 50,
                  {"groups": 37, "padding": ((1, 1), (1, 1))}),
    "depthwise few": ((2, 7, 8, 5), (5, 1, 3, 3), I8, -9,
                      {"groups": 5, "padding": ((1, 1), (1, 1)), "strides": (2, 2)}),
    "depthwise 5x5": ((1, 12, 9, 32), (32, 1, 5, 5), U8, 0,
                      {"groups": 32, "padding": ((2, 2), (2, 2))}),
    "depthwise 7x7": ((1, 9, 9, 20), (20, 1, 7, 7), U8, 1,
                      {"groups": 20, "padding": ((3, 3), (3, 3)), "strides": (2, 2)}),
    "depthwise dilated": ((1, 11, 9, 16), (16, 1, 3, 3), U8, 8,
                          {"groups": 16, "rhs_dilation": (2, 3)})}


PAIRS: dict[str, Any] = {  # two operands that come at run time, as PRODUCTS
    "moving": ((6, 18), (18, 40), U8, 7, U8, 131), "moving heads": (
        (3, 7, 9), (3, 9, 20), I8, -3, I8, 5), "moving plain": ((5, 33), (33, 7), U8, 0, U8, 0)}


def centred(x: Any, zero: int) -> Any:
    wide = o.cast(x, dtype=dtypes.int32)
    return wide - zero if zero else wide


def product(x: Any, w: Array, zero: int, offset: int) -> Any:
    """A product with an epilogue that keeps all bits."""
    return o.matmul(centred(x, zero), centred(x.builder.constant(w), offset)) + 1


def conv(x: Any, w: Array, zero: int, attrs: dict[str, Any]) -> Any:
    return o.conv(centred(x, zero), centred(x.builder.constant(w), 0), channels_last=True, **attrs)


def rows() -> tuple[dict[str, Array], list[Array], Any]:
    """The inputs of all cases, their sums by numpy, and the graph's function."""
    rng = np.random.default_rng(7)
    xs, wants, calls = {}, [], []
    for name, (xn, wn, kind, zero, weights, offset) in PRODUCTS.items():
        x, w = random(rng, xn, kind), random(rng, wn, weights)
        xs[name] = x
        wants.append((x.astype(np.int64) - zero) @ (w.astype(np.int64) - offset) + 1)
        calls.append(lambda t, w=w, z=zero, f=offset: product(t, w, z, f))
    for name, (xn, wn, kind, zero, attrs) in CONVS.items():
        x, w = random(rng, xn, kind), random(rng, wn, I8)
        xs[name] = x
        wants.append(summed(x.astype(np.int64) - zero, w.astype(np.int64), **attrs))
        calls.append(lambda t, w=w, z=zero, a=attrs: conv(t, w, z, a))
    return xs, wants, lambda *ts: tuple(c(t) for c, t in zip(calls, ts, strict=True))


def summed(x: Array, w: Array, padding: Any = None, strides: Any = None, rhs_dilation: Any = None,
           groups: int = 1) -> Array:
    """The convolution by its definition, channels last, in numpy's integers."""
    rank = x.ndim - 2
    padding, strides = padding or ((0, 0),) * rank, strides or (1,) * rank
    dilation = rhs_dilation or (1,) * rank
    x = np.pad(x, ((0, 0), *padding, (0, 0)))
    o, c = w.shape[:2]
    space = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(
        x.shape[1:-1], w.shape[2:], dilation, strides, strict=True)]
    y = np.zeros((x.shape[0], *space, o), np.int64)
    for tap in np.ndindex(*w.shape[2:]):
        at = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(
            tap, dilation, space, strides, strict=True))
        for g in range(groups):
            own = slice(g * o // groups, (g + 1) * o // groups)
            seen = x[(slice(None), *at, slice(g * c, (g + 1) * c))]
            y[..., own] += seen @ w[(own, slice(None), *tap)].T
    return y


@pytest.mark.parametrize("name", ["native", "x86-64-v3"])
def test_operands_at_run_time(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    xs = [random(rng, shape, kind) for xn, wn, a, _, b, _ in PAIRS.values()
          for shape, kind in ((xn, a), (wn, b))]
    zeros = [z for *_, a, _, b in PAIRS.values() for z in (a, b)]

    def function(*ts: Any) -> Any:
        real = [centred(t, z) for t, z in zip(ts, zeros, strict=True)]
        return tuple(o.matmul(a, b) for a, b in zip(real[::2], real[1::2], strict=True))
    names = [f"x{i}" for i in range(len(xs))]
    graph = trace(function, [TensorType(dtypes.of_numpy(x.dtype), x.shape) for x in xs], names)
    chosen = passes.run(Module(graph, tuple(PAIRS)), supply={"target": target(name)})
    assert not [n for n in chosen.graph.nodes if n.op.name == "matmul"]
    built = graphtool.load(build(chosen, tmp_path / "b", target=target(name)))
    wide = [x.astype(np.int64) - z for x, z in zip(xs, zeros, strict=True)]
    for got, a, b in zip(built(**dict(zip(names, xs, strict=True))).values(), wide[::2],
                         wide[1::2], strict=True):
        np.testing.assert_array_equal(got, a @ b)


@pytest.mark.part(6)
@pytest.mark.parametrize("name", TARGETS)
def test_equal_to_numpy(name: str, tmp_path: Path) -> None:
    xs, wants, function = rows()
    types = [TensorType(dtypes.of_numpy(x.dtype), x.shape) for x in xs.values()]
    names = [f"x{i}" for i in range(len(xs))]
    module = Module(trace(function, types, names), tuple(f"y{i}" for i in range(len(xs))))
    chosen = passes.run(module, supply={"target": target(name)})
    left = [n for n in chosen.graph.nodes if n.op.name in ("conv", "matmul")]
    assert not left
    given = dict(zip(names, xs.values(), strict=True))
    built = graphtool.load(build(chosen, tmp_path / "b", target=target(name)))
    evaluated = interp.run(chosen, given)
    for case, want, got, same in zip(xs, wants, built(**given).values(), evaluated.values(),
                                     strict=True):
        np.testing.assert_array_equal(got, want, err_msg=case)
        np.testing.assert_array_equal(same, want, err_msg=f"evaluated {case}")


@pytest.mark.long
@pytest.mark.parametrize("name", ["native", "x86-64-v3"])
def test_the_programs_meaning(name: str) -> None:
    xs, wants, function = rows()
    types = [TensorType(dtypes.of_numpy(x.dtype), x.shape) for x in xs.values()]
    names = [f"x{i}" for i in range(len(xs))]
    module = passes.run(Module(trace(function, types, names), tuple(f"y{i}" for i in range(
        len(xs)))), supply={"target": target(name)})
    program = lower(module, target(name), name="m")
    got = loops.run(program, dict(zip(names, xs.values(), strict=True)), {
        w.digest: w for w in map(lambda n: n.attrs["data"], (
            n for n in module.graph.nodes if n.op.name == "constant"))})
    for case, want, y in zip(xs, wants, got.values(), strict=True):
        np.testing.assert_array_equal(y, want, err_msg=case)
