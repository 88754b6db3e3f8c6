"""Max and average pooling with torch's ceil_mode and divisors, adaptive pooling, and max pooling
over windows at random places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.importers.torch.driver.context import Context, batched, pairs
from graphtool.importers.torch.families.sampling import window_positions
from graphtool.importers.torch.kit import Array, Refused, aten, dtypes, o
from graphtool.symbolic import Dim, ceildiv, maximum, product

Edges = tuple[tuple[Dim, Dim], ...]


def _windows(c: Context, x: Array, n: int, kernel_size: Any, stride: Any, padding: Any,
             dilation: Any, ceil_mode: bool) -> tuple[dict[str, Any], Edges]:
    """(attributes of our pooling ops, (padding, overhang) for each axis).

    The overhang is what ceil_mode adds at the end: torch has worked out the result's size, and
    the last window must fit.
    """
    window, pad, spread = (pairs(v, n) for v in (kernel_size, padding, dilation))
    strides = pairs(stride, n) if stride not in ((), None) else window
    over: list[Dim] = [0] * n
    if ceil_mode:
        for i, (size, out) in enumerate(zip(x.shape[-n:], c.out.shape[-n:], strict=True)):
            reach = (out - 1) * strides[i] + spread[i] * (window[i] - 1) + 1
            extra = reach - size - 2 * pad[i]
            over[i] = max(extra, 0) if isinstance(extra, int) else extra
    attrs = {"window": window, "strides": strides, "dilation": spread}
    return attrs, tuple(zip(pad, over, strict=True))


@aten("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(c: Context, self: Array, kernel_size: Any, stride: Any = (), padding: Any = 0,
             dilation: Any = 1, ceil_mode: bool = False, n: int = 0) -> Any:
    """max_pool over fixed windows; a tensor without a batch axis gets one for the call."""
    n = n or _rank(self, kernel_size)
    attrs, edges = _windows(c, self, n, kernel_size, stride, padding, dilation, ceil_mode)
    padding = tuple((p, p + h) for p, h in edges)
    return batched(lambda x: o.max_pool(x, padding=padding, **attrs), self, n)


def _rank(x: Array, kernel_size: Any) -> int:
    """The number of spatial axes: torch gives one entry each, or one x tells from its rank."""
    if isinstance(kernel_size, tuple) and len(kernel_size) > 1:
        return len(kernel_size)
    return max(x.ndim - 2, 1)


def _with_indices(n: int) -> Any:
    def handler(c: Context, self: Array, kernel_size: Any, stride: Any = (), padding: Any = 0,
                dilation: Any = 1, ceil_mode: bool = False) -> Any:
        y = max_pool(c, self, kernel_size, stride, padding, dilation, ceil_mode, n)
        if not c.used(1):
            return y, None
        attrs, edges = _windows(c, self, n, kernel_size, stride, padding, dilation, ceil_mode)
        return y, batched(lambda x: window_positions(c, x, attrs, edges, y.shape[-n:]), self, n)
    return handler


for _n in (1, 2, 3):
    aten(f"max_pool{_n}d_with_indices")(_with_indices(_n))


def _average(n: int) -> Any:
    def handler(c: Context, self: Array, kernel_size: Any, stride: Any = (), padding: Any = 0,
                ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: Any = None) -> Any:
        attrs, edges = _windows(c, self, n, kernel_size, stride, padding, 1, ceil_mode)
        lo = (0, 0, *(p for p, _ in edges))
        overhang = tuple((0, h) for _, h in edges)  # it never counts, the declared padding may

        def of_floats(x: Array) -> Any:
            over = any(h != 0 for _, h in edges)
            padded = count_include_pad and over
            return o.avg_pool(x.pad(lo, lo) if padded else x, padding=tuple(
                (p, p + h) for p, h in (overhang if padded else edges)),
                count_include_pad=count_include_pad and not over, **attrs)

        def by_count(x: Array) -> Any:
            total = _window_sum(x, attrs, edges)
            if divisor_override is not None:
                return total / c.cast(divisor_override, x.dtype)
            ones = c.full(x.shape, 1, x.dtype)
            return total / (_window_sum(ones.pad(lo, lo, 1.0), attrs, overhang)
                            if count_include_pad else _window_sum(ones, attrs, edges))
        plain = self.dtype.is_float and divisor_override is None
        return batched(of_floats if plain else by_count, self, n)
    return handler


def _window_sum(x: Array, attrs: dict[str, Any], edges: Edges) -> Any:
    return o.reduce_window(
        x, kind="sum", window=(1, 1, *attrs["window"]), strides=(1, 1, *attrs["strides"]),
        padding=((0, 0), (0, 0), *((p, p + h) for p, h in edges)))


for _n in (1, 2, 3):
    aten(f"avg_pool{_n}d")(_average(_n))


# ---- adaptive ----------------------------------------------------------------------------------

def _adaptive_average(n: int) -> Any:
    def handler(c: Context, self: Array, output_size: Any) -> Any:
        space = tuple(range(self.ndim - n, self.ndim))
        sizes = c.out.shape[-n:]
        if all(s == 1 for s in sizes):
            return o.reduce_mean(self, axes=space)
        regular = [_regular(*_bins(c, d, s)) for d, s in zip(self.shape[-n:], sizes, strict=True)]
        if None not in regular:
            window, strides = zip(*regular, strict=True)
            return batched(lambda x: o.avg_pool(x, window=window, strides=strides), self, n)
        x = self
        for axis, s in zip(space, sizes, strict=True):
            if x.shape[axis] != s:
                x = _mean_of_bins(c, x, axis, s)
        return x
    return handler


def _bins(c: Context, d: Dim, s: Dim) -> tuple[Array, Array]:
    """The starts and the ends of s bins: bin i runs from ⌊i·d / s⌋ to ⌈(i + 1)·d / s⌉."""
    size, count = (c.number(v, dtypes.int64) for v in (d, maximum(s, 1)))
    with c.folding(True):
        i = _line(c, (s,))
        return o.div(i * size, count), o.div((i + 1) * size + (count - 1), count)


def _line(c: Context, shape: tuple[Dim, ...], axis: int = 0) -> Any:
    """0, 1, 2, … along an axis, known if the shape is."""
    return c.filled(o.iota, {"shape": shape, "axis": axis, "dtype": dtypes.int64})


def _regular(start: Array, end: Array) -> tuple[int, int] | None:
    """Window and stride, if bins are known to be as long as each other and as far apart."""
    if start.numbers is None or end.numbers is None:
        return None
    lengths, steps = set(end.numbers - start.numbers), set(np.diff(start.numbers)) or {1}
    return (int(lengths.pop()), int(steps.pop())) if len(lengths) == len(steps) == 1 else None


def _adaptive_max(n: int) -> Any:
    def handler(c: Context, self: Array, output_size: Any) -> Any:
        if c.used(1):
            return _max_and_place(c, self, n)
        x = self
        # of equal elements the first in row-major order counts: the last axis goes first
        for axis, s in reversed([*zip(range(self.ndim - n, self.ndim), c.out.shape[-n:],
                                      strict=True)]):
            rows = o.gather(x, _places(c, x.shape[axis], s)[0], axes=(axis,))
            x = _instead_of(x, axis, o.extreme(rows, kind="max", axis=1))
        return x, None
    return handler


def _max_and_place(c: Context, x: Array, n: int) -> Any:
    """(maxima, flat indices): each bin's elements gathered as a row; short bins repeat an end."""
    dims, lead = x.shape[-n:], x.shape[:-n]
    with c.folding(True):
        index: Any = c.number(0, dtypes.int64)
        for axis, (d, s) in enumerate(zip(dims, c.out.shape[-n:], strict=True)):
            line, _ = _places(c, d, s)  # as [1, …, bins, …, 1, 1, …, width, …, 1]
            shape: list[Dim] = [1] * (2 * n)
            shape[axis], shape[n + axis], _ = line.shape
            index = index * c.number(d, dtypes.int64) + line.reshape(shape)
        rank, bins = len(lead), product(index.shape[:n])
        index = index.reshape((bins, product(index.shape[n:])))
    picked = o.gather(x.reshape((*lead, product(dims))), index.unsqueeze(), axes=(rank,))
    at = o.arg_reduce(picked, kind="max", axis=1).reshape((bins, *lead))
    top = o.extreme(picked, kind="max", axis=1).reshape((bins, *lead))
    both = o.concat(c.iota(at.shape, 0).unsqueeze(), at.unsqueeze(), axis=at.ndim)
    place = o.gather(index, both, axes=(0, 1))
    perm = [*range(1, rank + 1), 0]
    return tuple(v.transpose(perm).reshape(c.out.shape) for v in (top, place))


