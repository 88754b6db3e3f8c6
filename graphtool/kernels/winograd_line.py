"""winograd_line.h: convolution of stride 1 by Winograd's algorithm along one axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import winograd
from graphtool.kernels.choice.machine import cold, streamed
from graphtool.kernels.conv_direct import of_floats
from graphtool.kernels.images import HOOK, over_pixels, space
from graphtool.kernels.kit import (
    NV, TILE, Alternative, Area, Chosen, Contract, Conv, Dim, Form, Instance, Lowered,
    MacroValue, Numbers, Plan, Record, Rows, Rules, Target, TensorType, Use, block_cycles, ceil,
    ceildiv, elements, fetched, flags, images, literals, longest, need, overlapped, panel_bytes,
    panel_vectors, product, register, rounding, sizes, summed, sums, target_op, tile_rows,
    unpacked, vectors_of, widths)
from graphtool.kernels.packing.transformed import G
from graphtool.kernels.winograd import GROUP, TILE_SIZE, WORK, same_tile, work_area, workspace

MACROS = (
    *literals(TILE="m: a tile gives m outputs of a line"), *TILE,
    *literals(GROUP="tiles that are transformed and multiplied together"),
    *flags(UPRIGHT="lines are the columns of the image"),
    *sizes(BATCH="images", ACROSS="lines of outputs", ALONG="outputs of a line",
           C="input channels", O="output channels", KA="lines of the window", KL="taps of a line",
           DA="dilation across the lines", DL="dilation along them",
           XN="elements between the starts of adjacent images", XA="of adjacent lines",
           XL="between adjacent elements of a line"))


def meaning(t: Instance) -> None:
    """The convolution by the filters from which the weights were transformed."""
    m, upright, c, n = t.sizes("TILE UPRIGHT C BATCH")
    ka, kl, da, dl, xn, xa, xl = t.sizes("KA KL DA DL XN XA XL")
    across = (t.get("ACROSS") + (ka - 1) * da, xa, ka, da)
    along = (t.get("ALONG") + (kl - 1) * dl, xl, kl, dl)
    (h, xh, kh, dh), (w, xw, kw, dw) = (along, across) if upright else (across, along)
    t.rows(o.winograd_line(t.array("X", (n, h, w, c), (xn, xh, xw, 1)), t.read("W"),
                           channels=t.get("O"), tile=m, window=(kh, kw), dilation=(dh, dw),
                           upright=upright))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    m, c, out, n, oa, ol = t.sizes("TILE C O BATCH ACROSS ALONG")
    ka, kl, da, dl, xn, xa, xl = t.sizes("KA KL DA DL XN XA XL")
    deep = ka * -(-kl // 3) * c
    t.need(m in (2, 4) and t.get("GROUP") > 0 and min(ka, kl, da, dl) > 0, "tiles of 2 or 4")
    shape = (n, oa + (ka - 1) * da, ol + (kl - 1) * dl, c) if oa and ol else (0,) * 4
    yield Rows((n, ol, oa, out) if t.get("UPRIGHT") else (n, oa, ol, out))
    yield Area("X", shape, (xn, xa, xl, 1))
    yield Area("W", (m + 2, -(-out // vectors_of(t)), deep, vectors_of(t)), aligned=True)
    yield work_area(t, m + 2, deep)


def lower(use: Use) -> Lowered:
    """The workspace holds the tiles of a group before and after the products."""
    x, w, a = use.view(0), use.view(1), use.node.attrs
    points, _, depth, nr = w.shape
    assert isinstance(points, int) and isinstance(depth, int) and isinstance(nr, int)
    nv, group, channels = panel_vectors(use.target, nr), use.plan["group"], a["channels"]
    work = workspace(use, points, depth, channels, nr)
    n, oh, ow, _ = use.out.type.shape
    high, wide = zip(a["window"], x.strides[1:3], (oh, ow), a["dilation"], strict=True)
    across, along = (wide, high) if a["upright"] else (high, wide)
    macros: dict[str, MacroValue] = {
        "TILE": a["tile"], "MR": tile_rows(use.target, nv, group), "NV": nv, "GROUP": group,
        "UPRIGHT": a["upright"], "BATCH": n, "ACROSS": across[2], "ALONG": along[2],
        "C": x.shape[3], "O": channels, "KA": across[0], "KL": along[0], "DA": across[3],
        "DL": along[3], "XN": x.strides[0], "XA": across[1], "XL": along[1]}
    flops = product(use.out.type.shape) * product(a["window"]) * x.shape[3] * 2
    return over_pixels(use, "winograd_line", macros, flops, WORK=work)


# ---- the op ------------------------------------------------------------------------------------

LINE = Form("winograd_line", (TILE_SIZE, NV, GROUP))


def _infer(x: TensorType, w: TensorType, *, channels: int, tile: int,
           window: tuple[int, int], dilation: tuple[int, int], upright: bool,
           plan: Plan | None = None) -> TensorType:
    lines, taps = window[::-1] if upright else window
    need(x.rank == 4 and w.rank == 4 and x.shape[3] * lines * ceildiv(taps, 3) == w.shape[2],
         f"{x} and {w} are not operands of this Winograd convolution")
    need(same_tile(plan, tile), f"tiles of {tile}, and {plan} is planned")
    height, width = space(x, window, (1, 1), dilation)
    return TensorType(sums(x.dtype), (x.shape[0], height, width, channels))


def _decompose(x: Any, w: Any, *, channels: int, tile: int, window: Any, dilation: Any,
               upright: bool, plan: Plan | None = None) -> Any:
    """Plain ops that mean the same, on the plain weights g = G⁺·U, three taps each; the padding
    of the last three taps is cut."""
    x, w = summed(x, w)
    (lines, taps), c = window[::-1] if upright else window, x.shape[3]
    threes = -(-taps // 3)
    u = o.reshape(o.cast(unpacked(w, channels), dtype=dtypes.float64),
                  shape=(tile + 2, lines * threes * c * channels))
    g = o.cast(o.matmul(w.builder.constant(np.linalg.pinv(G[tile])), u), dtype=x.dtype)
    split = o.transpose(o.reshape(g, shape=(3, lines, threes, c, channels)),
                        perm=(4, 3, 1, 2, 0))
    cut = o.slice(o.reshape(split, shape=(channels, c, lines, threes * 3)), start=(0,) * 4,
                  limit=(channels, c, lines, taps), strides=(1,) * 4)
    return o.conv(x, o.transpose(cut, perm=(0, 1, 3, 2)) if upright else cut,
                  rhs_dilation=dilation, channels_last=True)


def _flops(y: TensorType, _x: TensorType, w: TensorType, *, tile: int, **_: Any) -> Dim:
    """t+2 products for t outputs: of all lines, groups of three taps, and channels."""
    return 2 * elements(y) * w.shape[2] * (tile + 2) // tile


OP = target_op("winograd_line", _infer, _decompose, LINE, _flops,
               "convolution of stride 1, channels last, by Winograd's algorithm F(t, 3) along one "
               "axis: along rows, or along columns if `upright`")


# ---- plans and their costs ---------------------------------------------------------------------

# vector operations to transform three taps along a line, for a vector of channels
_INPUT = {2: 8, 4: 16}
_OUTPUT = {2: 9, 4: 18}


def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """Groups of three taps along one axis, for any window of stride 1 with three taps or more
    for which the 3×3 transforms cannot be used."""
    if max(s.kh, s.kw) < 3 or min(s.o, s.c) < winograd.LEAST or s.dtype.is_narrow or not (
            s.constant and s.sh == s.sw == s.groups == 1) or winograd.plans(s, target, rules):
        return []
    return [LINE.plan(tile=m, nv=nv, group=g) for m in (4, 2) if m <= rules.winograd
            for nv in widths(s.o, target) for g in (28, 14)]


def threes(s: Conv) -> int:
    """The number of groups of three taps in the window, along the axis that has fewer."""
    return s.kw * ceil(s.kh, 3) if s.upright else s.kh * ceil(s.kw, 3)


def cost(s: Conv, c: Plan, t: Target) -> float:
    """Expected microseconds. Transforms work along one axis; each line of the window, and each
    group of three taps in it, has its own."""
    m, group = c.get("tile", 2), c.get("group", 28)
    across, along, apart = (s.w, s.h, s.dh) if s.upright else (s.h, s.w, s.dw)
    nv, depth = c.get("nv", t.nv), threes(s) * s.c
    nr = nv * t.lanes
    panels, tiles = ceil(s.o, nr), s.n * across * ceil(along, m * apart) * apart
    busiest = longest(tiles, t.threads)
    groups = ceil(busiest, group)
    most, last = tile_rows(t, nv, group), busiest - (groups - 1) * group
    step = (groups - 1) * block_cycles(group, most, nv) + block_cycles(last, most, nv)
    weights = (m + 2) * panels * depth * nr * 4
    products = overlapped(t, (m + 2) * panels * depth * step, streamed(t, weights, groups))
    ends = busiest * (_INPUT[m] * threes(s) * ceil(s.c, t.lanes) + _OUTPUT[m] * ceil(s.o, t.lanes))
    planes = (m + 2) * min(group, busiest) * (depth + panels * nr + 32) * 4
    return products + ends / t.mhz + fetched(t, 2 * planes * groups, planes) + cold(t, planes)


def weights(s: Conv, p: Plan, t: Target) -> int:
    """Bytes of the transformed filters."""
    return panel_bytes(s, (p.get("tile", 2) + 2) * threes(s), p.get("nv", t.nv), 4, t)


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution node with transformed filters, which are constants."""
    tile, upright = chosen.plan.get("tile", 2), chosen.site.upright
    packed = o.pack_winograd_line(w, tile=tile, nr=chosen.columns(), upright=upright)
    return chosen.emit(OP, x, packed, channels=w.shape[0], tile=tile,
                       window=w.shape[2:], dilation=dilation, upright=upright)


def error(s: Conv, p: Plan) -> float:
    """The rounding error: larger tiles lose more."""
    return rounding.line(p.get("tile", 2), s.c * threes(s))


SERVES = (Alternative(Conv, LINE, plans, cost, make, weights, error, of_floats,
                      assumes=winograd.assumes),)

register(Record(
    Contract("winograd_line", "a convolution by Winograd's algorithm along one axis", MACROS,
             (*images.POINTERS, WORK), meaning, HOOK, touches=touches, grain="shares"),
    {"winograd_line": lower}, serves=SERVES))
