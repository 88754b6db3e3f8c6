"""Products, convolutions and factors of complex matrices, and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import Pair
from graphtool.importers.stablehlo.driver.registry import HANDLERS
from graphtool.importers.stablehlo.driver.values import dtype_of, shape_of
from graphtool.importers.stablehlo.families.complex_numbers import (
    divide,
    paired,
    part,
    real_context,
    whole,
)
from graphtool.importers.stablehlo.families.movement import ints, transposed
from graphtool.ir.trace import trace
from graphtool.ops.matrices import swap_last_axes


@paired("dot_general", "dot", "convolution", "dynamic_conv", "einsum")
def _product(ctx: Context, x: Any, y: Any, *rest: Any, **attrs: Any) -> Pair:
    """(a + bi)(c + di), with four real products."""
    fn, inner = HANDLERS[ctx.op.name].fn, real_context(ctx)
    a, b, c, d = (part(whole(v), i) for v in (x, y) for i in (0, 1))

    def times(left: Any, right: Any) -> Any:
        return fn(inner, left, right, *rest, **attrs)
    return Pair(ctx.apply(o.sub, times(a, c), times(b, d)),
                ctx.apply(o.add, times(a, d), times(b, c)))


# ---- factors -----------------------------------------------------------------------------------

@paired("cholesky")
def cholesky(ctx: Context, x: Pair, *, lower: Any = False) -> Pair:
    """L with L·L̄ᵀ = x, or its conjugate transpose; column after column."""
    a, b = ctx.tensor(x.real), ctx.tensor(x.imag)
    if not lower:
        a, b = swap_last_axes(a), o.neg(swap_last_axes(b))
    n, rank = a.shape[-1], a.ndim
    lead = a.shape[:-2]
    rows = np.arange(n).reshape(n, 1)

    def step(index: Any, real: Any, imag: Any, full: Any, other: Any) -> Any:
        """Column j: what the columns before it leave of that of x, divided by a root."""
        def at(v: Any, axis: int) -> Any:
            starts = [0] * rank
            size = list(v.shape)
            starts[axis], size[axis] = index, 1
            return o.dynamic_slice(v, *starts, sizes=tuple(size))
        p, q = (swap_last_axes(at(v, rank - 2)) for v in (real, imag))  # row j of L
        left = o.sub(at(full, rank - 1), o.add(o.matmul(real, p), o.matmul(imag, q)))
        turned = o.sub(at(other, rank - 1), o.sub(o.matmul(imag, p), o.matmul(real, q)))
        starts = [0] * rank
        starts[-2] = index
        root = o.sqrt(o.dynamic_slice(left, *starts, sizes=(*lead, 1, 1)))
        below = o.ge(index.builder.constant(rows), index)
        apart = o.gt(index.builder.constant(rows), index)
        column = o.select(below, o.div(left, root), 0.0), o.select(apart, o.div(turned, root), 0.0)
        ends = [0] * rank
        ends[-1] = index
        return (o.add(index, 1), *(o.dynamic_update_slice(v, c, *ends)
                                   for v, c in zip((real, imag), column, strict=True)))
    first = ctx.builder.constant(np.zeros((), np.int64))
    blank = o.broadcast(ctx.builder.constant(np.zeros((1,) * rank, a.dtype.numpy)), shape=a.shape)
    operands = [first, blank, blank, a, b]
    body = trace(step, [v.type for v in operands])
    _, real, imag = o.scan(*operands, body=body, carries=3, xs=0, length=n)
    if not lower:
        real, imag = swap_last_axes(real), o.neg(swap_last_axes(imag))
    return Pair(real, imag)


@paired("triangular_solve")
def triangular_solve(ctx: Context, a: Pair, b: Pair, *, left_side: Any, lower: Any,
                     unit_diagonal: Any, transpose_a: str) -> Pair:
    """x with op(a)·x = b, or x·op(a) = b."""
    return solved(ctx, a, b, bool(left_side), bool(lower), bool(unit_diagonal),
                  {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}.get(
                      str(transpose_a).split()[-1], "N"))


def solved(ctx: Context, a: Pair, b: Pair, left: bool, low: bool, unit: bool, turn: str) -> Pair:
    """The solution by real numbers: each row is divided by its diagonal element; then an element
    p + qi becomes the block [p −q; q p], and blocks of the diagonal are 1."""
    parts = [ctx.tensor(v) for v in (a.real, a.imag, b.real, b.imag)]
    p, q, c, d = parts
    if turn == "C":
        q = o.neg(q)
    if (turn != "N") == left:
        p, q, low = swap_last_axes(p), swap_last_axes(q), not low
    if not left:
        c, d = swap_last_axes(c), swap_last_axes(d)
    n = p.shape[-1]
    eye = p.builder.constant(np.eye(n, dtype=p.dtype.numpy))
    if not unit:
        diagonal = Pair(*(o.reduce_sum(o.mul(v, eye), axes=(v.ndim - 1,)) for v in (p, q)))
        whole_a, whole_b = divide(ctx, Pair(p, q), diagonal), divide(ctx, Pair(c, d), diagonal)
        p, q, c, d = (ctx.tensor(v) for v in (whole_a.real, whole_a.imag, whole_b.real,
                                              whole_b.imag))
    mask = p.builder.constant(1 - np.eye(n, dtype=p.dtype.numpy))
    p, q = o.add(o.mul(p, mask), eye), o.mul(q, mask)
    x = o.triangular_solve(_woven([[p, o.neg(q)], [q, p]]), _woven([[c], [d]]), lower=low,
                           unit=True)
    real, imag = (_every_other(x, i) for i in (0, 1))
    return Pair(real, imag) if left else Pair(swap_last_axes(real), swap_last_axes(imag))


def _woven(blocks: list[list[Any]]) -> Any:
    """A matrix whose 2×k blocks have the elements of these matrices."""
    first = blocks[0][0]
    *lead, m, n = first.shape
    k = len(blocks[0])
    rows = [o.concat(*(o.reshape(x, shape=(*lead, m, 1, n, 1)) for x in row), axis=first.ndim + 1)
            for row in blocks]
    return o.reshape(o.concat(*rows, axis=first.ndim - 1), shape=(*lead, 2 * m, n * k))


def _every_other(x: Any, first: int) -> Any:
    """Every second row, from the first one on."""
    rank = x.ndim
    start = [0] * rank
    start[-2] = first
    return o.slice(x, start=tuple(start), limit=x.shape,
                   strides=tuple(2 if i == rank - 2 else 1 for i in range(rank)))


# ---- Fourier transforms ------------------------------------------------------------------------

@paired("fft")
def _fft(ctx: Context, x: Any, *, fft_type: str, fft_length: Any) -> Any:
    """A transform over the last axes: complex, or from and to real numbers along the last one."""
    lengths, rank = ints(fft_length), len(shape_of(part(x, 0)))
    axes = list(range(rank - len(lengths), rank))
    inverse = fft_type in ("IFFT", "IRFFT")
    total = float(np.prod(lengths))
    if fft_type == "RFFT":
        pair = Pair(*o.fourier(ctx.tensor(x), half=True))
        return _along(ctx, pair, axes[:-1], False)
    given = whole(x)
    if fft_type == "IRFFT":
        pair = _along(ctx, given, axes[:-1], True)
        line = o.fourier_real(ctx.tensor(pair.real), ctx.tensor(pair.imag), size=lengths[-1])
        return ctx.apply(o.div, line, np.full((), total, dtype_of(line).numpy))
    pair = _along(ctx, given, axes, inverse)
    if not inverse:
        return pair
    share = np.full((), total, dtype_of(pair.real).numpy)
    return Pair(ctx.apply(o.div, pair.real, share), ctx.apply(o.div, pair.imag, share))


def _along(ctx: Context, x: Pair, axes: list[int], inverse: bool) -> Pair:
    """The transform along each of the axes, not divided by their lengths."""
    real, imag = ctx.tensor(x.real), ctx.tensor(x.imag)
    for axis in axes:
        order = [*(i for i in range(real.ndim) if i != axis), axis]
        back = [order.index(i) for i in range(real.ndim)]
        made = o.fourier(transposed(ctx, real, order), transposed(ctx, imag, order),
                         inverse=inverse)
        real, imag = (transposed(ctx, v, back) for v in made)
    return Pair(real, imag)
