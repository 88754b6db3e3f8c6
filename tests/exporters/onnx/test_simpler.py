"""`simplify` on models that have an operator for what is several nodes here: no model grows, and
onnxruntime gives the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, parser

from graphtool import interp
from graphtool.exporters.onnx import node_counts
from graphtool.importers.onnx import import_model
from tests.lab.simplify import apart, feed, simpler
from tests.lab.simplify_models import N_AND_ONE, TEXTS

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.mark.parametrize("name", TEXTS)
def test_no_model_grows(name: str) -> None:
    text = TEXTS[name]
    model = text.model()
    after = simpler(model)
    assert node_counts(after).total() <= node_counts(model).total()
    assert [v.name for v in after.graph.input] == [v.name for v in model.graph.input]
    assert [v.name for v in after.graph.output] == [v.name for v in model.graph.output]
    for sizes in () if text.random else text.sizes:
        apart(model, after, feed(model, sizes), 1e-6)


@pytest.mark.parametrize("sizes", N_AND_ONE, ids=str)
def test_large_values_of_float16(sizes: dict[str, int]) -> None:
    """At 300 the squares leave float16: the operators add them in float32, and so do we."""
    model = TEXTS["float16 norm, broadcast, ReduceL2"].model()
    given = feed(model, sizes)
    given |= {name: 300 * given[name] for name in "xb"}
    after = simpler(model)
    apart(model, after, given, 1e-6)
    want, = onnxruntime.InferenceSession(after.SerializeToString()).run(None, given)
    got, = interp.run(import_model(after), given).values()
    assert np.isfinite(want).all()
    np.testing.assert_allclose(got, want, rtol=2e-3)


def test_samples_shrink() -> None:
    model = onnx.load(SAMPLES / "digits.onnx")
    after = simpler(model)
    assert node_counts(after).total() < node_counts(model).total()
    apart(model, after, feed(model, {"batch": 3}), 1e-5)


def test_an_operator_that_meant_another_thing_is_written_anew() -> None:
    """Before opset 13 Softmax normalised over all axes from `axis` on."""
    model = parser.parse_model('<ir_version: 7, opset_import: ["" : 11]>\n'
                               "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax (x) }")
    after = simpler(model)
    apart(model, after, feed(model, {}), 1e-6)
    assert node_counts(after)["Softmax"] == 1 and node_counts(after).total() > 1


def test_a_weight_of_integers_stays_one() -> None:
    after = simpler(TEXTS["quantised"].model())
    assert {t.name for t in after.graph.initializer if t.data_type == onnx.TensorProto.INT8} >= {
        "w"}


def test_what_is_read_between_the_nodes_of_an_operator_stays() -> None:
    """Two that would be written as they were share what one of them has computed."""
    nodes = [helper.make_node("ReduceL2", ["x"], ["a"], keepdims=0),
             helper.make_node("ReduceL2", ["x"], ["b"], keepdims=0),
             helper.make_node("Add", ["a", "b"], ["y"])]
    half = onnx.TensorProto.FLOAT16
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", half, ["N", 3])],
        [helper.make_tensor_value_info("y", half, [])]),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    after = simpler(model)
    assert node_counts(after) == {"ReduceL2": 1, "Add": 1}
    apart(model, after, {"x": 300 * feed(model, {"N": 4})["x"]}, 1e-6)


def test_positions_whose_maxima_nobody_reads_are_written() -> None:
    """A window of one, by which torch's exporter finds where a plane begins: its maxima are x."""
    nodes = [helper.make_node("MaxPool", ["x"], ["m", "at"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("MaxPool", ["x"], ["same", "all"], kernel_shape=[1, 1]),
             helper.make_node("ReduceMin", ["all", "axes"], ["first"]),
             helper.make_node("Sub", ["at", "first"], ["y"])]
    shape = [1, 2, "H", 6]
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("m", onnx.TensorProto.FLOAT, None),
         helper.make_tensor_value_info("y", onnx.TensorProto.INT64, None)],
        [onnx.numpy_helper.from_array(np.array([2, 3]), "axes")]),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    after = simpler(model)
    assert node_counts(after).total() <= 4
    for h in (4, 10):
        apart(model, after, feed(model, {"H": h}), 1e-6)
