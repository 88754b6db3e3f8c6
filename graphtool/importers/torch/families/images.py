"""Images: interpolation, grid sampling, padding, and blocks of pixels moved to channels and
back."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from graphtool.importers.torch.kit import Array, Context, Dim, Refused, aten, dtypes, o

# ---- interpolation ------------------------------------------------------------------------------

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


# ---- grid sampling ------------------------------------------------------------------------------

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


# ---- padding ------------------------------------------------------------------------------------

def _edges(pad: tuple[Dim, ...], rank: int) -> list[tuple[Dim, Dim]]:
    """torch's flat list, last axis first, as (lo, hi) for every axis."""
    out: list[tuple[Dim, Dim]] = [(0, 0)] * rank
    for i in range(len(pad) // 2):
        out[rank - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return out


@aten("constant_pad_nd")
def constant_pad_nd(c: Context, self: Array, pad: tuple[Dim, ...], value: Any = 0) -> Any:
    """pad by a value; torch lists (lo, hi) from the last axis on."""
    edges = _edges(pad, self.ndim)
    return self.pad([a for a, _ in edges], [b for _, b in edges], float(value))


@aten("pad")
def pad(c: Context, self: Array, pad: tuple[Dim, ...], mode: str = "constant",
        value: Any = None) -> Any:
    """pad by a value, or a gather for "reflect", "replicate" and "circular"."""
    if mode == "constant":
        return constant_pad_nd(c, self, pad, value or 0)
    return _index_pad(c, self, pad, mode)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(c: Context, self: Array, padding: tuple[Dim, ...]) -> Any:
    """A gather at indices mirrored at the edges."""
    return _index_pad(c, self, padding, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(c: Context, self: Array, padding: tuple[Dim, ...]) -> Any:
    """A gather at indices clamped to the edges."""
    return _index_pad(c, self, padding, "replicate")


def _index_pad(c: Context, x: Array, pad: tuple[Dim, ...], mode: str) -> Array:
    """One gather for each padded axis, at constant indices; needs fixed sizes."""
    for axis, (lo, hi) in enumerate(_edges(pad, x.ndim)):
        size = x.shape[axis]
        if (lo, hi) == (0, 0):
            continue
        if not all(isinstance(d, int) for d in (lo, hi, size)):
            raise Refused(f"padding of mode {mode!r} is not supported along a symbolic size; fix "
                          "that size for the export")
        at = np.arange(-int(lo), int(size) + int(hi))  # type: ignore[arg-type]
        x = x.at(_source(at, int(size), mode), axis)  # type: ignore[arg-type]
    return x


def _source(at: Any, size: int, mode: str) -> Any:
    match mode:
        case "reflect":
            period = max(2 * size - 2, 1)
            at = np.mod(at, period)
            return np.where(at < size, at, period - at)
        case "replicate":
            return np.clip(at, 0, size - 1)
        case "circular":
            return np.mod(at, size)
        case _:
            raise Refused(f"padding of mode {mode!r} is not supported")


# ---- blocks of pixels ---------------------------------------------------------------------------

@aten("pixel_shuffle")
def pixel_shuffle(c: Context, self: Array, upscale_factor: int) -> Any:
    """[..., C·r², H, W] → [..., C, H·r, W·r]: reshape, transpose, reshape."""
    r = upscale_factor
    *lead, channels, h, w = self.shape
    n = len(lead)
    x = self.reshape((*lead, channels // (r * r), r, r, h, w))
    x = x.transpose([*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return x.reshape(c.out.shape)


@aten("pixel_unshuffle")
def pixel_unshuffle(c: Context, self: Array, downscale_factor: int) -> Any:
    """[..., C, H·r, W·r] → [..., C·r², H, W]: reshape, transpose, reshape."""
    r = downscale_factor
    *lead, channels, h, w = self.shape
    n = len(lead)
    x = self.reshape((*lead, channels, h // r, r, w // r, r))
    x = x.transpose([*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return x.reshape(c.out.shape)


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(c: Context, self: Array, groups: int) -> Any:
    """Channels as [groups, C / groups], transposed, flat again."""
    batch, channels, *space = self.shape
    x = self.reshape((batch, groups, channels // groups, *space))
    return x.transpose([0, 2, 1, *range(3, x.ndim)]).reshape(self.shape)
