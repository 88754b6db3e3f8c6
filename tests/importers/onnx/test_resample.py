"""Resize by numbers that the run computes, against the same numbers known at import."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import interp
from tests.importers.onnx.build import agree, checked, evaluate, model, node, oracle, random

X = random(1, 2, 4, 5)


@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.6, 1.5), (1, 1, 1, 0.5)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("shape", ["? ? ? ?", None], ids=["open", "declared"])
def test_by_scales_that_are_an_input(scales: Any, mode: str, shape: str | None) -> None:
    s = np.array(scales, np.float32)
    wanted = shape or " ".join(str(int(np.floor(d * f))) for d, f in zip(X.shape, s, strict=True))
    call = node("y = Resize(x, , s)", mode=mode, coordinate_transformation_mode="asymmetric",
                nearest_mode="floor")
    agree(model([call], ["x f32 1 2 4 5", "s f32 4"], [f"y f32 {wanted}"]), {"x": X, "s": s})


@pytest.mark.parametrize("attrs", [{}, {"mode": "linear"}, {"mode": "cubic"},
                                   {"mode": "linear", "antialias": 1},
                                   {"keep_aspect_ratio_policy": "not_larger"},
                                   {"keep_aspect_ratio_policy": "not_smaller"}], ids=repr)
def test_by_sizes_that_are_an_input(attrs: Any) -> None:
    call = node("y = Resize(x, , , s)", axes=[2, 3], **attrs)
    given = {"x": X, "s": np.array([7, 3])}
    inputs = ["x f32 1 2 4 5", "s i64 2"]
    got, = evaluate(model([call], inputs, ["y f32 ? ? ? ?"]), given)
    want, = evaluate(model([call], inputs[:1], ["y f32 ? ? ? ?"], {"s": given["s"]}),
                     {"x": X})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_region_that_is_an_input() -> None:
    call = node("y = Resize(x, r, , s)", mode="linear", extrapolation_value=9.0,
                coordinate_transformation_mode="tf_crop_and_resize")
    roi = np.array([0, 0, 0.1, -0.2, 1, 1, 0.8, 1.2], np.float32)
    agree(model([call], ["x f32 1 2 4 5", "r f32 8"], ["y f32 1 2 3 4"],
                {"s": np.array([1, 2, 3, 4])}), {"x": X, "r": roi})


def test_an_image_of_any_size_by_half() -> None:
    call = node("y = Resize(x, , s)", mode="linear")
    proto = model([call], ["x f32 1 2 H W"], ["y f32 1 2 ? ?"],
                  {"s": np.array([1, 1, 0.5, 1.5], np.float32)})
    for shape in ((1, 2, 4, 5), (1, 2, 7, 3)):
        agree(proto, {"x": random(*shape)})


def test_twice_the_size_of_another_image() -> None:
    nodes = ["n = Shape(z)", node("y = Resize(x, , , n)", mode="cubic")]
    agree(model(nodes, ["x f32 1 2 H W", "z f32 1 2 P Q"], ["y f32 1 2 P Q"]),
          {"x": X, "z": random(1, 2, 9, 3)})


@pytest.mark.parametrize("scale", [0.7, 2.3, 0.9, 1.4, 3.3, 1 / 3, 2 / 3, 1.7, 0.15])
def test_the_size_is_the_product_in_float32(scale: float) -> None:
    """10 · 0.7 is 7, as a number and as an open size; in exact numbers the float32 makes it 6."""
    call = node("y = Resize(x, , s)", mode="nearest", coordinate_transformation_mode="asymmetric")
    held = {"s": np.array([1, scale], np.float32)}
    open_ = checked(model([call], ["x f32 1 H"], ["y f32 ? ?"], held))
    for count in (3, 10, 15, 30, 55, 100):
        feed = {"x": np.arange(count, dtype=np.float32)[None]}
        proto = model([call], [f"x f32 1 {count}"], ["y f32 ? ?"], held)
        want = oracle(proto, feed)[0]
        for module in (checked(proto), open_):
            np.testing.assert_array_equal(interp.run(module, feed)["y"], want)
