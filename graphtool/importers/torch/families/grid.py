"""Grid sampling of images and volumes: nearest or linear, for images also cubic."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer


@aten("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(c: Context, input: Tracer, grid: Tracer, interpolation_mode: int,
                 padding_mode: int, align_corners: bool) -> Any:
    """x [N, C, *space] read at grid [N, *places, n] by gather; the grid's last axis has coordinates
    from −1 to 1, that of the last axis of space first."""
    n = input.ndim - 2
    if interpolation_mode == 2 and n != 2:
        raise Refused("bicubic grid sampling is supported for images only, not for volumes; use "
                      "mode='bilinear' there")
    sizes = [c.number(d, grid.dtype) for d in input.shape[2:]]
    spots = [_pixel(c.reshape(c.window(grid, n + 1, n - 1 - a, n - a), grid.shape[:-1]), size,
                    align_corners) for a, size in enumerate(sizes)]

    def bounded(at: list[Any]) -> list[Any]:
        return [_bounded(s, d, padding_mode, align_corners)
                for s, d in zip(at, sizes, strict=True)]
    if interpolation_mode == 1:
        return _read(c, input, [o.round(s) for s in bounded(spots)])
    if interpolation_mode == 2:
        return _weighed(c, input, spots, (-1, 0, 1, 2), _cubic, bounded)
    return _weighed(c, input, bounded(spots), (0, 1), _linear, lambda at: at)


def _weighed(c: Context, x: Tracer, spots: list[Any], taps: tuple[int, ...], weight: Any,
             bounded: Any) -> Any:
    """The neighbours at `taps` from the floor along each axis, by the products of their weights."""
    floors = [o.floor(s) for s in spots]
    rest = [o.sub(s, f) for s, f in zip(spots, floors, strict=True)]
    parts = []
    for steps in product(taps, repeat=len(spots)):
        at = [o.add(f, float(k)) for f, k in zip(floors, steps, strict=True)]
        share = reduce(o.mul, [weight(r, k) for r, k in zip(rest, steps, strict=True)])
        share = c.reshape(share, (share.shape[0], 1, *share.shape[1:]))
        parts.append(o.mul(_read(c, x, bounded(at)), share))
    return reduce(o.add, parts)


def _linear(t: Any, tap: int) -> Any:
    return t if tap else o.sub(1.0, t)


def _cubic(t: Any, tap: int) -> Any:
    """Keys' kernel with a = −0.75, at the distance of the tap."""
    a = -0.75
    d = {-1: o.add(t, 1.0), 0: t, 1: o.sub(1.0, t), 2: o.sub(2.0, t)}[tap]
    if tap in (0, 1):  # ((a + 2)·d − (a + 3))·d² + 1
        return o.add(o.mul(o.mul(o.sub(o.mul(d, a + 2), a + 3), d), d), 1.0)
    inner = o.add(o.mul(o.sub(o.mul(d, a), 5 * a), d), 8 * a)  # ((a·d − 5a)·d + 8a)·d − 4a
    return o.sub(o.mul(inner, d), 4 * a)


def _pixel(g: Any, size: Any, align_corners: bool) -> Any:
    """From −1..1 to pixels: over the centres of the outer ones, or over their edges."""
    if align_corners:
        return o.mul(o.mul(o.add(g, 1.0), 0.5), _minus(size, 1.0))
    return o.mul(_minus(o.mul(o.add(g, 1.0), size), 1.0), 0.5)


def _minus(a: Any, b: float) -> Any:
    return a - b if isinstance(a, float) else o.sub(a, b)


def _bounded(spot: Any, size: Any, mode: int, align_corners: bool) -> Any:
    """0 zeros: as it is; 1 border: clamped; 2 reflection: folded back, then clamped."""
    last = _minus(size, 1.0)
    if mode == 2:
        low = 0.0 if align_corners else -0.5
        span = last if align_corners else size
        far = o.abs(o.sub(spot, low))
        safe = (span or 1.0) if isinstance(span, float) else o.max(span, 1.0)
        rest, reflections = o.mod(far, safe), o.floor(o.div(far, safe))
        even = o.eq(o.mod(reflections, 2.0), 0.0)
        spot = o.select(even, o.add(rest, low), o.sub(_minus(span, -low), rest))
    return o.clamp(spot, 0.0, last) if mode else spot


def _read(c: Context, x: Tracer, spots: list[Any]) -> Any:
    """x [N, C, *space] at whole positions, one tensor [N, *places] for each axis; 0 outside."""
    n, hits, index = len(spots), [], []
    for spot, size in zip(spots, x.shape[2:], strict=True):
        last = c.number(size - 1, spot.dtype)
        hits.append(o.and_(o.ge(spot, 0.0), o.le(spot, last)))
        whole = c.cast(o.clamp(spot, 0.0, last), dtypes.int64)
        index.append(c.reshape(whole, (*whole.shape, 1)))
    space = tuple(range(1, n + 1))
    picked = o.gather(c.transpose(x, [0, *(a + 1 for a in space), 1]),
                      o.concat(*index, axis=n + 1), axes=space, batch=1)
    inside = reduce(o.and_, hits)
    picked = o.select(c.reshape(inside, (*inside.shape, 1)), picked, c.literal(0, x.dtype))
    return c.transpose(picked, [0, n + 1, *space])
