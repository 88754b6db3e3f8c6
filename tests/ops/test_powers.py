"""Powers at zeros, infinities and NaN: C99, F.10.4.4, in the evaluator and in C."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool import ops as o
from tests.lower.compiling import compiled, optimised
from tests.passes.pass_samples import module

INF, NAN = np.inf, np.nan
BASES = (-INF, -2.0, -1.0, -0.0, 0.0, 0.25, 1.0, 4.0, INF, NAN)
EXPONENTS = (-INF, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, INF, NAN)


def standard(x: float, y: float) -> float:
    """The value of pow(x, y) by the rules of the standard; of finite numbers by their product."""
    if y == 0 or x == 1:
        return 1.0
    if np.isnan(x) or np.isnan(y):
        return NAN
    odd = np.isfinite(y) and y % 2 == 1
    if np.isinf(y):
        return 1.0 if abs(x) == 1 else INF if (abs(x) > 1) == (y > 0) else 0.0
    if x == 0 or np.isinf(x):
        size = INF if (x == 0) == (y < 0) else 0.0
        return float(np.copysign(size, x)) if odd else size
    if x < 0 and y != int(y):
        return NAN
    return float(abs(x) ** y * (-1 if x < 0 and odd else 1))


def same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(got) & ~np.isnan(got),
                                  np.signbit(want) & ~np.isnan(want))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_powers(dtype: str, tmp_path: Path) -> None:
    """As two arrays, and with each exponent as a constant and as a literal."""
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    grid = np.array([*product(BASES, EXPONENTS)], kind).T
    table = np.array([[standard(x, y) for x in BASES] for y in EXPONENTS], kind)

    def all_of(x: Any, y: Any, row: Any) -> Any:
        return (o.pow(x, y), *(o.pow(row, row.builder.constant(np.asarray(e, kind)))
                               for e in EXPONENTS),
                *(o.pow(row, e) for e in EXPONENTS))
    m = module(all_of, f"{dtype}[{grid.shape[1]}]", f"{dtype}[{grid.shape[1]}]",
               f"{dtype}[{len(BASES)}]")
    inputs = dict(zip((v.hint for v in m.graph.inputs), (*grid, np.array(BASES, kind)),
                      strict=True))
    for run in (lambda xs: interp.run(m, xs), lambda xs: interp.run(optimised(m), xs),
                compiled(optimised(m), tmp_path / "m").run):
        both, *rows = run(inputs).values()
        same(both, table.T.reshape(-1))
        same(np.stack(rows), np.concatenate([table, table]))
