"""Fourier transforms against numpy's, which knows other ways to compute them."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool import ops as o

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 9, 257, 400, 1024])
def test_it_is_numpys(n: int) -> None:
    x = RNG.normal(size=(2, n)) + 1j * RNG.normal(size=(2, n))
    real, imag = o.fourier(x.real, x.imag)
    np.testing.assert_allclose(real + 1j * imag, np.fft.fft(x), atol=1e-11)
    real, imag = o.fourier(x.real, half=True)
    np.testing.assert_allclose(real + 1j * imag, np.fft.rfft(x.real), atol=1e-11)
    back = o.fourier_real(real, imag, size=n) / n
    np.testing.assert_allclose(back, x.real, atol=1e-12)
