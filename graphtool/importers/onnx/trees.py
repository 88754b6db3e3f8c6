"""Tree ensembles of `ai.onnx.ml`, as gathers over tables of nodes.

All trees are walked at once: one node number a row and tree, moved down as often as the deepest
tree has levels; leaves lead to themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx.classic import DOMAIN, row, transformed
from graphtool.importers.onnx.registry import onnx_op
from graphtool.importers.onnx.values import cast, dtype_of, reshape, tensor
from graphtool.ir.op import ops as o
from graphtool.weights import Array

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ",
          "BRANCH_MEMBER")
_COMPARE = ("le", "lt", "ge", "gt", "eq", "ne")


@dataclass(frozen=True)
class Trees:
    """All nodes of all trees; `yes` and `no` are node numbers, a leaf's its own."""

    feature: Array
    split: Array
    mode: Array
    yes: Array
    no: Array
    roots: Array
    weights: Array  # [nodes, targets]
    missing: Array | None = None
    members: Array | None = None  # [nodes, most]; padded with NaN

    def depth(self) -> int:
        at, levels = self.roots, 0
        while np.any(self.yes[at] != at):
            at = np.unique(np.concatenate([self.yes[at], self.no[at]]))
            levels += 1
            if levels > len(self.yes):
                raise ValueError("the tree has a cycle")
        return levels


def _column(table: Array, at: Any) -> Any:
    """The table's entry for each node number [N, T]."""
    return o.gather(tensor(np.ascontiguousarray(table), at), reshape(at, (*at.shape, 1)),
                    axes=(0,))


def walked(trees: Trees, x: Any) -> Any:
    """The leaf that each row reaches in each tree: [N, T]."""
    n, t = x.shape[0], len(trees.roots)
    at = o.broadcast(tensor(trees.roots.astype(np.int64).reshape(1, t), x), shape=(n, t))
    kinds = sorted({int(m) for m in trees.mode})
    for _ in range(trees.depth()):
        feature = reshape(_column(trees.feature.astype(np.int64), at), (n, t, 1))
        value = o.gather(x, feature, axes=(1,), batch=1)
        split, mode = _column(trees.split.astype(dtype_of(x).numpy), at), None
        go = None
        for kind in kinds:
            test = _member(trees, value, at) if kind == 6 else getattr(o, _COMPARE[kind])(
                value, split)
            if len(kinds) > 1:
                mode = _column(trees.mode.astype(np.int32), at) if mode is None else mode
                test = o.and_(o.eq(mode, kind), test)
            go = test if go is None else o.or_(go, test)
        if trees.missing is not None and trees.missing.any():
            go = o.or_(go, o.and_(o.is_nan(value), _column(trees.missing.astype(bool), at)))
        at = o.select(go, _column(trees.yes.astype(np.int64), at),
                      _column(trees.no.astype(np.int64), at))
    return at


def _member(trees: Trees, value: Any, at: Any) -> Any:
    if trees.members is None:
        raise ValueError("no membership values")
    sets = _column(trees.members.astype(dtype_of(value).numpy), at)  # [N, T, most]
    hit = o.eq(reshape(value, (*value.shape, 1)), sets)
    return reshape(o.reduce_or(hit, axes=(2,)), tuple(value.shape))


def scored(trees: Trees, x: Any, aggregate: str) -> Any:
    """The leaves' weights over all trees: [N, targets]."""
    weights = _column(trees.weights.astype(dtype_of(x).numpy), walked(trees, x))
    fold = {"SUM": o.reduce_sum, "AVERAGE": o.reduce_sum, "MIN": o.reduce_min,
            "MAX": o.reduce_max}[aggregate]
    total = reshape(fold(weights, axes=(1,)), (x.shape[0], trees.weights.shape[1]))
    return o.div(total, float(len(trees.roots))) if aggregate == "AVERAGE" else total


