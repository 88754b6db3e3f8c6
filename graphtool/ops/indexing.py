"""Arithmetic of indices and sizes: row-major positions, windows, and the axes of a resized image.

The functions of resized axes take arrays, to compute constant tables, or Tracers, for sizes known
at run time only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ops.common import need
from graphtool.symbolic import Dim, ceildiv, exact_quotient, minimum


def flatten_index(idx: tuple[Dim, ...], shape: tuple[Dim, ...]) -> Dim:
    """The row-major position of idx."""
    flat: Dim = 0
    for i, d in zip(idx, shape, strict=True):
        flat = flat * d + i
    return flat


def unflatten_index(flat: Dim, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The index whose row-major position is flat; zeros if the shape has no elements."""
    if any(d == 0 for d in shape):
        return (0,) * len(shape)
    out: list[Dim] = []
    for d in reversed(shape):
        out.append(flat % d if len(out) < len(shape) - 1 else flat)
        flat = flat // d
    return tuple(reversed(out))


def reshape_blocks(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> list[tuple[slice, slice]]:
    """The shortest groups of adjacent dimensions of a and b with equal products; a dimension of
    1 joins the group before it."""
    if any(d == 0 for d in (*a, *b)):
        return [(slice(0, len(a)), slice(0, len(b)))]
    blocks: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        i0, j0 = i, j
        pa: Dim = a[i] if i < len(a) else 1
        pb: Dim = b[j] if j < len(b) else 1
        i, j = min(i + 1, len(a)), min(j + 1, len(b))
        while pa != pb:
            if i < len(a) and (j >= len(b) or (exact_quotient(pb, pa) is not None
                               and exact_quotient(pa, pb) is None)):
                pa, i = pa * a[i], i + 1
            elif j < len(b):
                pb, j = pb * b[j], j + 1
            elif i < len(a):
                pa, i = pa * a[i], i + 1
            else:
                break
        blocks.append((slice(i0, i), slice(j0, j)))
    return blocks


def inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that reverses `perm`."""
    return tuple(perm.index(i) for i in range(len(perm)))


Pairs = tuple[tuple[Dim, Dim], ...]


def dilate(d: Dim, by: int) -> Dim:
    """The extent of d elements at distance `by` from each other."""
    if by == 1 or d == 0:
        return d
    return (d - 1) * by + 1


def out_dim(d: Dim, window: Dim, stride: int, lo: Dim, hi: Dim, base: int, dilation: int) -> Dim:
    """⌊(dilated input + padding − dilated window) / stride⌋ + 1"""
    need(stride >= 1 and base >= 1 and dilation >= 1, "strides and dilations must be 1 or more")
    return (dilate(d, base) + lo + hi - dilate(window, dilation)) // stride + 1


def overhang(d: Dim, window: Dim, stride: int, lo: Dim, hi: Dim) -> Dim:
    """The padding behind d elements that makes all windows fit which start before its end: what
    ceil_mode adds to `hi`. An open d may add less than nothing where `hi` is never reached."""
    count = ceildiv(d + lo + minimum(stride + hi - window, 0), stride)
    more = (count - 1) * stride + window - (d + lo + hi)
    return max(more, 0) if isinstance(more, int) else more


def under_windows(x: TensorType, window: tuple[Dim, ...], channels_last: bool = False
                  ) -> tuple[Dim, ...]:
    """The sizes of the axes along which windows of more than one element slide: the spatial ones,
    or all if there is an entry for each."""
    last = x.shape[1:-1] if channels_last else x.shape[x.rank - len(window):]
    return tuple(d for d, k in zip(last, window, strict=True) if k != 1)


def conv_defaults(n: int, strides: Any, padding: Any, lhs: Any, rhs: Any) -> Any:
    """The attributes of a convolution over n axes, with defaults for those left out: 1, and no
    padding."""
    ones = (1,) * n
    return strides or ones, padding or ((0, 0),) * n, lhs or ones, rhs or ones


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