def _mean_of_bins(c: Context, x: Array, axis: int, s: Dim) -> Any:
    """The mean of each bin along one axis; NaN and infinity stay in the bins that have them."""
    index, counts = _places(c, x.shape[axis], s)
    rows = o.gather(x, index, axes=(axis,))
    with c.folding(True):
        counts = counts.reshape((*counts.shape, *(1,) * x.ndim))
        inside = _line(c, (index.shape[1], *(1,) * (x.ndim - 1))) < counts
        divisor = counts.cast(x.dtype)
    if inside.numbers is None or not inside.numbers.all():
        rows = o.select(inside, rows, 0.0)
    return _instead_of(x, axis, o.reduce_sum(rows, axes=(1,)) / divisor)


def _places(c: Context, d: Dim, s: Dim) -> tuple[Array, Array]:
    """The positions that each bin of an axis has, [s, width, 1], and how many these are, [s]:
    short bins repeat their last one."""
    start, end = _bins(c, d, s)
    with c.folding(True):
        counts, last = end - start, end.unsqueeze() - 1
        width = int(counts.numbers.max(initial=1)) if counts.numbers is not None else (
            ceildiv(d, maximum(s, 1)) + 1)
        return o.min(start.unsqueeze() + _line(c, (1, width), 1), last).unsqueeze(), counts


