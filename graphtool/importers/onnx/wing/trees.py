"""Tree ensembles of `ai.onnx.ml`: their attributes as the constant tables of the op `trees`.

A node that tests membership in a set becomes a chain of nodes that each test one member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphtool.importers.onnx.kit import dtypes, o, onnx_op
from graphtool.importers.onnx.wing import texts
from graphtool.importers.onnx.wing.classic import DOMAIN, labelled, row, transformed
from graphtool.io.weights import Array
from graphtool.ops.forest import COMPARISONS

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ",
          "BRANCH_MEMBER")
_MEMBER = 6
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass
class Forest:
    """The tables while they are built. A leaf is a node of kind −1 with a row of weights."""

    kinds: list[int] = field(default_factory=list)
    splits: list[float] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)

    def node(self, feature: int, mode: int, split: float, missing: bool) -> int:
        """Add an inner node without children; returns its index.

        Raises ValueError for a feature that the table cannot hold.
        """
        if feature < 0 or feature >= 1 << 27:
            raise ValueError(f"a feature must be from 0 to {(1 << 27) - 1}, but is {feature}")
        self.kinds.append(16 * feature + 2 * mode + missing)
        self.splits.append(split)
        self.children.append([0, 0])
        return len(self.kinds) - 1

    def leaf(self, weights: Array) -> int:
        """Add a leaf with its weights [targets]; returns its index."""
        self.kinds.append(-1)
        self.splits.append(0.0)
        self.children.append([len(self.kinds) - 1, len(self.weights)])
        self.weights.append(weights)
        return len(self.kinds) - 1

    def depth(self) -> int:
        """The number of inner nodes on the longest path. Raises ValueError for a cycle."""
        kinds, children = np.array(self.kinds), np.array(self.children)
        at, levels = np.unique(self.roots), 0
        while np.any(inner := kinds[at] >= 0):
            at = np.unique(children[at[inner]])
            levels += 1
            if levels > len(kinds):
                raise ValueError("the tree has a cycle")
        return levels

    def scores(self, x: Any, how: str) -> Any:
        """The weights of the leaves that each row of x reaches, combined over all trees,
        [N, targets].

        `how` is one of AVERAGE, SUM, MIN, MAX.
        """
        kinds = np.array(self.kinds, np.int32)
        asked = {int(k) >> 1 & 7 for k in kinds if k >= 0} or {0}
        tables = kinds, np.array(self.splits).astype(x.dtype.numpy), np.array(self.children,
            np.int32), np.array(self.roots, np.int32), np.stack(self.weights).astype(x.dtype.numpy)
        fold = {"MIN": "min", "MAX": "max"}.get(how, "sum")
        y = o.trees(x, *(x.builder.constant(t) for t in tables), depth=self.depth(), fold=fold,
                    compare=COMPARISONS[asked.pop()] if len(asked) == 1 else "mixed",
                    missing=bool(np.any((kinds >= 0) & (kinds & 1))))
        return y / float(len(self.roots)) if how == "AVERAGE" else y


def _rows(x: Any) -> Any:
    """The matrix of features in floats; a vector is one row."""
    x = x if x.ndim == 2 else x.reshape((1, x.shape[0]))
    return x if x.dtype.bits >= 32 and x.dtype.is_float else x.cast(dtypes.float32)


# ---- the new form: one operator -----------------------------------------------------------------

@onnx_op("TreeEnsemble", since=5, domain=DOMAIN)
def tree_ensemble(x: Any, *, aggregate_function: int = 1, leaf_targetids: Any, leaf_weights: Any,
                  membership_values: Any = None, n_targets: int, nodes_falseleafs: Any,
                  nodes_falsenodeids: Any, nodes_featureids: Any, nodes_hitrates: Any = None,
                  nodes_missing_value_tracks_true: Any = None, nodes_modes: Any,
                  nodes_splits: Any, nodes_trueleafs: Any, nodes_truenodeids: Any,
                  post_transform: int = 0, tree_roots: Any) -> Any:
    """`trees` with tables from the node and leaf attributes, then the post transform."""
    forest, modes = Forest(), [int(m) for m in nodes_modes]
    sets = iter(_sets(membership_values))
    missing = nodes_missing_value_tracks_true or (0,) * len(modes)
    chains = []
    for i, mode in enumerate(modes):
        splits = next(sets) if mode == _MEMBER else [float(nodes_splits[i])]
        chains.append([forest.node(nodes_featureids[i], 4 if mode == _MEMBER else mode, s,
                                   bool(missing[i])) for s in splits])
    leaves = []
    for target, w in zip(leaf_targetids, leaf_weights, strict=True):
        weights = _nothing(n_targets, _AGGREGATES[aggregate_function])
        weights[target] = w
        leaves.append(forest.leaf(weights))
    for i, chain in enumerate(chains):
        no, yes = (leaves[to[i]] if leaf[i] else chains[to[i]][0] for to, leaf in (
            (nodes_falsenodeids, nodes_falseleafs), (nodes_truenodeids, nodes_trueleafs)))
        for at, behind in zip(chain, [*chain[1:], no], strict=True):
            forest.children[at] = [behind, yes]
    forest.roots = [chains[r][0] for r in tree_roots]
    how = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post_transform]
    return transformed(_scored(forest, _rows(x), _AGGREGATES[aggregate_function]), how)


def _sets(values: Any) -> list[list[float]]:
    """The sets of the membership nodes, in order; a NaN ends each set."""
    groups: list[list[float]] = [[]]
    for v in () if values is None else values:
        if np.isnan(v):
            groups.append([])
        else:
            groups[-1].append(float(v))
    return groups


def _nothing(targets: int, how: str) -> Array:
    """The weights of a leaf without targets: what does not change the aggregate."""
    return np.full(targets, {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0))


def _scored(forest: Forest, x: Any, how: str) -> Any:
    y = forest.scores(x, how)
    return y if how not in ("MIN", "MAX") else o.select(o.is_inf(y), 0.0, y)


# ---- the old forms: a regressor and a classifier -------------------------------------------------

def _forest(targets: int, how: str, nodes: dict[str, Any], leaves: Sequence[Any]) -> Forest:
    """The tables from the attributes that both old forms share.

    `leaves` are the trees, nodes, targets and weights of all leaf weights.
    """
    trees, ids, modes = nodes["treeids"], nodes["nodeids"], nodes["modes"]
    number = {key: i for i, key in enumerate(zip(trees, ids, strict=True))}
    if len(number) != len(modes):
        raise ValueError("two nodes have the same tree and the same number")
    forest = Forest()
    given = {i: _nothing(targets, how) for i, m in enumerate(modes) if m == "LEAF"}
    for tree, node, target, weight in zip(*leaves, strict=True):
        held = given[number[tree, node]]
        held[target] = (held[target] if np.isfinite(held[target]) else 0.0) + weight
    missing = nodes["missing"] or (0,) * len(modes)
    for i, mode in enumerate(modes):
        if mode == "LEAF":
            forest.leaf(given[i])
        else:
            forest.node(nodes["featureids"][i], _MODES.index(mode), nodes["values"][i],
                        bool(missing[i]))
    for i, mode in enumerate(modes):
        if mode != "LEAF":
            forest.children[i] = [number[trees[i], nodes[k][i]] for k in ("false", "true")]
    forest.roots = [number[t, next(n for tt, n in zip(trees, ids, strict=True) if tt == t)]
                    for t in dict.fromkeys(trees)]
    return forest


@onnx_op("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(x: Any, *, aggregate_function: str = "SUM", base_values: Any = None,
                            base_values_as_tensor: Any = None, n_targets: int,
                            nodes_falsenodeids: Any, nodes_featureids: Any,
                            nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Any = None,
                            nodes_missing_value_tracks_true: Any = None, nodes_modes: Any,
                            nodes_nodeids: Any, nodes_treeids: Any, nodes_truenodeids: Any,
                            nodes_values: Any = None, nodes_values_as_tensor: Any = None,
                            post_transform: str = "NONE", target_ids: Any, target_nodeids: Any,
                            target_treeids: Any, target_weights: Any = None,
                            target_weights_as_tensor: Any = None) -> Any:
    """`trees`, plus the base values, then the post transform: f32[N, targets]."""
    nodes = {"treeids": nodes_treeids, "nodeids": nodes_nodeids, "modes": nodes_modes,
             "featureids": nodes_featureids, "missing": nodes_missing_value_tracks_true,
             "true": nodes_truenodeids, "false": nodes_falsenodeids,
             "values": _either(nodes_values_as_tensor, nodes_values)}
    weights = _either(target_weights_as_tensor, target_weights)
    forest = _forest(n_targets, aggregate_function, nodes,
                     (target_treeids, target_nodeids, target_ids, weights))
    y = _scored(forest, _rows(x), aggregate_function)
    base = _either(base_values_as_tensor, base_values)
    y = y if base is None else y + row(base, y)
    return transformed(y, post_transform).cast(dtypes.float32)


def _either(tensor_form: Any, plain: Any) -> Any:
    return plain if tensor_form is None else tensor_form


@onnx_op("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(x: Any, *, base_values: Any = None, base_values_as_tensor: Any = None,
                             class_ids: Any, class_nodeids: Any, class_treeids: Any,
                             class_weights: Any = None, class_weights_as_tensor: Any = None,
                             classlabels_int64s: Any = None, classlabels_strings: Any = None,
                             nodes_falsenodeids: Any, nodes_featureids: Any,
                             nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Any = None,
                             nodes_missing_value_tracks_true: Any = None, nodes_modes: Any,
                             nodes_nodeids: Any, nodes_treeids: Any, nodes_truenodeids: Any,
                             nodes_values: Any = None, nodes_values_as_tensor: Any = None,
                             post_transform: str = "NONE") -> Any:
    """The label and the scores of `trees`.

    If only one of two classes has weights, both share one score.
    """
    names = texts.of(classlabels_int64s, classlabels_strings)
    nodes = {"treeids": nodes_treeids, "nodeids": nodes_nodeids, "modes": nodes_modes,
             "featureids": nodes_featureids, "missing": nodes_missing_value_tracks_true,
             "true": nodes_truenodeids, "false": nodes_falsenodeids,
             "values": _either(nodes_values_as_tensor, nodes_values)}
    weights = _either(class_weights_as_tensor, class_weights)
    classes, one = len(names), len(set(class_ids)) == 1
    single = classes == 2 and one
    ids = (0,) * len(class_ids) if single else class_ids
    forest = _forest(1 if single else classes, "SUM", nodes,
                     (class_treeids, class_nodeids, ids, weights))
    y = forest.scores(_rows(x), "SUM")
    base = _either(base_values_as_tensor, base_values)
    if base is not None:
        y = y + row(base[-1:] if single else base, y)
    return labelled(y, names, post_transform, min(weights, default=0.0) >= 0)
