"""Reductions, running reductions, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters.onnx.elementwise import cast, computed, wider
from graphtool.exporters.onnx.registry import Ref, form, takes
from graphtool.exporters.onnx.sizes import size
from graphtool.exporters.onnx.writer import Writer
from graphtool.ir.graph import Node
from graphtool.ops.reduce import identity

_REDUCE = {"reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax",
           "reduce_min": "ReduceMin", "reduce_mean": "ReduceMean",
           "logsumexp": "ReduceLogSumExp"}


@form(*_REDUCE)
def reduce(w: Writer, node: Node, x: Ref) -> Any:
    """ReduceSum, ReduceMax and so on with keepdims; x itself if there are no axes."""
    axes = node.attrs["axes"]
    if not axes and node.op.name != "logsumexp":
        return x
    takes(bool(axes))
    return computed(w, _REDUCE[node.op.name], x.type.dtype, [x], w.array(list(axes)), keepdims=1)


@form("reduce_and", "reduce_or")
def logical(w: Writer, node: Node, x: Ref) -> Any:
    """ReduceMin (and) or ReduceMax (or) of bools with keepdims."""
    if not node.attrs["axes"]:
        return x
    op = "ReduceMin" if node.op.name == "reduce_and" else "ReduceMax"
    return w(op, x, w.array(list(node.attrs["axes"])), keepdims=1)


@form("norm")
def norm(w: Writer, node: Node, x: Ref) -> Any:
    """ReduceL1 or ReduceL2 with keepdims; declined for other orders."""
    op = {1.0: "ReduceL1", 2.0: "ReduceL2"}.get(node.attrs["order"], "")
    takes(bool(op) and not node.attrs["epsilon"] and bool(node.attrs["axes"]))
    return w(op, x, w.array(list(node.attrs["axes"])), keepdims=1)


@form("arg_reduce")
def arg_reduce(w: Writer, node: Node, x: Ref) -> Any:
    """ArgMax or ArgMin with keepdims."""
    op = "ArgMax" if node.attrs["kind"] == "max" else "ArgMin"
    wide = wider(op, x.type.dtype)
    return w(op, x if wide is None else cast(w, x, wide), axis=node.attrs["axis"], keepdims=1,
             select_last_index=int(node.attrs["last"]))


@form("cumulative")
def cumulative(w: Writer, node: Node, x: Ref) -> Any:
    """CumSum or CumProd; a running max or min is restated."""
    kind, axis = node.attrs["kind"], node.attrs["axis"] % len(x.shape)
    if kind in ("max", "min"):
        return w.restate(lambda x: _doubling(x, kind, axis, **_way(node)), [x])
    return computed(w, "CumSum" if kind == "sum" else "CumProd", x.type.dtype, [x],
                    w.array(axis, dtypes.int64), **{k: int(v) for k, v in _way(node).items()})


def _way(node: Node) -> dict[str, bool]:
    return {"reverse": node.attrs["reverse"], "exclusive": node.attrs["exclusive"]}


def _doubling(x: Any, kind: str, axis: int, reverse: bool, exclusive: bool) -> Any:
    """A running max or min in log₂ n steps: each element meets the one 1, 2, 4, … places before
    it (Hillis and Steele)."""
    n = x.shape[axis]
    takes(isinstance(n, int))
    fill = identity(kind, x.dtype)

    def shifted(v: Any, by: int) -> Any:
        lo, hi = [0] * v.ndim, [0] * v.ndim
        (hi if reverse else lo)[axis], (lo if reverse else hi)[axis] = by, -by
        return o.pad(v, lo=tuple(lo), hi=tuple(hi), value=float(fill))
    x = shifted(x, 1) if exclusive else x
    step = 1
    while step < n:
        x = (o.max if kind == "max" else o.min)(x, shifted(x, step))
        step *= 2
    return x


@form("sort", "top_k")
def sort(w: Writer, node: Node, x: Ref) -> Any:
    """TopK, sorted; all elements for sort."""
    if not x.shape:
        return x, w.array(np.zeros((), np.int64))
    takes(x.type.dtype is not dtypes.string)
    axis, dtype = node.attrs["axis"] % len(x.shape), x.type.dtype
    largest = node.attrs["descending"] if node.op.name == "sort" else node.attrs["largest"]
    k = node.outputs[0].type.shape[axis]
    wide = wider("TopK", dtype)
    values, indices = w("TopK", x if wide is None else cast(w, x, wide), size(w, k), outputs=2,
                        axis=axis, largest=int(largest), sorted=1)
    return (values if wide is None else cast(w, values, dtype)), indices
