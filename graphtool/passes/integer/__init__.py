"""integer: replaces products of dequantised numbers by products of the integers themselves.

(q - z)·s represents a real number. Two of them are multiplied as integers, and the scales are
applied after that. The pass runs before constants are folded, while weights are still stored as
integers. It runs again later to merge what follows a product: the product's scale with the scale of
the next quantisation, its bias with its sums. Sums are then rounded once, not at every step (class
reassociated).

What a cast to bytes does to numbers that are quantised already, and what it makes superfluous, are
rules of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import BYTES, dequantising, is_single, maker, quantising, wrapped
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.op import Op
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.rules import Rules, permitted
from graphtool.passes.integer.dequantised import Real, dequantised, is_plain, only, values
from graphtool.rewrite.engine import apply_rules, family_rule, stated
from graphtool.rewrite.engine import readers as read_times
from graphtool.rewrite.journal import Journal
from graphtool.rewrite.patterns import bindings, pattern
from graphtool.symbolic import Dim, product

_RELU = pattern(lambda x: o.relu(x))
_CLAMP = pattern(lambda x, low, high: o.clamp(x, low, high))
# the greatest number of products of bytes whose sum always fits in an int32
DEEPEST = 2**31 // (255 * 255)
_SUM = pattern(lambda value, bias: o.add(value, bias))


@family_rule(o.cast)
def quantised_again(_: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """Quantising a dequantised number in the same way gives the same integer: (q - z)·s / s + z
    = q"""
    if type.dtype not in BYTES:
        return None
    x, scale, zero = _quantised(xs[0])
    real = dequantised(x)
    if real is None or real.narrow.q.dtype is not type.dtype or only(scale) is None or (
            zero is None or only(real.scale) != only(scale) or only(real.narrow.zero) != zero):
        return None
    return real.narrow.q


def _quantised(x: Any) -> tuple[Any, Any, float | None]:
    """y, s and z of x = round(y / s) + z; all are None if x is of another form."""
    chain = quantising(x.value, x.builder.made_by) if isinstance(x, Tracer) else None
    if chain is None or chain.bounds:
        return None, None, None
    return wrapped(x, chain.x), wrapped(x, chain.scale), only(wrapped(x, chain.zero))


@family_rule(o.cast)
def limits_of_bytes(op: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """cast(round(relu(x) / s) + z) = cast(round(x / s) + z), if z is the least byte; and the same
    for a clamp: the cast cuts off what lies beyond"""
    if type.dtype not in BYTES or not attrs["saturate"]:
        return None
    y, by, zero = _quantised(xs[0])
    cut, scale = _cut(y), only(by)
    if cut is None or zero is None or scale is None or not scale > 0 or read_times(y) != 1:
        return None
    x, bounds = cut
    least, most = (np.rint(np.float32(b) / np.float32(scale)) + zero for b in bounds)
    if least > type.dtype.low or most < type.dtype.high:
        return None
    steps = o.round(o.div(x, by))
    return op(steps if zero == 0 else o.add(steps, zero), **attrs)


def _cut(y: Any) -> tuple[Any, tuple[float, float]] | None:
    """What a relu or a clamp reads that makes y, and its bounds; None if a bound is no number."""
    if not isinstance(y, Tracer):
        return None
    look = y.builder.made_by.get
    for env in bindings(_RELU, y.value, look):
        return wrapped(y, env["x"]), (0.0, float("inf"))
    for env in bindings(_CLAMP, y.value, look):
        low, high = (None if v is None else only(wrapped(y, v)) for v in (env["low"], env["high"]))
        if low is not None and high is not None:
            return wrapped(y, env["x"]), (low, high)
    return None


def integer(graph: Graph, *, numerics: str = "reassociated",
            journal: Journal | None = None, rules: Rules | None = None) -> Graph:
    """The graph with integer products and convolutions where both operands are dequantised."""
    return apply_rules(graph, RULES, permitted(rules, numerics, "integer"), journal)


# ---- products ----------------------------------------------------------------------------------

def _shallow(depth: Dim) -> bool:
    return isinstance(depth, int) and depth <= DEEPEST


def _scaled(total: Any, x: Any, w: Any) -> Any:
    both = x * w if isinstance(x, (int, float)) and isinstance(w, (int, float)) else o.mul(x, w)
    return o.mul(o.cast(total, dtype=dtypes.float32), both)


def _along_rows(scale: Any, rank: int) -> bool:
    """Whether the scale is the same for all numbers of a row."""
    return is_single(scale) or (scale.shape[-1] == 1 and scale.ndim <= rank)


@family_rule(o.matmul, needs="reassociated")
def integer_matmul(op: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """(p·s)·(q·r) = (p·q)·(s·r)"""
    x, w = map(dequantised, xs)
    if x is None or w is None or type.dtype is not dtypes.float32:
        return None
    left, right = _untransposed(x, xs[0], attrs["transpose_a"]), _untransposed(
        w, xs[1], attrs["transpose_b"])
    across = right if is_single(right) or right.ndim == 1 or right.shape[-2] == 1 else None
    depth = xs[0].shape[-2 if attrs["transpose_a"] else -1]
    if left is None or across is None or not _along_rows(left, xs[0].ndim) or not _shallow(depth):
        return None
    return _scaled(op(x.centred, w.centred, **attrs), _single(left), _single(across))


def _untransposed(x: Real, whole: Any, transposed: bool) -> Any:
    """The scale in the orientation in which the product reads the operand; None if that is not
    possible."""
    if not transposed or is_single(x.scale):
        return x.scale
    if x.scale.ndim != whole.ndim:
        return None
    rank = whole.ndim
    return o.transpose(x.scale, perm=(*range(rank - 2), rank - 1, rank - 2))


def _single(scale: Any) -> Any:
    """A scale with one element, without the axes that it was stored with."""
    if isinstance(scale, Tracer) and is_single(scale) and scale.ndim:
        return o.reshape(scale, shape=())
    return scale


@family_rule(o.linear, needs="reassociated")
def integer_linear(_: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """(p·s)·(q·r)ᵀ + b = (p·qᵀ)·(s·r) + b"""
    x, w = map(dequantised, xs[:2])
    if x is None or w is None or not _shallow(xs[0].shape[-1]) or (
            not _along_rows(x.scale, xs[0].ndim) or not _along_rows(w.scale, 2)):
        return None
    scale = _single(w.scale) if is_single(w.scale) else o.reshape(
        w.scale, shape=(xs[1].shape[0],))
    total = o.matmul(x.centred, w.centred, transpose_b=True)
    y = _scaled(total, _single(x.scale), scale)
    return y if len(xs) < 3 or xs[2] is None else o.add(y, xs[2])


@family_rule(o.conv, needs="reassociated")
def integer_conv(op: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """A convolution of (p·s) by filters (q·r), which have one scale for each output channel."""
    x, w = map(dequantised, xs)
    if x is None or w is None or type.rank not in (3, 4) or type.dtype is not dtypes.float32 or (
            attrs["batch_groups"] != 1):
        return None
    per = product(w.scale.shape[1:]) == 1 if not is_single(w.scale) else True
    aligned = is_single(w.scale) or w.scale.ndim == type.rank
    if not is_single(x.scale) or not is_single(x.narrow.zero) or not per or not aligned or (
            not _shallow(product(xs[1].shape[1:]))):
        return None
    scale = _single(w.scale)
    if not is_single(scale):
        o_first = (1, xs[1].shape[0], *(1,) * (type.rank - 2))
        scale = o.reshape(scale, shape=o_first[:1] + o_first[2:] + o_first[1:2]
                          if attrs["channels_last"] else o_first)
    return _scaled(op(x.centred, w.centred, **attrs), _single(x.scale), scale)


# ---- what follows a product --------------------------------------------------------------------

def _product_of(x: Any) -> tuple[Any, Any] | None:
    """x = cast(v)·a where v is int32: v and the values of a."""
    node = maker(x)
    if node is None or x.dtype is not dtypes.float32:
        return None
    for chain in dequantising(node, x.builder.made_by):
        known, total = values(wrapped(x, chain.scale)), wrapped(x, chain.x)
        if chain.zero is None and known is not None and is_plain(known) and (
                total.dtype is dtypes.int32 and total.shape == x.shape):
            return total, known.astype(np.float32)
    return None


def _float(v: Any) -> Any:
    return o.cast(v, dtype=dtypes.float32)


@family_rule(o.div, o.mul, needs="reassociated")
def joined_scales(op: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """(v·a + b) / c = v·(a / c) + b / c, for an integer v; b is constant, or an integer u·d"""
    multiplies = Trait.COMMUTATIVE in op.traits
    x, by = xs[::-1] if multiplies and not isinstance(xs[0], Tracer) else xs
    if not isinstance(x, Tracer) or x.dtype is not dtypes.float32 or read_times(x) != 1:
        return None
    divisor = values(by)
    if divisor is None or not is_plain(divisor) or not divisor.all():
        return None
    scale = divisor.astype(np.float64) if multiplies else (
        np.float32(1) / divisor.astype(np.float64))
    plain = _product_of(x)
    if plain is not None:
        return _times(x, *plain, scale)
    for env in bindings(_SUM, x.value, x.builder.made_by.get):
        value, bias = wrapped(x, env["value"]), wrapped(x, env["bias"])
        part, known, other = _product_of(value), values(bias), _product_of(bias)
        if part is not None and known is not None and read_times(value) == 1:
            return o.add(_times(x, *part, scale), _number(x, known * scale))
        if part is not None and known is None and other is not None:
            return o.add(_times(x, *part, scale), _times(x, *other, scale))
    return None


def _times(beside: Any, whole: Any, a: Any, scale: Any) -> Any:
    """whole·(a·scale), in float32."""
    return o.mul(_float(whole), _number(beside, a * scale))


def _number(beside: Any, x: Any) -> Any:
    x = np.asarray(x, np.float32)
    return float(x.reshape(-1)[0]) if x.size == 1 else beside.builder.constant(x)


@family_rule(o.add, needs="reassociated")
def whole_bias(_: Op, xs: tuple[Any, ...], attrs: Any, type: TensorType) -> Any:
    """v·a + n·a = (v + n)·a: a bias that is an integer number of steps is added to the sums"""
    for x, b in (xs, xs[::-1]):
        product = _product_of(x)
        if product is None or read_times(x) != 1 or x.shape != type.shape or (
                bias := values(b)) is None:
            continue
        total, scale = product
        with np.errstate(all="ignore"):
            steps = np.rint(bias.astype(np.float64) / scale)
        if not (np.abs(steps) < 2**30).all() or not np.array_equal(
                (steps.astype(np.float32) * scale).astype(np.float32),
                np.broadcast_to(bias, steps.shape)):
            continue
        count = steps.astype(np.int32)
        whole = int(count.reshape(-1)[0]) if count.size == 1 else x.builder.constant(count)
        return o.mul(_float(o.add(total, whole)), _number(x, scale))
    return None


RULES = [quantised_again, limits_of_bytes, *stated(__name__)]
