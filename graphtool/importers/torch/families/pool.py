"""Max and average pooling, with torch's ceil_mode and divisors, and adaptive pooling."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context, batched, pairs
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.sampling import window_positions
from graphtool.symbolic import Dim

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
        regular = _regular(self.shape[-n:], sizes)
        if regular is not None:
            window, strides = regular
            return batched(lambda x: o.avg_pool(x, window=window, strides=strides), self, n)
        x = self
        for axis, s in zip(space, sizes, strict=True):
            if x.shape[axis] != s:
                x = _mean_of_bins(x, axis, int(s))  # type: ignore[arg-type]
        return x
    return handler


def _fixed(dims: tuple[Dim, ...], sizes: tuple[Dim, ...]) -> None:
    if not all(isinstance(d, int) for d in (*dims, *sizes)):
        raise Refused("adaptive pooling over a symbolic size is not supported; fix that size for "
                      "the export")


def _regular(dims: tuple[Dim, ...], sizes: tuple[Dim, ...]
             ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Windows and strides, if the bins of each axis are as long as each other and as far apart."""
    _fixed(dims, sizes)
    found = []
    for d, s in zip(dims, sizes, strict=True):
        bins = _bins(int(d), int(s))  # type: ignore[arg-type]
        lengths = {hi - lo for lo, hi in bins}
        steps = {bins[i + 1][0] - bins[i][0] for i in range(len(bins) - 1)} or {1}
        if len(lengths) != 1 or len(steps) != 1:
            return None
        found.append((lengths.pop(), steps.pop()))
    return tuple(k for k, _ in found), tuple(step for _, step in found)


def _bins(d: int, s: int) -> list[tuple[int, int]]:
    """Bin i runs from ⌊i·d / s⌋ to ⌈(i + 1)·d / s⌉."""
    return [(i * d // s, -(-(i + 1) * d // s)) for i in range(s)]


def _adaptive_max(n: int) -> Any:
    def handler(c: Context, self: Array, output_size: Any) -> Any:
        _fixed(self.shape[-n:], c.out.shape[-n:])
        if c.used(1):
            return _max_and_place(c, self, n)
        x = self
        # of equal elements the first in row-major order counts: the last axis goes first
        for axis, s in reversed([*zip(range(self.ndim - n, self.ndim), c.out.shape[-n:],
                                      strict=True)]):
            rows, _ = _rows_of_bins(x, axis, int(s))  # type: ignore[arg-type]
            x = _instead_of(x, axis, o.extreme(rows, kind="max", axis=1))
        return x, None
    return handler


def _max_and_place(c: Context, x: Array, n: int) -> Any:
    """(maxima, flat indices): each bin's elements gathered as a row; short bins repeat an end."""
    dims, cells = [int(d) for d in x.shape[-n:]], c.out.shape[-n:]  # type: ignore[arg-type]
    lines = [_bins(d, int(s)) for d, s in zip(dims, cells, strict=True)]  # type: ignore[arg-type]
    found = [np.ravel_multi_index(np.meshgrid(*(np.arange(*b) for b in bins), indexing="ij"),
                                  dims).ravel() for bins in product(*lines)]
    width = max((len(f) for f in found), default=1)
    table = np.array([[*f, *[f[-1]] * (width - len(f))] for f in found]).reshape(-1, width)
    lead = x.shape[:-n]
    flat = x.reshape((*lead, int(np.prod(dims))))
    index, rank = c.constant(table), len(lead)
    picked = o.gather(flat, index.unsqueeze(), axes=(rank,))
    at = o.arg_reduce(picked, kind="max", axis=1).reshape((table.shape[0], *lead))
    top = o.extreme(picked, kind="max", axis=1).reshape((table.shape[0], *lead))
    both = o.concat(c.iota(at.shape, 0).unsqueeze(), at.unsqueeze(), axis=at.ndim)
    place = o.gather(index, both, axes=(0, 1))
    perm = [*range(1, rank + 1), 0]
    return tuple(v.transpose(perm).reshape(c.out.shape) for v in (top, place))


def _mean_of_bins(x: Array, axis: int, s: int) -> Any:
    """The mean of each bin along one axis; NaN and infinity stay in the bins that have them."""
    rows, counts = _rows_of_bins(x, axis, s)
    inside = np.arange(int(rows.shape[1])) < counts[:, None]
    if not inside.all():
        rows = o.select(inside.reshape(*inside.shape, *(1,) * (rows.ndim - 2)), rows, 0.0)
    divisor = counts.reshape(-1, *(1,) * (rows.ndim - 1)).astype(x.dtype.numpy)
    return _instead_of(x, axis, o.reduce_sum(rows, axes=(1,)) / divisor)


def _rows_of_bins(x: Array, axis: int, s: int) -> tuple[Any, Any]:
    """The elements of each bin along one axis, [s, width, the other axes], and how many each bin
    has: short bins repeat their last one."""
    bins = _bins(int(x.shape[axis]), s)  # type: ignore[arg-type]
    width = max((hi - lo for lo, hi in bins), default=1)
    index = np.array([[min(lo + k, hi - 1) for k in range(width)] for lo, hi in bins], np.int64)
    index = index.reshape(s, width)
    picked = o.gather(x, index[..., None], axes=(axis,))
    return picked, np.array([hi - lo for lo, hi in bins])


def _instead_of(x: Array, axis: int, found: Any) -> Any:
    """Results for the bins of an axis, which come first, where the axis was."""
    flat = found.reshape((found.shape[0], *(d for i, d in enumerate(x.shape) if i != axis)))
    return flat.transpose([*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])


for _n in (1, 2, 3):
    aten(f"adaptive_avg_pool{_n}d", f"_adaptive_avg_pool{_n}d")(_adaptive_average(_n))
    aten(f"adaptive_max_pool{_n}d")(_adaptive_max(_n))
