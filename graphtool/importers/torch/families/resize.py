"""Interpolation: torch's upsample ops, by scale factors or by output size, as our resize."""

from __future__ import annotations

import math
from typing import Any

from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.symbolic import Dim


def _scales(x: Array, scales: tuple[Any, ...]) -> tuple[float, ...] | None:
    """The given scale factors, one for each axis; None if the ratio of sizes is to be used."""
    if any(s is None for s in scales) or not scales:
        return None
    return (1.0, 1.0, *(float(s) for s in scales))


def _nearest(c: Context, x: Array, scales: tuple[Any, ...], exact: bool) -> Any:
    coordinates, rounding = ("half_pixel", "round_prefer_ceil") if exact else (
        "asymmetric", "floor")
    return o.resize(x, sizes=c.out.shape, mode="nearest", scales=_scales(x, scales),
                    coordinates=coordinates, rounding=rounding)


def _smooth(c: Context, x: Array, mode: str, align_corners: bool, scales: tuple[Any, ...],
            antialias: bool = False) -> Any:
    """Linear or cubic interpolation; torch's cubic coefficient is −0.75, with antialias −0.5."""
    if antialias:
        factors = _between_corners(x, c.out.shape) if align_corners else _scales(x, scales)
        return o.resize(x, sizes=c.out.shape, mode=mode, scales=factors, cubic=-0.5,
                        antialias=True, exclude_outside=True)
    if align_corners:
        return o.resize(x, sizes=c.out.shape, mode=mode, coordinates="align_corners")
    return o.resize(x, sizes=c.out.shape, mode=mode, scales=_scales(x, scales))


def _between_corners(x: Array, sizes: tuple[Dim, ...]) -> tuple[float, ...]:
    """torch's factors for antialias with align_corners: corners apart, but half a pixel off."""
    def factor(n: Dim, m: Dim) -> float:
        if n == m:
            return 1.0
        if not isinstance(n, int) or not isinstance(m, int):
            raise Refused("antialias=True together with align_corners=True needs constant sizes")
        return (m - 1) / (n - 1) if n > 1 and m > 1 else math.inf
    return tuple(map(factor, x.shape, sizes))


def _nearest_handlers(name: str, exact: bool) -> None:
    @aten(f"{name}.vec")
    def by_factor(c: Context, input: Array, output_size: Any, scale_factors: Any) -> Any:
        return _nearest(c, input, scale_factors or (), exact)

    @aten(f"{name}.default")
    def by_size(c: Context, self: Array, output_size: Any, *scales: Any, **named: Any) -> Any:
        return _nearest(c, self, (*scales, *named.values()), exact)


def _smooth_handlers(name: str, mode: str, antialias: bool) -> None:
    @aten(f"{name}.vec")
    def by_factor(c: Context, input: Array, output_size: Any, align_corners: bool,
                  scale_factors: Any) -> Any:
        return _smooth(c, input, mode, align_corners, scale_factors or (), antialias)

    @aten(f"{name}.default")
    def by_size(c: Context, self: Array, output_size: Any, align_corners: bool, *scales: Any,
                **named: Any) -> Any:
        return _smooth(c, self, mode, align_corners, (*scales, *named.values()), antialias)


for _n in (1, 2, 3):
    _nearest_handlers(f"upsample_nearest{_n}d", False)
    _nearest_handlers(f"_upsample_nearest_exact{_n}d", True)
for _name, _mode, _antialias in (
        ("upsample_linear1d", "linear", False), ("upsample_bilinear2d", "linear", False),
        ("upsample_trilinear3d", "linear", False), ("upsample_bicubic2d", "cubic", False),
        ("_upsample_bilinear2d_aa", "linear", True), ("_upsample_bicubic2d_aa", "cubic", True)):
    _smooth_handlers(_name, _mode, _antialias)
