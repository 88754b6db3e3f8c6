"""exponentials.h: rows of exponentials of any length, also in place, with NaN and infinities."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import WIDTHS, call, compile_c, guarded

SOURCE = """
#include "exponentials.h"
void row(int t, int threads, float *sum, float *y, const float *x, const float *top, int64_t n);
void row(int t, int threads, float *sum, float *y, const float *x, const float *top, int64_t n)
{ (void)t, (void)threads; *sum = gt_exponentials_f32(y, x, *top, n); }
void each(int t, int threads, float *y, const float *x, const float *top, int64_t n);
void each(int t, int threads, float *y, const float *x, const float *top, int64_t n)
{ (void)t, (void)threads; for (int64_t i = 0; i < n; i++) y[i] = gt_exp_f32(x[i] - *top); }
"""
LENGTHS = (0, 1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 70, 197)


@pytest.mark.parametrize("flags", [pytest.param(["-fno-math-errno", "-fwrapv", "-O2", *flags], id=n)
                                   for n, flags in WIDTHS.items() if n != "scalar"])
def test_rows(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, flags)
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        for special in (None, np.nan, np.inf, -np.inf, -3e38, 1e-41):
            x = rng.normal(0, 30, n).astype(np.float32)
            if special is not None and n:
                x[rng.integers(n)] = special
            top = np.float32([x.max() if n else 0])
            y, want, total = guarded(x), np.zeros_like(x), np.zeros(1, np.float32)
            call(library.row, total, y, y, top, n)  # in place
            call(library.each, want, x, top, n)
            np.testing.assert_array_equal(y, want)
            np.testing.assert_allclose(total[0], want.sum(dtype=np.float64), rtol=1e-6)
            apart = guarded(np.zeros_like(x))
            call(library.row, total, apart, guarded(x), top, n)
            np.testing.assert_array_equal(apart, want)
