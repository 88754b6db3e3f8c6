"""Grid sampling of images and volumes: nearest or linear, for images also cubic."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten


@aten("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(c: Context, input: Array, grid: Array, interpolation_mode: int,
                 padding_mode: int, align_corners: bool) -> Any:
    """x [N, C, *space] read at grid [N, *places, n] by gather; the grid's last axis has coordinates
    from −1 to 1, that of the last axis of space first."""
    n = input.ndim - 2
    if interpolation_mode == 2 and n != 2:
        raise Refused("bicubic grid sampling is supported for images only, not for volumes; use "
                      "mode='bilinear' there")
    sizes = [c.number(d, grid.dtype) for d in input.shape[2:]]
    spots = [_pixel(grid.take(n + 1, n - 1 - a, n - a).reshape(grid.shape[:-1]), size,
                    align_corners) for a, size in enumerate(sizes)]

    def bounded(at: list[Any]) -> list[Any]:
        return [_bounded(s, d, padding_mode, align_corners)
                for s, d in zip(at, sizes, strict=True)]
    if interpolation_mode == 1:
        return _read(c, input, [o.round(s) for s in bounded(spots)])
    if interpolation_mode == 2:
        return _weighed(c, input, spots, (-1, 0, 1, 2), _cubic, bounded)
    return _weighed(c, input, bounded(spots), (0, 1), _linear, lambda at: at)


def _weighed(c: Context, x: Array, spots: list[Any], taps: tuple[int, ...], weight: Any,
             bounded: Any) -> Any:
    """The neighbours at `taps` from the floor along each axis, by the products of their weights."""
    floors = [o.floor(s) for s in spots]
    rest = [s - f for s, f in zip(spots, floors, strict=True)]
    parts = []
    for steps in product(taps, repeat=len(spots)):
        at = [f + float(k) for f, k in zip(floors, steps, strict=True)]
        share = reduce(o.mul, [weight(r, k) for r, k in zip(rest, steps, strict=True)])
        share = share.reshape((share.shape[0], 1, *share.shape[1:]))
        parts.append(_read(c, x, bounded(at)) * share)
    return reduce(o.add, parts)


def _linear(t: Any, tap: int) -> Any:
    return t if tap else 1.0 - t


def _cubic(t: Any, tap: int) -> Any:
    """Keys' kernel with a = −0.75, at the distance of the tap."""
    a = -0.75
    d = {-1: t + 1.0, 0: t, 1: 1.0 - t, 2: 2.0 - t}[tap]
    if tap in (0, 1):  # ((a + 2)·d − (a + 3))·d² + 1
        return (d * (a + 2) - (a + 3)) * d * d + 1.0
    inner = (d * a - 5 * a) * d + 8 * a  # ((a·d − 5a)·d + 8a)·d − 4a
    return inner * d - 4 * a


def _pixel(g: Any, size: Any, align_corners: bool) -> Any:
    """From −1..1 to pixels: over the centres of the outer ones, or over their edges."""
    if align_corners:
        return (g + 1.0) * 0.5 * (size - 1.0)
    return ((g + 1.0) * size - 1.0) * 0.5


def _bounded(spot: Any, size: Any, mode: int, align_corners: bool) -> Any:
    """0 zeros: as it is; 1 border: clamped; 2 reflection: folded back, then clamped."""
    last = size - 1.0
    if mode == 2:
        low = 0.0 if align_corners else -0.5
        span = last if align_corners else size
        far = abs(spot - low)
        safe = o.max(span, 1.0)
        rest, reflections = o.mod(far, safe), o.floor(far / safe)
        even = o.eq(o.mod(reflections, 2.0), 0.0)
        spot = o.select(even, rest + low, span + low - rest)
    return o.clamp(spot, 0.0, last) if mode else spot


def _read(c: Context, x: Array, spots: list[Any]) -> Any:
    """x [N, C, *space] at whole positions, one tensor [N, *places] for each axis; 0 outside."""
    n, hits, index = len(spots), [], []
    for spot, size in zip(spots, x.shape[2:], strict=True):
        last = c.number(size - 1, spot.dtype)
        hits.append((spot >= 0.0) & (spot <= last))
        whole = o.clamp(spot, 0.0, last).cast(dtypes.int64)
        index.append(whole.unsqueeze())
    space = tuple(range(1, n + 1))
    picked = o.gather(x.transpose([0, *(a + 1 for a in space), 1]), o.concat(*index, axis=n + 1),
                      axes=space, batch=1)
    inside = reduce(o.and_, hits)
    picked = o.select(inside.unsqueeze(), picked, c.literal(0, x.dtype))
    return picked.transpose([0, n + 1, *space])
