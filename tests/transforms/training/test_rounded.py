"""Training of quantised graphs: the same values as before, gradients through the rounding, and
integers again at the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import graphtool
from graphtool import Plan, Quantisation, Recipe, dtypes, interp
from graphtool.ir.graph import is_parameter
from graphtool.transforms.training import with_weights
from graphtool.transforms.training.rounded import as_reals, held, integers
from tests.passes.test_quantise import CASES, examples, module

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.mark.parametrize(("name", "form"), [
    (name, form) for name in CASES for form in ("static", "dynamic")
    if (name, form) != ("squares", "dynamic")])  # which has no weight
def test_the_values_are_those_of_the_integers(name: str, form: str) -> None:
    xs = examples(name)
    small = graphtool.quantise(module(name), Quantisation((form,)), xs)  # type: ignore[arg-type]
    reals = as_reals(small.graph, ["*"])
    assert not [n for n in reals.nodes if n.outputs[0].type.dtype.is_integer]
    (got,) = interp.evaluate_graph(reals, list(xs.values()), interp.Setting())
    np.testing.assert_allclose(got, *interp.run(small, xs).values(), rtol=1e-4, atol=2e-2)


def test_nothing_quantised_is_nothing_changed() -> None:
    graph = module("conv").graph
    assert as_reals(graph, ["params"]) is graph


def test_gradients_as_torch_gives_them() -> None:
    """torch's fake quantisation of a linear layer has the same gradients."""
    xs = examples("linear")
    small = graphtool.quantise(module("linear"), Quantisation(method="percentile",
                                                              percentile=80.0), xs)
    step = graphtool.grad(small, Recipe("mse", ("params", "inputs")))
    y = np.ones((4, 8), np.float32)
    found = interp.run(step, {**xs, "y": y})
    (weight,) = [n for n in small.graph.nodes if is_parameter(n)
                 and n.outputs[0].type.dtype is dtypes.int8]
    h = held(small.graph)[weight]
    w = torch.tensor(weight.attrs["data"].source * h.scale, requires_grad=True)
    (bias,) = [n for n in small.graph.nodes if n.outputs[0].type.dtype is dtypes.int32]
    b = torch.tensor(bias.attrs["data"].source * held(small.graph)[bias].scale)
    divide = next(n for n in small.graph.nodes if n.op.name == "div")
    zero = next(n for n in small.graph.nodes if n.op.name == "add")
    x = torch.tensor(xs["x"], requires_grad=True)
    fx = torch.fake_quantize_per_tensor_affine(
        x, float(divide.inputs[1]), int(zero.inputs[1]), 0, 255)  # type: ignore[arg-type]
    fw = torch.fake_quantize_per_channel_affine(
        w, torch.tensor(h.scale.reshape(-1)), torch.zeros(8, dtype=torch.int32), 0, -128, 127)
    torch.nn.functional.mse_loss(torch.nn.functional.linear(fx, fw, b.float()),
                                 torch.tensor(y)).backward()
    assert w.grad is not None and x.grad is not None
    np.testing.assert_allclose(found["grad.w"], w.grad, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["grad.x"], x.grad, rtol=1e-4, atol=1e-5)
    assert (found["grad.x"] == 0).any()  # what the range cuts off


def test_integers_are_those_that_stood_there() -> None:
    xs = examples("conv")
    graph = graphtool.quantise(module("conv"), None, xs).graph
    for node, h in held(graph).items():
        data = node.attrs["data"].source
        np.testing.assert_array_equal(integers(h, data * h.scale), data)
        assert (integers(h, np.full(data.shape, 1e9)) == node.outputs[0].type.dtype.high).all()


@pytest.mark.slow  # docs/how-to/quantise.md shows the same by commands
def test_training_brings_accuracy_back(tmp_path: Path) -> None:
    """A network whose ranges cut off far too much loses accuracy; three epochs bring most back,
    and the result is int8 again."""
    model = graphtool.import_model(SAMPLES / "digits.onnx")
    train, test = (np.load(SAMPLES / f"digits_{part}.npz") for part in ("train", "test"))
    small = graphtool.quantise(model, Quantisation(method="percentile", percentile=70.0),
                               {"image": train["image"]})

    def right(m: graphtool.Module) -> int:
        (y,) = interp.run(m, {"image": test["image"]}).values()
        return int((y.argmax(1) == test["y"]).sum())
    before = right(small)
    step = graphtool.grad(small, Recipe("cross_entropy", optimizer="adamw"))
    graphtool.build(step, tmp_path / "b", name="digits")
    state, _ = graphtool.train_model(tmp_path / "b", SAMPLES / "digits_train.npz",
                                     Plan(epochs=3, batch=64, lr=1e-3))
    again, count = with_weights(small, state)
    assert count == 8
    assert right(again) > before + (360 - before) // 2
    assert {n.outputs[0].hint: n.outputs[0].type for n in again.graph.nodes} == {
        n.outputs[0].hint: n.outputs[0].type for n in small.graph.nodes}
