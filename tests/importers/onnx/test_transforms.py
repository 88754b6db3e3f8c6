"""DFT of fixed and open lengths, against numpy in float64 (onnxruntime's float32 sums lose digits
at a length of 300), and against onnxruntime at short ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from tests.importers.onnx.build import agree, checked, model, node, random
from tests.lower.compiling import compiled, optimised

FORMS = {  # attributes, parts of each number, numpy's function
    "real": ({}, 1, np.fft.fft), "complex": ({}, 2, np.fft.fft),
    "half": ({"onesided": 1}, 1, lambda x, axis: np.fft.rfft(x.real, axis=axis)),
    "back": ({"inverse": 1}, 2, np.fft.ifft), "back of real": ({"inverse": 1}, 1, np.fft.ifft),
    "back of half": ({"inverse": 1, "onesided": 1}, 2,
                     lambda x, axis: np.fft.irfft(x, 2 * x.shape[axis] - 2, axis=axis)),
}


def transform(form: str, length: object) -> Any:
    attrs, parts, _ = FORMS[form]
    return model([node("y = DFT(x)", axis=1, **attrs)], [f"x f32 2 {length} 3 {parts}"],
                 ["y f32 ? ? ? ?"], opset=17)


def expected(form: str, x: Any) -> Any:
    _, parts, function = FORMS[form]
    wide = x.astype(np.float64)
    y = function(wide[..., 0] + (1j * wide[..., 1] if parts == 2 else 0), axis=1)
    return y[..., None] if np.isrealobj(y) else np.stack([y.real, y.imag], -1)


@pytest.mark.parametrize("form", FORMS)
def test_open_lengths(form: str, tmp_path: Path) -> None:
    module = checked(transform(form, "N"))
    run = compiled(optimised(module), tmp_path / "m").run
    for n in (2, 5, 20, 97, 300, *((1,) if form != "back of half" else ())):
        x = random(2, n, 3, FORMS[form][1])
        for got in (interp.run(module, {"x": x})["y"], run({"x": x})["y"]):
            np.testing.assert_allclose(got, expected(form, x), atol=2e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [2, 9, 45, 300])
def test_fixed_lengths(form: str, n: int) -> None:
    x = random(2, n, 3, FORMS[form][1])
    got = interp.run(checked(transform(form, n)), {"x": x})["y"]
    np.testing.assert_allclose(got, expected(form, x), atol=2e-4)
    if n == 9:
        agree(transform(form, n), {"x": x})


def test_a_long_line_with_small_factors() -> None:
    x = random(2, 8000, 3, 1)
    got = interp.run(checked(transform("half", 8000)), {"x": x})["y"]
    np.testing.assert_allclose(got, expected("half", x), atol=1e-3)
