"""Movement: reshape transpose broadcast slice pad concat reverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import ALONG, OVER, Align, Axes, Lowering, Movement, Precision
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, PExpr, Pull, apply, const, index, inside
from graphtool.ops.common import Array, broadcast_shapes, check_axis, equal_dims, fail, filled, need
from graphtool.ops.costs import nothing, taken
from graphtool.ops.indexing import flatten_index, inverse, reshape_blocks, unflatten_index
from graphtool.symbolic import (
    Dim,
    bounds,
    floordiv,
    known,
    maximum,
    minimum,
    product,
    text,
)

# ---- reshape -----------------------------------------------------------------------------------


def _reshape_infer(x: TensorType, *, shape: tuple[Dim, ...]) -> TensorType:
    have, want = product(x.shape), product(shape)
    static = isinstance(have, int) and isinstance(want, int)  # then a quotient proves nothing
    if have != want and (static or not _takes_the_rest(have, shape)):
        equal_dims((have,), (want,),
                   f"cannot reshape {x} of {text(have)} elements into {text(want)}")
    return TensorType(x.dtype, shape)


def _takes_the_rest(have: Dim, shape: tuple[Dim, ...]) -> bool:
    """Whether one dimension is have // (the product of the others, at least 1): with run-time
    sizes it is then right."""
    return any(d == floordiv(have, maximum(product((*shape[:i], *shape[i + 1:])), 1))
               for i, d in enumerate(shape))


def _reshape_lower(_: Names, x: Pull, *, shape: tuple[Dim, ...]) -> Pull:
    blocks = reshape_blocks(x.shape, shape)

    def at(idx: Any) -> Any:
        out: list[Dim] = []
        for xs, ys in blocks:
            if x.shape[xs] == shape[ys]:
                out += idx[ys]
            else:
                out += unflatten_index(flatten_index(idx[ys], shape[ys]), x.shape[xs])
        return x.at(tuple(out))
    return Pull(x.dtype, shape, at)


register(Op("reshape", _reshape_infer, lambda x, *, shape: x.reshape(shape),
            lambda g, y, x, *, shape: (o.reshape(g, shape=x.shape),), _reshape_lower,
            category="shape", lowering=Lowering.VIEW, movement=Movement.KEEPS,
            precision=Precision.FOLLOW, traffic=nothing, axes=Axes(Align.NONE, sizes=("shape",)),
            doc="the same elements in row-major order under another shape"))

# ---- transpose ---------------------------------------------------------------------------------


def _transpose_infer(x: TensorType, *, perm: tuple[int, ...]) -> TensorType:
    need(sorted(perm) == list(range(x.rank)), f"perm {perm} does not permute rank {x.rank}")
    return TensorType(x.dtype, tuple(x.shape[p] for p in perm))


def _transpose_lower(_: Names, x: Pull, *, perm: tuple[int, ...]) -> Pull:
    back = inverse(perm)
    return Pull(x.dtype, tuple(x.shape[p] for p in perm),
                lambda idx: x.at(tuple(idx[b] for b in back)))


register(Op("transpose", _transpose_infer, lambda x, *, perm: x.transpose(perm),
            lambda g, y, x, *, perm: (o.transpose(g, perm=inverse(perm)),), _transpose_lower,
            category="shape", lowering=Lowering.VIEW, movement=Movement.PERMUTES,
            precision=Precision.FOLLOW, axes=Axes(order="perm"),
            doc="x with its axes in another order: axis k of the result is axis perm[k] of x"))

# ---- broadcast ---------------------------------------------------------------------------------


def _broadcast_infer(x: TensorType, *, shape: tuple[Dim, ...]) -> TensorType:
    need(broadcast_shapes(x.shape, shape) == tuple(shape), f"{x} does not broadcast to {shape}")
    return TensorType(x.dtype, shape)


def _broadcast_vjp(g: Any, _y: Any, x: Any, *, shape: Any) -> tuple[Any, ...]:
    return (g,)  # un-broadcasting happens once, in autodiff


register(Op("broadcast", _broadcast_infer, lambda x, *, shape: np.broadcast_to(x, shape),
            _broadcast_vjp, lambda _, x, *, shape: Pull(x.dtype, shape, x.at_broadcast),
            category="shape", lowering=Lowering.VIEW, movement=Movement.REPEATS,
            precision=Precision.FOLLOW, axes=Axes(Align.TRAILING, sizes=("shape",)),
            doc="x repeated to a larger shape, by NumPy's rule: axes are aligned from the last, "
                "and axes of size 1 are repeated"))

# ---- slice -------------------------------------------------------------------------------------


def _slice_infer(x: TensorType, *, start: tuple[Dim, ...], limit: tuple[Dim, ...],
                 strides: tuple[int, ...]) -> TensorType:
    need(len(start) == len(limit) == len(strides) == x.rank,
         "start, limit and strides need one entry per axis")
    shape = []
    for d, a, b, s in zip(x.shape, start, limit, strides, strict=True):
        if s < 1 or known(0, "<=", a) is not True or known(b, "<=", d) is False:
            raise fail(f"slice {text(a)}:{text(b)}:{s} is out of range for {text(d)}")
        shape.append(maximum((b - a + s - 1) // s, 0))
    return TensorType(x.dtype, tuple(shape))


def _slice_eval(x: Array, *, start: Any, limit: Any, strides: Any) -> Array:
    return x[tuple(slice(a, b, s) for a, b, s in zip(start, limit, strides, strict=True))]


def _slice_lower(_: Names, x: Pull, *, start: Any, limit: Any, strides: Any) -> Pull:
    shape = _slice_infer(TensorType(x.dtype, x.shape), start=start, limit=limit,
                         strides=strides).shape
    return Pull(x.dtype, shape, lambda idx: x.at(tuple(
        a + i * s for a, i, s in zip(start, idx, strides, strict=True))))


def _slice_vjp(g: Any, _y: Any, x: Any, *, start: Any, limit: Any, strides: Any) -> tuple[Any, ...]:
    covered = [maximum((n - 1) * s + 1, 0) for n, s in zip(g.shape, strides, strict=True)]
    hi = tuple(d - a - c for d, a, c in zip(x.shape, start, covered, strict=True))
    return (o.pad(g, lo=tuple(start), hi=hi, interior=tuple(s - 1 for s in strides)),)


register(Op("slice", _slice_infer, _slice_eval, _slice_vjp, _slice_lower, category="shape",
            lowering=Lowering.VIEW, movement=Movement.TAKES, precision=Precision.FOLLOW,
            traffic=taken, axes=Axes(each={"start": 0, "strides": 1}, sizes=("limit",)),
            doc="x[start:limit:stride] on every axis; strides are positive"))

# ---- pad ---------------------------------------------------------------------------------------


def _pad_infer(x: TensorType, *, lo: tuple[Dim, ...], hi: tuple[Dim, ...],
               interior: tuple[int, ...] | None = None, value: float = 0.0) -> TensorType:
    interior = interior or (0,) * x.rank
    need(len(lo) == len(hi) == len(interior) == x.rank,
         "lo, hi and interior need one entry per axis")
    need(all(i >= 0 for i in interior), "interior padding cannot be negative")
    shape = tuple(maximum(_dilated(d, i) + a + b, 0)
                  for d, a, b, i in zip(x.shape, lo, hi, interior, strict=True))
    return TensorType(x.dtype, shape)


def _dilated(d: Dim, interior: int) -> Dim:
    return d if not interior else maximum((d - 1) * (interior + 1) + 1, 0)


def pad_value(value: float, dtype: DType) -> float | int | bool:
    """The padding value in this dtype. Floats cannot represent the extremes of 64-bit integers,
    so those are clamped."""
    if not dtype.is_integer:
        return float(value) if dtype.is_float else bool(value)
    return max(min(int(value), dtype.high), dtype.low)


def _pad_eval(x: Array, *, lo: Any, hi: Any, interior: Any, value: float) -> Array:
    interior = interior or (0,) * x.ndim
    wide = [_dilated(d, i) for d, i in zip(x.shape, interior, strict=True)]
    out = np.full([max(d + a + b, 0) for d, a, b in zip(wide, lo, hi, strict=True)],
                  np.asarray(pad_value(value, dtypes.of_numpy(x.dtype)), x.dtype))
    to, take = [], []
    for d, a, i, n in zip(x.shape, lo, interior, out.shape, strict=True):
        step = i + 1
        # the index of the first element that is not cropped
        first = max(0, -(a // step)) if a < 0 else 0
        last = max(first, min(d, -(-(n - a) // step))) if n > a else first
        take.append(slice(first, last))
        to.append(slice(a + first * step, max(a + (last - 1) * step + 1, 0) if last > first else 0,
                        step) if last > first else slice(0, 0))
    if all(s.stop > s.start for s in take):
        out[tuple(to)] = x[tuple(take)]
    return out


def _pad_lower(_: Names, x: Pull, *, lo: Any, hi: Any, interior: Any, value: float) -> Pull:
    interior = interior or (0,) * len(x.shape)
    kept = TensorType(x.dtype, x.shape)
    shape = _pad_infer(kept, lo=lo, hi=hi, interior=interior).shape
    fill = const(pad_value(value, x.dtype), x.dtype)
    if any(bounds(d)[1] == 0 for d in x.shape):
        return Pull(x.dtype, shape, lambda idx: fill)

    def at(idx: Any) -> Any:
        inner, checks = [], []
        cond: PExpr | None = None
        for i, a, gap, d in zip(idx, lo, interior, x.shape, strict=True):
            j = i - a
            if gap:
                hit = apply("eq", index(j % (gap + 1)), index(0), dtype=dtypes.bool_)
                cond = hit if cond is None else apply("and", cond, hit)
                j = j // (gap + 1)
            checks.append((j, d))
            # the clamped index can be read even where the padding is taken
            inner.append(maximum(minimum(j, d - 1), 0))
        within = inside(checks)
        cond = within if cond is None else cond if within is None else apply("and", cond, within)
        read = x.at(tuple(inner))
        return read if cond is None else apply("select", cond, read, fill, dtype=x.dtype)
    return Pull(x.dtype, shape, at)


def _pad_vjp(g: Any, _y: Any, x: Any, *, lo: Any, hi: Any, interior: Any,
             value: float) -> tuple[Any, ...]:
    interior = interior or (0,) * len(lo)
    rank = len(lo)
    if any(known(_dilated(d, i) + a + b, "<", 0) for d, i, a, b in zip(
            x.shape, interior, lo, hi, strict=True)):
        return (filled(x, 0.0, x.shape),)  # all of x is cropped away
    crop = o.pad(g, lo=tuple(-a for a in lo), hi=tuple(-b for b in hi))
    return (o.slice(crop, start=(0,) * rank, limit=crop.shape,
                    strides=tuple(i + 1 for i in interior)),)


register(Op("pad", _pad_infer, _pad_eval, _pad_vjp, _pad_lower, category="shape",
            lowering=Lowering.WINDOW, movement=Movement.FILLS, precision=Precision.FOLLOW,
            axes=Axes(each={"lo": 0, "hi": 0, "interior": 0}),
            doc="x with a value put before, after and between its elements; negative counts take "
                "elements away"))

# ---- concat ------------------------------------------------------------------------------------


def _concat_infer(*xs: TensorType, axis: int) -> TensorType:
    need(bool(xs), "needs at least one operand")
    axis = check_axis(axis, xs[0].rank)
    total: Dim = 0
    for x in xs:
        need(x.dtype is xs[0].dtype, f"element types differ: {xs[0].dtype.short}, {x.dtype.short}")
        ours, first = ((*t.shape[:axis], *t.shape[axis + 1:]) for t in (x, xs[0]))
        equal_dims(ours, first, f"{x} and {xs[0]} differ in another axis than axis {axis}")
        total = total + x.shape[axis]
    return TensorType(xs[0].dtype, (*xs[0].shape[:axis], total, *xs[0].shape[axis + 1:]))


def _concat_lower(_: Names, *xs: Pull, axis: int) -> Pull:
    axis %= len(xs[0].shape)
    parts = [x for x in xs if x.shape[axis] != 0] or [xs[0]]
    starts: list[Dim] = [0]
    for x in parts:
        starts.append(starts[-1] + x.shape[axis])
    shape = (*xs[0].shape[:axis], starts[-1], *xs[0].shape[axis + 1:])

    def at(idx: Any) -> Any:
        out = None
        for x, start in reversed(list(zip(parts, starts, strict=False))):
            end = start + x.shape[axis]
            if known(start, "<=", idx[axis]) is True is known(idx[axis], "<", end):
                return x.at((*idx[:axis], idx[axis] - start, *idx[axis + 1:]))
            inner = maximum(minimum(idx[axis] - start, x.shape[axis] - 1), 0)
            read = x.at((*idx[:axis], inner, *idx[axis + 1:]))
            out = read if out is None else apply(
                "select", apply("lt", index(idx[axis]), index(start + x.shape[axis]),
                                dtype=dtypes.bool_), read, out, dtype=x.dtype)
        return out
    return Pull(xs[0].dtype, shape, at)


def _concat_vjp(g: Any, _y: Any, *xs: Any, axis: int) -> tuple[Any, ...]:
    axis %= g.ndim
    out, start = [], 0
    for x in xs:
        lo = [0] * g.ndim
        limit = list(g.shape)
        lo[axis], limit[axis] = start, start + x.shape[axis]
        out.append(o.slice(g, start=tuple(lo), limit=tuple(limit), strides=(1,) * g.ndim))
        start = limit[axis]
    return tuple(out)


register(Op("concat", _concat_infer, lambda *xs, axis: np.concatenate(xs, axis), _concat_vjp,
            _concat_lower, category="shape", lowering=Lowering.WINDOW, movement=Movement.JOINS,
            precision=Precision.FOLLOW, axes=ALONG,
            doc="the operands, one after the other along an axis"))

# ---- reverse -----------------------------------------------------------------------------------


def _reverse_infer(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    for a in axes:
        check_axis(a, x.rank)
    return x


def _reverse_lower(_: Names, x: Pull, *, axes: tuple[int, ...]) -> Pull:
    flipped = {a % len(x.shape) for a in axes}
    return Pull(x.dtype, x.shape, lambda idx: x.at(tuple(
        d - 1 - i if a in flipped else i
        for a, (i, d) in enumerate(zip(idx, x.shape, strict=True)))))


register(Op("reverse", _reverse_infer, lambda x, *, axes: np.flip(x, axes),
            lambda g, y, x, *, axes: (o.reverse(g, axes=axes),), _reverse_lower,
            category="shape", movement=Movement.REVERSES, precision=Precision.FOLLOW,
            axes=OVER,
            doc="x in reverse order along axes"))
