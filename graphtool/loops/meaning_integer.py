"""What the templates of small integers compute, in numpy: as meaning.py says it of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphtool.loops.site import Site

Array = np.ndarray[Any, Any]


def _strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The elements of a flat buffer at these strides; it must hold all of them."""
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else -1
    if last >= x.size:
        raise IndexError(f"element {last} of {x.size}")
    return as_strided(x, shape, tuple(s * x.itemsize for s in strides)).astype(np.int64)


def _panels(site: Site, x: Array, lead: tuple[int, ...], depth: int, columns: int) -> Array:
    """Packed [panels][*lead][⌈depth/G⌉][NR][G] as [*lead, depth, columns]."""
    nr, group = site.number("GT_NV") * site.lanes, 2 if site.number("GT_PAIRS") else 4
    count, groups = -(-columns // nr), -(-depth // group)
    size = int(np.prod(lead)) * count * groups * nr * group
    packed = x[:size].reshape(count, *lead, groups, nr, group).astype(np.int64)
    moved = np.moveaxis(packed, (-3, -1, 0, -2), (-4, -3, -2, -1))
    return moved.reshape(*lead, groups * group, count * nr)[..., :depth, :columns]


def gemm(site: Site) -> None:
    m, n, k = (site.number(f"GT_{x}") for x in "MNK")
    for b in range(site.number("GT_BATCH", 1)):
        left = _strided(site.pointer("GT_A", b), (m, k), (site.number("GT_LDA"), 1))
        right = _panels(site, site.pointer("GT_B", b), (), k, n)
        for row, sums in enumerate(left @ right):
            site.epilogue(sums, b, row, 0)


def _sizes(site: Site, *names: str) -> list[int]:
    return [site.number(f"GT_{x}") for x in names]


def conv(site: Site) -> None:
    n, oh, ow, xn, xh, xw = _sizes(site, "BATCH", "OH", "OW", "XN", "XH", "XW")
    kh, sh, sw, dh, runs, run, hop = _sizes(site, "KH", "SH", "SW", "DH", "RUNS", "RUN", "HOP")
    groups, o, step = _sizes(site, "GROUPS", "O", "STEP")
    group = 2 if site.number("GT_PAIRS") else 4
    nr = site.number("GT_NV") * site.lanes
    size = -(-o // nr) * kh * runs * -(-run // group) * nr * group
    for g in range(groups):
        seen = _strided(site.pointer("GT_X")[g * step:], (n, oh, ow, kh, runs, run),
                        (xn, sh * xh, sw * xw, dh * xh, hop, 1))
        w = _panels(site, site.pointer("GT_W")[g * size:], (kh, runs), run, o)
        _pixels(site, np.einsum("nhwrsc,rsco->nhwo", seen, w), g * o)


def _pixels(site: Site, sums: Array, first: int) -> None:
    """Each pixel of [n, oh, ow, o] to the hook."""
    for n, oh, ow in np.ndindex(*sums.shape[:3]):
        site.epilogue(sums[n, oh, ow], n, oh, ow, first)


def depthwise(site: Site) -> None:
    n, oh, ow, c, xn, xh, xw = _sizes(site, "BATCH", "OH", "OW", "C", "XN", "XH", "XW")
    kh, kw, sh, sw, dh, dw, high = _sizes(site, "KH", "KW", "SH", "SW", "DH", "DW", "BH")
    quads = -(-((high - 1) * sh + kh) // 4)
    packed = site.pointer("GT_W")[:quads * high * kw * c * 4].reshape(quads, high, kw, c, 4)
    w = packed[:, 0].transpose(0, 3, 1, 2).reshape(-1, kw, c)[:kh].astype(np.int64)
    seen = _strided(site.pointer("GT_X"), (n, oh, ow, kh, kw, c),
                    (xn, sh * xh, sw * xw, dh * xh, dw * xw, 1))
    _pixels(site, np.einsum("nhwrsc,rsc->nhwc", seen, w), 0)
