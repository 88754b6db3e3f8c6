"""Sorting, the k greatest elements, medians and modes; search in sorted rows, histograms, divisors,
repetition by counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.importers.torch.kit import Array, Context, Dim, aten, axis_of, dtypes, o, trace
from graphtool.ir.graph import TensorType, is_constant

# ---- searching ---------------------------------------------------------------------------------


@aten("searchsorted")
def searchsorted(c: Context, sorted_sequence: Array, self: Any, *, out_int32: bool = False,
                 right: bool = False, side: str | None = None,
                 sorter: Array | None = None) -> Any:
    """The number of elements of the sorted row that are < x (with `right`: ≤ x), by a sum."""
    line, x = sorted_sequence, self
    if not isinstance(x, Array):
        x = c.full((), x, line.dtype)
    if sorter is not None:
        n = line.ndim - 1
        line = o.gather(line, sorter.unsqueeze(), axes=(n,), batch=n)
    flat = x.reshape(x.shape or (1,))
    a, b = c.promoted(line if line.ndim == 1 else line.unsqueeze(-2), flat.unsqueeze())
    before = a <= b if right or side == "right" else a < b
    if b.dtype.is_float:  # NaN comes last, behind all of them
        before = before | o.is_nan(b)
    count = before.cast(dtypes.int64).reduce("sum", (before.ndim - 1,))
    return count.cast(c.out.dtype).reshape(c.out.shape)


@aten("bucketize")
def bucketize(c: Context, self: Any, boundaries: Array, *, out_int32: bool = False,
              right: bool = False) -> Any:
    """searchsorted(boundaries, x)."""
    return searchsorted(c, boundaries, self, right=right)


@aten("histc")
def histc(c: Context, self: Array, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """[bins]: a scatter that adds 1 at ⌊(x − lo)·bins / (hi − lo)⌋; what lies outside counts 0."""
    x = self.flat()
    lo, hi = (c.full((1,), v, x.dtype) for v in (min, max))
    if min == max:  # the span of the data, or ±1 around their one value
        lo, hi = o.reduce_min(x, axes=(0,)), o.reduce_max(x, axes=(0,))
        flat = o.eq(lo, hi).cast(x.dtype)
        lo, hi = lo - flat, hi + flat
    spot = (x - lo) * c.literal(bins, x.dtype) / (hi - lo)
    inside = (x >= lo) & (x <= hi)
    at = o.clamp(o.select(inside, spot, c.literal(0, x.dtype)).cast(dtypes.int64), 0, bins - 1)
    return o.scatter(c.full((bins,), 0, c.out.dtype), at.unsqueeze(),
                     inside.cast(c.out.dtype), axes=(0,), kind="add")


# ---- what occurs most, what lies in the middle -------------------------------------------------

@aten("mode")
def mode(c: Context, self: Array, dim: int = -1, keepdim: bool = False) -> Any:
    """(the most frequent value, its last index); of equally frequent values the least one."""
    if not self.ndim:
        return self, c.full((), 0, dtypes.int64)
    n = self.ndim
    plain = self.cast(dtypes.int32) if self.dtype is dtypes.bool_ else self
    x = plain.moveaxis(dim, n - 1)
    counts = o.eq(x.unsqueeze(), x.unsqueeze(-2)).cast(dtypes.int64).reduce("sum", (n,))
    often = o.eq(counts, o.reduce_max(counts, axes=(n - 1,)))
    limit = float("inf") if x.dtype.is_float else int(np.iinfo(x.dtype.numpy).max)
    least = o.reduce_min(o.select(often, x, limit), axes=(n - 1,))
    at = o.reduce_max(o.select(o.eq(x, least), c.iota(x.shape, n - 1), -1), axes=(n - 1,))
    if x.dtype.is_float:  # the gradient goes to the place that is returned
        here = o.eq(c.iota(x.shape, n - 1), at)
        least = o.reduce_sum(o.select(here, x, 0.0), axes=(n - 1,))
    return least.cast(self.dtype).reshape(c.out.shape), at.reshape(c.out.shape)


@aten("nanmedian.dim")
def nanmedian_dim(c: Context, self: Array, dim: int, keepdim: bool = False) -> Any:
    """(the lower median along one axis, its index), without NaN."""
    return middle(c, self, axis_of(dim, self.ndim), True)


@aten("nanmedian.default")
def nanmedian(c: Context, self: Array) -> Any:
    """The lower median of all elements, without NaN; rank 0."""
    return middle(c, self.flat(), 0, True)[0]


def middle(c: Context, x: Array, axis: int, skip: bool) -> Any:
    """(the lower median along the axis, its index) by a sort, which puts NaN last. With `skip`
    NaN is left out; without it a row that has a NaN gives NaN."""
    if not x.ndim:
        return x, c.full((), 0, dtypes.int64)
    n = x.ndim - 1
    values, order = o.sort(x.moveaxis(axis, n), axis=n)
    missing = o.is_nan(values) if x.dtype.is_float else o.ne(values, values)
    bad = o.reduce_sum(missing.cast(dtypes.int64), axes=(n,))
    good = c.number(values.shape[n], dtypes.int64) - bad
    at = o.max(good - 1, 0) / 2
    at = (at if skip else o.select(bad > 0, good, at)).unsqueeze()
    return tuple(o.gather(v, at, axes=(n,), batch=n).reshape(c.out.shape)
                 for v in (values, order))


# ---- divisors ----------------------------------------------------------------------------------

@aten("gcd")
def gcd(c: Context, self: Array, other: Array) -> Any:
    """Euclid's algorithm as a while_ loop over all elements, until every remainder is 0."""
    kind = TensorType(c.out.dtype, c.out.shape)
    axes = tuple(range(len(kind.shape)))

    def goes_on(a: Array, b: Array) -> Any:
        left = o.ne(b, 0)
        return (o.reduce_or(left, axes=axes) if axes else left).reshape(())

    def step(a: Array, b: Array) -> Any:
        done = o.eq(b, 0)
        rest = o.rem(a, o.select(done, 1, b))
        return o.select(done, a, b), o.select(done, 0, rest)
    a, b = ((abs(c.cast(x, kind.dtype)) if kind.dtype.kind == "int"
             else c.cast(x, kind.dtype)).broadcast(kind.shape) for x in (self, other))
    return o.while_(a, b, cond=trace(goes_on, [kind, kind]), body=trace(step, [kind, kind]),
                    carries=2)[0]


