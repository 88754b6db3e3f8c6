"""Max pooling over windows at random places: one random sample for each plane and axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context, pairs
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, product


def _starts(c: Context, sample: Tracer, size: int, window: int, count: int) -> Tracer:
    """i64[N, C, count]: the start of each window along one axis. Steps are equal before each start
    is rounded down; the last window is at the end. `sample` is [N, C, 1] in the input's type."""
    step = np.asarray((size - window) / max(count - 1, 1), sample.dtype.numpy)
    alpha = c.constant(step, sample.dtype)
    line = c.cast(c.iota((1, 1, count), 2), sample.dtype)
    reach, origin = o.mul(o.add(line, sample), alpha), o.mul(sample, alpha)
    begin = o.sub(c.cast(reach, dtypes.int64), c.cast(origin, dtypes.int64))
    inner = o.lt(c.iota((1, 1, count), 2), count - 1)
    starts: Tracer = o.select(inner, begin, size - window)
    return starts


def _places(c: Context, samples: Tracer, sizes: list[int], window: tuple[int, ...],
            counts: list[int]) -> Tracer:
    """The flat positions of each window's elements, i64[N, C, windows, elements]."""
    n, lead = len(sizes), samples.shape[:2]
    order = range(n) if n == 3 else reversed(range(n))  # in the plane, torch samples x before y
    at: Any = 0
    for axis, k in enumerate(order):
        sample = c.window(samples, 2, k, k + 1)
        starts = c.reshape(_starts(c, sample, sizes[axis], window[axis], counts[axis]),
                           (*lead, counts[axis], 1))
        line = o.add(starts, c.iota((1, 1, 1, window[axis]), 3))
        shape: list[Dim] = [*lead, *(1,) * (2 * n)]
        shape[2 + axis], shape[2 + n + axis] = counts[axis], window[axis]
        at = o.add(o.mul(c.reshape(line, shape), math.prod(sizes[axis + 1:])), at)
    return c.reshape(at, (*lead, product(tuple(counts)), product(window)))


def _fractional(n: int) -> Any:
    def handler(c: Context, self: Tracer, kernel_size: Any, output_size: Any,
                random_samples: Tracer) -> Any:
        kind = next(t for t in c.outs if t is not None)
        spatial = (*self.shape[-n:], *kind.shape[-n:])
        if not all(isinstance(d, int) and d for d in spatial):
            raise Refused("fractional pooling is supported only for fixed sizes that are not 0, "
                          "of the input and of the output")
        dims = [int(d) for d in spatial]  # type: ignore[arg-type]
        lead = self.shape[:-n] if self.ndim == n + 2 else (1, *self.shape[:-n])
        flat = c.reshape(self, (*lead, product(tuple(dims[:n]))))
        at = _places(c, c.cast(random_samples, self.dtype), dims[:n], pairs(kernel_size, n),
                     dims[n:])
        picked = o.gather(flat, c.reshape(at, (*at.shape, 1)), axes=(2,), batch=2)
        best = o.arg_reduce(picked, kind="max", axis=3)
        top = c.reshape(o.reduce_max(picked, axes=(3,)), kind.shape)
        if not c.used(1):
            return top, None
        where = o.gather(at, c.reshape(c.cast(best, dtypes.int64), (*at.shape[:3], 1, 1)),
                         axes=(3,), batch=3)
        return top, c.reshape(where, kind.shape)
    return handler


aten("fractional_max_pool2d")(_fractional(2))
aten("fractional_max_pool3d")(_fractional(3))
