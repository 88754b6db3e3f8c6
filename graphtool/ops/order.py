"""Sorting and the k greatest: values and their indices (int64). Ties keep their order.

NaN counts as greater than every number, as in torch: last ascending, first descending.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import ALONG, Lowering, Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ops.common import Array, check_axis, filled, need
from graphtool.ops.costs import per_operand
from graphtool.symbolic import Dim, known, text


def _sort_infer(x: TensorType, *, axis: int,
                descending: bool = False) -> tuple[TensorType, TensorType]:
    check_axis(axis, x.rank)
    return x, TensorType(dtypes.int64, x.shape)


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The stable order. The descending one is the ascending order of the reversed array, read
    backwards."""
    # numpy cannot sort element types that are not its own: convert to a wider one
    if x.dtype.kind == "V":
        x = x.astype(np.float32 if dtypes.of_numpy(x.dtype).is_float else np.int32)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    indices = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - indices, axis)


def _sort_eval(x: Array, *, axis: int, descending: bool) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    order = _order(x, axis, descending)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def _spread_back(g: Any, x: Any, indices: Any, axis: int) -> Any:
    """The gradient, put back at the positions in the indices, from which the values were taken."""
    if x.ndim == 0:
        return g
    axis %= x.ndim
    perm = (*(a for a in range(x.ndim) if a != axis), axis)
    back = tuple(perm.index(a) for a in range(x.ndim))
    last_g, last_i = o.transpose(g, perm=perm), o.transpose(indices, perm=perm)
    zeros = filled(x, 0.0, tuple(x.shape[p] for p in perm))
    # gather and scatter take the index tuple on the last axis, without the gathered axis
    put = o.scatter(zeros, o.reshape(last_i, shape=(*last_i.shape, 1)), last_g,
                    axes=(x.ndim - 1,), batch=x.ndim - 1, kind="add")
    return o.transpose(put, perm=back)


def _sort_vjp(g: Any, y: Any, x: Any, *, axis: int, descending: bool) -> tuple[Any, ...]:
    return (None if g[0] is None else _spread_back(g[0], x, y[1], axis),)


register(Op("sort", _sort_infer, _sort_eval, _sort_vjp, lowering=Lowering.STATEMENTS,
            traits=Trait.EXACT, cost=per_operand, precision=Precision.FOLLOW, axes=ALONG,
            doc="the elements in order along an axis, and their indices; equal elements stay in "
                "their order"))


def _top_k_infer(x: TensorType, *, k: Dim, axis: int,
                 largest: bool = True) -> tuple[TensorType, TensorType]:
    axis = check_axis(axis, x.rank)
    need(x.rank > 0 or k == 1, "k must be 1 for a scalar")
    need(not x.rank or known(k, "<=", x.shape[axis]) is not False,
         f"k = {text(k)} is larger than axis {axis} of {x}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1:]) if x.rank else ()
    return TensorType(x.dtype, shape), TensorType(dtypes.int64, shape)


def _top_k_decompose(x: Any, *, k: Dim, axis: int, largest: bool) -> tuple[Any, Any]:
    values, indices = o.sort(x, axis=axis, descending=largest)
    if x.ndim == 0:
        return values, indices
    limit = list(x.shape)
    limit[axis] = k
    cut = {"start": (0,) * x.ndim, "limit": tuple(limit), "strides": (1,) * x.ndim}
    return o.slice(values, **cut), o.slice(indices, **cut)


def _top_k_eval(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    order = np.take(_order(x, axis, largest), range(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def _top_k_vjp(g: Any, y: Any, x: Any, *, k: Any, axis: int, largest: bool) -> tuple[Any, ...]:
    return (None if g[0] is None else _spread_back(g[0], x, y[1], axis),)


register(Op("top_k", _top_k_infer, _top_k_eval, _top_k_vjp, decompose=_top_k_decompose,
            lowering=Lowering.STATEMENTS, traits=Trait.EXACT, precision=Precision.FOLLOW,
            axes=ALONG,
            doc="the k greatest (or least) elements in order along an axis, and their indices; "
                "the first of equal elements is taken"))
