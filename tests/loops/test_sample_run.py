"""The sizes of a generated example: the least ones for which nothing is empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import passes
from graphtool.importers.onnx import import_model
from graphtool.loops.sample_sizes import sample_run
from graphtool.lower import lower
from tests.importers.onnx.build import model, node
from tests.loops.programs import TARGET

W = {"w": np.ones((4, 3, 3, 3), np.float32)}
SPACE = ["x f32 B 3 H W"]
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, int]]] = {
    "nothing may be empty": (model(["y = Relu(x)"], SPACE, ["y f32 B 3 H W"]), {},
                             {"B": 1, "H": 1, "W": 1}),
    "an empty run is no example": (model(["y = Relu(x)"], SPACE, ["y f32 B 3 H W"]),
                                   {"H": (0, 9)}, {"B": 1, "H": 1, "W": 1}),
    "a mean of what is pooled": (model([
        node("a = Conv(x, w)", strides=[2, 2]), node("b = MaxPool(a)", kernel_shape=[2, 2]),
        "y = GlobalAveragePool(b)"], SPACE, ["y f32 B 4 1 1"], W), {"H": (0, 512)},
        {"B": 1, "H": 5, "W": 5}),
    "a mean of a slice": (model(["s = Slice(x, a, b)", node("y = ReduceMean(s)", keepdims=0)],
                                ["x f32 S"], ["y f32"], {"a": np.array([2]),
                                                         "b": np.array([1 << 40])}), {}, {"S": 3}),
    "a condition": (model(["y = Add(x, z)"], ["x f32 N", "z f32 M"], ["y f32 N"]), {},
                    {"M": 1, "N": 1}),
    "a greatest size": (model([node("s = MaxPool(x)", kernel_shape=[4, 4], strides=[4, 4]),
                               "y = GlobalAveragePool(s)"], SPACE, ["y f32 B 3 1 1"]),
                        {"H": (1, 2), "W": (1, 9)}, {"B": 1, "H": 1, "W": 4}),
}


@pytest.mark.parametrize("name", CASES)
def test_sizes(name: str) -> None:
    proto, dynamic, want = CASES[name]
    module = passes.run(import_model(proto, dynamic=dynamic), supply={"target": TARGET})
    assert sample_run(lower(module, TARGET)) == want
