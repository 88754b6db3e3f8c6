"""Every rule: a graph where it fires, one where it declines; both sides on random arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.dtypes import float32, float64, int8, int32, int64
from graphtool.errors import UsageError
from graphtool.ir.verify import verify
from graphtool.passes import run
from graphtool.passes.simplify import simplify
from graphtool.rewrite.engine import Fired, Journal
from graphtool.rewrite.rules import RULES
from tests.passes.pass_samples import B, assert_same, module, values

F, N, M = "f32[3,4]", "i32[3,4]", "bool[3,4]"
Side = tuple[Callable[..., Any], tuple[str, ...]]
Cases = dict[str, tuple[Side, Side]]


def on(fn: Callable[..., Any], *types: str) -> Side:
    return fn, types or (F,)


def splat(x: Any, value: float, *shape: int) -> Any:
    return x.builder.constant(np.full(shape, value, np.float32))


def known(x: Any, first: int) -> Any:
    return x.builder.constant(np.arange(first, first + 4, dtype=np.int32))


def cut(x: Any, start: Any, limit: Any, strides: Any = (1, 1)) -> Any:
    return o.slice(x, start=start, limit=limit, strides=strides)


def taken(x: Any, *rows: int, axis: int = 0) -> Any:
    return o.gather(x, x.builder.constant(np.array(rows)[:, None]), axes=(axis,))


def framed(x: Any, n: int, value: float = 0.0) -> Any:
    return o.pad(x, lo=(n, 0), hi=(0, n), value=value)


ALGEBRA: Cases = {
    "add_zero": (on(lambda x: x + 0), on(lambda x: x + 1)),
    "sub_zero": (on(lambda x: x - 0.0), on(lambda x: 0.0 - x)),
    "mul_one": (on(lambda x: x * 1.0), on(lambda x: x * 2.0)),
    "div_one": (on(lambda x: x / 1), on(lambda x: 1 / x)),
    "mul_minus_one": (on(lambda x: x * -1.0), on(lambda x: x * -2.0)),
    "mul_zero": (on(lambda x: x * 0, N), on(lambda x: x * 0.0)),
    "pow_one": (on(lambda x: o.pow(x, 1.0)), on(lambda x: o.pow(1.0, x))),
    "pow_two": (on(lambda x: o.pow(x, 2.0)), on(lambda x: o.pow(2.0, x))),
    "pow_three": (on(lambda x: o.pow(x, 3.0)), on(lambda x: o.pow(x, 4.0))),
    "reciprocal_root": (on(lambda x: 1.0 / o.sqrt(x * x)), on(lambda x: 2.0 / o.sqrt(x * x))),
    "div_by_power_of_two": (on(lambda x: x / 8.0), on(lambda x: x / 3.0)),
    "neg_neg": (on(lambda x: o.neg(o.neg(x))), on(lambda x: o.neg(o.abs(x)))),
    "add_neg": (on(lambda x, y: o.neg(y) + x, F, F), on(lambda x, y: o.abs(y) + x, F, F)),
    "sub_neg": (on(lambda x, y: x - o.neg(y), F, F), on(lambda x, y: o.neg(x) - y, F, F)),
    "abs_neg": (on(lambda x: o.abs(o.neg(x))), on(lambda x: o.neg(o.abs(x)))),
    "abs_abs": (on(lambda x: o.abs(o.abs(x))), on(lambda x: o.abs(o.exp(x)))),
    "not_not": (on(lambda c: o.not_(o.not_(c)), M), on(lambda c: o.not_(c), M)),
    "not_eq": (on(lambda x, y: o.not_(o.eq(x, y)), N, N),
               on(lambda x, y: o.not_(o.lt(x, y)), F, F)),
    "not_ne": (on(lambda x, y: o.not_(o.ne(x, y)), N, N),
               on(lambda x, y: o.not_(o.ge(x, y)), F, F)),
    "idempotent": (on(lambda x: o.max(x, x)), on(lambda x, y: o.max(x, y), F, F)),
    "select_same": (on(lambda c, x: o.select(c, x, x), M, F),
                    on(lambda c, x: o.select(c, x, x + 1.0), M, F)),
    "select_not": (on(lambda c, x: o.select(o.not_(c), x, 2.0), M, F),
                   on(lambda c, x: o.select(c, x, 2.0), M, F)),
    "select_known": (
        on(lambda x, y: o.select(x.builder.constant(np.ones((2, 3, 4), bool)), x, y), F, F),
        on(lambda x, y: o.select(x.builder.constant(np.arange(4) < 2), x, y), F, F)),
    "add_add": (on(lambda n: n + 1 + 2 + known(n, 5) + known(n, 2**31 - 9), N),
                on(lambda x: x + 0.1 + 0.2)),
    "mul_mul": (on(lambda n: n * 3 * 2, N), on(lambda x: x * 0.1 * 0.2)),
    "add_add_float": (on(lambda x: x + 0.1 + 0.2), on(lambda n: n + 1 + 2, N)),
    "mul_mul_float": (on(lambda x: x * 1e30 * 1e-20), on(lambda x: x * 1e30 * 1e30)),
    "max_max": (on(lambda x: o.max(o.max(x, 0.1), 0.5)), on(lambda x: o.max(o.min(x, 0.1), 0.5))),
    "min_min": (on(lambda x: o.min(o.min(x, 0.1), 0.5)), on(lambda x: o.min(o.max(x, 0.1), 0.5))),
    "constant_to_literal": (on(lambda x: x + splat(x, 3.0, 1, 4)),
                            on(lambda x: x + splat(x, 3.0, 2, 3, 4))),
    "cast_same": (on(lambda x: o.cast(x, dtype=float32)), on(lambda x: o.cast(x, dtype=float64))),
    "cast_cast": (on(lambda x: o.cast(o.cast(x, dtype=float64), dtype=int32)),
                  on(lambda x: o.cast(o.cast(x, dtype=int64), dtype=float32))),
    "cast_clamp": (on(lambda x: o.cast(o.clamp(x * 99.0, -128.0, 128.0), dtype=int8)),
                   on(lambda x: o.cast(o.clamp(x * 99.0, -100.0, 100.0), dtype=int8))),
}

A3 = "f32[2,3,4]"
SHAPE: Cases = {
    "move_nothing": (on(lambda x: cut(x, (0, 0), (3, 4))), on(lambda x: cut(x, (0, 0), (3, 3)))),
    "reshape_reshape": (on(lambda x: o.reshape(o.reshape(x, shape=(12,)), shape=(6, 2))),
                        on(lambda x: o.reshape(x + 1.0, shape=(6, 2)))),
    "merge_transposes": (
        on(lambda x: o.transpose(o.transpose(x, perm=(1, 2, 0)), perm=(2, 1, 0)), A3),
        on(lambda x: o.transpose(o.exp(x), perm=(2, 1, 0)), A3)),
    "transpose_of_ones": (on(lambda x: o.transpose(x, perm=(1, 0, 2)), "f32[3,1,4]"),
                          on(lambda x: o.transpose(x, perm=(1, 0, 2)), A3)),
    "matmul_of_transpose": (
        on(lambda x, y: o.matmul(o.transpose(x, perm=(0, 2, 1)), y), A3, A3),
        on(lambda x, y: o.matmul(o.transpose(x, perm=(1, 0, 2)), y), "f32[3,2,4]", "f32[2,4,3]")),
    "matmul_by_transpose": (
        on(lambda x, y: o.matmul(x, o.transpose(y, perm=(0, 2, 1))), A3, A3),
        on(lambda x, y: o.matmul(x, o.transpose(y, perm=(1, 0, 2))), A3, "f32[4,2,3]")),
    "matmul_by_scaled_transpose": (
        on(lambda x, y: o.matmul(x, o.transpose(y, perm=(0, 2, 1)) * 0.3), A3, A3),
        on(lambda x, y: o.matmul(x, o.transpose(y, perm=(1, 0, 2)) * 0.3), A3, "f32[4,2,3]")),
    "split_before_transpose": (
        on(lambda x: o.reshape(o.transpose(o.reshape(x, shape=(6, 4, 5)), perm=(0, 2, 1)),
                               shape=(2, 3, 5, 4)), "f32[2,3,4,5]"),
        on(lambda x: o.reshape(o.transpose(o.reshape(x, shape=(6, 4, 5)), perm=(0, 2, 1)),
                               shape=(2, 3, 4, 5)), "f32[2,3,4,5]")),
    "broadcast_broadcast": (
        on(lambda x: o.broadcast(o.broadcast(x, shape=(3, 4)), shape=(2, 3, 4)), "f32[4]"),
        on(lambda x: o.broadcast(x, shape=(2, 3, 4)), "f32[4]")),
    "broadcast_operand": (on(lambda x, y: o.broadcast(y, shape=(3, 4)) + x, F, "f32[4]"),
                          on(lambda x, y: o.broadcast(y, shape=(2, 3, 4)) + x, F, "f32[4]")),
    "gather_of_run": (on(lambda x: taken(x, 2, 4, 6, axis=1), "f32[5,7]"),
                      on(lambda x: taken(x, 2, 4, 5, axis=1), "f32[5,7]")),
    "slice_slice": (
        on(lambda x: cut(cut(x, (1, 1), (9, 8), (2, 1)), (1, 2), (4, 6), (1, 3)), "f32[10,9]"),
        on(lambda x: cut(cut(x, (1, 1), (9, 8)), (1, 2), (1, 6)), "f32[10,9]")),
    "pad_pad": (on(lambda x: framed(framed(x, 1), 2)), on(lambda x: framed(framed(x, 1), 2, 1.0))),
    "concat_parts": (on(lambda x, y: o.concat(o.concat(x, y, axis=0), x, axis=-2), F, F),
                     on(lambda x, y: o.concat(o.concat(x, y, axis=1), o.concat(y, x, axis=1),
                                              axis=0), F, F)),
    "gather_operand": (
        on(lambda x, i: o.gather(o.cast(x, dtype=float32) * 0.5, i, axes=(0,)),
           "u8[9,4]", "i32[3,1]"),
        on(lambda x, i: o.gather(o.exp(x), i, axes=(0,)), "f32[2,4]", "i32[3,1]")),
    "reverse_reverse": (on(lambda x: o.reverse(o.reverse(x, axes=(0, 1)), axes=(-1,))),
                        on(lambda x: o.reverse(x, axes=(0, 1)))),
    "gather_of_reshape": (
        on(lambda x, i: o.gather(o.reshape(x, shape=(3, 2, 2)), i, axes=(0,)), F, "i32[5,1]"),
        on(lambda x, i: o.gather(o.reshape(x, shape=(6, 2)), i, axes=(0,)), F, "i32[5,1]")),
    "reduce_ones": (on(lambda x: o.reduce_sum(x, axes=(0, 1)), "f32[1,4]"),
                    on(lambda x: o.reduce_sum(x, axes=(1,)))),
    "reduce_reduce": (on(lambda x: o.reduce_max(o.reduce_max(x, axes=(0,)), axes=(-1,))),
                      on(lambda x: o.reduce_max(o.reduce_min(x, axes=(0,)), axes=(1,)))),
    "conv_of_pad": (
        on(lambda x: o.conv(o.pad(x, lo=(0, 0, 1), hi=(0, 0, 2)), values(x, 2, 3, 3),
                            padding=((1, 0),)), A3),
        on(lambda x: o.conv(o.pad(x, lo=(0, 0, 1), hi=(0, 0, 2), value=1.0), values(x, 2, 3, 3)),
           A3)),
}


def check(case: Side, rules: Callable[..., Any], name: str) -> list[Fired]:
    fn, types = case
    m = module(fn, *types)
    journal = Journal()
    new = type(m)(rules(m.graph, journal=journal), m.output_names)
    verify(new.graph)
    assert_same(m, new, rtol=1e-5)
    return [f for f in journal if f.rule == name]


def loosest(graph: Any, journal: Any) -> Any:
    return simplify(graph, numerics="approximate", journal=journal)


@pytest.mark.parametrize("name", ALGEBRA | SHAPE)
def test_fires(name: str) -> None:
    assert check((ALGEBRA | SHAPE)[name][0], loosest, name)


@pytest.mark.parametrize("name", ALGEBRA | SHAPE)
def test_declines(name: str) -> None:
    assert not check((ALGEBRA | SHAPE)[name][1], loosest, name)


def test_every_rule_has_a_case() -> None:
    assert {r.name for r in RULES} == set(ALGEBRA | SHAPE)


def test_default_is_exact() -> None:
    assert not check(on(lambda x: x + 0.1 + 0.2), simplify, "add_add_float")


def test_unknown_class() -> None:
    with pytest.raises(UsageError, match="unknown numerics class"):
        run(module(lambda x: x + 0, F), "simplify{numerics=wild}")


def test_keeps_symbolic_sizes() -> None:
    m = module(lambda x: o.reshape(o.reshape(x, shape=(B * 4,)), shape=x.shape), "f32[B,4]")
    assert not run(m, "simplify").graph.nodes


