"""The conversions of narrow types against ml_dtypes, code by code."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from graphtool import dtypes
from graphtool.dtypes import DType
from tests.kernels.harness import INCLUDES

FLOATS = [d for d in dtypes.TABLE if d.is_float and d.bits <= 8]
INTEGERS = [d for d in dtypes.TABLE if d.is_integer and d.bits < 8]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("narrow")
    lines = ['#include "narrow.h"', "#define EACH for (int64_t i = 0; i < n; i++)"]
    for d in FLOATS:
        lines += [f"void to_{d.short}(int64_t n, const float *x, uint8_t *y)"
                  f" {{ EACH y[i] = gt_f32_to_{d.short}(x[i]); }}",
                  f"void from_{d.short}(int64_t n, const uint8_t *x, float *y)"
                  f" {{ EACH y[i] = gt_{d.short}_to_f32(x[i]); }}",
                  f"void wide_{d.short}(int64_t n, const double *x, uint8_t *y)"
                  f" {{ EACH y[i] = gt_f32_to_{d.short}(gt_f64_to_odd(x[i])); }}"]
    lines += [f"void wrap_{d.short}(int64_t n, const int64_t *x, {d.c} *y)"
              f" {{ EACH y[i] = gt_wrap_{d.short}(x[i]); }}" for d in INTEGERS]
    (folder / "narrow.c").write_text("\n".join(lines))
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", *INCLUDES,
                    "narrow.c", "-lm", "-o", "narrow.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "narrow.so"))


def called(library: ctypes.CDLL, name: str, x: np.ndarray, out: object) -> np.ndarray:
    y = np.zeros(x.shape, out)
    getattr(library, name)(ctypes.c_int64(x.size), ctypes.c_void_p(x.ctypes.data),
                           ctypes.c_void_p(y.ctypes.data))
    return y


def samples() -> np.ndarray:
    """Floats of every exponent, those halfway between two of few bits, and their neighbours."""
    exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
    mantissas = np.concatenate([np.arange(64, dtype=np.uint32) << 17,
                                (np.arange(64, dtype=np.uint32) << 17) + 1,
                                (np.arange(1, 64, dtype=np.uint32) << 17) - 1])
    positive = (exponents + mantissas).reshape(-1).view(np.float32)
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.short)
def test_floats_to_codes(library: ctypes.CDLL, d: DType) -> None:
    x = samples()
    with np.errstate(all="ignore"):
        want = x.astype(d.numpy)
    got = called(library, f"to_{d.short}", x, np.uint8).view(d.numpy)
    same = (got.view(np.uint8) == want.view(np.uint8)) | (
        np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32)))
    assert x[~same].tolist() == []


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.short)
def test_codes_to_floats(library: ctypes.CDLL, d: DType) -> None:
    codes = np.arange(1 << d.bits, dtype=np.uint8)
    got = called(library, f"from_{d.short}", codes, np.float32)
    np.testing.assert_array_equal(got, codes.view(d.numpy).astype(np.float32))


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.short)
def test_a_double_is_rounded_once(library: ctypes.CDLL, d: DType) -> None:
    codes = np.arange(1 << (d.bits - 1), dtype=np.uint8).view(d.numpy).astype(np.float64)
    codes = np.sort(codes[np.isfinite(codes) & (codes > 0)])
    middle = (codes[1:] + codes[:-1]) / 2
    got = called(library, f"wide_{d.short}", middle * (1 + 1e-12), np.uint8).view(d.numpy)
    np.testing.assert_array_equal(got.astype(np.float64), codes[1:])


@pytest.mark.parametrize("d", INTEGERS, ids=lambda d: d.short)
def test_integers_wrap(library: ctypes.CDLL, d: DType) -> None:
    x = np.arange(-40, 40, dtype=np.int64)
    got = called(library, f"wrap_{d.short}", x, np.dtype(d.c.removesuffix("_t")))
    np.testing.assert_array_equal(got, x.astype(d.numpy).astype(got.dtype))
