"""Division by a constant gives the quotient of division, with fused multiply-adds or without."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from graphtool.dtypes import float32
from graphtool.emit.expr import ExprPrinter
from graphtool.loops.forms import in_forms, over
from graphtool.loops.ir import Apply, Const, Name
from tests.kernels.harness import compile_c, width

POINTER = ctypes.POINTER(ctypes.c_float)
DIVISORS = (3.0, 0.1, -7.0, 1.9999999, 1.0000001, 0.03658611, 255.0, 1e-20, 3e25)


def divided(by: float) -> str:
    quotient = Apply("div", (Name("x", float32), Const(by, float32)), float32)
    return ExprPrinter({}).expr(in_forms(quotient, (over,)))


@pytest.mark.part(2)
@width
@pytest.mark.parametrize("strict", [False, True])
def test_equal_to_division(strict: bool, flags: list[str], tmp_path: Path) -> None:
    source = "#define GT_IN_ORDER\n" if strict else ""
    source += '#include "nest.h"\n'
    for n, d in enumerate(DIVISORS):
        text = divided(d)
        assert text.startswith("gt_over_f32(x, ")
        source += (f"void f{n}(const float *in, float *out, long count)\n{{\n    GT_SIMD\n    for "
                   f"(long i = 0; i < count; i++) {{ float x = in[i]; out[i] = {text}; }}\n}}\n")
    library = compile_c(source, tmp_path, [*flags, "-fopenmp-simd", "-DGT_OPENMP_SIMD"])
    rng = np.random.default_rng(0)
    mantissas = rng.integers(0, 1 << 23, 1 << 20, dtype=np.uint32)
    exponents = rng.integers(100, 160, 1 << 20, dtype=np.uint32)
    x = (mantissas | exponents << np.uint32(23)).view(np.float32)
    x[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1.0
    got = np.empty_like(x)
    for n, d in enumerate(DIVISORS):
        getattr(library, f"f{n}")(*(a.ctypes.data_as(POINTER) for a in (x, got)),
                                  ctypes.c_long(x.size))
        want = x / np.float32(d)
        usual = ~((np.abs(want) < 2.0 ** -100) & (want != 0))
        np.testing.assert_array_equal(got[usual], want[usual])
        np.testing.assert_allclose(got, want, rtol=2e-7)
        np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]))


@pytest.mark.parametrize("divisor", [2.0, 0.25, 0.0, np.inf, 1e-35, 1e35])
def test_what_stays_a_division(divisor: float) -> None:
    assert "gt_over" not in divided(divisor)
