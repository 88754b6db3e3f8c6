"""Training graphs in the evaluator against torch: losses, parameters, statistics, accumulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.ir import serial
from graphtool.ir.verify import verify_module
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, programs, training
from tests.transforms.training import models
from tests.transforms.training.models import Array


def data(x: torch.Tensor, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn_like(x), torch.randint(0, 5, (len(x),))) for _ in range(count)]


def arrays(batches: list[tuple[torch.Tensor, torch.Tensor]], name: str) -> list[dict[str, Array]]:
    return [{name: x.numpy(), "y": y.numpy()} for x, y in batches]


def torch_steps(model: nn.Module, batches: Any, optimizer: Any, accumulate: int = 1,
                norm: float | None = None) -> list[float]:
    model.train()
    losses = []
    for i, (x, y) in enumerate(batches):
        loss = nn.functional.cross_entropy(model(x), y)
        (loss / accumulate).backward()  # type: ignore[no-untyped-call]
        losses.append(loss.item())
        if (i + 1) % accumulate == 0:
            if norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), norm)
            optimizer.step()
            optimizer.zero_grad()
    return losses


@pytest.mark.parametrize("make", [models.mlp, models.cnn], ids=["mlp", "cnn"])
@pytest.mark.parametrize(("text", "oracle", "given", "more"), [
    ("sgd{momentum=0.9}", torch.optim.SGD, {"momentum": 0.9}, {}),
    ("adamw{weight_decay=0.1}", torch.optim.AdamW, {"weight_decay": 0.1}, {"clip_norm": 0.5}),
    ("adam", torch.optim.Adam, {}, {"accumulate": 2}),
], ids=["sgd", "adamw", "accumulate"])
def test_steps_as_torch(make: Any, text: str, oracle: Any, given: Any, more: Any) -> None:
    model, x = make()
    module = graphtool.import_model(model.eval(), (x,))
    train = training(module, Recipe("cross_entropy", optimizer=text, **more))
    verify_module(train)
    batches = data(x, 4)
    found, state = models.steps(train, arrays(batches, train.graph.inputs[0].hint), 0.01)
    want = torch_steps(model, batches, oracle(model.parameters(), lr=0.01, **given),
                       more.get("accumulate", 1), more.get("clip_norm"))
    np.testing.assert_allclose(found, want, rtol=2e-5)
    for name, p in model.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            np.testing.assert_allclose(state[name], p.numpy(), rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize(("loss", "oracle"), [
    ("mse", nn.functional.mse_loss), ("huber{delta=0.5}",
                                      lambda x, y: nn.functional.huber_loss(x, y, delta=0.5)),
    ("bce{from_logits=true}", nn.functional.binary_cross_entropy_with_logits)])
def test_gradients_of_the_losses(loss: str, oracle: Any) -> None:
    model, x = models.mlp()
    y = torch.rand(8, 5)
    module = training(graphtool.import_model(model, (x,)), Recipe(loss, wrt=("params", "inputs")))
    found = graphtool.evaluate(module, {module.graph.inputs[0].hint: x.numpy(), "y": y.numpy()})
    x.requires_grad_()
    want = oracle(model(x), y)
    want.backward()
    np.testing.assert_allclose(found["loss"], want.item(), rtol=1e-5)
    for name, p in [*model.named_parameters(), (module.graph.inputs[0].hint, x)]:
        assert p.grad is not None
        np.testing.assert_allclose(found[f"grad.{name}"], p.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_decay_can_spare_vectors() -> None:
    model, x = models.mlp()
    module = graphtool.import_model(model, (x,))
    train = training(module, Recipe("cross_entropy", optimizer="sgd{weight_decay=0.5}",
                                    decay_vectors=False))
    batches = data(x, 1)
    _, state = models.steps(train, arrays(batches, train.graph.inputs[0].hint), 0.01)
    groups = [{"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.5},
              {"params": [p for p in model.parameters() if p.ndim < 2]}]
    torch_steps(model, batches, torch.optim.SGD(groups, lr=0.01))
    for name, p in model.named_parameters():
        np.testing.assert_allclose(state[name], p.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_groups_have_arguments_of_their_own() -> None:
    model, x = models.mlp()
    module = graphtool.import_model(model, (x,))
    first, *rest = (n for n, _ in model.named_parameters())
    groups = ("*{weight_decay=0.1}", f"{first}{{momentum=0.5,weight_decay=0}}")
    train = training(module, Recipe("cross_entropy", optimizer="momentum", groups=groups))
    batches = data(x, 2)
    _, state = models.steps(train, arrays(batches, train.graph.inputs[0].hint), 0.01)
    named = dict(model.named_parameters())
    torch_steps(model, batches, torch.optim.SGD([
        {"params": [named[first]], "momentum": 0.5},
        {"params": [named[n] for n in rest], "weight_decay": 0.1}], lr=0.01, momentum=0.9))
    for name, p in named.items():
        np.testing.assert_allclose(state[name], p.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("groups", "decay"), [
    (("*{weight_decay=0.5}",), 0.5), (("*{weight_decay=0.5}", "{0}{momentum=0.5}"), 0.25),
    (("{0}{weight_decay=0.5}", "*"), 0.25), (("*{weight_decay=0.5}", "{0}{weight_decay=1}"), 1.0)])
def test_a_parameter_is_in_its_last_group_alone(groups: tuple[str, ...], decay: float) -> None:
    """Only decay moves a parameter of which the gradient is 0; the optimizer's decay is 0.25."""
    model, x = models.mlp()
    module = graphtool.import_model(model, (x,))
    own = tuple(g.replace("{0}", "0.bias") for g in groups)
    recipe = Recipe("mse", optimizer="sgd{weight_decay=0.25}", groups=own)
    batch = {module.graph.inputs[0].hint: x.numpy(), "y": model(x).detach().numpy()}
    _, state = models.steps(training(module, recipe), [batch], 0.1)
    want = (1 - 0.1 * decay) * model[0].bias.detach().numpy()
    np.testing.assert_allclose(state["0.bias"], want, rtol=1e-5)


