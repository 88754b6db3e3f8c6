"""Ensembles of decision trees as tables of nodes, kept in one op for a kernel that walks them.

A node has a kind, a split and two children. The kind of an inner node is 16·feature + 2·comparison
+ missing. The kind of a leaf is −1; its children are itself and the row of `weights` that it
selects.
"""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, need
from graphtool.symbolic import Dim

COMPARISONS = ("le", "lt", "ge", "gt", "eq", "ne")
FOLDS = {"sum": "add", "min": "min", "max": "max"}


def _types(x: TensorType, kinds: TensorType, splits: TensorType, children: TensorType,
           roots: TensorType, weights: TensorType, *, depth: int, compare: str,
           missing: bool, fold: str) -> TensorType:
    need(x.rank == 2 and x.dtype.is_float, f"x must be a matrix of floats, got {x}")
    need(compare in (*COMPARISONS, "mixed") and fold in FOLDS,
         f"unknown comparison {compare!r} or fold {fold!r}")
    nodes = kinds.shape[:1]
    want = {"kinds": TensorType(dtypes.int32, nodes), "splits": TensorType(x.dtype, nodes),
            "children": TensorType(dtypes.int32, (*nodes, 2)),
            "roots": TensorType(dtypes.int32, roots.shape[:1]),
            "weights": TensorType(x.dtype, (weights.shape[0], weights.shape[-1]))}
    for name, got in zip(want, (kinds, splits, children, roots, weights), strict=True):
        need(got == want[name], f"{name} is {got}, expected {want[name]}")
    return TensorType(x.dtype, (x.shape[0], weights.shape[1]))


@composite(types=_types, lowering=Lowering.STATEMENTS)
def trees(x: Any, kinds: Any, splits: Any, children: Any, roots: Any, weights: Any, *,
          depth: int, compare: str = "le", missing: bool = False, fold: str = "sum") -> Any:
    """The weights of the leaves that each row of x reaches, combined over all trees: [N, targets].

    `compare` is the comparison of all nodes (x[feature] ≤ split goes to child 1), or mixed. With
    `missing`, a NaN goes to child 1 if the lowest bit of the node's kind says so. `depth` is the
    depth of the deepest tree.
    """
    n, t = x.shape[0], roots.shape[0]
    at = o.broadcast(o.reshape(roots, shape=(1, t)), shape=(n, t))
    for _ in range(depth):
        kind = _read(kinds, at)
        column = o.max(o.shift_right(kind, 4), 0)
        value = o.gather(x, o.reshape(column, shape=(n, t, 1)), axes=(1,), batch=1)
        go = _goes(compare, kind, value, _read(splits, at))
        if missing:
            go = o.or_(go, o.and_(o.is_nan(value), o.eq(o.and_(kind, 1), 1)))
        both = o.gather(children, o.reshape(at, shape=(n, t, 1)), axes=(0,))
        no, yes = (_column(both, i, (n, t)) for i in range(2))
        at = o.select(o.lt(kind, 0), at, o.select(go, yes, no))
    rows = _column(o.gather(children, o.reshape(at, shape=(n, t, 1)), axes=(0,)), 1, (n, t))
    leaves = o.gather(weights, o.reshape(rows, shape=(n, t, 1)), axes=(0,))
    total = getattr(o, f"reduce_{fold}")(leaves, axes=(1,))
    return o.reshape(total, shape=(n, weights.shape[1]))


def _read(table: Any, at: Any) -> Any:
    return o.gather(table, o.reshape(at, shape=(*at.shape, 1)), axes=(0,))


def _column(pairs: Any, i: int, shape: tuple[Dim, ...]) -> Any:
    part = o.slice(pairs, start=(0, 0, i), limit=(*shape, i + 1), strides=(1, 1, 1))
    return o.reshape(part, shape=shape)


def _goes(compare: str, kind: Any, value: Any, split: Any) -> Any:
    if compare != "mixed":
        return getattr(o, compare)(value, split)
    which = o.and_(o.shift_right(kind, 1), 7)
    go = None
    for i, name in enumerate(COMPARISONS):
        test = o.and_(o.eq(which, i), getattr(o, name)(value, split))
        go = test if go is None else o.or_(go, test)
    return go
