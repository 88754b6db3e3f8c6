"""Quantised transposed convolutions as exporters write them: results of onnxruntime, integer
kernels, and gradients straight through the rounding, as torch has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.native import runtime
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import optimised

torch = pytest.importorskip("torch")
SCALE, ZERO, OUT = 0.02, 120, 0.05
FORMS: dict[str, tuple[int, int | None, dict[str, Any]]] = {  # groups, the scales' axis, the rest
    "a scale for each output": (1, 1, {"strides": [2, 2], "output_padding": [1, 1]}),
    "one scale": (1, None, {"strides": [3, 2], "output_padding": [1, 0]}),
    "groups": (2, None, {"strides": [2, 1]}),
    "a scale for each input": (2, 0, {"strides": [1, 1]}),
}


def parts(groups: int, axis: int | None) -> dict[str, Any]:
    rng, shape = np.random.default_rng(3), (4, 6 // groups, 3, 3)
    count = () if axis is None else (shape[axis],)
    return {"w": random(*shape, seed=1), "sw": (rng.random(count) * 0.01 + 0.01).astype(np.float32),
            "zw": np.zeros(count, np.int8), "sx": np.float32(SCALE), "zx": np.uint8(ZERO),
            "b": random(6, seed=2), "sy": np.float32(OUT), "zy": np.uint8(128)}


def proto(name: str, integers: bool = False) -> tuple[Any, dict[str, Any]]:
    """The model with float weights, which are quantised first, or with integer ones."""
    groups, axis, attrs = FORMS[name]
    held = parts(groups, axis)
    along = {} if axis is None else {"axis": axis}
    nodes = ["xq = QuantizeLinear(x, sx, zx)", "xd = DequantizeLinear(xq, sx, zx)",
             node("wq = QuantizeLinear(w, sw, zw)", **along),
             node("wd = DequantizeLinear(wq, sw, zw)", **along),
             node("c = ConvTranspose(xd, wd, b)", pads=[1, 1, 1, 1], group=groups, **attrs),
             "yq = QuantizeLinear(c, sy, zy)", "y = DequantizeLinear(yq, sy, zy)"]
    if integers:
        held["wq"] = np.random.default_rng(5).integers(-127, 128, held.pop("w").shape, np.int8)
        del nodes[2]
    return model(nodes, ["x f32 2 4 5 7"], ["y f32 ? ? ? ?"], held), held


@pytest.mark.parametrize("name", FORMS)
def test_results_are_those_of_onnxruntime(name: str, tmp_path: Path) -> None:
    given, _ = proto(name, integers=True)
    feed = {"x": random(2, 4, 5, 7) * 2}
    want = oracle(given, feed)[0]
    small = optimised(checked(given))
    run = runtime.load(build(small, tmp_path / "b", jobs=2)).run
    for got in (interp.run(checked(given), feed)["y"], run(feed)["y"]):
        apart = np.abs(got - want)  # a sum close to a half may be rounded either way
        assert apart.max() < 1.01 * OUT and (apart > 1e-5).mean() < 0.005
    if name.startswith(("one", "a scale for each output")):  # the sums of others need a scale each
        assert "conv_int" in {n.op.name for n in small.graph.nodes}


@pytest.mark.parametrize("name", FORMS)
def test_gradients_go_straight_through(name: str) -> None:
    given, held = proto(name)
    groups, axis, attrs = FORMS[name]
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (
        random(2, 4, 5, 7) * 2, held["w"], held["b"]))
    fake = torch.fake_quantize_per_tensor_affine
    wide = fake(w, float(held["sw"]), 0, -128, 127) if axis is None else (
        torch.fake_quantize_per_channel_affine(
            w, torch.tensor(held["sw"]), torch.zeros(len(held["sw"]), dtype=torch.int32), axis,
            -128, 127))
    y = torch.nn.functional.conv_transpose2d(
        fake(x, SCALE, ZERO, 0, 255), wide, b, stride=attrs["strides"], padding=1,
        output_padding=attrs.get("output_padding", 0), groups=groups)
    y = fake(y, OUT, 128, 0, 255)
    goal = torch.tensor(random(*y.shape, seed=9))
    ((y - goal) ** 2).mean().backward()
    grads = graphtool.grad(checked(given), graphtool.Recipe("mse", wrt=("inputs", "params")))
    assert grads.output_names == ("loss", "grad.x", "grad.w", "grad.b")  # scales are not trained
    found = interp.run(grads, {"x": x.detach().numpy(), "y": goal.numpy()})
    for key, tensor in (("grad.x", x), ("grad.w", w), ("grad.b", b)):
        np.testing.assert_allclose(found[key], tensor.grad.numpy(), atol=1e-5)