@pytest.mark.parametrize(("group", "code"), [
    ("nothing.*{weight_decay=0}", "GT0623"), ("*{wait_decay=0}", "GT0602"), ("*{", "GT0608")])
def test_bad_groups_are_refused(group: str, code: str) -> None:
    model, x = models.mlp()
    with pytest.raises(GraphtoolError) as error:
        training(graphtool.import_model(model, (x,)), Recipe("cross_entropy", optimizer="adamw",
                                                       groups=(group,)))
    assert error.value.code == code


def test_a_training_graph_survives_its_file(tmp_path: Path) -> None:
    model, x = models.cnn()
    module = graphtool.import_model(model.eval(), (x,))
    train = training(module, Recipe("cross_entropy", optimizer="adam"))
    serial.save(train, tmp_path / "m.graph.json")
    again = serial.load(tmp_path / "m.graph.json")
    assert {i: w.digest for i, w in again.initial.items()} == {
        i: w.digest for i, w in train.initial.items()}
    assert again.donations == train.donations and again.meta == train.meta
    for part in programs(again).values():
        verify_module(part)


@pytest.mark.parametrize(("recipe", "code"), [
    (Recipe("hinge"), "GT0616"), (Recipe("mse", optimizer="sgdx"), "GT0616"),
    (Recipe("mse", wrt=("nobody",)), "GT0611"),
    (Recipe("mse", wrt=("inputs",), optimizer="sgd"), "GT0614"),
    (Recipe("mse{delta=3}"), "GT0602"), (Recipe("cross_entropy{axis=7}"), "GT0613")])
def test_faults(recipe: Recipe, code: str) -> None:
    model, x = models.mlp()
    with pytest.raises(GraphtoolError) as fault:
        training(graphtool.import_model(model, (x,)), recipe)
    assert fault.value.code == code


def test_a_model_captured_in_training_mode() -> None:
    """Its running statistics are state already; inference uses them."""
    model, x = models.cnn()
    train = training(graphtool.import_model(model.train(), (x,)), Recipe("cross_entropy",
                                                                   optimizer="sgd"))
    verify_module(train)
    batches = data(x, 3)
    name = train.graph.inputs[0].hint
    found, state = models.steps(train, arrays(batches, name), 0.01)
    want = torch_steps(model, batches, torch.optim.SGD(model.parameters(), lr=0.01))
    np.testing.assert_allclose(found, want, rtol=2e-5)
    assert set(model.state_dict()) == set(train.meta["training"]["model"])
    for n, p in model.state_dict().items():
        np.testing.assert_allclose(state[n], p.numpy(), rtol=1e-4, atol=2e-5, err_msg=n)
    predict = programs(train)["predict"]
    used = [v.hint for v in predict.graph.inputs if v.hint != name]
    out = graphtool.evaluate(predict, {name: x.numpy(), **{n: state[n] for n in used}})
    np.testing.assert_allclose(next(iter(out.values())), model.eval()(x).detach().numpy(),
                               rtol=1e-4, atol=1e-5)


def test_dropout_in_compiled_steps(tmp_path: Path) -> None:
    """The masks are those of the evaluator, new at every step; inference has none."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.4), nn.ReLU(), nn.Dropout(0.2),
                          nn.Linear(32, 5)).train()
    x = torch.randn(8, 6)
    train = training(graphtool.import_model(model, (x,)), Recipe("cross_entropy", optimizer="sgd"))
    assert "rng" not in train.meta["training"]["model"]
    batch = arrays(data(x, 1), train.graph.inputs[0].hint) * 3
    found, _ = models.steps(train, batch, 0.0)
    assert len(set(found)) == 3
    build(train, tmp_path / "b")
    compiled = TrainModel(tmp_path / "b", 1)
    np.testing.assert_allclose([compiled.step(b, 0.0) for b in batch], found, rtol=1e-5)
    out = compiled.predict(batch[0])[0]
    np.testing.assert_allclose(out, model.eval()(data(x, 1)[0][0]).detach().numpy(), rtol=1e-5,
                               atol=1e-6)


def test_a_loss_whose_gradient_starts_with_a_literal(tmp_path: Path) -> None:
    """The mean over 4 is a half twice: the seed of ones times a literal is a literal."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(4, 2), torch.randn(2, 4), torch.randn(2, 2)
    train = training(graphtool.import_model(model, (x,)), Recipe("mse", optimizer="adam"))
    build(train, tmp_path / "b")
    compiled = TrainModel(tmp_path / "b", 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(5):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        found = compiled.step({compiled.inputs[0]: x.numpy(), "y": y.numpy()}, 0.01)
        assert found == pytest.approx(loss.item(), rel=1e-5)
