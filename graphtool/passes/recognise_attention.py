"""Recognises scaled dot-product attention from its parts, in the spellings of exporters.

softmax(mask(q·kᵀ))·v, the scale standing at q, k or the scores, the mask added or selected, a guard
against rows of NaN around the softmax, heads repeated for grouped queries.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.dtypes import bool_
from graphtool.ir.graph import Node
from graphtool.ir.op import ops as o
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.passes.rewrite import array_of, family_rule, number_of, producer, readers, rule

_HIDDEN = -1e30  # an added mask at or below this hides an element from softmax


@family_rule("matmul", numerics="approximate")
def attention(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """softmax(mask(q·kᵀ·c))·v = attention(q, k, v, mask, scale=c)"""
    if any((attrs["transpose_a"], attrs["transpose_b"], attrs["dtype"])) or len(type.shape) < 3:
        return None
    soft = _made_by(_without_guard(xs[0]), "softmax")
    if soft is None or readers(xs[0]) != 1 or soft.attrs["axis"] not in (-1, len(type.shape) - 1):
        return None
    scores, mask = _split_mask(_operand(xs[0], soft, 0))
    product, scale = _without_factor(scores)
    dot = _made_by(product, "matmul")
    if dot is None or dot.attrs["transpose_a"] or dot.attrs["dtype"]:
        return None
    (q, at_q), (k, at_k) = (_without_factor(_operand(product, dot, i)) for i in (0, 1))
    if not dot.attrs["transpose_b"]:
        n = k.ndim
        k = o.transpose(k, perm=(*range(n - 2), n - 1, n - 2))
    return _whole(q, k, xs[1], mask, scale * at_q * at_k, type)


def _whole(q: Any, k: Any, v: Any, mask: Any, scale: float, type: Any) -> Any:
    """The composite, if the operands have its shapes."""
    once_k, once_v = _once_a_group(k), _once_a_group(v)
    if once_k is not None and once_v is not None and once_k.shape[:-1] == once_v.shape[:-1]:
        k, v = once_k, once_v
    if not q.ndim == k.ndim == v.ndim or k.shape[:-1] != v.shape[:-1] or (
            q.shape[:-3] != k.shape[:-3]):
        return None
    depth = q.shape[-1]
    default = isinstance(depth, int) and math.isclose(scale, depth**-0.5, rel_tol=1e-6)
    scores = (*q.shape[:-1], k.shape[-2])
    causal = mask is not None and _is_causal(array_of(mask), scores)
    mask = None if causal else mask
    if mask is not None and broadcast_shapes(mask.shape, scores) != scores:
        return None
    return o.attention(q, k, v, mask, causal=causal, scale=None if default else scale)


@rule(lambda q, k, v, m, c, s, z: o.attention(q, k, v, m, causal=c, scale=s, softcap=z))
def attention_groups(q: Any, k: Any, v: Any, m: Any, c: Any, s: Any, z: Any) -> Any:
    """Keys and values need not be repeated for the queries of their group."""
    once_k, once_v = _once_a_group(k), _once_a_group(v)
    if once_k is None or once_v is None or once_k.shape[:-1] != once_v.shape[:-1]:
        return None
    return o.attention(q, once_k, once_v, m, causal=c, scale=s, softcap=z)


@rule(lambda q, k, v, m, c, s, z: o.attention(q, k, v, m, causal=c, scale=s, softcap=z),
      numerics="approximate")
def attention_mask(q: Any, k: Any, v: Any, m: Any, c: Any, s: Any, z: Any) -> Any:
    """A constant mask that says causal, or hides nothing, is not needed."""
    mask = array_of(m)
    if mask is None or not mask.size:
        return None
    nothing = mask.all() if mask.dtype == bool_.numpy else not mask.any()
    causal = _is_causal(mask, (*q.shape[:-1], k.shape[-2]))
    if not nothing and not causal:
        return None
    return o.attention(q, k, v, causal=c or (causal and not nothing), scale=s, softcap=z)


def _made_by(x: Any, *names: str) -> Node | None:
    node = producer(x)
    return node if node is not None and node.op.name in names else None


def _operand(x: Any, node: Node, i: int) -> Any:
    return x.builder.wrap(node.inputs[i])


def _without_guard(x: Any) -> Any:
    """p of `is_nan(p) ? 0 : p`."""
    node = _made_by(x, "select")
    if node is None:
        return x
    cond, zero, p = (_operand(x, node, i) for i in range(3))
    test = _made_by(cond, "is_nan")
    same = test is not None and isinstance(p, Tracer) and test.inputs[0] is p.value
    return p if same and number_of(zero) == 0 else x


def _without_factor(x: Any) -> tuple[Any, float]:
    """y and c of y·c or y / c for a number c."""
    node = _made_by(x, "mul", "div")
    if node is None:
        return x, 1.0
    a, b = _operand(x, node, 0), _operand(x, node, 1)
    if node.op.name == "mul" and number_of(a) is not None:
        a, b = b, a
    c = number_of(b)
    if c is None or not isinstance(a, Tracer) or a.shape != x.shape or (
            node.op.name == "div" and c == 0):
        return x, 1.0
    y, inner = _without_factor(a)
    return y, inner * (c if node.op.name == "mul" else 1 / c)


def _split_mask(x: Any) -> tuple[Any, Any]:
    """The scores and the mask (bool or added) of masked scores; the mask may be None."""
    y, windows = _without_windows(x)
    if windows is not None:
        scores, mask = _split_mask(y)
        if mask is None or mask.dtype != bool_:
            return scores, windows if mask is None else mask + windows
    node = _made_by(x, "add", "select")
    if node is None:
        return x, None
    operands = [_operand(x, node, i) for i in range(len(node.inputs))]
    if node.op.name == "select":
        cond, a, b = operands
        return (a, cond) if _hides(b) else (b, o.not_(cond)) if _hides(a) else (x, None)
    for scores, mask in (operands, operands[::-1]):
        inner = _without_factor(scores)[0] if isinstance(scores, Tracer) else scores
        if _made_by(inner, "matmul") and isinstance(mask, Tracer):
            return scores, _as_bool(mask)
    return x, None


def _without_windows(x: Any) -> tuple[Any, Any]:
    """y and m, as large as y, where m is added to y under another shape, as masks of shifted
    windows are; m is None where it is not so.
    """
    outer = _made_by(x, "reshape")
    wide = x if outer is None else _operand(x, outer, 0)
    node = _made_by(wide, "add") if outer is not None else None
    operands = [] if node is None else [_operand(wide, node, i) for i in (0, 1)]
    for a, m in (operands, operands[::-1]) if operands else ():
        inner = _made_by(a, "reshape")
        y = None if inner is None else _operand(a, inner, 0)
        if y is not None and y.shape == x.shape and a.shape == wide.shape and (
                isinstance(m, Tracer)):
            return y, o.reshape(o.broadcast(m, shape=wide.shape), shape=x.shape)
    return x, None


def _hides(x: Any) -> bool:
    number = number_of(x)
    return number is not None and number <= _HIDDEN


def _as_bool(mask: Any) -> Any:
    """`seen ? 0 : −∞` is the mask `seen`."""
    node = _made_by(mask, "select")
    if node is not None:
        cond, a, b = (_operand(mask, node, i) for i in range(3))
        if number_of(a) == 0 and _hides(b) and cond.shape == mask.shape:
            return cond
    return mask


def _is_causal(mask: Any, scores: tuple[Any, ...]) -> bool:
    """Whether a constant mask lets row i see columns 0…i and hides the others."""
    if mask is None or mask.ndim < 2 or mask.shape[-2:] != scores[-2:] or any(
            d != 1 for d in mask.shape[:-2]):
        return False
    seen = np.tril(np.ones(mask.shape[-2:], np.bool_))
    flat = mask.reshape(mask.shape[-2:])
    if mask.dtype == bool_.numpy:
        return bool((flat == seen).all())
    return bool((flat[seen] == 0).all() and (flat[~seen] <= _HIDDEN).all())


def _once_a_group(x: Any) -> Any | None:
    """k of […, H, T, D] where x repeats each of its heads: […, H, G, T, D] as […, H·G, T, D]."""
    outer = _made_by(x, "reshape")
    if outer is None:
        return None
    wide = _operand(x, outer, 0)
    node = _made_by(wide, "broadcast")
    if node is None or wide.ndim != x.ndim + 1 or wide.shape[-2:] != x.shape[-2:]:
        return None
    narrow = _operand(wide, node, 0)
    if narrow.shape != (*wide.shape[:-3], 1, *wide.shape[-2:]):
        return None
    return o.reshape(narrow, shape=(*wide.shape[:-3], *wide.shape[-2:]))
