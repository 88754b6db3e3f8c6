"""What a model needs and we lack is listed all at once, with places, and exits with 4."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.conftest import Cli


def save(path: Path, nodes: list[onnx.NodeProto], shapes: list[list[int]]) -> Path:
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, s)
              for i, s in enumerate(shapes)]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18),
                                                      helper.make_opsetid("my.own", 1)]), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two nodes of one unknown operator and one of another."""
    return save(tmp_path / "m.onnx", [
        helper.make_node("Whirl", ["x0"], ["a"], name="first", domain="my.own"),
        helper.make_node("Twist", ["a"], ["b"], name="second", domain="my.own"),
        helper.make_node("Whirl", ["b"], ["y"], name="third", domain="my.own")], [[2, 3]])


def test_support_lists_all(model: Path, gt: Cli) -> None:
    result = gt("support", model)
    assert result.code == 4
    assert "2 × my.own.Whirl" in result.out.replace("::", ".") and "third" in result.out
    found = json.loads(gt("support", model, "--json").out)
    assert not found["supported"] and [m["count"] for m in found["missing"]] == [2, 1]


@pytest.mark.parametrize("line", ["import {} -o {}.graph.json", "show {}", "build {} -o {}.d"])
def test_import_lists_all_and_writes_nothing(line: str, model: Path, gt: Cli) -> None:
    result = gt(*(part.format(model) for part in line.split()))
    assert result.code == 4 and result.err.startswith("error[GT1020]: ")
    assert "Whirl" in result.err and "Twist" in result.err
    assert [p.name for p in model.parent.iterdir()] == ["m.onnx"]


def test_ill_typed_products_are_refused_with_both_producers(tmp_path: Path, gt: Cli) -> None:
    path = save(tmp_path / "m.onnx", [
        helper.make_node("Relu", ["x0"], ["left"]), helper.make_node("Neg", ["x1"], ["right"]),
        helper.make_node("MatMul", ["left", "right"], ["y"])], [[3, 4], [3, 5]])
    result = gt("import", path, "-o", tmp_path / "m.graph.json")
    assert result.code == 3 and "inner dimensions differ: 4 and 3" in result.err
    assert "left: f32[3,4]" in result.err and "right: f32[3,5]" in result.err
