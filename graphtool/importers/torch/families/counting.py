"""Search in sorted rows, histograms, mode and median, divisors, repetition by counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context, axis_of
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.graph import TensorType, is_constant
from graphtool.ir.trace import Tracer, trace
from graphtool.symbolic import Dim, product

# ---- searching ---------------------------------------------------------------------------------


@aten("searchsorted")
def searchsorted(c: Context, sorted_sequence: Tracer, self: Any, *, out_int32: bool = False,
                 right: bool = False, side: str | None = None,
                 sorter: Tracer | None = None) -> Any:
    """The number of elements of the sorted row that are < x (with `right`: ≤ x), by a sum."""
    line, x = sorted_sequence, self
    if not isinstance(x, Tracer):
        x = c.full((), x, line.dtype)
    if sorter is not None:
        n = line.ndim - 1
        line = o.gather(line, c.reshape(sorter, (*sorter.shape, 1)), axes=(n,), batch=n)
    flat = c.reshape(x, x.shape or (1,))
    near = c.reshape(line, (*(1,) * (flat.ndim + 1 - line.ndim), *line.shape)
                     if line.ndim == 1 else (*line.shape[:-1], 1, line.shape[-1]))
    a, b = c.promoted(near, c.reshape(flat, (*flat.shape, 1)))
    before = o.le(a, b) if right or side == "right" else o.lt(a, b)
    if b.dtype.is_float:  # NaN comes last, behind all of them
        before = o.or_(before, o.is_nan(b))
    count = o.reduce_sum(c.cast(before, dtypes.int64), axes=(before.ndim - 1,))
    return c.reshape(c.cast(count, c.out.dtype), c.out.shape)


@aten("bucketize")
def bucketize(c: Context, self: Any, boundaries: Tracer, *, out_int32: bool = False,
              right: bool = False) -> Any:
    """searchsorted(boundaries, x)."""
    return searchsorted(c, boundaries, self, right=right)


@aten("histc")
def histc(c: Context, self: Tracer, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """[bins]: a scatter that adds 1 at ⌊(x − lo)·bins / (hi − lo)⌋; what lies outside counts 0."""
    x = c.reshape(self, (product(self.shape),))
    lo, hi = (c.full((1,), v, x.dtype) for v in (min, max))
    if min == max:  # the span of the data, or ±1 around their one value
        lo, hi = o.reduce_min(x, axes=(0,)), o.reduce_max(x, axes=(0,))
        flat = c.cast(o.eq(lo, hi), x.dtype)
        lo, hi = o.sub(lo, flat), o.add(hi, flat)
    spot = o.div(o.mul(o.sub(x, lo), c.literal(bins, x.dtype)), o.sub(hi, lo))
    inside = o.and_(o.ge(x, lo), o.le(x, hi))
    at = o.clamp(c.cast(o.select(inside, spot, c.literal(0, x.dtype)), dtypes.int64), 0, bins - 1)
    return o.scatter(c.full((bins,), 0, c.out.dtype), c.reshape(at, (*at.shape, 1)),
                     c.cast(inside, c.out.dtype), axes=(0,), kind="add")


# ---- what occurs most, what lies in the middle -------------------------------------------------

@aten("mode")
def mode(c: Context, self: Tracer, dim: int = -1, keepdim: bool = False) -> Any:
    """(the most frequent value, its last index); of equally frequent values the least one."""
    if not self.ndim:
        return self, c.full((), 0, dtypes.int64)
    axis, n = axis_of(dim, self.ndim), self.ndim
    perm = [*(i for i in range(n) if i != axis), axis]
    plain = c.cast(self, dtypes.int32) if self.dtype is dtypes.bool_ else self
    x = c.transpose(plain, perm)
    same = o.eq(c.reshape(x, (*x.shape, 1)), c.reshape(x, (*x.shape[:-1], 1, x.shape[-1])))
    counts = c.reshape(o.reduce_sum(c.cast(same, dtypes.int64), axes=(n,)), x.shape)
    often = o.eq(counts, o.reduce_max(counts, axes=(n - 1,)))
    limit = float("inf") if x.dtype.is_float else int(np.iinfo(x.dtype.numpy).max)
    least = o.reduce_min(o.select(often, x, limit), axes=(n - 1,))
    at = o.reduce_max(o.select(o.eq(x, least), c.iota(x.shape, n - 1), -1), axes=(n - 1,))
    shape = next(t.shape for t in c.outs if t is not None)
    if x.dtype.is_float:  # the gradient goes to the place that is returned
        here = o.eq(c.iota(x.shape, n - 1), at)
        least = o.reduce_sum(o.select(here, x, 0.0), axes=(n - 1,))
    return c.reshape(c.cast(least, self.dtype), shape), c.reshape(at, shape)


@aten("nanmedian.dim")
def nanmedian_dim(c: Context, self: Tracer, dim: int, keepdim: bool = False) -> Any:
    """(the lower median along one axis, its index), without NaN."""
    return middle(c, self, axis_of(dim, self.ndim), True)


@aten("nanmedian.default")
def nanmedian(c: Context, self: Tracer) -> Any:
    """The lower median of all elements, without NaN; rank 0."""
    return middle(c, c.reshape(self, (product(self.shape),)), 0, True)[0]


def middle(c: Context, x: Tracer, axis: int, skip: bool) -> Any:
    """(the lower median along the axis, its index) by a sort, which puts NaN last. With `skip`
    NaN is left out; without it a row that has a NaN gives NaN."""
    shape = next(t.shape for t in c.outs if t is not None)
    if not x.ndim:
        return x, c.full((), 0, dtypes.int64)
    perm = [*(i for i in range(x.ndim) if i != axis), axis]
    n = x.ndim - 1
    values, order = o.sort(c.transpose(x, perm), axis=n)
    missing = o.is_nan(values) if x.dtype.is_float else o.ne(values, values)
    bad = o.reduce_sum(c.cast(missing, dtypes.int64), axes=(n,))
    good = o.sub(c.number(values.shape[n], dtypes.int64), bad)
    at = o.div(o.max(o.sub(good, 1), 0), 2)
    if not skip:
        at = o.select(o.gt(bad, 0), good, at)
    at = c.reshape(at, (*at.shape, 1))
    return tuple(c.reshape(o.gather(v, at, axes=(n,), batch=n), shape) for v in (values, order))


# ---- divisors ----------------------------------------------------------------------------------

@aten("gcd")
def gcd(c: Context, self: Tracer, other: Tracer) -> Any:
    """Euclid's algorithm as a while_ loop over all elements, until every remainder is 0."""
    kind = TensorType(c.out.dtype, c.out.shape)
    axes = tuple(range(len(kind.shape)))

    def goes_on(a: Tracer, b: Tracer) -> Any:
        left = o.ne(b, 0)
        return o.reshape(o.reduce_or(left, axes=axes) if axes else left, shape=())

    def step(a: Tracer, b: Tracer) -> Any:
        done = o.eq(b, 0)
        rest = o.rem(a, o.select(done, 1, b))
        return o.select(done, a, b), o.select(done, 0, rest)
    a, b = (c.broadcast(o.abs(c.cast(x, kind.dtype)) if kind.dtype.kind == "int"
                        else c.cast(x, kind.dtype), kind.shape) for x in (self, other))
    return o.while_(a, b, cond=trace(goes_on, [kind, kind]), body=trace(step, [kind, kind]),
                    carries=2)[0]


