"""torch.compile by our backend over library models: results and every gradient against eager."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from graphtool.integrations.torch_compile import graphtool_backend  # noqa: E402
from tests.importers.torch.library import LIBRARY, Built, pixels  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def _vision(name: str, size: int, **settings: Any) -> Callable[[], Built]:
    def build() -> Built:
        import torchvision
        torch.manual_seed(0)
        return getattr(torchvision.models, name)(weights=None, **settings), (
            pixels(2, 3, size, size),)
    return build


def _timm(name: str, size: int, **settings: Any) -> Callable[[], Built]:
    def build() -> Built:
        import timm
        torch.manual_seed(0)
        return timm.create_model(name, pretrained=False, **settings), (pixels(2, 3, size, size),)
    return build


MODELS: dict[str, Callable[[], Built]] = {
    **{name: LIBRARY[name] for name in ("bert", "distilbert", "t5", "qwen2", "gemma", "opt",
                                        "segformer", "clip")},
    "resnet18": _vision("resnet18", 32), "mobilenet_v3": _vision("mobilenet_v3_small", 32),
    "shufflenet": _vision("shufflenet_v2_x0_5", 32),
    "vit": _timm("vit_tiny_patch16_224", 32, img_size=32, depth=2),
    "mixer": _timm("mixer_s32_224", 32, img_size=32),
    "convnext": _timm("convnext_atto", 32),
}


def _gradients(model: Any, run: Any, args: tuple[Any, ...]) -> list[Any]:
    y = run(*args)
    (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum().backward()
    return [y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


def _close(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    scale = max(float(w.abs().max()) for w in want[1:] or want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-4 * max(1e-3, min(scale, 1.0)))


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_and_trains_as_eager(name: str) -> None:
    torch._dynamo.reset()
    model, args = MODELS[name]()
    twin = copy.deepcopy(model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = torch.compile(twin.eval(), backend=graphtool_backend, dynamic=False)
        with torch.no_grad():
            _close([run(*args)], [model.eval()(*args)])
        _close(_gradients(twin, run, args), _gradients(model, model, args))
    fallbacks = [str(w.message) for w in said if "graphtool" in str(w.message)]
    assert not fallbacks, fallbacks
