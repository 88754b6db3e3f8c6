"""Images, channels last: helpers for the kernels of convolutions and pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import DType, float32, int8, uint8
from graphtool.ir.graph import TensorType
from graphtool.kernels.tiles import PANEL, rows_of_tile
from graphtool.kernels.use import Lowered, Use
from graphtool.loops.contract import Array, Instance, Macro, Pointer, flags, literals, sizes
from graphtool.loops.touches import Area, Numbers
from graphtool.loops.ir import MacroValue
from graphtool.symbolic import Dim, Symbol, symbol_of
from graphtool.target import Target

PIXEL = (Symbol("n", 0, None), Symbol("oh", 0, None), Symbol("ow", 0, None), Symbol("o", 0, None))
AT = tuple(map(symbol_of, PIXEL))
HOOK = ("n", "oh", "ow", "o")
OUTPUT = sizes(BATCH="images", OH="output rows", OW="output columns")
STRIDES = sizes(XN="elements between the starts of adjacent images", XH="of adjacent rows",
                XW="of adjacent pixels")
WINDOW = sizes(KH="rows of the window", KW="columns of it", SH="stride of rows",
               SW="stride of columns", DH="dilation of rows", DW="dilation of columns")
PADDED = (  # images of bytes whose padding is not in memory
    *flags(SIGNED="the image holds int8, else uint8"),
    *literals(ZERO="the zero point of the image"),
    *sizes(IH="rows of the image", IW="columns of it", PT="rows of padding above it",
           PL="columns of padding left of it"),
    *STRIDES, *sizes(XC="elements between the starts of adjacent channels"), *WINDOW)
UNPADDED = tuple(  # images whose padding of zeros is not in memory, on a device
    Macro(name, "size", text, None) for name, text in (
        ("IH", "rows of the image, if its padding is not in memory"), ("IW", "columns of it"),
        ("PT", "rows of padding above it"), ("PL", "columns of padding left of it")))
POINTERS = (Pointer("X", "the input, its padding included"), Pointer("W", "the packed weights"))


def image(use: Use) -> dict[str, MacroValue]:
    """The macros that all convolutions have: sizes of the result, strides of the input."""
    x = use.view(0)
    n, oh, ow, _ = use.out.type.shape
    return {"BATCH": n, "OH": oh, "OW": ow, "XN": x.strides[0], "XH": x.strides[1],
            "XW": x.strides[2]}


def window(size: tuple[Dim, ...], attrs: Mapping[str, Any]) -> dict[str, MacroValue]:
    """The macros for size, strides and dilation of a window."""
    return dict(zip(("KH", "KW", "SH", "SW", "DH", "DW"),
                    (*size, *attrs["strides"], *attrs["dilation"]), strict=True))


def tall(target: Target, nv: int, out: tuple[Dim, ...], step: Dim,
         size: int = 4) -> dict[str, MacroValue]:
    """The tile of a convolution, MR and TALL: some whole rows if the image is narrow.

    It is one row if the pixels, with elements of `size` bytes, are a multiple of 4 KB apart: so
    many of them would be in the same set of the cache.
    """
    _, height, width, _ = out
    most = rows_of_tile(target, nv, height * width)
    alike = isinstance(step, int) and step * size % 4096 == 0
    if alike or not isinstance(height, int) or not isinstance(width, int) or 2 * width > most:
        return {"MR": rows_of_tile(target, nv, width), "TALL": 1}
    bands = -(-height // (most // width))
    rows = -(-height // bands)
    return {"MR": rows * width, "TALL": rows}


def over_pixels(use: Use, kernel: str, macros: Mapping[str, MacroValue], flops: Dim,
                **more: tuple[str, Dim]) -> Lowered:
    """The use of a template whose hook takes pixels: the input is X, packed weights are W, and
    `more` are its other pointers."""
    views = zip("XW", map(use.view, range(len(use.node.inputs))), strict=False)
    pointers = {name: (v.buffer, v.offset) for name, v in views}
    return Lowered(use.template(kernel, macros, pointers | more, use.epilogue(PIXEL, AT)), flops)


def space(x: TensorType, window: Any, strides: Any, dilation: Any) -> tuple[Any, ...]:
    """The spatial sizes of the result when a window slides over the channels-last x without
    padding."""
    return tuple((d - (k - 1) * r - 1) // s + 1
                 for d, k, s, r in zip(x.shape[1:3], window, strides, dilation, strict=True))


def unpadded(use: Use) -> dict[str, MacroValue]:
    """The macros for padding that is not in memory; none if all of it is."""
    x, padding = use.view(0), use.node.attrs["padding"]
    if padding is None:
        return {}
    (top, _), (left, _) = padding
    return {"IH": x.shape[1], "IW": x.shape[2], "PT": top, "PL": left}


def byte_image(use: Use) -> dict[str, MacroValue]:
    """The macros of an image of bytes whose padding is not in memory."""
    x = use.view(0)
    return {"SIGNED": x.dtype is int8, "ZERO": use.node.attrs["zero"], **unpadded(use),
            **image(use), "XC": x.strides[3]}


def padded_space(x: TensorType, window: Any, strides: Any, dilation: Any,
                 padding: Any) -> tuple[Any, ...]:
    """The number of images, and the spatial sizes of the result when a window slides over the
    channels-last x with this padding; None is none."""
    padding = padding or ((0, 0), (0, 0))
    wide = TensorType(x.dtype, (x.shape[0], *(d + sum(p) for d, p in zip(
        x.shape[1:3], padding, strict=True)), x.shape[3]))
    return x.shape[0], *space(wide, window, strides, dilation)


def padded(x: Any, padding: Any) -> Any:
    """The channels-last x with zeros around it; None is no padding."""
    if not any(p != 0 for pair in padding or () for p in pair):
        return x
    lo = (0, *(p[0] for p in padding), 0)
    return o.pad(x, lo=lo, hi=(0, *(p[1] for p in padding), 0))


# ---- for the meaning ---------------------------------------------------------------------------

def windows_of(t: Instance) -> dict[str, Any]:
    """Strides and dilation as attributes of the target ops."""
    sh, sw, dh, dw = t.sizes("SH SW DH DW")
    return {"strides": (sh, sw), "dilation": (dh, dw)}


def seen(t: Instance, channels: int, pixel: int | None = None, columns: int | None = None) -> Array:
    """The input [n, h, w, c] that the windows reach; `pixel` is the distance between columns."""
    n, oh, ow, kh, kw, sh, sw, dh, dw = t.sizes("BATCH OH OW KH KW SH SW DH DW")
    wide = ((columns or ow) - 1) * sw + (kw - 1) * dw + 1
    xn, xh, xw = t.sizes("XN XH XW")
    return t.array("X", (n, (oh - 1) * sh + (kh - 1) * dh + 1, wide, channels),
                   (xn, xh, xw if pixel is None else pixel, 1))


def seen_unpadded(t: Instance, channels: int) -> tuple[Array, dict[str, Any]]:
    """The image that the windows reach, and the attributes of its convolution, with the padding if
    that is not in memory."""
    if not t.has("PT"):
        return seen(t, channels), windows_of(t)
    x, padding = _reached(t)
    return x, {**windows_of(t), "padding": padding}


def seen_bytes(t: Instance) -> tuple[Array, dict[str, Any]]:
    """An image of bytes, and the attributes of its convolution."""
    x, padding = _reached(t)
    return x, {**windows_of(t), "zero": t.get("ZERO"), "window": tuple(t.sizes("KH KW")),
               "padding": padding}


def _reached(t: Instance) -> tuple[Array, Any]:
    """The part of an image that windows reach, and its padding, which below and at the right is
    what they reach over."""
    oh, ow, ih, iw, pt, pl, kh, kw = t.sizes("OH OW IH IW PT PL KH KW")
    sh, sw, dh, dw = t.sizes("SH SW DH DW")
    rows, columns = (oh - 1) * sh + (kh - 1) * dh + 1 - pt, (ow - 1) * sw + (kw - 1) * dw + 1 - pl
    below, right = max(0, rows - ih), max(0, columns - iw)
    return t.read("X")[:, :rows, :columns], ((pt, below), (pl, right))


# ---- for the checks ----------------------------------------------------------------------------

def image_area(t: Numbers, channels: int, kind: DType = float32) -> Area:
    """What of the input the windows touch."""
    n, oh, ow, kh, kw, sh, sw, dh, dw = t.sizes("BATCH OH OW KH KW SH SW DH DW")
    xn, xh, xw = t.sizes("XN XH XW")
    t.need(min(kh, kw, sh, sw, dh, dw) > 0, "a window, strides and dilations of 1 or more")
    if t.has("PT"):
        return Area("X", (n, *t.sizes("IH IW"), channels), (xn, xh, xw, 1), (), kind)
    tap = t.get("XT") if t.has("XT") else dw * xw
    return Area("X", (n, oh, kh, ow, kw, channels), (xn, sh * xh, dh * xh, sw * xw, tap, 1), (),
                kind)


def bytes_of_image(t: Numbers) -> Area:
    """The image of bytes, whose padding is not in memory."""
    n, ih, iw, c, pt, pl, kh, kw = t.sizes("BATCH IH IW C PT PL KH KW")
    sh, sw, dh, dw = t.sizes("SH SW DH DW")
    t.need(min(kh, kw, sh, sw, dh, dw) > 0, "a window, strides and dilations of 1 or more")
    t.need(0 <= pt <= (kh - 1) * dh and 0 <= pl <= (kw - 1) * dw,
           "padding that each window reaches beyond")
    t.need(-128 <= t.get("ZERO") <= 255, "a zero point of bytes")
    return Area("X", (n, ih, iw, c), tuple(t.sizes("XN XH XW XC")), (),
                int8 if t.get("SIGNED") else uint8)


def last_windows(t: Numbers, axis: str, size: int, windows: int) -> Array:
    """For each row of the image (axis H) or column (W), the last window that can reach it."""
    before, stride = t.get("PT" if axis == "H" else "PL"), t.get(f"S{axis}")
    return np.asarray(np.minimum((np.arange(size) + before) // stride, windows - 1))


def fits_tile(t: Numbers) -> None:
    """Refuse a tile of whole rows that is larger than the registers' tile."""
    tall, width, most = t.sizes("TALL OW MR")
    t.need(tall == 1 or (tall > 1 and tall * width <= most), "rows of a tile that fit its pixels")


def fits_block(t: Numbers) -> None:
    """Refuse register blocks that the C has no instance for."""
    t.need(1 <= t.get("BW") <= PANEL, f"BW from 1 to {PANEL}")
    if t.has("BH"):
        t.need(1 <= t.get("BH") <= PANEL, f"BH from 1 to {PANEL}")
