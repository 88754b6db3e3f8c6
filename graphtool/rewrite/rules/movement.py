"""Rules of movement: reshape, transpose, broadcast, slice, pad, concat, reverse, and reductions.

All of them are exact: they move elements or leave work out, and never change a number.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.rewrite.engine import (
    array_of,
    family_rule,
    is_number,
    producer,
    rule,
    stated,
    with_trait,
)
from graphtool.symbolic import known, product

# ---- reshape and transpose ---------------------------------------------------------------------


@family_rule(o.reshape, o.broadcast, o.transpose, o.slice, o.pad, o.reverse, o.concat)
def move_nothing(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """move(x) = x, if the movement leaves every element in its place"""
    x = xs[0]
    if x.type != type:
        return None
    match op:
        case o.reshape | o.broadcast:
            same = True
        case o.slice:
            same = all(s == 1 for s in attrs["strides"]) and not any(
                known(a, "==", 0) is not True for a in attrs["start"])
        case o.transpose:
            same = _order(attrs["perm"], x.shape) == sorted(_order(attrs["perm"], x.shape))
        case o.pad:
            same = all(known(a, "==", 0) is True for a in (*attrs["lo"], *attrs["hi"])) and not any(
                attrs["interior"] or ())
        case o.reverse:
            same = all(x.shape[a] == 1 for a in attrs["axes"])
        case _:
            same = len(xs) == 1
    return x if same else None


def _order(perm: Any, shape: Any) -> list[int]:
    """The axes in their new order, without axes of size 1, which do not change the memory order."""
    return [p for p in perm if shape[p] != 1]


@rule(lambda x, s, t: o.reshape(o.reshape(x, shape=s), shape=t))
def reshape_reshape(x: Any, s: Any, t: Any) -> Any:
    """reshape(reshape(x, s), t) = reshape(x, t)"""
    return o.reshape(x, shape=t)


@rule(lambda x, p, q: o.transpose(o.transpose(x, perm=p), perm=q))
def merge_transposes(x: Any, p: Any, q: Any) -> Any:
    """(xᵖ)ᑫ = x^(p∘q)"""
    return o.transpose(x, perm=tuple(p[i] for i in q))


@rule(lambda x, p: o.transpose(x, perm=p))
def transpose_of_ones(x: Any, p: Any) -> Any:
    """transpose(x) = reshape(x), if only axes of size 1 move: the row-major order stays"""
    if _order(p, x.shape) != sorted(_order(p, x.shape)) or list(p) == sorted(p):
        return None
    return o.reshape(x, shape=tuple(x.shape[i] for i in p))


@rule(lambda x, p, t: o.reshape(o.transpose(x, perm=p), shape=t))
def split_before_transpose(x: Any, p: Any, t: Any) -> Any:
    """reshape(xᵀ) = reshape(x)ᵀ, if the reshape only splits axis 0:
    [B·H, T, D] → [B·H, D, T] → [B, H, D, T]"""
    node, more = producer(x), len(t) - len(p)
    moved = tuple(x.shape[i] for i in p[1:])
    if node is None or node.op is not o.reshape or more < 1 or p[0] != 0 or moved != t[more + 1:]:
        return None
    split = o.reshape(x, shape=(*t[:more + 1], *x.shape[1:]))
    return o.transpose(split, perm=(*range(more + 1), *(i + more for i in p[1:])))


@rule(lambda a, b, p, s, t, d: o.matmul(o.transpose(a, perm=p), b, transpose_a=s, transpose_b=t,
                                        dtype=d))
def matmul_of_transpose(a: Any, b: Any, p: Any, s: Any, t: Any, d: Any) -> Any:
    """matmul(aᵀ, b, s, t) = matmul(a, b, ¬s, t) for the flags transpose_a, transpose_b"""
    return o.matmul(a, b, transpose_a=not s, transpose_b=t, dtype=d) if _swaps(p) else None


@rule(lambda a, b, p, s, t, d: o.matmul(a, o.transpose(b, perm=p), transpose_a=s, transpose_b=t,
                                        dtype=d))
def matmul_by_transpose(a: Any, b: Any, p: Any, s: Any, t: Any, d: Any) -> Any:
    """matmul(a, bᵀ, s, t) = matmul(a, b, s, ¬t) for the flags transpose_a, transpose_b"""
    return o.matmul(a, b, transpose_a=s, transpose_b=not t, dtype=d) if _swaps(p) else None


@rule(lambda a, b, c, p, s, t, d: o.matmul(a, o.transpose(b, perm=p) * c, transpose_a=s,
                                           transpose_b=t, dtype=d))
def matmul_by_scaled_transpose(a: Any, b: Any, c: Any, p: Any, s: Any, t: Any, d: Any) -> Any:
    """a·(bᵀ·c) = a·(b·c)ᵀ for a number c"""
    if not is_number(c) or not _swaps(p):
        return None
    return o.matmul(a, b * c, transpose_a=s, transpose_b=not t, dtype=d)


def _swaps(perm: tuple[int, ...]) -> bool:
    n = len(perm)
    return perm == (*range(n - 2), n - 1, n - 2)


# ---- broadcast ---------------------------------------------------------------------------------

@rule(lambda x, s, t: o.broadcast(o.broadcast(x, shape=s), shape=t))
def broadcast_broadcast(x: Any, s: Any, t: Any) -> Any:
    """broadcast(broadcast(x, s), t) = broadcast(x, t)"""
    return o.broadcast(x, shape=t)


@family_rule(*with_trait(Trait.ELEMENTWISE))
def broadcast_operand(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """f(broadcast x, y) = f(x, y), if elementwise f itself broadcasts x to the same shape"""
    for i, x in enumerate(xs):
        node = producer(x)
        if node is None or node.op is not o.broadcast:
            continue
        small = x.builder.wrap(node.inputs[0])
        shapes = [t.shape for t in (*xs[:i], small, *xs[i + 1:]) if hasattr(t, "shape")]
        if broadcast_shapes(*shapes) == type.shape:
            return op(*xs[:i], small, *xs[i + 1:], **attrs)
    return None


# ---- slice, pad, concat, reverse ---------------------------------------------------------------

@rule(lambda x, a, b, s, c, d, t: o.slice(o.slice(x, start=a, limit=b, strides=s),
                                          start=c, limit=d, strides=t))
def slice_slice(x: Any, a: Any, b: Any, s: Any, c: Any, d: Any, t: Any) -> Any:
    """x[a:b:s][c:d:t] = x[a+c·s : a+(d−1)·s+1 : s·t]"""
    if any(known(hi, "<=", lo) is not False for lo, hi in zip(c, d, strict=True)):
        return None  # empty
    return o.slice(x, start=tuple(i + j * k for i, j, k in zip(a, c, s, strict=True)),
                   limit=tuple(i + (j - 1) * k + 1 for i, j, k in zip(a, d, s, strict=True)),
                   strides=tuple(i * j for i, j in zip(s, t, strict=True)))


@rule(lambda x, a, b, c, d, v: o.pad(o.pad(x, lo=a, hi=b, interior=None, value=v),
                                     lo=c, hi=d, interior=None, value=v))
def pad_pad(x: Any, a: Any, b: Any, c: Any, d: Any, v: Any) -> Any:
    """pad(pad(x, a, b), c, d) = pad(x, a+c, b+d), if both pad with the same value"""
    if not all(known(0, "<=", n) is True for n in (*a, *b, *c, *d)):
        return None
    return o.pad(x, lo=tuple(i + j for i, j in zip(a, c, strict=True)),
                 hi=tuple(i + j for i, j in zip(b, d, strict=True)), value=v)


@rule(lambda x, i, a: o.gather(x, i, axes=a, batch=0))
def gather_of_run(x: Any, i: Any, a: Any) -> Any:
    """x[…, [n, n+s, n+2s …], …] = x[…, n : : s, …], if the indices are known and equally spaced"""
    node = producer(i)
    array = array_of(i.builder.wrap(node.inputs[0]) if node and node.op is o.reshape else i)
    if array is None or array.size == 0 or len(a) != 1 or i.ndim > 2:
        return None
    line = [int(n) for n in array.reshape(-1)]
    step = line[1] - line[0] if len(line) > 1 else 1
    extent, (axis,) = x.shape[a[0]], a
    if step < 1 or line[0] < 0 or line != list(range(line[0], line[-1] + 1, step)) or (
            known(line[-1], "<", extent) is not True):
        return None
    cut = o.slice(x, start=tuple(line[0] if k == axis else 0 for k in range(x.ndim)),
                  limit=tuple(line[-1] + 1 if k == axis else d for k, d in enumerate(x.shape)),
                  strides=tuple(step if k == axis else 1 for k in range(x.ndim)))
    rest = [k for k in range(x.ndim) if k != axis]
    if i.ndim == 2:
        return o.transpose(cut, perm=(axis, *rest))
    return o.reshape(cut, shape=tuple(x.shape[k] for k in rest))


@family_rule(o.concat)
def concat_parts(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """concat(concat(a, b), c) = concat(a, b, c); empty parts are left out"""
    parts: list[Any] = []
    axis = attrs["axis"] % len(type.shape)
    for x in xs:
        node = producer(x)
        inner = node is not None and node.op is op and (
            node.attrs["axis"] % len(type.shape) == axis)
        parts += [x.builder.wrap(v) for v in node.inputs] if node and inner else [x]
    parts = [x for x in parts if x.shape[axis] != 0] or parts[:1]
    return None if len(parts) == len(xs) else op(*parts, axis=axis)


@rule(lambda x, a, b: o.reverse(o.reverse(x, axes=a), axes=b))
def reverse_reverse(x: Any, a: Any, b: Any) -> Any:
    """reverse(reverse(x, a), b) = reverse(x, a △ b): an axis reversed twice is not reversed"""
    n = len(x.shape)
    once = {i % n for i in a} ^ {i % n for i in b}
    return o.reverse(x, axes=tuple(sorted(once))) if once else x


@rule(lambda x, i, s: o.gather(o.reshape(x, shape=s), i, axes=(0,), batch=0))
def gather_of_reshape(x: Any, i: Any, s: Any) -> Any:
    """reshape(x)[i] = reshape(x[i]), if the reshape keeps axis 0; f(x)[i] = f(x[i]) may follow"""
    if not x.shape or x.shape[0] != s[0]:
        return None
    return o.reshape(o.gather(x, i, axes=(0,)), shape=(*i.shape[:-1], *s[1:]))


@family_rule(o.gather)
def gather_operand(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """f(x)[i] = f(x[i]), if fewer elements are gathered than x has: rows of a quantised table"""
    node = producer(xs[0])
    if node is None or Trait.ELEMENTWISE not in node.op.traits or known(
            product(type.shape), "<", product(xs[0].shape)) is not True:
        return None
    parts = [xs[0].builder.wrap(v) for v in node.inputs]
    tensors = [p for p in parts if isinstance(p, Tracer)]  # others are literals, or left out
    whole = [p for p in tensors if p.shape == xs[0].shape]
    if len(whole) != 1 or not all(p is whole[0] or product(p.shape) == 1 for p in tensors):
        return None
    rank = len(type.shape)
    return node.op(*(op(p, xs[1], **attrs) if p is whole[0] else o.reshape(p, shape=(1,) * rank)
                     if isinstance(p, Tracer) else p for p in parts), **node.attrs)


# ---- reductions --------------------------------------------------------------------------------

@family_rule(o.reduce_sum, o.reduce_prod, o.reduce_max, o.reduce_min, o.reduce_and, o.reduce_or,
             o.reduce_mean)
def reduce_ones(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """reduce(x, axes) = reduce(x, the axes whose size is not 1)"""
    shape = xs[0].shape
    axes = tuple(a for a in attrs["axes"] if shape[a] != 1)
    if len(axes) == len(attrs["axes"]):
        return xs[0] if not axes else None
    return op(xs[0], axes=axes) if axes else xs[0]


@family_rule(o.reduce_max, o.reduce_min, o.reduce_and, o.reduce_or)
def reduce_reduce(op: Any, xs: Any, attrs: Any, type: Any) -> Any:
    """max(max(x, a), b) = max(x, a ∪ b), for the axes a and b"""
    node = producer(xs[0])
    if node is None or node.op is not op:
        return None
    rank = len(type.shape)
    axes = {a % rank for a in (*node.attrs["axes"], *attrs["axes"])}
    return op(xs[0].builder.wrap(node.inputs[0]), axes=tuple(sorted(axes)))


# ---- padding that a convolution can do itself --------------------------------------------------

@rule(lambda x, w, a, b, s, p, i, j, g, c, d: o.conv(
    o.pad(x, lo=a, hi=b, interior=None, value=0.0), w, strides=s, padding=p, lhs_dilation=i,
    rhs_dilation=j, groups=g, batch_groups=1, channels_last=c, dtype=d))
def conv_of_pad(x: Any, w: Any, a: Any, b: Any, s: Any, p: Any, i: Any, j: Any, g: Any, c: Any,
                d: Any) -> Any:
    """conv(pad(x, p), w) = conv(x, w, padding p), if p are zeros around the spatial axes"""
    space = slice(1, -1) if c else slice(2, None)
    edges = (a[0], b[0], a[-1], b[-1]) if c else (*a[:2], *b[:2])
    if any(e != 0 for e in edges) or any(n != 1 for n in i or ()) or not all(
            known(0, "<=", n) is True for n in (*a, *b)):
        return None
    first = p or ((0, 0),) * len(a[space])
    padding = tuple((lo + m, hi + n) for (lo, hi), m, n in zip(first, a[space], b[space],
                                                               strict=True))
    return o.conv(x, w, strides=s, padding=padding, lhs_dilation=i, rhs_dilation=j, groups=g,
                  channels_last=c, dtype=d)


SHAPE = stated(__name__)