def _instead_of(x: Array, axis: int, value: Any) -> Any:
    """Results for the bins of an axis, which come first, where the axis was."""
    flat = value.reshape((value.shape[0], *(d for i, d in enumerate(x.shape) if i != axis)))
    return flat.transpose([*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])


for _n in (1, 2, 3):
    aten(f"adaptive_avg_pool{_n}d", f"_adaptive_avg_pool{_n}d")(_adaptive_average(_n))
    aten(f"adaptive_max_pool{_n}d")(_adaptive_max(_n))


# ---- windows at random places -------------------------------------------------------------------

def _starts(c: Context, sample: Array, size: int, window: int, count: int) -> Array:
    """i64[N, C, count]: the start of each window along one axis. Steps are equal before each start
    is rounded down; the last window is at the end. `sample` is [N, C, 1] in the input's type."""
    alpha = c.number((size - window) / max(count - 1, 1), sample.dtype)
    line = c.iota((1, 1, count), 2)
    reach, origin = (line.cast(sample.dtype) + sample) * alpha, sample * alpha
    begin = reach.cast(dtypes.int64) - origin.cast(dtypes.int64)
    return o.select(line < count - 1, begin, size - window)  # type: ignore[no-any-return]


def _random_places(c: Context, samples: Array, sizes: list[int], window: tuple[int, ...],
            counts: list[int]) -> Array:
    """The flat positions of each window's elements, i64[N, C, windows, elements]."""
    n, lead = len(sizes), samples.shape[:2]
    order = range(n) if n == 3 else reversed(range(n))  # in the plane, torch samples x before y
    at: Any = 0
    for axis, k in enumerate(order):
        starts = _starts(c, samples.take(2, k, k + 1), sizes[axis], window[axis], counts[axis])
        line = starts.unsqueeze() + c.iota((1, 1, 1, window[axis]), 3)
        shape: list[Dim] = [*lead, *(1,) * (2 * n)]
        shape[2 + axis], shape[2 + n + axis] = counts[axis], window[axis]
        at = line.reshape(shape) * math.prod(sizes[axis + 1:]) + at
    return at.reshape((*lead, product(counts), product(window)))  # type: ignore[no-any-return]


def _fractional(n: int) -> Any:
    def handler(c: Context, self: Array, kernel_size: Any, output_size: Any,
                random_samples: Array) -> Any:
        spatial = (*self.shape[-n:], *c.out.shape[-n:])
        if not all(isinstance(d, int) and d for d in spatial):
            raise Refused("fractional pooling is supported only for fixed sizes that are not 0, "
                          "of the input and of the output")
        dims = [int(d) for d in spatial]  # type: ignore[arg-type]
        lead = self.shape[:-n] if self.ndim == n + 2 else (1, *self.shape[:-n])
        flat = self.reshape((*lead, product(tuple(dims[:n]))))
        at = _random_places(c, random_samples.cast(self.dtype), dims[:n], pairs(kernel_size, n),
                            dims[n:])
        picked = o.gather(flat, at.unsqueeze(), axes=(2,), batch=2)
        best = o.arg_reduce(picked, kind="max", axis=3)
        where = o.gather(at, best.cast(dtypes.int64).unsqueeze(), axes=(3,), batch=3)
        return tuple(x.reshape(c.out.shape) for x in (picked.reduce("max", (3,)), where))
    return handler


aten("fractional_max_pool2d")(_fractional(2))
aten("fractional_max_pool3d")(_fractional(3))
