"""`ai.onnx.ml` as scikit-learn's models need it: onnxruntime is the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from graphtool import interp
from tests.closeness import assert_close
from tests.importers.onnx.build import checked, evaluate, model, node, oracle, random
from tests.lower.compiling import compiled, optimised

ML = "ai.onnx.ml"


def proto(text: str, feed: dict[str, Any], outputs: list[str], version: int = 3,
          **attrs: Any) -> Any:
    kinds = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.int64): "i64"}
    inputs = [" ".join((k, kinds[v.dtype], *map(str, v.shape))) for k, v in feed.items()]
    made = model([node(text, domain=ML, **attrs)], inputs, outputs)
    made.opset_import.append(helper.make_opsetid(ML, version))
    return made


def agrees(text: str, feed: dict[str, Any], outputs: list[str], **attrs: Any) -> None:
    made = proto(text, feed, outputs, **attrs)
    for got, want in zip(evaluate(made, feed), oracle(made, feed), strict=True):
        assert got.dtype == want.dtype
        assert_close(got, want.reshape(got.shape), list(feed.values()), tolerance=2e-5)


# ---- trees -------------------------------------------------------------------------------------

# two trees over three features: tree 0 has three leaves, tree 1 two
NODES = {"nodes_treeids": [0] * 5 + [1] * 3, "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
         "nodes_featureids": [0, 0, 2, 0, 0, 1, 0, 0],
         "nodes_values": [0.2, 0.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
         "nodes_truenodeids": [1, 0, 3, 0, 0, 1, 0, 0],
         "nodes_falsenodeids": [2, 0, 4, 0, 0, 2, 0, 0]}
LEAVES = ([0, 0, 0, 1, 1], [1, 3, 4, 1, 2])
X = random(20, 3)
HOLED = np.where(np.abs(X) < 0.3, np.float32(np.nan), X)


def modes(*names: str) -> list[str]:
    rest = iter(names * 3)
    return ["LEAF" if i in (1, 3, 4, 6, 7) else f"BRANCH_{next(rest)}" for i in range(8)]


@pytest.mark.parametrize("names", [["LEQ"], ["LT"], ["GTE"], ["GT"], ["EQ"], ["NEQ"],
                                   ["LEQ", "GT", "LT"]], ids=str)
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(names: list[str], how: str) -> None:
    for missing in (None, [1, 0, 0, 0, 0, 1, 0, 0]):
        agrees("y = TreeEnsembleRegressor(x)", {"x": X if missing is None else HOLED}, ["y f32"],
               **NODES, nodes_modes=modes(*names), target_treeids=LEAVES[0],
               target_nodeids=LEAVES[1], target_ids=[0] * 5, n_targets=1, aggregate_function=how,
               target_weights=[1.0, -2.0, 0.5, 3.0, -1.0],
               **({} if missing is None else {"nodes_missing_value_tracks_true": missing}))


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_tree_regressor_of_two_targets(how: str) -> None:
    agrees("y = TreeEnsembleRegressor(x)", {"x": X}, ["y f32"], **NODES, nodes_modes=modes("LEQ"),
           target_treeids=LEAVES[0] * 2, target_nodeids=LEAVES[1] * 2, target_ids=[0] * 5 + [1] * 5,
           n_targets=2, target_weights=[1.0, -2.0, 0.5, 3.0, -1.0, 0.1, 0.2, 0.3, 0.4, 0.5],
           base_values=[0.5, -0.5], post_transform=how)


BINARY = {"shares": [0.1, 0.4, 0.0, 0.5, 0.3], "margins": [1.0, -2.0, 0.5, 3.0, -1.0]}


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("weights", BINARY)
@pytest.mark.parametrize("base", [None, [0.25]], ids=str)
def test_tree_classifier_of_one_score(how: str, weights: str, base: Any) -> None:
    agrees("l, y = TreeEnsembleClassifier(x)", {"x": X}, ["l i64", "y f32"], **NODES,
           nodes_modes=modes("LEQ"), class_treeids=LEAVES[0], class_nodeids=LEAVES[1],
           class_ids=[0] * 5, class_weights=BINARY[weights], classlabels_int64s=[7, 9],
           post_transform=how, **({"base_values": base} if base else {}))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_tree_classifier_of_many_scores(classes: int, how: str) -> None:
    """Of two classes onnxruntime gives 1 for a label, whatever they are called: not compared."""
    made = proto("l, y = TreeEnsembleClassifier(x)", {"x": X}, ["l i64", "y f32"], **NODES,
                 nodes_modes=modes("LEQ"), class_treeids=LEAVES[0] * 2,
                 class_nodeids=LEAVES[1] * 2, class_ids=[0] * 5 + [classes - 1] * 5,
                 classlabels_int64s=[7, 9, 4][:classes], post_transform=how,
                 class_weights=[0.1, 0.4, 0.0, 0.5, 0.3, 0.4, 0.1, 0.5, 0.0, 0.2])
    got, want = evaluate(made, {"x": X}), oracle(made, {"x": X})
    np.testing.assert_allclose(got[1], want[1], rtol=2e-5, atol=2e-5)
    assert classes == 2 or np.array_equal(got[0], want[0])


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_tree_ensemble_of_the_new_form(aggregate: int) -> None:
    """A node of each kind, one of them a membership; leaves of two targets."""
    from onnx import numpy_helper
    tables = {"nodes_splits": np.array([0.2, -0.5, 0.0], np.float64),
              "nodes_modes": np.array([0, 3, 6], np.uint8),
              "leaf_weights": np.array([1.0, -2.0, 0.5, 3.0], np.float64),
              "membership_values": np.array([0.0, 1.0, 2.0, np.nan], np.float64)}
    tensors = {k: numpy_helper.from_array(v) for k, v in tables.items()}
    x = np.concatenate([random(9, 3), [[0.0, 1.0, 2.0]] * 3]).astype(np.float64)
    x[9:, 2] = [1.0, 2.0, 3.0]
    made = proto("y = TreeEnsemble(x)", {"x": x}, ["y f64"], version=5, n_targets=2,
                 aggregate_function=aggregate, nodes_featureids=[0, 1, 2],
                 nodes_truenodeids=[1, 0, 2], nodes_trueleafs=[0, 1, 1],
                 nodes_falsenodeids=[2, 1, 3], nodes_falseleafs=[0, 1, 1], tree_roots=[0],
                 leaf_targetids=[0, 1, 0, 1], **tensors)
    got, = evaluate(made, {"x": x})
    leaf = np.where(x[:, 0] <= 0.2, np.where(x[:, 1] > -0.5, 0, 1),
                    np.where(np.isin(x[:, 2], [0, 1, 2]), 2, 3))
    want = np.zeros((12, 2))
    want[np.arange(12), leaf % 2] = tables["leaf_weights"][leaf]
    np.testing.assert_allclose(got, want)


# ---- linear models and support vectors ---------------------------------------------------------

@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_linear_classifier(how: str, rows: int) -> None:
    if rows == 1 and how == "SOFTMAX":
        return
    agrees("l, y = LinearClassifier(x)", {"x": X}, ["l i64", "y f32"], post_transform=how,
           coefficients=random(rows * 3, seed=1).tolist(), intercepts=random(rows, seed=2).tolist(),
           classlabels_ints=[4, 2, 8][:max(rows, 2)], multi_class=int(rows > 2))


KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.5, 1.0, 3.0], "RBF": [0.5, 0.0, 0.0],
           "SIGMOID": [0.5, 0.1, 0.0]}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel: str, one_class: int) -> None:
    agrees("y = SVMRegressor(x)", {"x": X}, ["y f32"], kernel_type=kernel, n_supports=4,
           kernel_params=KERNELS[kernel], coefficients=random(4, seed=1).tolist(), rho=[0.3],
           support_vectors=random(12, seed=2).tolist(), one_class=one_class)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_svm_classifier(kernel: str, classes: int) -> None:
    pairs = classes * (classes - 1) // 2
    agrees("l, y = SVMClassifier(x)", {"x": X}, ["l i64", "y f32"], kernel_type=kernel,
           kernel_params=KERNELS[kernel], vectors_per_class=[3, 2, 4][:classes],
           coefficients=random((classes - 1) * sum([3, 2, 4][:classes]), seed=1).tolist(),
           support_vectors=random(3 * sum([3, 2, 4][:classes]), seed=2).tolist(),
           rho=random(pairs, seed=3).tolist(), classlabels_ints=[5, 1, 3][:classes])


def svm(classes: int, feed: Any, **more: Any) -> Any:
    sizes, pairs = [3, 2, 4, 1, 2][:classes], classes * (classes - 1) // 2
    return proto("l, y = SVMClassifier(x)", {"x": feed}, ["l i64", "y f32"], kernel_type="RBF",
                 kernel_params=KERNELS["RBF"], vectors_per_class=sizes,
                 rho=random(pairs, seed=3).tolist(), prob_a=(random(pairs, seed=4) - 2).tolist(),
                 prob_b=random(pairs, seed=5).tolist(), classlabels_ints=[5, 1, 3, 2, 9][:classes],
                 coefficients=random((classes - 1) * sum(sizes), seed=1).tolist(),
                 support_vectors=random(3 * sum(sizes), seed=2).tolist(), **more)


@pytest.mark.part(4)
@pytest.mark.parametrize("how", ["NONE", "SOFTMAX"])
@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_svm_probabilities(classes: int, how: str, tmp_path: Path) -> None:
    """Sweep by sweep as onnxruntime, until a row has settled; in C too."""
    feed = np.concatenate([random(40, 3), 100 * random(3, 3), np.zeros((1, 3), np.float32)])
    made = svm(classes, feed, post_transform=how)
    want = oracle(made, {"x": feed})
    module = checked(made)
    model = compiled(optimised(module), tmp_path / "b")
    for got in (interp.run(module, {"x": feed}), model.run({"x": feed})):
        np.testing.assert_array_equal(got["l"], want[0])
        np.testing.assert_allclose(got["y"], want[1], rtol=2e-5, atol=2e-5)
        assert how != "NONE" or np.allclose(got["y"].sum(1), 1, atol=1e-5)