@aten("lcm")
def lcm(c: Context, self: Tracer, other: Tracer) -> Any:
    """|a / gcd(a, b)·b|, the product in 32 bits at least; 0 where both are 0."""
    dtype = c.out.dtype
    a, b = c.cast(self, dtype), c.cast(other, dtype)
    common = gcd(c, a, b)
    parts = (o.div(a, o.select(o.eq(common, 0), 1, common)), b)
    if dtype.kind == "uint":
        return o.mul(*parts)
    size = o.mul(*(c.cast(x, dtypes.int32 if dtype.bits < 32 else dtype) for x in parts))
    return c.cast(o.abs(size), dtype)


# ---- signs, powers, distances ------------------------------------------------------------------

@aten("signbit")
def signbit(c: Context, self: Tracer) -> Any:
    """x < 0, or 1/x < 0 so that −0.0 counts as negative."""
    if self.dtype.is_float:
        return o.or_(o.lt(self, 0.0), o.lt(o.div(1.0, self), 0.0))  # −0.0 by 1/−0.0
    if self.dtype.kind == "int":
        return o.lt(self, 0)
    return c.full(self.shape, False, dtypes.bool_)


@aten("angle")
def angle(c: Context, self: Tracer) -> Any:
    """The angle of a real number: 0, or π where x < 0; NaN stays NaN."""
    x = c.cast(self, c.out.dtype)
    return o.select(o.is_nan(x), x, o.select(o.lt(x, 0.0), c.full((), math.pi, x.dtype), 0.0))


