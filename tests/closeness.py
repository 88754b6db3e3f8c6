"""How far apart two correct floating-point results may be.

A sum of n terms of size s is known to n·ε·s, in whatever order the terms are added (Higham,
*Accuracy and Stability of Numerical Algorithms*, 2nd edition, section 4.2). Kernels of an oracle
differ from one processor to the next by no more; so a tolerance follows from the size of the
operands and the length of the sums, and is never a bare number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from graphtool.dtypes import of_numpy

ROUNDINGS = 64  # besides those of the sums: of functions, of their arguments, of results


def largest(*arrays: Any) -> float:
    """The largest finite magnitude among the floats; 0 where there are none."""
    found = 0.0
    for x in map(np.asarray, arrays):
        if x.size and (x.dtype.kind == "f" or x.dtype.kind == "V"):
            wide = np.abs(x.astype(np.float64))
            found = max(found, float(np.max(wide, initial=0.0, where=np.isfinite(wide))))
    return found


def longest(*arrays: Any) -> int:
    """The longest axis: no sum over one axis is longer."""
    return max((n for x in arrays for n in np.shape(x)), default=1)


def assert_close(got: Any, want: Any, operands: Sequence[Any] = (), *, terms: int = 0,
                 tolerance: float = 0.0) -> None:
    """Asserts that `got` is `want` up to rounding; other types than floats exactly.

    `operands` say how large the terms are, `terms` how many are summed (their longest axis unless
    given). `tolerance`, relative to the same size, is for what rounds more than sums do.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if want.dtype.kind not in "fV":
        np.testing.assert_array_equal(got, want)
        return
    epsilon = float(ml_dtypes.finfo(of_numpy(want.dtype).numpy).eps)
    share = max(tolerance, epsilon * (ROUNDINGS + (terms or longest(*operands))))
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=share,
                               atol=share * largest(want, *operands))


def steps(got: Any, exact: Any, scale: Any = None) -> float:
    """How many steps of the narrow type lie between the result and the exact one rounded; those of
    the size `scale` if that is given."""
    dtype, info = got.dtype, ml_dtypes.finfo(got.dtype)
    with np.errstate(all="ignore"):
        want, have = exact.astype(dtype).astype(np.float64), got.astype(np.float64)
        size = np.abs(want) if scale is None else scale
        one = size * float(info.eps) + float(info.smallest_subnormal)
        same = (want == have) | (np.isnan(want) & np.isnan(have))
        apart = np.where(same, 0.0, np.abs(want - have) / one)
        # beside infinity is the largest number
        edge = np.isinf(want) | np.isinf(have)
        near = np.minimum(np.abs(want), np.abs(have)) >= float(info.max) * 0.999
    return float(np.max(np.where(edge & ~same, np.where(near, 1.0, np.inf), np.nan_to_num(
        apart, nan=np.inf)), initial=0.0))
