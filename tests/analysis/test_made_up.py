"""Made-up inputs fit the model, and are the same for its graph, its program and its build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis.made_up import (
    index_limits,
    joint_sizes,
    made_up_sizes,
    port_inputs,
    random_inputs,
)
from graphtool.compile.as_is import build
from graphtool.errors import InputError
from graphtool.importers import import_source
from graphtool.ir.graph import Module, TensorType, is_constant
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.trace import trace
from graphtool.loops import serial
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named
from graphtool.verify.sides import build_inputs
from tests.passes.pass_samples import SAMPLES

FILES = Path(__file__).parents[2] / "samples"
B, T = symbol("B", 1, 50), symbol("T", 2, 40)


def lookup() -> Module:
    """An index into 7 rows, one into T rows, a mask, and floats."""
    def model(ids: Any, place: Any, mask: Any, x: Any) -> Any:
        table = x.builder.constant(np.ones((7, 2), np.float32), "table")
        wrapped = o.select(o.lt(ids, 0), ids + 7, ids)
        return (o.gather(table, o.reshape(wrapped, shape=(B, 5, 1)), axes=(0,)), mask + 0,
                o.gather(x, o.reshape(place, shape=(B, 1)), axes=(1,)))
    ints = TensorType(dtypes.int64, (B, 5))
    graph = trace(model, [ints, TensorType(dtypes.int64, (B,)), ints,
                          TensorType(dtypes.float32, (B, T))], ["ids", "place", "a_mask", "x"])
    return Module(graph, ("y", "m", "z"), {"B": Symbol("B", 1, 50), "T": Symbol("T", 2, 40)})


MODULES = {**SAMPLES, "lookup": lookup(), "digits": import_source(str(FILES / "digits.onnx"))}


def assert_equal(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert list(a) == list(b)
    for name, x in a.items():
        assert x.dtype == b[name].dtype
        np.testing.assert_array_equal(x, b[name])


def test_they_fit() -> None:
    inputs = random_inputs(lookup(), 0, {"B": 9})
    assert set(np.unique(inputs["ids"])) == set(range(7))
    assert set(np.unique(inputs["place"])) == {0, 1, 2}
    assert set(np.unique(inputs["a_mask"])) == {0, 1}
    assert inputs["x"].shape == (9, 3)
    interp.run(lookup(), inputs)


def test_bytes_that_stand_for_real_numbers_are_of_the_whole_range(tmp_path: Path) -> None:
    graph = trace(lambda q, n: (q.cast(dtypes.float32) * 0.1 + n.cast(dtypes.float32),), [
        TensorType(dtypes.int8, (B, 40)), TensorType(dtypes.int8, ())], ["q", "n"])
    module = Module(graph, ("y",), {"B": Symbol("B", 1, 50)}, meta={"grids": {
        "inputs": {"q": [0.1, 0]}, "outputs": {}}})
    inputs = random_inputs(module, 0, {"B": 50})
    assert (inputs["q"].min(), inputs["q"].max()) == (-128, 127) and 0 <= inputs["n"] < 4
    model = runtime.load(build(module, tmp_path / "b"))
    assert_equal(build_inputs(model, 0, {"B": 50}), inputs)


def test_an_index_of_two_tables_fits_the_smaller() -> None:
    def model(ids: Any, a: Any, b: Any) -> Any:
        at = o.reshape(ids, shape=(20, 1))
        return o.gather(a, at, axes=(0,)), o.gather(b, at, axes=(0,))
    graph = trace(model, [TensorType(dtypes.int32, (20,)), TensorType(dtypes.float32, (B, 2)),
                          TensorType(dtypes.float32, (5, 2))], ["ids", "a", "b"])
    assert index_limits(graph)[graph.inputs[0]] == (5, B) or (
        index_limits(graph)[graph.inputs[0]] == (B, 5))
    m = Module(graph, ("y", "z"), {"B": Symbol("B", 1, 50)})
    assert random_inputs(m, 0, {"B": 2})["ids"].max() == 1
    assert random_inputs(m, 0, {"B": 9})["ids"].max() == 4


@pytest.mark.parametrize("name", MODULES)
def test_passes_do_not_change_them(name: str) -> None:
    assert_equal(random_inputs(MODULES[name], 3), random_inputs(passes.run(MODULES[name]), 3))


@pytest.mark.parametrize("name", ["block", "lookup", "digits"])
def test_a_program_and_a_build_have_those_of_the_graph(name: str, tmp_path: Path) -> None:
    machine = named("x86-64", 1)
    module = passes.run(MODULES[name], supply={"target": machine})
    held = [n.attrs["data"] for n in all_nodes(module.graph) if is_constant(n)]
    serial.save(lower(module, machine), tmp_path / "m.program.json", {w.digest: w for w in held})
    again, store = serial.load(tmp_path / "m.program.json")
    model = runtime.load(build(again, tmp_path / "build", target=machine, store=store))
    for sizes in ({}, {"B": 2}) if name != "digits" else ({}, {"batch": 5}):
        of_graph = random_inputs(MODULES[name], 1, sizes)
        assert_equal(of_graph, build_inputs(model, 1, sizes))
        assert_equal(of_graph, port_inputs(again.inputs, {s.name: s for s in again.dims},
                                           again.requires, 1, sizes))


def test_sizes_are_checked() -> None:
    with pytest.raises(InputError) as bad:
        random_inputs(lookup(), 0, {"T": 99})
    assert bad.value.code == "GT0515"
    with pytest.raises(InputError) as large:
        random_inputs(MODULES["digits"], 0, {"batch": 10 ** 15})
    assert large.value.code == "GT0333"


def test_sizes_keep_conditions_that_the_graph_computes(tmp_path: Path) -> None:
    """Expand to [4, 3] takes one row or four, not the three of most inputs."""
    nodes = [helper.make_node("Expand", ["x", "s"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([4, 3], np.int64), "s")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=9), tmp_path / "m.onnx")
    module = graphtool.import_model(tmp_path / "m.onnx")
    assert made_up_sizes(module)["N"] in (1, 4)
    assert made_up_sizes(module, {"N": 3}) == {"N": 3}  # what is asked for
    x = random_inputs(module)
    assert graphtool.evaluate(module, x)["y"].shape == (4, 3)
    # a build knows its bounds, and the graph its condition: both are kept
    assert joint_sizes(module, {"N": Symbol("N", 2, 9)}, (), {}) == {"N": 4}
    assert joint_sizes(module, {"N": Symbol("N", 1, 3)}, (), {}) == {"N": 1}
    assert joint_sizes(module, {"N": Symbol("N", 2, 9)}, (), {"N": 3}) == {"N": 3}