@aten("ldexp")
def ldexp(c: Context, self: Tracer, other: Any) -> Any:
    """x·2ᵉ."""
    x, e = c.cast(self, c.out.dtype), c.cast(other, c.out.dtype)
    return o.mul(x, o.pow(2.0, e))


@aten("dist")
def dist(c: Context, self: Tracer, other: Tracer, p: Any = 2) -> Any:
    """The p-norm of a − b over all elements; rank 0."""
    gap = o.sub(*c.promoted(self, other))
    axes = tuple(range(gap.ndim))
    if p == 0:
        return c.reshape(o.reduce_sum(c.cast(o.ne(gap, 0.0), gap.dtype), axes=axes), ())
    return c.reshape(o.norm(gap, axes=axes, order=float(p)) if axes else o.abs(gap), ())


# ---- indices that the sizes give ---------------------------------------------------------------

def _triangle(lower: bool) -> Any:
    def handler(c: Context, row: int, col: int, offset: int = 0, **_: Any) -> Any:
        found = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
        return c.constant(np.stack(found), c.out.dtype)
    return handler


aten("tril_indices")(_triangle(True))
aten("triu_indices")(_triangle(False))


@aten("repeat_interleave.Tensor")
def repeat_interleave(c: Context, repeats: Tracer, *, output_size: Any = None) -> Any:
    """i64[total]: entry i repeated repeats[i] times, by a comparison with running sums."""
    return c.cast(_owners(c, repeats, c.out.shape[0]), c.out.dtype)


@aten("repeat_interleave.self_Tensor")
def repeat_interleave_along(c: Context, self: Tracer, repeats: Tracer, dim: int | None = None, *,
                            output_size: Any = None) -> Any:
    """gather along one axis: slice i appears repeats[i] times."""
    x = c.reshape(self, (product(self.shape),)) if dim is None or not self.ndim else self
    axis = axis_of(dim or 0, x.ndim)
    total = c.out.shape[axis]
    counts = c.broadcast(c.reshape(repeats, (1,)) if not repeats.ndim else repeats,
                         (x.shape[axis],))
    at = _owners(c, counts, total)
    found = o.gather(x, c.reshape(at, (total, 1)), axes=(axis,))
    return c.transpose(found, [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])


def _owners(c: Context, repeats: Tracer, total: Dim) -> Tracer:
    """i64[total]: the entry that each place belongs to; constant repeats bound the size."""
    counts = c.cast(repeats, dtypes.int64)
    if not isinstance(total, int):
        size, known = c.open_size()
        if known is not None:
            raise Refused("its size depends on the data and is taken to be equal to that of "
                          "another result, which is not supported")
        made = c.builder.made.get(repeats.value)
        most = int(made.attrs["data"].source.sum()) if (
            is_constant(made)) else None
        o.size(c.reshape(o.reduce_sum(counts, axes=(0,)), ()), size=size, most=most)
    ends = o.cumulative(counts, kind="sum", axis=0)
    passed = o.le(c.reshape(ends, (1, ends.shape[0])), c.iota((total, 1), 0))
    return c.reshape(o.reduce_sum(c.cast(passed, dtypes.int64), axes=(1,)), (total,))


@aten("bincount")
def bincount(c: Context, self: Tracer, weights: Tracer | None = None, minlength: Any = 0) -> Any:
    """[max(max(x) + 1, minlength)]: a scatter that adds 1, or the weight, at each element."""
    x = c.cast(self, dtypes.int64)
    total = c.out.shape[0]
    if not isinstance(total, int):
        size, known = c.open_size()
        if known is not None:
            raise Refused("its size depends on the data and is taken to be equal to that of "
                          "another result, which is not supported")
        least = o.sub(c.full((1,), minlength, dtypes.int64), 1)
        top = o.reduce_max(o.concat(x, least, axis=0), axes=(0,))
        o.size(c.reshape(o.add(top, 1), ()), size=size)
    ones = c.full(x.shape, 1, c.out.dtype) if weights is None else c.cast(weights, c.out.dtype)
    return o.scatter(c.full((total,), 0, c.out.dtype), c.reshape(x, (*x.shape, 1)), ones,
                     axes=(0,), kind="add")
