"""Tensors made without data: constants, ranges, identities, triangles, one-hot rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.io.weights import Array as Numbers


@aten("full", "full_like", "new_full")
def full(c: Context, first: Any, *more: Any, **keywords: Any) -> Any:
    """The fill value broadcast to the shape and dtype of the result."""
    value = keywords.get("fill_value", more[-1] if more else 0)
    return c.full(c.out.shape, value, c.out.dtype)


@aten("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_strided",
      "new_empty_strided", "empty_permuted")
def zeros(c: Context, *_: Any, **__: Any) -> Any:
    """Zeros in the shape of the result; "empty" tensors are zeros too."""
    return c.full(c.out.shape, 0, c.out.dtype)


@aten("ones", "ones_like", "new_ones")
def ones(c: Context, *_: Any, **__: Any) -> Any:
    """Ones in the shape of the result."""
    return c.full(c.out.shape, 1, c.out.dtype)


@aten("scalar_tensor")
def scalar_tensor(c: Context, s: Any, **_: Any) -> Any:
    """A rank-0 tensor of a number or a size."""
    return c.full((), s, c.out.dtype)


@aten("arange.default")
def arange(c: Context, end: Any, **_: Any) -> Any:
    """0, 1, …, end − 1: arange_step from 0 with step 1."""
    return arange_step(c, 0, end)


@aten("arange.start", "arange.start_step")
def arange_step(c: Context, start: Any, end: Any, step: Any = 1, **_: Any) -> Any:
    """start + step·iota in the dtype of the result."""
    dtype = c.out.dtype
    x = c.iota(c.out.shape, 0, dtype)
    x = x if step == 1 else x * c.cast(step, dtype)
    return x if start == 0 else x + c.cast(start, dtype)


@aten("iota", namespace="prims")
def iota(c: Context, length: Any, *, start: Any, step: Any, **_: Any) -> Any:
    """start + step·(0, 1, …): arange_step of the prims form."""
    return arange_step(c, start, None, step)


@aten("linspace")
def linspace(c: Context, start: Any, end: Any, steps: int, **_: Any) -> Any:
    """A constant of `steps` evenly spaced numbers from start to end, both included."""
    if not all(isinstance(x, (int, float)) for x in (start, end, steps)):
        raise Refused("linspace is supported only with numbers for start, end and steps, not "
                      "with tensors or symbolic sizes")
    return c.constant(np.linspace(start, end, steps).astype(c.out.dtype.numpy))


def _hamming(n: int, alpha: float = 0.54, beta: float = 0.46) -> Numbers:
    return alpha - beta * np.cos(2 * np.pi * np.arange(n) / max(n - 1, 1))


def _kaiser(n: int, beta: float = 12.0) -> Numbers:
    return np.kaiser(n, beta)


def _window_handler(name: str, symmetric: Callable[..., Numbers]) -> None:
    @aten(f"{name}_window")
    def window(c: Context, window_length: int, periodic: bool = True, *more: float,
               **_: Any) -> Any:
        """A constant; a periodic window is a symmetric one of one more number, without its last."""
        found = np.ones(window_length) if window_length < 2 else (
            symmetric(window_length + periodic, *more)[:window_length])
        return c.constant(found.astype(c.out.dtype.numpy))


for _name, _symmetric in (("hamming", _hamming), ("blackman", np.blackman),
                          ("bartlett", np.bartlett), ("kaiser", _kaiser)):
    _window_handler(_name, _symmetric)


@aten("eye")
def eye(c: Context, n: Any, m: Any = None, **_: Any) -> Any:
    """iota(rows) = iota(columns), cast to the dtype: ones on the diagonal."""
    same = o.eq(c.iota((c.out.shape[0], 1), 0), c.iota((1, c.out.shape[1]), 1))
    return c.cast(same, c.out.dtype)


def _triangle(c: Context, x: Array, diagonal: int, lower: bool) -> Any:
    rows, cols = x.shape[-2:]
    edge = c.iota((rows, 1), 0) + diagonal if diagonal else c.iota((rows, 1), 0)
    line = c.iota((1, cols), 1)
    kept = line <= edge if lower else line >= edge
    return o.select(kept, x, c.literal(0, x.dtype))


@aten("tril")
def tril(c: Context, self: Array, diagonal: int = 0) -> Any:
    """select(column ≤ row + diagonal, x, 0)."""
    return _triangle(c, self, diagonal, True)


@aten("triu")
def triu(c: Context, self: Array, diagonal: int = 0) -> Any:
    """select(column ≥ row + diagonal, x, 0)."""
    return _triangle(c, self, diagonal, False)



@aten("one_hot")
def one_hot(c: Context, self: Array, num_classes: int = -1) -> Any:
    """index = iota(classes), along a new last axis."""
    classes = c.out.shape[-1]
    index = self.cast(dtypes.int64).reshape((*self.shape, 1))
    line = c.iota((*(1,) * self.ndim, classes), self.ndim)
    return c.cast(o.eq(index, line), c.out.dtype)
