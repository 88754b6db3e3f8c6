"""Resizing against torch's interpolate, with gradients, and against onnx's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch.nn.functional as F
from onnx.reference.ops.op_resize import _cubic_coeffs, _interpolate_nd

from graphtool import ops as o
from graphtool import passes
from graphtool.dtypes import float64
from graphtool.interp import run
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, dim_of, symbol
from tests.cases import CASES, Case, arrays
from tests.torch_oracle import agree, normal

SIZES = [(7, 3), (4, 5), (1, 9), (8, 10), (2, 2), (11, 1)]
X = normal(2, 3, 4, 5)
N = Symbol("n", 1)


@pytest.mark.parametrize("size", SIZES)
def test_nearest_as_torch(size: tuple[int, int]) -> None:
    agree(lambda x: o.resize(x, sizes=(2, 3, *size), coordinates="asymmetric", rounding="floor"),
          lambda x: F.interpolate(x, size, mode="nearest"), [X])
    agree(lambda x: o.resize(x, sizes=(2, 3, *size), rounding="round_prefer_ceil"),
          lambda x: F.interpolate(x, size, mode="nearest-exact"), [X])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_smooth_modes_as_torch(size: tuple[int, int], mode: str, corners: bool) -> None:
    coordinates = "align_corners" if corners else "half_pixel"
    agree(lambda x: o.resize(x, sizes=(2, 3, *size), mode=mode, coordinates=coordinates),
          lambda x: F.interpolate(x, size, mode=f"bi{mode}", align_corners=corners), [X])


@pytest.mark.parametrize("size", SIZES[:-1])  # torch 2.13 gives constant rows at width 1
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_as_torch(size: tuple[int, int], mode: str) -> None:
    how: Any = {"mode": mode, "antialias": True, "exclude_outside": True,
                "cubic": -0.5}  # its antialiased kernel is not that of its bicubic mode
    agree(lambda x: o.resize(x, sizes=(2, 3, *size), **how),
          lambda x: F.interpolate(x, size, mode=f"bi{mode}", antialias=True), [X])


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_one_and_three_axes_as_torch(mode: str) -> None:
    how: dict[str, Any] = {"linear": {"mode": "linear"}, "nearest": {
        "coordinates": "asymmetric", "rounding": "floor"}}[mode]
    agree(lambda x: o.resize(x, sizes=(1, 2, 7), **how),
          lambda x: F.interpolate(x, 7, mode=mode), [normal(1, 2, 4)])
    agree(lambda x: o.resize(x, sizes=(1, 2, 5, 3, 6), **how),
          lambda x: F.interpolate(x, (5, 3, 6), mode="trilinear" if mode == "linear" else mode),
          [normal(1, 2, 3, 4, 3)])


def test_scales_take_the_place_of_ratios() -> None:
    x = normal(1, 1, 5)
    agree(lambda x: o.resize(x, sizes=(1, 1, 8), mode="linear", scales=(1.0, 1.0, 1.7)),
          lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"), [x])


def test_crop_and_resize_puts_a_value_outside() -> None:
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    y = o.resize(x, sizes=(1, 1, 3, 3), mode="linear", coordinates="tf_crop_and_resize",
                 roi=(0, 0, 0.4, 0.6, 1, 1, 0.6, 1.7), extrapolation=10.0)
    np.testing.assert_allclose(y[0, 0], [[6.6, 10, 10], [7.8, 10, 10], [9.0, 10, 10]][:3])


def test_exclude_outside_keeps_constants() -> None:
    y = o.resize(np.ones((1, 1, 4, 4)), sizes=(1, 1, 7, 3), mode="cubic", exclude_outside=True)
    np.testing.assert_allclose(y, 1)


@pytest.mark.parametrize("name", ["half_pixel", "asymmetric", "align_corners",
                                  "pytorch_half_pixel", "half_pixel_symmetric"])
@pytest.mark.parametrize("exclude", [False, True])
def test_cubic_as_onnx(name: str, exclude: bool) -> None:
    x = normal(4, 5)
    scales = np.array([1.5, 0.6])
    sizes = tuple(int(n * s) for n, s in zip(x.shape, scales, strict=True))
    want = _interpolate_nd(x, lambda r, s: _cubic_coeffs(r, s, A=-0.75), scale_factors=scales,
                           coordinate_transformation_mode=name, exclude_outside=exclude)
    got = o.resize(x, sizes=sizes, mode="cubic", coordinates=name, scales=tuple(scales.tolist()),
                   exclude_outside=exclude)
    np.testing.assert_allclose(got, want, atol=1e-9)


# ---- computed sizes and scales -----------------------------------------------------------------

@pytest.mark.parametrize("case", [c for c in CASES if c.op.name == "resize"], ids=repr)
def test_computed_scales_do_what_known_ones_do(case: Case) -> None:
    x, attrs = arrays(case)[0], dict(case.attrs)
    scales = attrs.pop("scales", None) or tuple(
        m / n for m, n in zip(attrs["sizes"], x.shape, strict=True))
    roi = attrs.pop("roi", None)
    want = o.resize(x, scales=scales, roi=roi, **attrs)
    got = o.resize_by(x, np.array(scales), None if roi is None else np.array(roi), **attrs)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("antialias", [False, True])
def test_open_sizes_do_what_static_ones_do(mode: str, coordinates: str, antialias: bool) -> None:
    def fn(sizes: Any) -> Any:
        return lambda x: o.resize(x, sizes=sizes, mode=mode, coordinates=coordinates,
                                  antialias=antialias)
    n, m = symbol("N", 1, None), symbol("M", 1, None)
    x = TensorType(float64, (1, 2, n, 5))
    graph = trace(lambda v, like: fn((1, 2, m, 7))(v), [x, TensorType(float64, (m,))])
    module = Module(graph, ("y",), {"N": Symbol("N", 1, None), "M": Symbol("M", 1, None)})
    given = normal(1, 2, 6, 5)
    for size in (3, 6, 13):
        got = run(module, {"x0": given, "x1": np.zeros(size)})["y"]
        np.testing.assert_allclose(got, fn((1, 2, size, 7))(given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["align_corners", "asymmetric", "half_pixel"])
@pytest.mark.parametrize("size", [5, 9])
def test_what_has_no_weight_does_not_spread(mode: str, coordinates: str, size: int) -> None:
    """An open size of 5 and a fixed one give NaN at the same places; none by 0 · ∞."""
    def to(x: Any) -> Any:
        return o.resize(x, sizes=(2, size), mode=mode, coordinates=coordinates)
    x = normal(2, 5)
    x[0, 2], x[1, 0] = np.inf, np.nan

    def result(n: Any) -> Any:
        module = Module(trace(to, [TensorType(float64, (2, n))]), ("y",), {"n": N})
        return run(passes.run(module, "decompose"), {"x0": x})["y"]
    fixed = result(5)
    np.testing.assert_array_equal(result(dim_of(N)), fixed)
    if size == 5:
        np.testing.assert_array_equal(fixed, x)
    elif coordinates == "align_corners" and mode == "linear":  # its first and last are x's own
        np.testing.assert_array_equal(fixed[:, ::8], x[:, ::4])
