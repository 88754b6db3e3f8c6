"""For inference only: makes parameters constants, and merges scales and shifts into the layers
before them.

Batch norm becomes a factor and a term. Factors are multiplied into the weights of the convolution
or matrix product before them, terms are added to its bias. The new weights are computed in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, is_constant, is_parameter, names_of
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder
from graphtool.kernels.choice.rules import Rules, permitted
from graphtool.passes.fold import fold
from graphtool.rewrite.engine import Array, apply_rules, array_of, is_number, producer, rule, stated
from graphtool.rewrite.journal import Journal
from graphtool.rewrite.patterns import bindings, pattern
from graphtool.target import Target


def freeze(graph: Graph, *, numerics: str = "reassociated", target: Target | None = None,
           journal: Journal | None = None, rules: Rules | None = None) -> Graph:
    """The graph with parameters as constants, and batch norm and scales multiplied into weights.

    With `numerics=exact` no weight changes. `target` is that of `fold`.
    """
    may = permitted(rules, numerics, "freeze")
    if any(is_parameter(n) for n in graph.nodes):
        # a reshaped bias must be a constant too
        graph = fold(rebuild(graph, _as_constant), target=target)
    return apply_rules(graph, RULES, may, journal)


def _as_constant(node: Node, _: tuple[Operand, ...], builder: Builder) -> Any:
    if not is_parameter(node):
        return None
    return (builder.constant(node.attrs["data"], node.outputs[0].hint),)


# ---- constants ---------------------------------------------------------------------------------

def _wide(x: Any) -> Array | None:
    """A float constant or literal in float64."""
    if is_number(x):
        return np.asarray(float(x))
    array = array_of(x)
    return None if array is None or not x.dtype.is_float else array.astype(np.float64)


def _along(c: Array | None, rank: int, axis: int, size: Any) -> Array | None:
    """c as one number per index of an axis, if it varies along no other axis."""
    if c is None or c.ndim > rank or not isinstance(size, int):
        return None
    shape = (1,) * (rank - c.ndim) + c.shape
    if any(d != 1 for a, d in enumerate(shape) if a != axis) or shape[axis] not in (1, size):
        return None
    return np.broadcast_to(c.reshape(-1), (size,))


def _like(x: Any, value: Array, *sources: Any) -> Any:
    """A constant of x's type, named after the first constant from which it is computed; None if
    it overflows."""
    with np.errstate(all="ignore"):
        narrow = value.astype(x.dtype.numpy)
    if not np.isfinite(narrow.astype(np.float64)).all():
        return None
    constants = [n for n in map(producer, sources) if n is not None and is_constant(n)]
    return x.builder.constant(narrow, constants[0].outputs[0].hint if constants else "",
                              of=names_of(*constants))


def _scaled(w: Any, c: Array | None, axis: int, source: Any) -> Any:
    """The constant w with its slices along an axis multiplied by c, which comes from `source`; None
    if w is not constant."""
    wide = _wide(w) if hasattr(w, "shape") else None
    if wide is None or c is None:
        return None
    shape = [1] * wide.ndim
    shape[axis] = -1
    return _like(w, wide * c.reshape(shape), w, source)


# ---- rules -------------------------------------------------------------------------------------

@rule(lambda x: o.stop_gradient(x))
def stop_gradient_nothing(x: Any) -> Any:
    """stop_gradient(x) = x: no gradient is computed after this pass."""
    return x


@rule(lambda x, r: o.unknown_gradient(x, reason=r))
def unknown_nothing(x: Any, r: Any) -> Any:
    """unknown_gradient(x) = x: no gradient is computed after this pass."""
    return x


@rule(lambda x, of: o.gradient(x, of=of))
def gradient_nothing(x: Any, of: Any) -> Any:
    """gradient(x) = x: no pass after this one looks for gradients."""
    return x


@rule(lambda x: x + (o.round(x) - x), needs="finite")
def round_through(x: Any) -> Any:
    """x + (round(x) − x) = round(x), exactly: how a rounding is written that gradients pass.

    An infinite x gives NaN on the left.
    """
    return o.round(x)


@rule(lambda x, r, e: o.checkpoint(x, region=r, edge=e))
def checkpoint_nothing(x: Any, r: Any, e: Any) -> Any:
    """checkpoint(x) = x: without gradients nothing is computed a second time."""
    return x


@rule(lambda x, s, b, m, v, e, a, p: o.batch_norm(x, s, b, m, v, epsilon=e, axis=a, momentum=p),
      needs="reassociated")
def batch_norm_affine(x: Any, s: Any, b: Any, m: Any, v: Any, e: Any, a: Any, p: Any) -> Any:
    """(x − m)/√(v + ε)·s + b = x·k + (b − m·k) with k = s/√(v + ε)"""
    scale, bias = (np.asarray(d) if t is None else _wide(t) for t, d in ((s, 1.0), (b, 0.0)))
    mean, var = _wide(m), _wide(v)
    if scale is None or bias is None or mean is None or var is None or (var + e <= 0).any():
        return None
    factor = scale / np.sqrt(var + e)
    shape = (-1, *(1,) * (x.ndim - 1 - a % x.ndim))
    k = _like(m, factor.reshape(shape), s, v)
    c = _like(m, (bias - mean * factor).reshape(shape), b, m, s, v)
    return None if k is None or c is None else x * k + c


@rule(lambda x, w, c, s, p, i, j, g, b, last, a, d: o.mul(o.conv(
    x, w, strides=s, padding=p, lhs_dilation=i, rhs_dilation=j, groups=g, batch_groups=b,
    channels_last=last, absent=a, dtype=d), c), needs="reassociated", once=True)
def conv_factor(x: Any, w: Any, c: Any, s: Any, p: Any, i: Any, j: Any, g: Any, b: Any, last: Any,
                a: Any, d: Any) -> Any:
    """conv(x, w)·c = conv(x, w·c) for one c per output channel"""
    rank = x.ndim
    factor = _along(_wide(c), rank, rank - 1 if last else 1, w.shape[0])
    scaled = _scaled(w, factor, 0, c)
    return None if scaled is None else o.conv(
        x, scaled, strides=s, padding=p, lhs_dilation=i, rhs_dilation=j, groups=g,
        batch_groups=b, channels_last=last, absent=a, dtype=d)


@rule(lambda x, w, c, s, t, d: o.mul(o.matmul(x, w, transpose_a=s, transpose_b=t, dtype=d), c),
      needs="reassociated", once=True)
def matmul_factor(x: Any, w: Any, c: Any, s: Any, t: Any, d: Any) -> Any:
    """(x·w)·c = x·(w·c) for one c per column"""
    axis = w.ndim - (2 if t else 1)
    rank = max(x.ndim, w.ndim)
    scaled = _scaled(w, _along(_wide(c), rank, rank - 1, w.shape[axis]), axis, c)
    return None if scaled is None else o.matmul(x, scaled, transpose_a=s, transpose_b=t, dtype=d)


@rule(lambda x, w, b, c: o.mul(o.linear(x, w, b), c), needs="reassociated", once=True)
def linear_factor(x: Any, w: Any, b: Any, c: Any) -> Any:
    """linear(x, w, b)·c = linear(x, w·c, b·c)"""
    factor = _along(_wide(c), x.ndim, x.ndim - 1, w.shape[0])
    scaled = _scaled(w, factor, 0, c)
    shift = None if b is None else _scaled(b, factor, 0, c)
    return None if scaled is None or (b is not None and shift is None) else o.linear(
        x, scaled, shift)


@rule(lambda x, w, b, c: o.add(o.linear(x, w, b), c), needs="reassociated", once=True)
def linear_term(x: Any, w: Any, b: Any, c: Any) -> Any:
    """linear(x, w, b) + c = linear(x, w, b + c)"""
    term = _along(_wide(c), x.ndim, x.ndim - 1, w.shape[0])
    bias = np.asarray(0.0) if b is None else _wide(b)
    shift = None if term is None or bias is None else _like(
        w if b is None else b, term + bias, b, c)
    return None if shift is None else o.linear(x, w, shift)


@rule(lambda y, b, c: o.mul(o.add(y, b), c), needs="reassociated", once=True)
def factor_of_sum(y: Any, b: Any, c: Any) -> Any:
    """(y + b)·c = y·c + b·c after a layer, so that both can join it"""
    node = producer(y)
    term, factor = _wide(b), _wide(c)
    if node is None or Trait.CONTRACTION not in node.op.traits or term is None or factor is None:
        return None
    both = _like(y, term * factor, b, c)
    return None if both is None else y * c + both


@rule(lambda y, p, c: o.mul(o.transpose(y, perm=p), c), once=True)
def factor_before_transpose(y: Any, p: Any, c: Any) -> Any:
    """yᵖ·c = (y·c')ᵖ after a layer, where c' has its axes as they were before"""
    factor, array = producer(c), array_of(c)
    if not _is_layer(y) or factor is None or array is None or array.ndim > len(p):
        return None
    wide = array.reshape((1,) * (len(p) - array.ndim) + array.shape)
    back = np.ascontiguousarray(wide.transpose([p.index(i) for i in range(len(p))]))
    return o.transpose(y * c.builder.constant(
        back, factor.outputs[0].hint, of=names_of(factor)), perm=p)


_BIASED = pattern(lambda x, b: o.add(x, b))


def _is_layer(y: Any, biased: bool = True) -> bool:
    """Whether y is made by a layer, with or without a bias added behind it."""
    node = producer(y)
    if node is None:
        return False
    weighing = node.op.weighing
    return (weighing is not None and weighing.kind != "table") or (biased and any(
        _is_layer(y.builder.wrap(env["x"]), False)
        for env in bindings(_BIASED, y.value, y.builder.made_by.get)))


@rule(lambda x, a, b: o.add(o.add(x, a), b), needs="reassociated", once=True)
def sum_of_terms(x: Any, a: Any, b: Any) -> Any:
    """(x + a) + b = x + (a + b)"""
    return _joined(x, a, b, np.add, o.add)


@rule(lambda x, a, b: o.mul(o.mul(x, a), b), needs="reassociated", once=True)
def product_of_factors(x: Any, a: Any, b: Any) -> Any:
    """(x·a)·b = x·(a·b)"""
    return _joined(x, a, b, np.multiply, o.mul)


def _joined(x: Any, a: Any, b: Any, fn: Any, op: Any) -> Any:
    left, right = _wide(a), _wide(b)
    if left is None or right is None or not hasattr(x, "shape") or array_of(x) is not None:
        return None
    if np.broadcast_shapes(left.shape, right.shape) not in (left.shape, right.shape):
        return None  # the sum would be larger than both terms
    both = _like(x, fn(left, right), a, b)
    return None if both is None else op(x, both)


RULES = stated(__name__)
