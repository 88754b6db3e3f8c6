"""Complex numbers inside a model: pairs of real ones, with eager torch as the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from graphtool.errors import UnsupportedError
from tests.importers.torch.agreement import agree, normal

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about its own
X = normal(3, 12)
HANN = torch.hann_window(16).double()
ROTATION = torch.polar(torch.ones(6).double(), torch.arange(6).double())
FUNCTIONS = (torch.exp, torch.log, torch.log1p, torch.expm1, torch.sqrt, torch.rsqrt, torch.sigmoid,
             torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh,
             torch.cosh, torch.tanh, torch.asinh, torch.acosh, torch.atanh)
fft, parts = torch.fft, torch.view_as_real
ROWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "rfft": lambda x: parts(fft.rfft(x)),
    "irfft": lambda x: (fft.irfft(fft.rfft(x) * 2), fft.irfft(fft.rfft(x), n=9)),
    "fft2": lambda x: fft.fft2(x).abs(),
    "ifftn": lambda x: fft.ifftn(fft.fftn(x, norm="ortho")).real,
    "hfft": lambda x: fft.hfft(fft.fft(x)),
    "long": lambda x: (fft.fft(x, 600).abs(), fft.irfft(fft.rfft(x, 600))),
    "rotary": lambda x: parts(torch.view_as_complex(x.reshape(3, 6, 2)) * ROTATION).flatten(1),
    "angle": lambda x: fft.fft(x).angle(),
    "divide": lambda x: parts(fft.fft(x) / (fft.fft(x) + 3j)),
    "products": lambda x: parts(fft.fft(x) @ fft.fft(x).mH),
    "parts_of_it": lambda x: parts(torch.cat([fft.fft(x), x], 1)[:, ::2].sum(0)),
    "powers": lambda x: parts(fft.fft(x)**2 + fft.fft(x).exp()),
    "functions": lambda x: [parts(f(torch.complex(x, x.flip(1)))) for f in FUNCTIONS],
    "pad": lambda x: parts(torch.nn.functional.pad(fft.fft(x), (1, 2), value=3)),
    "where": lambda x: parts(torch.where(x > 0, fft.fft(x), 1j)),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_is_as_in_eager(name: str) -> None:
    agree(ROWS[name], X)


def test_a_spectrogram_and_back() -> None:
    def model(x: torch.Tensor) -> Any:
        bins = torch.stft(x, 16, 4, window=HANN, return_complex=True)
        return bins.abs()**2, torch.istft(bins, 16, 4, window=HANN)
    agree(model, normal(2, 100))


class Rotated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rotation", ROTATION)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return parts(torch.view_as_complex(x.reshape(3, 6, 2)) * self.rotation)


def test_a_complex_buffer() -> None:
    agree(Rotated(), X)


@pytest.mark.parametrize(("model", "x", "what"), [
    (fft.fft, X, "the output output"), (torch.abs, fft.fft(X), "the input xs_0"),
    (lambda x: fft.fft(x).prod().abs(), X, "aten.prod.default")])
def test_what_has_no_form_is_named(model: Any, x: torch.Tensor, what: str) -> None:
    with pytest.raises(UnsupportedError, match=f"GT1101(.|\n)*{what}(.|\n)*complex"):
        agree(model, x)
