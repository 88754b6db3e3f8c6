"""Sorting, the k greatest elements, and medians."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context, axis_of
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.counting import middle


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
    found = middle(c, line, 0, False)[0]
    if not self.dtype.is_float:
        return found
    equal = o.eq(line, o.stop_gradient(found))
    shared = o.select(equal, line, float("-inf")).reduce("max", (0,))
    return o.select(o.is_nan(found), found, shared)