@onnx_op("TreeEnsemble", since=5, domain=DOMAIN)
def tree_ensemble(x: Any, *, aggregate_function: int = 1, leaf_targetids: Any, leaf_weights: Any,
                  membership_values: Any = None, n_targets: int, nodes_falseleafs: Any,
                  nodes_falsenodeids: Any, nodes_featureids: Any, nodes_hitrates: Any = None,
                  nodes_missing_value_tracks_true: Any = None, nodes_modes: Any,
                  nodes_splits: Any, nodes_trueleafs: Any, nodes_truenodeids: Any,
                  post_transform: int = 0, tree_roots: Any) -> Any:
    """Leaves are numbered behind the inner nodes."""
    inner, leaves = len(nodes_modes), len(leaf_targetids)
    own = np.arange(inner, inner + leaves)

    def joined(a: Any, fill: Any) -> Array:
        return np.concatenate([np.asarray(a), np.full(leaves, fill)])

    def children(ids: Any, leaf: Any) -> Array:
        return np.concatenate([np.asarray(ids) + inner * np.asarray(leaf), own])
    weights = np.zeros((inner + leaves, n_targets), leaf_weights.dtype)
    weights[own, list(leaf_targetids)] = leaf_weights
    missing = nodes_missing_value_tracks_true
    trees = Trees(joined(nodes_featureids, 0), joined(nodes_splits, 0), joined(nodes_modes, 0),
                  children(nodes_truenodeids, nodes_trueleafs),
                  children(nodes_falsenodeids, nodes_falseleafs), np.asarray(tree_roots), weights,
                  None if missing is None else joined(missing, 0),
                  _sets(nodes_modes, membership_values, inner + leaves))
    how = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post_transform]
    return transformed(scored(trees, x, ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function]),
                        how)


def _sets(modes: Any, values: Any, nodes: int) -> Array | None:
    """The sets of the membership nodes, in order, each ended by a NaN in `values`."""
    if values is None:
        return None
    groups: list[list[float]] = [[]]
    for v in values:
        if np.isnan(v):
            groups.append([])
        else:
            groups[-1].append(float(v))
    out = np.full((nodes, max(map(len, groups))), np.nan)
    for node, group in zip(np.flatnonzero(np.asarray(modes) == 6), groups, strict=False):
        out[node, :len(group)] = group
    return out


@onnx_op("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(x: Any, *, aggregate_function: str = "SUM", base_values: Any = None,
                            n_targets: int, nodes_falsenodeids: Any, nodes_featureids: Any,
                            nodes_hitrates: Any = None, nodes_missing_value_tracks_true: Any = None,
                            nodes_modes: Any, nodes_nodeids: Any, nodes_treeids: Any,
                            nodes_truenodeids: Any, nodes_values: Any,
                            post_transform: str = "NONE", target_ids: Any, target_nodeids: Any,
                            target_treeids: Any, target_weights: Any) -> Any:
    number = {key: i for i, key in enumerate(zip(nodes_treeids, nodes_nodeids, strict=True))}
    leaf = np.array([m == "LEAF" for m in nodes_modes])
    own = np.arange(len(leaf))
    yes, no = (np.where(leaf, own, [number.get((t, c), 0) for t, c in zip(
        nodes_treeids, ids, strict=True)]) for ids in (nodes_truenodeids, nodes_falsenodeids))
    roots = [number[t, 0] for t in dict.fromkeys(nodes_treeids)]
    weights = np.zeros((len(leaf), n_targets), np.float32)
    for t, node, target, w in zip(target_treeids, target_nodeids, target_ids, target_weights,
                                  strict=True):
        weights[number[t, node], target] += w
    mode = np.array([0 if m == "LEAF" else _MODES.index(m) for m in nodes_modes])
    missing = nodes_missing_value_tracks_true
    trees = Trees(np.asarray(nodes_featureids), np.asarray(nodes_values), mode, yes, no,
                  np.asarray(roots), weights, None if missing is None else np.asarray(missing))
    y = scored(trees, cast(x, dtypes.float32), aggregate_function)
    y = y if base_values is None else o.add(y, row(base_values, y))
    return transformed(y, post_transform)
