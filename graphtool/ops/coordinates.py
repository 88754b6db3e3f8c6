"""Where an element of a resized axis lies in the original axis, and the weights of its neighbours.

The functions take arrays, to compute constant tables, or Tracers, for sizes known at run time only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import ops as o

MODES = ("nearest", "linear", "cubic")
# (o, in, out, scale = out / in, roi start, roi end) → position in the input; arrays or Tracers
COORDINATES: dict[str, Callable[..., Any]] = {
    "half_pixel": lambda x, n, m, s, a, b: (x + 0.5) / s - 0.5,
    "half_pixel_symmetric": lambda x, n, m, s, a, b: (
        n / 2.0 * (1.0 - m / (s * n)) + (x + 0.5) / s - 0.5),
    "pytorch_half_pixel": lambda x, n, m, s, a, b: o.select(
        o.gt(m, 1.0), (x + 0.5) / s - 0.5, 0.0),
    "align_corners": lambda x, n, m, s, a, b: o.select(
        o.gt(m, 1.0), x * (n - 1.0) / (m - 1.0), 0.0),
    "asymmetric": lambda x, n, m, s, a, b: x / s,
    "tf_half_pixel_for_nn": lambda x, n, m, s, a, b: (x + 0.5) / s,
    "tf_crop_and_resize": lambda x, n, m, s, a, b: o.select(
        o.gt(m, 1.0), a + x * (b - a) / (m - 1.0), (a + b) * 0.5) * (n - 1.0),
}
ROUNDING: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda x: o.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: o.floor(x + 0.5),
    "floor": lambda x: o.floor(x),
    "ceil": lambda x: o.ceil(x),
}


def keys(t: Any, a: float) -> Any:
    """Keys' kernel (1981): two cubics, on [0, 1] and (1, 2)."""
    near = (t * (a + 2) - (a + 3)) * t * t + 1.0
    far = ((t * a - 5 * a) * t + 8 * a) * t - 4 * a
    return o.select(o.le(t, 1.0), near, o.select(o.lt(t, 2.0), far, 0.0))
