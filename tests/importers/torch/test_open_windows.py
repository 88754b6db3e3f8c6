"""torch functions whose windows, positions or lengths have open sizes, against torch at several
sizes, also 1: by the evaluator and by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.torch import import_torch
from tests.lower.compiling import compiled, optimised

Shape = tuple[int, ...]
IMAGE = {"H@a_0.2": (1, None), "W@a_0.3": (1, None)}
IMAGES: tuple[Shape, ...] = ((1, 1), (3, 5), (7, 7), (10, 13), (14, 2))
LINE = {"N@a_0.1": (1, None)}
LINES: list[list[Shape]] = [[(2, n)] for n in (9, 1, 2, 8, 45, 97)]


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *a: torch.Tensor) -> Any:
        return self.function(*a)


def planes(*more: Shape) -> list[list[Shape]]:
    """Shapes of calls: an image of each size, then the same operands for all."""
    return [[(2, 3, *size), *more] for size in ((9, 8), *IMAGES)]


LARGE = {"H@a_0.2": (4, None), "W@a_0.3": (4, None)}


def larger() -> list[list[Shape]]:
    """Shapes that a window of 3 fits, after each step of 2 and 3."""
    return [[(2, 3, h, w)] for h, w in ((9, 8), (4, 5), (6, 7), (10, 13), (11, 12))]


def grid(**attrs: Any) -> Any:
    return lambda x, g: functional.grid_sample(x, g, align_corners=False, **attrs)


CASES: dict[str, tuple[Any, dict[str, Any], list[list[Shape]]]] = {
    "means": (lambda x: functional.adaptive_avg_pool2d(x, (3, 4)), IMAGE, planes()),
    "means along an axis": (
        lambda x: functional.adaptive_avg_pool2d(x, (None, 4)), IMAGE, planes()),
    "mean": (nn.AdaptiveAvgPool2d(1), IMAGE, planes()),
    "maxima": (lambda x: functional.adaptive_max_pool2d(x, (3, 4)), IMAGE, planes()),
    "places of maxima": (lambda x: functional.adaptive_max_pool2d(
        x, (3, 4), return_indices=True), IMAGE, planes()),
    "means of a row": (nn.AdaptiveAvgPool1d(5), {"N@a_0.1": (1, None)},
                       [[(3, n)] for n in (9, 1, 4, 5, 10, 11)]),
    "maxima of a volume": (nn.AdaptiveMaxPool3d((2, 3, 1)),
                           {"H@a_0.2": (1, None), "W@a_0.4": (1, None)},
                           [[(2, 3, h, 7, w)] for h, w in ((5, 6), *IMAGES)]),
    "an open number of means": (
        lambda x, y: functional.adaptive_avg_pool2d(x, y.shape[2:]),
        {**IMAGE, "K@a_1.2": (1, None)},
        [[(2, 3, h, w), (2, 3, k, 5)] for k, (h, w) in enumerate(((9, 8), *IMAGES), 1)]),
    "maxima to the end": (
        lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True), LARGE, larger()),
    "maxima with padding, to the end": (
        lambda x: functional.max_pool2d(x, 3, 3, 1, ceil_mode=True), LARGE, larger()),
    "positions of maxima, put back": (
        lambda x: functional.max_unpool2d(*functional.max_pool2d(x, 2, return_indices=True), 2),
        {"H@a_0.2": (2, None, 2), "W@a_0.3": (2, None, 2)},
        [[(2, 3, h, w)] for h, w in ((4, 6), (2, 2), (8, 10))]),
    "means to the end": (
        lambda x: functional.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True), LARGE, larger()),
    "zeros around": (grid(padding_mode="zeros"), IMAGE, planes((2, 4, 3, 2))),
    "reflected": (grid(padding_mode="reflection", mode="bicubic"), IMAGE, planes((2, 4, 3, 2))),
    "kernel": (lambda x, w: functional.conv2d(x, w, padding=1, stride=2),
               {"H@a_0.2": (1, None), "K@a_1.2": (1, None)},
               [[(2, 3, h, 8), (4, 3, k, 3)] for h, k in ((9, 3), (1, 1), (5, 7), (6, 2))]),
    "spectrum": (lambda x: torch.view_as_real(torch.fft.rfft(x, norm="ortho")), LINE, LINES),
    "spectrum of an image": (lambda x: torch.view_as_real(torch.fft.fft2(x, norm="forward")),
                             IMAGE, planes()),
    "of a spectrum": (lambda x: torch.view_as_real(torch.fft.ifft(torch.view_as_complex(x))), LINE,
                      [[(2, n, 2)] for n in (9, 1, 2, 8, 45)]),
    "of half a spectrum": (lambda x: torch.fft.irfft(torch.view_as_complex(x)),
                           {"N@a_0.1": (2, None)}, [[(2, n, 2)] for n in (9, 2, 3, 33)]),
    # torch.export takes this for odd lengths only
    "circular convolution": (lambda x: torch.fft.irfft(torch.fft.rfft(x) ** 2, n=x.shape[1]), LINE,
                             [[(2, n)] for n in (9, 1, 3, 45, 97)]),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", CASES)
def test_open_windows(name: str, tmp_path: Path) -> None:
    function, dynamic, shapes = CASES[name]
    torch.manual_seed(0)
    (first, *calls), net = ([torch.randn(s) for s in row] for row in shapes), Call(function)
    module = import_torch(net, tuple(first), dynamic=dynamic)
    run = compiled(optimised(module), tmp_path / "m").run
    for xs in calls:
        want = net(*xs)
        feed = {i.hint: x.numpy() for i, x in zip(module.graph.inputs, xs, strict=True)}
        for got in (interp.run(module, feed), run(feed)):
            for g, w in zip(got.values(), want if isinstance(want, tuple) else (want,),
                            strict=True):
                np.testing.assert_allclose(g, w.numpy(), rtol=1e-4, atol=1e-5)


def test_a_kernel_that_is_larger_than_the_image() -> None:
    module = import_torch(Call(functional.conv2d), (torch.randn(2, 3, 9, 8),
                                                    torch.randn(4, 3, 3, 3)),
                          dynamic={"H@a_0.2": (1, None), "K@a_1.2": (1, None)})
    feed = {"a_0": np.zeros((2, 3, 9, 8), np.float32), "a_1": np.zeros((4, 3, 11, 3), np.float32)}
    with pytest.raises(InputError, match="does not hold"):
        interp.run(module, feed)


def test_a_transform_of_an_open_signal_is_refused() -> None:
    """torch.export itself refuses it; the message has its condition by the input's name."""
    with pytest.raises(UnsupportedError) as found:
        import_torch(Call(lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16),
                                               return_complex=True).abs()),
                     (torch.randn(2, 64),), dynamic={"N@a_0.1": (32, None)})
    assert found.value.code == "GT1102" and "torch.export cannot capture the model: a dynamic " \
        "dim that the model restricts" in found.value.message
    assert "of every run it requires (2 %" in found.value.message
    assert "leave it static" in str(found.value.hint)
