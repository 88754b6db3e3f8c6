"""Weights that hold NaN or infinity: they reach those results alone whose definition has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.kernels.choice.rules import rules_of
from graphtool.passes import run as passes
from graphtool.target import named
from tests.importers.onnx.build import agree, checked, model, node, oracle, random
from tests.lower.compiling import compiled


def with_special(*shape: int, seed: int = 0) -> Any:
    x = random(*shape, seed=seed)
    x.reshape(-1)[::5] = np.resize(np.array([np.inf, -np.inf, np.nan], np.float32),
                                   x.reshape(-1)[::5].shape)
    return x


TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "strides": ((1, 2, 5), (2, 3, 2), {"strides": [3]}),
    "padding": ((2, 2, 5, 4), (2, 3, 3, 2), {"strides": [2, 1], "pads": [1, 0, 2, 1]}),
    "no strides": ((1, 2, 6), (2, 1, 3), {}),
    "groups": ((1, 4, 3, 3), (4, 2, 2, 2), {"group": 2, "strides": [2, 2],
                                            "output_padding": [1, 0]}),
    "dilation": ((1, 2, 4, 4), (2, 2, 2, 3), {"dilations": [3, 2], "strides": [2, 3]}),
    "same": ((1, 2, 4, 5), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "volume": ((1, 2, 3, 2, 2), (2, 2, 2, 1, 2), {"strides": [2, 1, 2]}),
}


@pytest.mark.part(3)
@pytest.mark.parametrize("held", ["finite", "constant", "given"])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution(name: str, held: str, tmp_path: Path) -> None:
    shape, filters, attrs = TRANSPOSED[name]
    w = random(*filters) if held == "finite" else with_special(*filters)
    given = [] if held != "given" else [f"w f32 {' '.join(map(str, filters))}"]
    data = {"b": random(filters[1] * attrs.get("group", 1))}
    proto = model([node("y = ConvTranspose(x, w, b)", **attrs)],
                  [f"x f32 {' '.join(map(str, shape))}", *given], ["y f32" + " ?" * len(shape)],
                  data if given else {**data, "w": w})
    module, x = checked(proto), {"x": random(*shape, seed=3)}
    x = {**x, "w": w} if given else x
    want = oracle(proto, x)[0]
    ready = passes(module, supply={"target": named("native"), "rules": rules_of(assume="nothing")})
    for got in (interp.run(module, x), compiled(ready, tmp_path / "m").run(x)):
        np.testing.assert_allclose(got["y"], want, rtol=1e-5, atol=1e-5)


SLOPES = np.array([np.inf, -np.inf, np.nan, 0.5, 0.0], np.float32)


@pytest.mark.parametrize("given", ["weight", "input"])
def test_slopes_matter_below_0_only(given: str) -> None:
    """PRelu(x, slope) is x where x >= 0, by the operator's text."""
    x = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)[:, None]
    slope = {"s": SLOPES}
    wide = np.repeat(x, 5, 1)
    proto = model(["y = PRelu(x, s)"], ["x f32 7 5", *(["s f32 5"] if given == "input" else [])],
                  ["y f32 7 5"], slope if given == "weight" else {}, opset=16)
    feed = {"x": wide, **(slope if given == "input" else {})}
    with np.errstate(invalid="ignore"):
        want = np.where(wide < 0, SLOPES * wide, wide)
    np.testing.assert_array_equal(interp.run(checked(proto), feed)["y"], want)
    agree(proto, {**feed, "x": np.where(np.isfinite(wide), wide, np.float32(1))})


@pytest.mark.parametrize("mode", ["border", "reflection"])
def test_a_neighbour_outside_the_image_is_not_read(mode: str) -> None:
    """At the last pixel the one behind it has weight 0, as in torch: 0 · ∞ is not added."""
    torch = pytest.importorskip("torch")
    x = random(1, 1, 4, 4)
    x[0, 0, 3, 3] = np.inf
    grid = np.array([[[[0.75, 0.75], [1.0, 1.0], [0.75, -0.25]]]], np.float32)
    proto = model([node("y = GridSample(x, g)", padding_mode=mode)],
                  ["x f32 1 1 4 4", "g f32 1 1 3 2"], ["y f32 ? ? ? ?"], opset=16)
    want = torch.nn.functional.grid_sample(torch.from_numpy(x), torch.from_numpy(grid),
                                           padding_mode=mode, align_corners=False)
    got = interp.run(checked(proto), {"x": x, "g": grid})["y"]
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-5)