@aten("lcm")
def lcm(c: Context, self: Array, other: Array) -> Any:
    """|a / gcd(a, b)·b|, the product in 32 bits at least; 0 where both are 0."""
    dtype = c.out.dtype
    a, b = c.cast(self, dtype), c.cast(other, dtype)
    common = gcd(c, a, b)
    parts = (a / o.select(o.eq(common, 0), 1, common), b)
    if dtype.kind == "uint":
        return o.mul(*parts)
    size = o.mul(*(c.cast(x, dtypes.int32 if dtype.bits < 32 else dtype) for x in parts))
    return c.cast(abs(size), dtype)


# ---- signs, powers, distances ------------------------------------------------------------------

@aten("signbit")
def signbit(c: Context, self: Array) -> Any:
    """x < 0, or 1/x < 0 so that −0.0 counts as negative."""
    if self.dtype.is_float:
        return (self < 0.0) | (1.0 / self < 0.0)  # −0.0 by 1/−0.0
    if self.dtype.kind == "int":
        return self < 0
    return c.full(self.shape, False, dtypes.bool_)


@aten("angle")
def angle(c: Context, self: Array) -> Any:
    """The angle of a real number: 0, or π where x < 0; NaN stays NaN."""
    x = c.cast(self, c.out.dtype)
    return o.select(o.is_nan(x), x, o.select(x < 0.0, c.full((), math.pi, x.dtype), 0.0))


@aten("ldexp")
def ldexp(c: Context, self: Array, other: Any) -> Any:
    """x·2ᵉ. If x is a float and e an integer (its lower 32 bits) rounded once, so 0·2ᵉ is 0; else
    the product of x and a power in the type of e, as in torch."""
    dtype = c.out.dtype
    if not (self.dtype.is_float and isinstance(other, Array) and other.dtype.is_integer):
        power = o.pow(2.0, c.cast(other, other.dtype if other.dtype.is_float else dtype))
        return c.cast(self, dtype) * c.cast(power, dtype)
    # three factors have the range of e that matters; the largest comes last, as it may round
    y = c.cast(self, dtypes.float64)
    rest = o.clamp(c.cast(c.cast(other, dtypes.int32), dtypes.int64), -2200, 2200)
    last = o.clamp(rest, -1000, 1000)
    second = o.clamp(rest - last, -1000, 1000)
    for part in (rest - last - second, second, last):
        y = y * o.pow(2.0, c.cast(part, dtypes.float64))
    return c.cast(y, dtype)


@aten("dist")
def dist(c: Context, self: Array, other: Array, p: Any = 2) -> Any:
    """The p-norm of a − b over all elements; rank 0."""
    gap = o.sub(*c.promoted(self, other))
    axes = tuple(range(gap.ndim))
    if p == 0:
        return o.reduce_sum(c.cast(o.ne(gap, 0.0), gap.dtype), axes=axes).reshape(())
    return (o.norm(gap, axes=axes, order=float(p)) if axes else abs(gap)).reshape(())


# ---- indices that the sizes give ---------------------------------------------------------------

def _triangle(lower: bool) -> Any:
    def handler(c: Context, row: int, col: int, offset: int = 0, **_: Any) -> Any:
        places = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
        return c.constant(np.stack(places).astype(c.out.dtype.numpy))
    return handler


