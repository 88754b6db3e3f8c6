"""extremes.h: the largest and the smallest of rows of any length, with NaN and infinities."""

from pathlib import Path

import numpy as np

from tests.kernels.harness import call, compile_c, guarded, width

SOURCE = """
#include "extremes.h"
#define EACH(fn) \\
    void fn(int t, int threads, float *y, const float *x, int64_t n); \\
    void fn(int t, int threads, float *y, const float *x, int64_t n) \\
    { (void)t, (void)threads; *y = gt_extreme_##fn##_f32(*y, x, n); }
EACH(max)
EACH(min)
"""


@width
def test_rows(tmp_path: Path, flags: list[str]) -> None:
    library = compile_c(SOURCE, tmp_path, flags)
    rng = np.random.default_rng(0)
    for name, reduce, first in (("max", np.max, -np.inf), ("min", np.min, np.inf)):
        for n in (0, 1, 3, 4, 9, 16, 17, 49, 63, 64, 65, 130, 200):
            for special in (None, np.nan, -np.nan, np.inf, -np.inf):
                x = rng.standard_normal(n).astype(np.float32)
                for at in sorted({0, n // 2, n - 1}) if special is not None and n else (None,):
                    row = x.copy()
                    if at is not None:
                        row[at] = special
                    y = np.full(1, first, np.float32)
                    call(getattr(library, name), y, guarded(row), n)
                    np.testing.assert_array_equal(y[0], reduce([np.float32(first), *row]))
            y = np.full(1, np.nan, np.float32)
            call(getattr(library, name), y, guarded(x), n)
            assert np.isnan(y[0])
