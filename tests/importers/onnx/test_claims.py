"""A declared output shape never wins over an input that is a shape: the run compares the two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.native import runtime
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import optimised

X = random(2, 3)
X1 = random(1, 3)
I64 = np.int64

CASES: dict[str, tuple[Any, list[str], list[str], Any, Any, Any]] = {
    # the model, the operand, what fits the declared shape, what contradicts it
    "Reshape": ("y = Reshape(x, s)", ["x f32 2 3", "s i64 2"], ["y f32 3 2"], X, [3, 2], [2, 3]),
    "Reshape by -1": ("y = Reshape(x, s)", ["x f32 2 3", "s i64 2"], ["y f32 3 2"], X, [3, -1],
                      [-1, 3]),
    "Expand": ("y = Expand(x, s)", ["x f32 1 3", "s i64 2"], ["y f32 4 3"], X1, [4, 1], [5, 3]),
    "Expand to more axes": ("y = Expand(x, s)", ["x f32 1 3", "s i64 3"], ["y f32 2 4 3"], X1,
                            [2, 4, 1], [3, 4, 3]),
    "Tile": ("y = Tile(x, s)", ["x f32 2 3", "s i64 2"], ["y f32 4 3"], X, [2, 1], [1, 2]),
    "ConstantOfShape": ("y = ConstantOfShape(s)", ["s i64 2"], ["y f32 2 3"], None, [2, 3],
                        [3, 2]),
    "Squeeze": ("y = Squeeze(x, s)", ["x f32 1 3 1", "s i64 1"], ["y f32 3 1"], random(1, 3, 1),
                [0], [2]),
    "Unsqueeze": ("y = Unsqueeze(x, s)", ["x f32 2 3", "s i64 1"], ["y f32 2 1 3"], X, [1], [0]),
    "ReduceSum": ("y = ReduceSum(x, s)", ["x f32 2 3", "s i64 1"], ["y f32 1 3"], X, [0], [1]),
    "TopK": ("y, i = TopK(x, s)", ["x f32 2 3", "s i64 1"], ["y f32 2 2"], X, [2], [1]),
    "Split": (node("y, z = Split(x, s)", axis=1), ["x f32 2 3", "s i64 2"],
              ["y f32 2 1", "z f32 2 2"], X, [1, 2], [2, 1]),
    "Resize": ("y = Resize(x, , , s)", ["x f32 1 1 2 3", "s i64 4"], ["y f32 1 1 4 3"],
               random(1, 1, 2, 3), [1, 1, 4, 3], [1, 1, 2, 6]),
    "CenterCropPad": ("y = CenterCropPad(x, s)", ["x f32 2 3", "s i64 2"], ["y f32 4 2"], X,
                      [4, 2], [2, 4]),
    "OneHot": ("y = OneHot(x, s, v)", ["x i64 2", "s i64 1"], ["y f32 2 4"],
               np.array([1, 3]), [4], [5]),
}


def made(name: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The model, inputs that fit its declared shape, inputs that do not."""
    call, inputs, outputs, x, right, wrong = CASES[name]
    proto = model([call], inputs, outputs, {"v": np.float32([0, 1])} if name == "OneHot" else {},
                  opset=18)
    feeds = [{"s": np.array(s, I64), **({} if x is None else {"x": x})} for s in (right, wrong)]
    return proto, feeds[0], feeds[1]


@pytest.mark.parametrize("name", CASES)
def test_contradictions_are_found_at_run_time(name: str) -> None:
    proto, right, wrong = made(name)
    module = checked(proto)
    for got, want in zip(interp.run(module, right).values(), oracle(proto, right), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(GraphtoolError) as caught:
        interp.run(module, wrong)
    assert caught.value.code in ("GT0505", "GT0515") and "expected" in caught.value.message


@pytest.mark.parametrize("name", ["Reshape", "Expand", "ReduceSum", "Unsqueeze", "TopK"])
def test_compiled_code_finds_them_too(name: str, tmp_path: Path) -> None:
    proto, right, wrong = made(name)
    loaded = runtime.load(build(optimised(checked(proto)), tmp_path / "b", jobs=2))
    np.testing.assert_allclose(loaded.run(right)["y"], oracle(proto, right)[0], rtol=1e-5)
    with pytest.raises(GraphtoolError):
        loaded.run(wrong)


def test_known_contradictions_are_refused_at_import() -> None:
    proto = model(["n = Shape(x)", "t = Reshape(x, n)", "y = Tile(x, s)"], ["x f32 2 3", "s i64 2"],
                  ["y f32 5 3"])
    with pytest.raises(GraphtoolError, match="repeats"):
        checked(proto)
