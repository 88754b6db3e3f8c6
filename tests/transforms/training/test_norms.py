"""Batch norms in training against torch: what a model states is kept, what is asked for is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool.errors import GraphtoolError
from graphtool.transforms.training import Recipe, norm_note, training
from tests.transforms.training import models


def net(*norms: nn.Module, width: int = 4) -> nn.Sequential:
    """Linear layers with a norm behind each but the last."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(3, width)]
    for norm in norms:
        layers += [norm, nn.Tanh(), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.Linear(width, 2)).double()


def usual(**more: Any) -> nn.Sequential:
    return net(nn.BatchNorm1d(4, **more), nn.BatchNorm1d(4, momentum=0.3))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.n = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.n(torch.tanh(self.n(self.a(x))))


class Spatial(nn.Module):
    """An instance norm, which in training would not use a batch's statistics."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(3, 8), nn.BatchNorm1d(8)
        self.n = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.n(self.b(self.a(x)).reshape(-1, 2, 4)).flatten(1)


def set_to(model: nn.Module, mode: bool, *others: int) -> nn.Module:
    """The model in training mode or not, and some of its layers in the other one."""
    model.train(mode)
    for i in others:
        model[i].train(not mode)  # type: ignore[index]
    return model


# a model, its mode and the layers in the other one, --batch-norm, and the same of torch's model
CASES: dict[str, tuple[Callable[[], nn.Module], Any, bool | None, Any]] = {
    "training": (usual, (True,), None, (True,)),
    "one frozen": (usual, (True, 1), None, (True, 1)),
    "all frozen": (usual, (True, 1, 4), None, (True, 1, 4)),
    "inference": (usual, (False,), None, (True,)),
    "inference, one in training": (usual, (False, 1), None, (True,)),
    "asked for": (usual, (True, 1), True, (True,)),
    "frozen by the user": (usual, (True, 1), False, (False,)),
    "frozen by the user in inference": (usual, (False,), False, (False,)),
    "slow": (lambda: usual(momentum=0.01), (False,), None, (True,)),
    "averages": (lambda: usual(momentum=None), (False,), None, (True,)),
    "averages in training": (lambda: usual(momentum=None), (True,), None, (True,)),
    "averages, frozen": (lambda: usual(momentum=None), (True, 1), None, (True, 1)),
    "no statistics": (lambda: usual(track_running_stats=False), (False,), None, (True,)),
    "no statistics, frozen": (lambda: usual(track_running_stats=False), (False,), False, (False,)),
    "not affine, another epsilon": (lambda: usual(affine=False, eps=0.1), (False,), None, (True,)),
    "still": (lambda: usual(momentum=0.0), (False,), None, (True,)),
    "twice": (Twice, (False,), None, (True,)),
    "twice in training": (Twice, (True,), None, (True,)),
    "instance norm": (Spatial, (False,), None, None),
}


def oracle(model: nn.Module, batches: list[tuple[Any, Any]]) -> list[float]:
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.part(3)
@pytest.mark.parametrize("case", CASES)
def test_steps_as_torch(case: str) -> None:
    make, mode, asked, wanted = CASES[case]
    torch.manual_seed(1)
    outputs = make().double()(torch.zeros(6, 3).double()).shape[1:]
    batches = [(torch.randn(6, 3).double(), torch.randn(6, *outputs).double()) for _ in range(3)]
    model = set_to(make().double(), *mode)
    module = graphtool.import_model(model, (batches[0][0],))
    step = training(module, Recipe("mse", optimizer="sgd", batch_norm=asked))
    name = module.graph.inputs[0].hint
    feeds = [{name: x.numpy(), "y": y.numpy()} for x, y in batches]
    losses, state = models.steps(step, feeds, 0.1)
    torch_model = make().double()
    if wanted is None:  # in training, but for the instance norm
        torch_model.train()
        torch_model.n.eval()  # type: ignore[union-attr,operator]
    else:
        set_to(torch_model, *wanted)
    np.testing.assert_allclose(losses, oracle(torch_model, batches), rtol=1e-9)
    want = torch_model.state_dict()
    assert set(step.meta["training"]["model"]) == set(want)
    for key, (part,) in step.meta["training"]["model"].items():
        got = state[part] if part in state else step.kept[part].source
        np.testing.assert_allclose(got, want[key].numpy(), rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.parametrize(("momentum", "rate"), [(None, 0.3), (0.5, 0.5)])
def test_a_momentum_that_is_given_is_taken(momentum: float | None, rate: float) -> None:
    model = net(nn.BatchNorm1d(4, momentum=0.3)).eval()
    x = torch.randn(5, 3).double()
    module = graphtool.import_model(model, (x,))
    step = training(module, Recipe("mse", optimizer="sgd", batch_norm_momentum=momentum))
    _, state = models.steps(step, [{module.graph.inputs[0].hint: x.numpy(),
                                    "y": np.zeros((5, 2))}], 0.1)
    np.testing.assert_allclose(state["1.running_mean"], rate * model[0](x).detach().mean(0))


def test_what_the_default_chooses_is_said() -> None:
    x = torch.randn(5, 3).double()
    for mode, said in (((False,), True), ((True,), False), ((True, 1), False)):
        module = graphtool.import_model(set_to(usual(), *mode), (x,))
        note = norm_note(module, Recipe("mse"))
        assert ("2 batch norms" in note and "0.1, 0.3" in note) == said
        assert norm_note(module, Recipe("mse", batch_norm=False)) == ""


def test_a_momentum_without_effect_is_refused() -> None:
    module = graphtool.import_model(usual().train(), (torch.randn(5, 3).double(),))
    with pytest.raises(GraphtoolError) as fault:
        training(module, Recipe("mse", optimizer="sgd", batch_norm_momentum=0.5))
    assert fault.value.code == "GT0624"
