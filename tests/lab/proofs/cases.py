"""The graphs to which each rule is applied: all combinations of what is not a size or a number.

A rule whose left side has no attributes needs no row here: its operands get all element types and
all ways to broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import bool_, float32, int32
from graphtool.errors import InputError
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph
from graphtool.rewrite.engine import Rule, with_trait
from graphtool.symbolic import symbol
from tests.lab.proofs import integers, numbers
from tests.lab.proofs.patterns import (
    EVERY,
    FLOATS,
    K1,
    RANKS,
    SHAPES,
    K,
    M,
    N,
    P,
    floats,
    graph,
    has_only,
    of_pattern,
    sizes,
)


@dataclass(frozen=True)
class Cases:
    """The graphs of a rule; `open` says that no size, number or attribute in them stands for
    others, so that a proof of all is a proof for all. z3 gets `seconds` for each."""

    graphs: Callable[[], Iterable[Graph]]
    open: bool = True
    seconds: int = 20


# ---- movement ----------------------------------------------------------------------------------

def _merge_transposes() -> Iterator[Graph]:
    for rank in RANKS:
        for p, q in product(permutations(range(rank)), repeat=2):
            yield floats(lambda x, p=p, q=q: o.transpose(o.transpose(x, perm=p), perm=q),
                         sizes(rank))


def _of_ones() -> Iterator[Graph]:
    for rank in RANKS:
        for ones, p in product(product((True, False), repeat=rank), permutations(range(rank))):
            shape = tuple(1 if one else d for one, d in zip(ones, sizes(rank), strict=True))
            yield floats(lambda x, p=p: o.transpose(x, perm=p), shape)


def _split() -> Iterator[Graph]:
    a, b, c, d = (symbol(s, 1) for s in "abcd")
    for p in permutations(range(3)):
        def fn(x: Any, p: Any = p) -> Any:
            y = o.transpose(o.reshape(x, shape=(a * b, c, d)), perm=p)
            return o.reshape(y, shape=(a, b, *y.shape[1:]))
        if p[0] == 0:
            yield floats(fn, (a, b, c, d))
            yield floats(fn, (a * b, c * d))


def _products(left: bool) -> Iterator[Graph]:
    for lead, s, t in product(((), (P,), (P, K)), (False, True), (False, True)):
        rank = len(lead) + 2
        p = (*range(rank - 2), rank - 1, rank - 2)

        def fn(a: Any, b: Any, p: Any = p, s: Any = s, t: Any = t) -> Any:
            a, b = (o.transpose(a, perm=p), b) if left else (a, o.transpose(b, perm=p))
            return o.matmul(a, b, transpose_a=s, transpose_b=t)
        a, b = (N, M) if s == left else (M, N), (M, K1) if t != left else (K1, M)
        yield floats(fn, (*lead, *a), (*lead, *b))


def _scaled_products() -> Iterator[Graph]:
    for number, t in product((0.5, 3.0), (False, True)):
        def fn(a: Any, b: Any, c: Any = number, t: Any = t) -> Any:
            return o.matmul(a, o.transpose(b, perm=(1, 0)) * c, transpose_b=t)
        yield floats(fn, (N, M), (M, P) if t else (P, M))


def _broadcasts() -> Iterator[Graph]:
    for rank in range(1, 4):
        for ones in product((True, False), repeat=2 * rank):
            big = sizes(rank)
            s, x = (tuple(1 if one else d for one, d in zip(ones[i:i + rank], big, strict=True))
                    for i in (0, rank))
            for cut in range(rank):
                try:
                    yield floats(lambda v, s=s, big=big: o.broadcast(
                        o.broadcast(v, shape=s), shape=big), x[cut:])
                except InputError:
                    continue


def _broadcast_operand() -> Iterator[Graph]:
    for op, dtype, small, side in product(with_trait(Trait.ELEMENTWISE), (float32, int32, bool_),
                                          SHAPES, (0, 1)):
        def fn(x: Any, y: Any, op: Any = op, side: Any = side) -> Any:
            wide = o.broadcast(x, shape=(N, M))
            return op(*((wide, y) if side == 0 else (y, wide)))
        try:
            yield graph(fn, (dtype, small), (dtype, (N, M)))
        except InputError:
            continue  # not of two operands, or not of this type


def _slices() -> Iterator[Graph]:
    a, c, more, rest, tail = (symbol(n, 0) for n in ("a", "c", "more", "rest", "tail"))
    s: Any = symbol("s", 1)
    t: Any = symbol("t", 1)

    def fn(x: Any) -> Any:
        y = o.slice(x, start=(a, 0), limit=(a + s * (c + more + 1 + rest), M), strides=(s, 1))
        return o.slice(y, start=(c, 0), limit=(c + more + 1, M), strides=(t, 1))
    yield floats(fn, (a + s * (c + more + 1 + rest) + tail, M + 1))

    def apart(x: Any) -> Any:
        y = o.slice(x, start=(a, 0), limit=(a + c + 1, M + 1), strides=(s, 1))
        return o.slice(y, start=(0, more), limit=(1, more + 1), strides=(1, t))
    yield floats(apart, (a + c + 1 + tail, M + 1 + more))


def _pads() -> Iterator[Graph]:
    for rank, value in product((1, 2), (0.0, 1.5)):
        a, b, c, d = (sizes(rank, s) for s in "abcd")
        yield floats(lambda x, v=value, a=a, b=b, c=c, d=d: o.pad(
            o.pad(x, lo=a, hi=b, value=v), lo=c, hi=d, value=v), sizes(rank))


def _concats() -> Iterator[Graph]:
    for axis, left in product((0, 1), (True, False)):
        def fn(x: Any, y: Any, z: Any, axis: Any = axis, left: Any = left) -> Any:
            return o.concat(o.concat(x, y, axis=axis), z, axis=axis) if left else (
                o.concat(x, o.concat(y, z, axis=axis), axis=axis))
        yield floats(fn, *(((symbol(s, 1), M) if axis == 0 else (M, symbol(s, 1)))
                           for s in "xyz"))


def _reverses() -> Iterator[Graph]:
    for rank in range(1, 4):
        axes = [tuple(i for i, on in enumerate(bits) if on)
                for bits in product((0, 1), repeat=rank)]
        for a, b in product(axes, repeat=2):
            yield floats(lambda x, a=a, b=b: o.reverse(o.reverse(x, axes=a), axes=b), sizes(rank))


def _nothing() -> Iterator[Graph]:
    for rank in range(1, 4):
        shape, none = sizes(rank), (0,) * rank
        for fn in (lambda x: o.reshape(x, shape=x.shape), lambda x: o.broadcast(x, shape=x.shape),
                   lambda x, n=none: o.slice(x, start=n, limit=x.shape, strides=(1,) * x.ndim),
                   lambda x, n=none: o.pad(x, lo=n, hi=n),
                   lambda x: o.concat(x, axis=0),
                   lambda x: o.transpose(x, perm=tuple(range(x.ndim)))):
            yield floats(fn, shape)
        for ones, p in product(product((True, False), repeat=rank), permutations(range(rank))):
            some = tuple(1 if one else d for one, d in zip(ones, shape, strict=True))
            yield floats(lambda x, p=p: o.transpose(x, perm=p), some)
            yield floats(lambda x, ones=ones: o.reverse(x, axes=tuple(
                i for i, one in enumerate(ones) if one)), some)


def _gathers_of_reshape() -> Iterator[Graph]:
    for rest, flat in (((M, K), (M * K,)), ((M * K,), (M, K)), ((M,), (M, 1)), ((1, M), (M,))):
        for lead in ((), (P,), (P, K)):
            yield graph(lambda x, i, flat=flat: o.gather(o.reshape(x, shape=(N, *flat)), i,
                                                         axes=(0,)),
                        (float32, (N, *rest)), (int32, (*lead, 1)))


def _gathers_of_f() -> Iterator[Graph]:
    more = symbol("more", 0)
    for fn in (lambda x, s: o.neg(x), lambda x, s: x * s, lambda x, s: o.sub(s, x),
               lambda x, s: o.cast(x, dtype=int32), lambda x, s: x + 2.5):
        yield graph(lambda x, s, i, fn=fn: o.gather(fn(x, s), i, axes=(0,)),
                    (float32, (K + more + 1, M + 1)), (float32, (1, 1)), (int32, (K, 1)))


_REDUCTIONS = ("sum", "prod", "max", "min", "and", "or", "mean")


def _reduce_ones() -> Iterator[Graph]:
    for kind, ones, axes in product(_REDUCTIONS, product((True, False), repeat=3),
                                    ((0,), (0, 1), (0, 2), (0, 1, 2), (1, 2))):
        shape = tuple(1 if one else d for one, d in zip(ones, sizes(3), strict=True))
        yield graph(lambda x, k=kind, a=axes: getattr(o, f"reduce_{k}")(x, axes=a),
                    (bool_ if kind in ("and", "or") else float32, shape))


def _reduce_twice() -> Iterator[Graph]:
    for kind, (a, b) in product(("max", "min", "and", "or"), (
            ((0,), (1,)), ((1,), (0,)), ((0, 2), (1,)), ((2,), (0, 1)), ((-1,), (0,)))):
        yield graph(lambda x, k=kind, a=a, b=b: getattr(o, f"reduce_{k}")(
            getattr(o, f"reduce_{k}")(x, axes=a), axes=b),
            (bool_ if kind in ("and", "or") else float32, sizes(3)))


def _conv_of_pad() -> Iterator[Graph]:
    stride: Any = symbol("stride", 1)
    dilation: Any = symbol("dilation", 1)
    wide = symbol("wide", 1)
    for space, last, own in product((1, 2), (False, True), (False, True)):
        a, b, q = sizes(space, "a"), sizes(space, "b"), sizes(space, "q")
        image = tuple(symbol(f"h{i}", 8) for i in range(space))

        def fn(x: Any, w: Any, a: Any = a, b: Any = b, q: Any = q, last: Any = last,
               own: Any = own) -> Any:
            lo, hi = ((0, *a, 0), (0, *b, 0)) if last else ((0, 0, *a), (0, 0, *b))
            return o.conv(o.pad(x, lo=lo, hi=hi, value=0.0), w, strides=(stride,) * len(a),
                          padding=tuple((n, n) for n in q) if own else None,
                          rhs_dilation=(dilation,) * len(a), channels_last=last)
        shape = (N, *image, K) if last else (N, K, *image)
        yield floats(fn, shape, (P, K, *(wide,) * space))


# ---- arithmetic --------------------------------------------------------------------------------

def _idempotent() -> Iterator[Graph]:
    for op, dtype in product((o.and_, o.or_, o.max, o.min), EVERY):
        try:
            yield graph(lambda x, op=op: op(x, x), (dtype, (N, M)))
        except InputError:
            continue


def _same_casts() -> Iterator[Graph]:
    return (graph(lambda x, d=d, s=s: o.cast(x, dtype=d, saturate=s), (d, (N, M)))
            for d in EVERY for s in (True, False))


def _selects() -> Iterator[Graph]:
    for shape, chosen in product(SHAPES, (True, False)):
        yield floats(lambda x, y, c=chosen: o.select(
            x.builder.constant(np.full((1, 1), c)), x, y), shape, (N, M))


def _powers() -> Iterator[Graph]:
    for dtype in FLOATS[:2]:
        for n in (*range(-8, 0), *range(1, 9)):
            yield graph(lambda x, c=2.0**n: x / c, (dtype, (N,)))


def _affine(norm: Callable[..., Any], op: Callable[..., Any]) -> Cases:
    """A norm and a constant of so many elements that they count as any numbers."""
    def graphs() -> Iterator[Graph]:
        for dtype, axes, width in product(FLOATS, ((2,), (1, 2), (0, 2)), (17, 64)):
            numbers = np.arange(1, width + 1).astype(dtype.numpy)
            yield graph(lambda x, s, a=axes, c=numbers: op(norm(x, s, a), x.builder.constant(c)),
                        (dtype, (N, M, width)), (dtype, (width,)))
    return Cases(graphs, open=False)


_NUMBERS = (1e-5, 0.0)
_ATTRIBUTES: dict[str, dict[str, Iterable[Any]]] = {
    "softmax": {"a": (0, 1, -1)}, "log_softmax": {"a": (0, 1, -1)},
    "unknown_nothing": {"r": ("a reason",)}, "gradient_nothing": {"of": ("w",)},
    "checkpoint_nothing": {"r": (0, 1), "e": ("in", "out")},
    **{name: {"a": ((0,), (1,), (0, 1)), "e": _NUMBERS} for name in (
        "layer_norm", "layer_norm_by_root", "rms_norm", "rms_norm_by_root")},
}
_GRAPHS: dict[str, Cases] = {
    "move_nothing": Cases(_nothing),
    "merge_transposes": Cases(_merge_transposes),
    "reshape_reshape": Cases(lambda: (
        floats(lambda x, s=s, t=t: o.reshape(o.reshape(x, shape=s), shape=t), x)
        for x, s, t in (((N * M, K), (N, M, K), (N, M * K)), ((N, M, K), (N * M * K,), (N, M, K)),
                        ((N, M * K), (N * M * K,), (N * M, K)), ((N, M), (M, N), (N, M)))),
        open=False),
    "transpose_of_ones": Cases(_of_ones),
    "split_before_transpose": Cases(_split, open=False),
    "matmul_of_transpose": Cases(lambda: _products(True)),
    "matmul_by_transpose": Cases(lambda: _products(False)),
    "matmul_by_scaled_transpose": Cases(_scaled_products),
    "broadcast_broadcast": Cases(_broadcasts),
    "broadcast_operand": Cases(_broadcast_operand),
    "slice_slice": Cases(_slices),
    "pad_pad": Cases(_pads),
    "concat_parts": Cases(_concats, open=False),
    "reverse_reverse": Cases(_reverses),
    "gather_of_reshape": Cases(_gathers_of_reshape, open=False),
    "gather_operand": Cases(_gathers_of_f, open=False),
    "reduce_ones": Cases(_reduce_ones),
    "reduce_reduce": Cases(_reduce_twice),
    "conv_of_pad": Cases(_conv_of_pad),
    "idempotent": Cases(_idempotent),
    "cast_same": Cases(_same_casts),
    "layer_norm_scale": _affine(
        lambda x, s, a: o.layer_norm(x, axes=a, epsilon=1e-5), lambda y, c: y * c),
    "layer_norm_bias": _affine(
        lambda x, s, a: o.layer_norm(x, s, axes=a, epsilon=1e-5), lambda y, c: y + c),
    "rms_norm_scale": _affine(
        lambda x, s, a: o.rms_norm(x, axes=a, epsilon=1e-5), lambda y, c: y * c),
    "integer_matmul": Cases(integers.int_products, open=False),
    "integer_linear": Cases(integers.int_layers, open=False),
    "integer_conv": Cases(integers.int_convs, open=False),
    "select_known": Cases(_selects),
    "select_select": Cases(numbers.choices),
    "cast_clamp": Cases(numbers.clamped, open=False),
    "gt_max": Cases(numbers.above, open=False),
    "add_add": Cases(lambda: numbers.chained(o.add, True), open=False),
    "mul_mul": Cases(lambda: numbers.chained(o.mul, True), open=False),
    "add_add_float": Cases(lambda: numbers.chained(o.add, False), open=False),
    "mul_mul_float": Cases(lambda: numbers.chained(o.mul, False), open=False),
    "max_max": Cases(lambda: numbers.extremes(o.max), open=False),
    "min_min": Cases(lambda: numbers.extremes(o.min), open=False),
    "gather_of_run": Cases(numbers.runs, open=False),
    "div_by_power_of_two": Cases(_powers, open=False),
}


def cases(rule: Rule) -> Cases | None:
    """The graphs of a rule; None if nobody gave any."""
    known, given = _GRAPHS.get(rule.name), _ATTRIBUTES.get(rule.name, {})
    if known is None and rule.pattern is not None and has_only(rule.pattern, given):
        return Cases(lambda: of_pattern(rule, **given), seconds=300)
    return known
