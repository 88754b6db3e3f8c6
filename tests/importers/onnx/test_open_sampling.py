"""Images of open size read at computed positions, against onnxruntime at several sizes, also 1."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import compiled, optimised

IMAGES = ((1, 1), (1, 5), (4, 1), (5, 6), (9, 3))
GRIDS = [(mode, padding, corners) for mode, padding, corners in product(
    ("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1))]
BOXES = np.array([[0, 0, 4, 4], [1, 1, 3, 2], [-1, 2, 8, 9]], np.float32)
OWNERS = np.array([0, 1, 0])


def positions(*shape: int) -> Any:
    """Positions of which about two fifths lie outside the image."""
    return np.random.default_rng(0).uniform(-1.7, 1.7, shape).astype(np.float32)


def grid(**attrs: Any) -> Any:
    return model([node("y = GridSample(x, g)", **attrs)], ["x f32 2 3 H W", "g f32 2 3 4 2"],
                 ["y f32 ? ? ? ?"], opset=20)


@pytest.mark.parametrize(("mode", "padding", "corners"), GRIDS)
def test_grids(mode: str, padding: str, corners: int) -> None:
    proto = grid(mode=mode, padding_mode=padding, align_corners=corners)
    module = checked(proto)
    for size in IMAGES:
        feed = {"x": random(2, 3, *size), "g": positions(2, 3, 4, 2)}
        got, = interp.run(module, feed).values()
        np.testing.assert_allclose(got, oracle(proto, feed)[0], atol=1e-5)


COMPILED: dict[str, tuple[Any, Any]] = {
    "reflection": (grid(mode="linear", padding_mode="reflection"),
                   lambda h, w: {"x": random(2, 3, h, w), "g": positions(2, 3, 4, 2)}),
    "cubic": (grid(mode="cubic", padding_mode="border", align_corners=1),
              lambda h, w: {"x": random(2, 3, h, w), "g": positions(2, 3, 4, 2)}),
    "volume": (model([node("y = GridSample(x, g)", mode="linear")],
                     ["x f32 N 3 D H W", "g f32 N 3 P 2 3"], ["y f32" + " ?" * 5], opset=20),
               lambda h, w: {"x": random(2, 3, w, h, w), "g": positions(2, 3, 2, 2, 3)}),
    "RoiAlign": (model([node("y = RoiAlign(x, r, b)", sampling_ratio=2, output_height=3,
                             output_width=2)], ["x f32 2 3 H W", "r f32 R 4", "b i64 R"],
                       ["y f32 ? ? ? ?"]),
                 lambda h, w: {"x": random(2, 3, h, w), "r": BOXES, "b": OWNERS}),
    "MaxRoiPool": (model([node("y = MaxRoiPool(x, r)", pooled_shape=[2, 3])],
                         ["x f32 2 3 H W", "r f32 R 5"], ["y f32 ? ? ? ?"]),
                   lambda h, w: {"x": random(2, 3, h, w), "r": np.concatenate(
                       [OWNERS[:, None].astype(np.float32), BOXES], 1)}),
    "DeformConv": (model([node("y = DeformConv(x, w, o)", pads=[1, 0, 1, 0], strides=[1, 2])],
                         ["x f32 N 3 H W", "w f32 4 3 2 1", "o f32 N 4 P Q"], ["y f32 ? ? ? ?"]),
                   lambda h, w: {"x": random(2, 3, h, w), "w": random(4, 3, 2, 1),
                                 "o": random(2, 4, h + 1, (w - 1) // 2 + 1)}),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str, tmp_path: Path) -> None:
    proto, feed = COMPILED[name]
    module = checked(proto)
    run = compiled(optimised(module), tmp_path / "m").run
    for size in IMAGES:
        want, = oracle(proto, feed(*size))
        for got in (interp.run(module, feed(*size))["y"], run(feed(*size))["y"]):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, atol=1e-5)


WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "storage_order": 1},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "dilations": [2, 1], "auto_pad": "VALID"}]


@pytest.mark.parametrize("attrs", WINDOWS, ids=str)
def test_positions_of_maxima(attrs: dict[str, Any]) -> None:
    """Whole numbers, some equal: the first of equal ones counts."""
    proto = model([node("y, i = MaxPool(x)", **attrs)], ["x f32 N 2 H W"],
                  ["y f32 ? ? ? ?", "i i64 ? ? ? ?"])
    module = checked(proto)
    for n, h, w in ((2, 6, 7), (1, 4, 4), (3, 9, 5)):
        feed = {"x": np.round(random(n, 2, h, w))}
        for got, want in zip(interp.run(module, feed).values(), oracle(proto, feed), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.part(2)
def test_positions_put_back_compiled(tmp_path: Path) -> None:
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    proto = model([node("y, i = MaxPool(x)", storage_order=0, **attrs),
                   node("z = MaxUnpool(y, i)", **attrs)], ["x f32 N 2 H W"],
                  ["z f32 ? ? ? ?", "i i64 ? ? ? ?"])
    run = compiled(optimised(checked(proto)), tmp_path / "m").run
    for n, h, w in ((2, 6, 8), (1, 4, 4)):
        feed = {"x": random(n, 2, h, w)}
        for got, want in zip(run(feed).values(), oracle(proto, feed), strict=True):
            np.testing.assert_array_equal(got, want)
