"""Recognises scaled dot-product attention from its parts, in the forms that exporters write.

It is softmax(mask(q·kᵀ))·v. The scale may be at q, at k or at the scores; the mask may be added or
selected; a guard against rows of NaN may surround the softmax; heads may be repeated for grouped
queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.assume import Assumes
from graphtool.dtypes import bool_
from graphtool.ir.graph import Node
from graphtool.ir.op import Op
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.rewrite.engine import array_of, family_rule, number_of, producer, readers, rule
from graphtool.rewrite.patterns import Applied, bindings, pattern, unrounded
from graphtool.symbolic import product as count

_HIDDEN = -1e30  # an added mask at or below this hides an element from softmax


@family_rule(o.matmul, needs="approximate", may="finite")
def attention(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """softmax(mask(q·kᵀ·c))·v = attention(q, k, v, mask, scale=c), where a mask of −∞ hides"""
    if any((attrs["transpose_a"], attrs["transpose_b"], attrs["dtype"])) or len(type.shape) < 3:
        return None
    weights = _without_split(xs[0])
    bare = _without_guard(weights)
    soft = _made_by(bare, o.softmax)
    if soft is None or readers(xs[0]) != 1 or soft.attrs["axis"] not in (-1, weights.ndim - 1):
        return None
    scores = _masked(_operand(weights, soft, 0), 6)
    if scores is None:
        return None
    (product, scale), mask = _without_factor(scores[0]), _across(scores[1], weights, xs[0])
    dot = _made_by(product, o.matmul)
    if dot is None or dot.attrs["transpose_a"] or dot.attrs["dtype"]:
        return None
    (q, at_q), (k, at_k) = (_without_factor(_operand(product, dot, i)) for i in (0, 1))
    if not dot.attrs["transpose_b"]:
        n = k.ndim
        k = o.transpose(k, perm=(*range(n - 2), n - 1, n - 2))
    lead = type.shape[:-2]
    whole = _whole(_led(q, lead), _led(k, lead), xs[1], mask, scale * at_q * at_k, type)
    if whole is None or (bare is weights and mask is None):
        return whole
    return Assumes(whole, "finite", "a row that a mask hides throughout is 0, not NaN")


def _led(x: Any, lead: tuple[Any, ...]) -> Any:
    """x with these leading axes before its last two, if the number of elements is the same."""
    if x.shape[:-2] == lead or count(x.shape[:-2]) != count(lead):
        return x
    return o.reshape(x, shape=(*lead, *x.shape[-2:]))


def _without_split(x: Any) -> Any:
    """The operand of a reshape that changed only the axes before the last two; x itself if there
    is none."""
    outer = _made_by(x, o.reshape)
    inner = x if outer is None else _operand(x, outer, 0)
    return inner if inner.shape[-2:] == x.shape[-2:] else x


def _across(mask: Any, old: Any, new: Any) -> Any:
    """The mask for `new`, which is `old` with other axes before the last two."""
    if mask is None or old.shape == new.shape:
        return mask
    if all(d == 1 for d in mask.shape[:-2]):
        return o.reshape(mask, shape=(*(1,) * (new.ndim - 2), *mask.shape[-2:]))
    whole = mask if mask.shape == old.shape else o.broadcast(mask, shape=old.shape)
    return o.reshape(whole, shape=new.shape)


def _whole(q: Any, k: Any, v: Any, mask: Any, scale: float, type: Any) -> Any:
    """The composite; None if the operands do not have its shapes."""
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
      needs=("approximate", "finite"))
def attention_mask(q: Any, k: Any, v: Any, m: Any, c: Any, s: Any, z: Any) -> Any:
    """A constant mask is removed if it is the causal mask or hides nothing."""
    mask = array_of(m)
    if mask is None or not mask.size:
        return None
    nothing = mask.all() if mask.dtype == bool_.numpy else not mask.any()
    causal = _is_causal(mask, (*q.shape[:-1], k.shape[-2]))
    if not nothing and not causal:
        return None
    return o.attention(q, k, v, causal=c or (causal and not nothing), scale=s, softcap=z)


def _made_by(x: Any, *ops: Op) -> Node | None:
    node = producer(x)
    return node if node is not None and node.op in ops else None


def _operand(x: Any, node: Node, i: int) -> Any:
    return x.builder.wrap(node.inputs[i])


def _without_guard(x: Any) -> Any:
    """p, if x is `is_nan(p) ? 0 : p`; else x."""
    node = _made_by(x, o.select)
    if node is None:
        return x
    cond, zero, p = (_operand(x, node, i) for i in range(3))
    test = _made_by(cond, o.is_nan)
    same = test is not None and isinstance(p, Tracer) and test.inputs[0] is p.value
    return p if same and number_of(zero) == 0 else x


_SCALED: tuple[tuple[Applied, Callable[[float], float | None]], ...] = (
    (pattern(lambda c, y: o.mul(c, y)), lambda c: c),
    (pattern(lambda y, c: o.div(y, c)), lambda c: 1 / c if c else None))


def _without_factor(x: Any) -> tuple[Any, float]:
    """y and c, if x is y·c or y / c for a number c; else x and 1."""
    if not isinstance(x, Tracer):
        return x, 1.0
    builder: Any = x.builder
    look = unrounded(builder.made_by.get)
    for form, factor in _SCALED:
        for env in bindings(form, x.value, look):
            a, c = builder.wrap(env["y"]), number_of(builder.wrap(env["c"]))
            if c is None or not isinstance(a, Tracer) or a.shape != x.shape or (
                    (by := factor(c)) is None):
                continue
            y, inner = _without_factor(a)
            return y, inner * by
    return x, 1.0


def _masked(x: Any, most: int) -> tuple[Any, Any] | None:
    """The product under a chain of masks, and all these masks as one.

    The product may have a factor. The masks are added or selected; the result is a bool mask, an
    added one, or None. Returns None if there is no product within `most` steps.
    """
    if _made_by(_without_factor(x)[0], o.matmul):
        return x, None
    if not most:
        return None
    if (whole := _without_split(x)) is not x:
        inner = _masked(whole, most - 1)
        return None if inner is None else (inner[0], _across(inner[1], whole, x))
    for y, mask in _under_masks(x):
        inner = _masked(y, most - 1) if isinstance(y, Tracer) and y.shape == x.shape else None
        if inner is not None:
            return inner[0], mask if inner[1] is None else _both(inner[1], mask)
    return None


def _under_masks(x: Any) -> Iterator[tuple[Any, Any]]:
    """y and m for each way in which x is y where m is true, or y with m added."""
    if (node := _made_by(x, o.select)) is not None:
        cond, a, b = (_operand(x, node, i) for i in range(3))
        if _hides(b):
            yield a, cond
        elif _hides(a):
            yield b, o.not_(cond)
    elif (node := _made_by(x, o.add)) is not None:
        operands = [_operand(x, node, i) for i in range(2)]
        for y, m in (operands, operands[::-1]):
            if isinstance(m, Tracer):
                yield y, _as_bool(m)


def _both(a: Any, b: Any) -> Any:
    """One mask with the effect of both masks."""
    if a.dtype == bool_ == b.dtype:
        return o.and_(a, b)
    if a.dtype == bool_ or b.dtype == bool_:
        cond, added = (a, b) if a.dtype == bool_ else (b, a)
        return o.select(cond, added, -math.inf)
    return a + b


def _hides(x: Any) -> bool:
    number = number_of(x)
    return number is not None and number <= _HIDDEN


def _as_bool(mask: Any) -> Any:
    """The mask `seen`, if the added mask is `seen ? 0 : −∞`; else the mask itself."""
    node = _made_by(mask, o.select)
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
    """k […, H, T, D], if x is k with each of its heads repeated: […, H, G, T, D] as […, H·G, T,
    D]."""
    outer = _made_by(x, o.reshape)
    if outer is None:
        return None
    wide = _operand(x, outer, 0)
    node = _made_by(wide, o.broadcast)
    if node is None or wide.ndim != x.ndim + 1 or wide.shape[-2:] != x.shape[-2:]:
        return None
    narrow = _operand(wide, node, 0)
    if narrow.shape != (*wide.shape[:-3], 1, *wide.shape[-2:]):
        return None
    return o.reshape(narrow, shape=(*wide.shape[:-3], *wide.shape[-2:]))