aten("tril_indices")(_triangle(True))
aten("triu_indices")(_triangle(False))


@aten("repeat_interleave.Tensor")
def repeat_interleave(c: Context, repeats: Array, *, output_size: Any = None) -> Any:
    """i64[total]: entry i repeated repeats[i] times, by a comparison with running sums."""
    return c.cast(_owners(c, repeats, c.out.shape[0]), c.out.dtype)


@aten("repeat_interleave.self_Tensor")
def repeat_interleave_along(c: Context, self: Array, repeats: Array, dim: int | None = None, *,
                            output_size: Any = None) -> Any:
    """gather along one axis: slice i appears repeats[i] times."""
    x = self.flat() if dim is None or not self.ndim else self
    axis = axis_of(dim or 0, x.ndim)
    counts = repeats.broadcast((x.shape[axis],))
    return x.at(_owners(c, counts, c.out.shape[axis]), axis)


def _owners(c: Context, repeats: Array, total: Dim) -> Array:
    """i64[total]: the entry that each place belongs to; constant repeats bound the size."""
    counts = repeats.cast(dtypes.int64)
    if not isinstance(total, int):
        node = c.made_by.get(repeats.value)
        c.size_of(counts.reduce("sum", (0,)),
                  int(node.attrs["data"].source.sum()) if is_constant(node) else None)
    passed: Array = o.cumulative(counts, kind="sum", axis=0) <= c.iota((total, 1), 0)
    return passed.cast(dtypes.int64).reduce("sum", (1,))


@aten("bincount")
def bincount(c: Context, self: Array, weights: Array | None = None, minlength: Any = 0) -> Any:
    """[max(max(x) + 1, minlength)]: a scatter that adds 1, or the weight, at each element."""
    x = self.cast(dtypes.int64)
    total = c.out.shape[0]
    if not isinstance(total, int):
        least = c.full((1,), minlength, dtypes.int64) - 1
        c.size_of(o.reduce_max(o.concat(x, least, axis=0), axes=(0,)) + 1)
    ones = c.full(x.shape, 1, c.out.dtype) if weights is None else c.cast(weights, c.out.dtype)
    return o.scatter(c.full((total,), 0, c.out.dtype), x.unsqueeze(), ones, axes=(0,),
                     kind="add")


# ---- sorting, medians ---------------------------------------------------------------------------

@aten("sort.default")
def sort(c: Context, self: Array, dim: int = -1, descending: bool = False) -> Any:
    """(values, i64 indices) by our stable sort; a rank-0 tensor is its own result."""
    return _sorted(c, self, dim, descending)


@aten("sort.stable")
def sort_stable(c: Context, self: Array, *, stable: Any = None, dim: int = -1,
                descending: bool = False) -> Any:
    """(values, i64 indices) by our sort, which is always stable."""
    return _sorted(c, self, dim, descending)


def _sorted(c: Context, x: Array, dim: int, descending: bool) -> Any:
    return o.sort(x, axis=axis_of(dim, x.ndim), descending=descending) if x.ndim else (
        x, c.full((), 0, dtypes.int64))


@aten("argsort")
def argsort(c: Context, self: Array, *args: Any, dim: int = -1, descending: bool = False,
            stable: bool = False) -> Any:
    """i64 indices of sort. Calls: argsort(dim, descending), argsort.stable(stable, dim, …)."""
    dim = args[0] if args else dim
    return _sorted(c, self, dim, args[1] if len(args) > 1 else descending)[1]


@aten("topk")
def topk(c: Context, self: Array, k: Any, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> Any:
    """(values, i64 indices) by top_k, always sorted."""
    if not self.ndim:
        return self, c.full((), 0, dtypes.int64)
    return o.top_k(self, k=k, axis=axis_of(dim, self.ndim), largest=largest)


@aten("kthvalue")
def kthvalue(c: Context, self: Array, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """(k-th smallest value, its index): entry k − 1 of a sort."""
    if not self.ndim:
        return self, c.full((), 0, dtypes.int64)
    axis = axis_of(dim, self.ndim)
    return tuple(x.entry(axis, k - 1).reshape(c.out.shape) for x in _sorted(c, self, dim, False))


@aten("median.dim")
def median_dim(c: Context, self: Array, dim: int, keepdim: bool = False) -> Any:
    """(the lower median along one axis, its index); a NaN in the row wins."""
    return middle(c, self, axis_of(dim, self.ndim), False)


@aten("median.default")
def median(c: Context, self: Array) -> Any:
    """The lower median of all elements, rank 0; elements equal to it share the gradient."""
    line = self.flat()
    value = middle(c, line, 0, False)[0]
    if not self.dtype.is_float:
        return value
    equal = o.eq(line, o.stop_gradient(value))
    shared = o.select(equal, line, float("-inf")).reduce("max", (0,))
    return o.select(o.is_nan(value), value, shared)
