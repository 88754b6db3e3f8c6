"""Max pooling over windows at random places: one random sample for each plane and axis."""

from __future__ import annotations

import math
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context, pairs
from graphtool.importers.torch.driver.table import aten
from graphtool.symbolic import Dim, product


def _starts(c: Context, sample: Array, size: int, window: int, count: int) -> Array:
    """i64[N, C, count]: the start of each window along one axis. Steps are equal before each start
    is rounded down; the last window is at the end. `sample` is [N, C, 1] in the input's type."""
    alpha = c.number((size - window) / max(count - 1, 1), sample.dtype)
    line = c.iota((1, 1, count), 2)
    reach, origin = (line.cast(sample.dtype) + sample) * alpha, sample * alpha
    begin = reach.cast(dtypes.int64) - origin.cast(dtypes.int64)
    return o.select(line < count - 1, begin, size - window)  # type: ignore[no-any-return]


def _places(c: Context, samples: Array, sizes: list[int], window: tuple[int, ...],
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
        at = _places(c, random_samples.cast(self.dtype), dims[:n], pairs(kernel_size, n), dims[n:])
        picked = o.gather(flat, at.unsqueeze(), axes=(2,), batch=2)
        best = o.arg_reduce(picked, kind="max", axis=3)
        where = o.gather(at, best.cast(dtypes.int64).unsqueeze(), axes=(3,), batch=3)
        return tuple(x.reshape(c.out.shape) for x in (picked.reduce("max", (3,)), where))
    return handler


aten("fractional_max_pool2d")(_fractional(2))
aten("fractional_max_pool3d")(_fractional(3))
