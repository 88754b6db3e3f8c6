"""torch.compile by our backend: forward and training agree with eager; guards choose the build."""

from __future__ import annotations

import copy
import importlib
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from graphtool.errors import UsageError  # noqa: E402
from graphtool.integrations import torch_compile  # noqa: E402
from graphtool.integrations.torch_compile import graphtool_backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return torch.relu(x + self.inner(x))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(16, 10)

    def forward(self, ids: Any) -> Any:
        return self.head(self.layers(self.embed(ids)).mean(1))


def _block(width: int) -> nn.Module:
    return Residual(nn.Sequential(
        nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)))


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(),
                                  nn.Linear(16, 10)), lambda n: torch.randn(n, 8)),
    "lenet": (lambda: nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 5), nn.Tanh(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 10)), lambda n: torch.randn(n, 1, 16, 16)),
    "transformer": (Encoder, lambda n: torch.randint(0, 50, (n, 7))),
    "resnet": (lambda: nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), _block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 10)), lambda n: torch.randn(n, 3, 10, 10)),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch_compile._say.cache_clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="graphtool runs")
        yield


def _pair(make: Callable[[], Any]) -> tuple[Any, Any]:
    model = make()
    return model, torch.compile(copy.deepcopy(model), backend=graphtool_backend)


def _losses(model: Any, x: Any, y: Any) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", ["mlp", "lenet", *(
    pytest.param(n, marks=pytest.mark.slow) for n in ("transformer", "resnet"))])
def test_forward_is_eager_for_each_shape(name: str) -> None:
    make, inputs = MODELS[name]
    eager, compiled = _pair(lambda: make().eval())
    with torch.no_grad():
        for n in (4, 3, 7):  # a static build, then one with an open batch
            x = inputs(n)
            torch.testing.assert_close(compiled(x), eager(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "transformer", *(
    pytest.param(n, marks=pytest.mark.slow) for n in ("lenet", "resnet"))])
def test_training_is_eager(name: str) -> None:
    make, inputs = MODELS[name]
    eager, compiled = _pair(make)
    x, y = inputs(6), torch.randint(0, 10, (6,))
    assert _losses(compiled, x, y) == pytest.approx(_losses(eager, x, y), rel=1e-4, abs=1e-5)
    for a, b in zip(eager.buffers(), compiled.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)  # running statistics


def _built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    init = torch_compile.Compiled.__init__

    def counted(self: Any, *args: Any) -> None:
        made.append(self)
        init(self, *args)
    monkeypatch.setattr(torch_compile.Compiled, "__init__", counted)
    return made


def test_guards_choose_by_shape_dtype_and_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _built(monkeypatch)

    def fn(x: Any, double: bool) -> Any:
        return torch.sin(x) * 2 if double else torch.cos(x)
    compiled = torch.compile(fn, backend=graphtool_backend)
    for x, flag, builds in ((torch.randn(3), True, 1), (torch.randn(3), True, 1),
                            (torch.randn(3), False, 2), (torch.randn(5), True, 3),
                            (torch.randn(9), True, 3), (torch.randn(3).double(), True, 4)):
        torch.testing.assert_close(compiled(x, flag), fn(x, flag))
        assert len(made) == builds


def test_inputs_and_buffers_are_changed_as_in_eager() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count += 1
            x.mul_(2)
            return x[0] + self.count
    eager, compiled = _pair(Counter)
    a, b = torch.ones(3), torch.ones(3)
    for _ in range(3):
        torch.testing.assert_close(compiled(a), eager(b))
    torch.testing.assert_close((a, compiled.count), (b, eager.count))


@pytest.mark.parametrize("fn", [
    lambda x: (x.t(), x, x.shape[0], None, x.transpose(0, 1) * 2),
    lambda x: x[:, 1:].sum(1),
    lambda x: x.permute(1, 0).contiguous().view(-1),
    lambda x: x / (x.shape[0] - 1),
    lambda x: x.std(0),
    lambda x: torch.zeros(0) + 1,
], ids=range(6))
def test_results_are_as_in_eager(fn: Callable[[Any], Any]) -> None:
    compiled = torch.compile(fn, backend=graphtool_backend, dynamic=True)
    x = torch.randn(4, 6).t()  # not contiguous
    got, want = compiled(x), fn(x)
    torch.testing.assert_close(got, want)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
        assert not isinstance(b, torch.Tensor) or a.stride() == b.stride()


def test_results_are_new_tensors() -> None:
    compiled = torch.compile(lambda x: x + 1, backend=graphtool_backend)
    first = compiled(torch.zeros(3))
    compiled(torch.ones(3))
    assert first.tolist() == [1, 1, 1]


def test_what_cannot_be_built_runs_eagerly_and_says_so_once() -> None:
    compiled = torch.compile(lambda x: torch.special.airy_ai(x) + 1, backend=graphtool_backend)
    x = torch.randn(3, 3)
    with pytest.warns(UserWarning, match=r"graphtool runs this inference graph eagerly(?s:.*)"
                                         r"special_airy_ai"):
        torch.testing.assert_close(compiled(x), torch.special.airy_ai(x) + 1)
    torch._dynamo.reset()
    compiled(x)  # a second warning would be an error here


def test_results_as_long_as_the_data_say_run_eagerly() -> None:
    compiled = torch.compile(lambda x: x[x > 0] * 2, backend=graphtool_backend)
    x = torch.randn(9)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), pytest.warns(
            UserWarning, match="depends on the data"):
        torch.testing.assert_close(compiled(x), x[x > 0] * 2)


@pytest.mark.parametrize("make", [
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
    lambda: nn.Sequential(nn.Linear(4, 3), nn.RReLU(0.25, 0.25))], ids=["weight_norm", "rrelu"])
def test_gradients_are_as_in_eager(make: Callable[[], nn.Module]) -> None:
    eager, compiled = _pair(make)
    x = torch.randn(5, 4)
    for model in (eager, compiled):
        model(x).sin().sum().backward()
    for a, b in zip(eager.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_random_numbers_follow_torchs_seed() -> None:
    compiled = torch.compile(lambda x: nn.functional.dropout(x, 0.5), backend=graphtool_backend)
    x = torch.ones(1000)

    def drawn(seed: int) -> Any:
        torch.manual_seed(seed)
        return compiled(x)
    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))
    assert 380 < int((drawn(3) == 0).sum()) < 620


def test_frozen_parameters_are_built_in() -> None:
    model = nn.Linear(4, 3)
    compiled = torch.compile(model, backend=graphtool_backend, options={"freeze": True})
    x = torch.randn(2, 4)
    with torch.no_grad():
        want = model(x)
        torch.testing.assert_close(compiled(x), want)
        model.weight.zero_()
        torch.testing.assert_close(compiled(x), want)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match="no option 'speed'"):
        graphtool_backend(None, (), options={"speed": 11})  # type: ignore[arg-type]


def test_the_entry_point_is_this_backend() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["torch_dynamo_backends"]["graphtool"].partition(":")
    assert getattr(importlib.import_module(module), name) is graphtool_backend
