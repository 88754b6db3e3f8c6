"""depthwise_bytes.h: one filter of bytes for each channel, channels last, with padding that is not
in memory, for processors without vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.conv_bytes import WORK
from graphtool.kernels.images import (
    HOOK, OUTPUT, PADDED, POINTERS, byte_image, bytes_of_image, last_windows, over_pixels,
    padded_space, seen_bytes, window)
from graphtool.kernels.kit import (
    Area, Array, Contract, Dim, Form, Instance, Lowered, Numbers, Order, Plan, Record, Rows,
    TensorType, Use, anywhere, elements, exact, flags, need, product, register, sizes, target_op,
    wrapped)

FOURS = 4  # channels that go together, where words are vectors
MACROS = (*PADDED, *OUTPUT, *flags(TOGETHER="channels go in fours, else one by one"), *sizes(
    C="channels", BAND="output rows that are computed of one channel before the next channel's"))


def meaning(t: Instance) -> None:
    """The convolution of the image as it is in memory."""
    x, attrs = seen_bytes(t)
    t.rows(o.depthwise_bytes(x, t.read("W"), **attrs))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, c, kh, kw, band = t.sizes("BATCH OH OW C KH KW BAND")
    t.need(band > 0, "bands of rows")
    yield Rows((n, oh, ow, c))
    yield bytes_of_image(t)
    yield Area("W", (c, kh, kw), None, (), dtypes.int8)
    yield Area("WORK", (_ring((kh, kw), ow, t.get("SW"), tuple(t.sizes("DH DW")),
                              t.get("TOGETHER")),), None, (), dtypes.int16)


def order(t: Numbers) -> Order:
    """A step takes the rows of a channel, or of those that go together, that an output row sees and
    that the ring does not hold yet, then gives the row to the hook."""
    n, oh, c, ih, band, kh, sh, dh, pt = t.sizes("BATCH OH C IH BAND KH SH DH PT")
    together = FOURS if t.get("TOGETHER") else 1
    images, channels, c = np.arange(n)[:, None, None], np.arange(c) // together, -(-c // together)
    bands = -(-oh // band)

    def step(row: Array) -> Array:
        """The step of each output row, [images, rows, 1, channels]."""
        before = (images * bands + (row // band)[:, None]) * c + channels
        return np.asarray(before * band + (row % band)[:, None])[:, :, None]
    last = last_windows(t, "H", ih, oh)
    needed = -((kh - 1) * dh - pt - np.arange(ih)) // sh  # the first row that sees it, rounded up
    first = np.clip(needed, last // band * band, last)
    return Order("X", step(first), step(np.arange(oh)))


def _ring(size: tuple[int, int], width: Any, stride: Any, dilation: tuple[int, int],
          together: bool) -> Any:
    """Elements of the ring: the rows that a window reaches over, of an even length; if channels go
    together, fours of bytes, and what is read in vain behind the last row."""
    (kh, kw), (dh, dw) = size, dilation
    wide, rows = (width - 1) * stride + (kw - 1) * dw + 1, (kh - 1) * dh + 1
    return 2 * (rows * wide + 3 * stride) if together else rows * (wide + 1 + (wide + 1) % 2)


def lower(use: Use) -> Lowered:
    """With a stride of 1 a band is the whole image, so that a channel's results can take the place
    of its bytes; else it is one row, whose results are fewer than the bytes above them."""
    x, a, size = use.view(0), use.node.attrs, use.node.attrs["window"]
    _, oh, ow, _ = use.out.type.shape
    band: Dim = oh if a["strides"] == (1, 1) else 1
    macros = {**byte_image(use), **window(size, a), "C": x.shape[3], "BAND": band,
              "TOGETHER": use.target.words}
    work = use.scratch(_ring(size, ow, a["strides"][1], a["dilation"], use.target.words),
                       dtypes.int16)
    return over_pixels(use, "depthwise_bytes", macros,
                       product(use.out.type.shape) * product(size) * 2, WORK=(work, 0))


# ---- the op ------------------------------------------------------------------------------------

def _infer(x: TensorType, w: TensorType, *, zero: int, window: tuple[int, int],
           strides: tuple[int, int] = (1, 1), dilation: tuple[int, int] = (1, 1),
           padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
           plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and x.dtype in (dtypes.uint8, dtypes.int8), f"{x} is no image of bytes")
    need(w == TensorType(dtypes.int8, (x.shape[3], *window)),
         f"{w} is not a filter of {window} for each channel of {x}")
    return TensorType(dtypes.int32, (*padded_space(x, window, strides, dilation, padding),
                                     x.shape[3]))


def _decompose(x: Any, w: Any, *, zero: int, window: Any, strides: Any, dilation: Any,
               padding: Any, plan: Plan | None = None) -> Any:
    taps = o.reshape(exact(w), shape=(w.shape[0], 1, *window))
    return wrapped(o.conv(o.sub(exact(x), float(zero)), taps, strides=strides, padding=padding,
                          rhs_dilation=dilation, groups=w.shape[0], channels_last=True))


OP = target_op("depthwise_bytes", _infer, _decompose, Form("depthwise_bytes"),
               lambda y, *_, window, **__: 2 * elements(y) * product(window),
               "2-d convolution of bytes less their zero point with one filter for each channel, "
               "channels last, with padding of the zero point and weights [C, KH, KW]; the sums "
               "are int32")

register(Record(
    Contract("depthwise_bytes", "a convolution of bytes with one filter for each channel, and "
                                "padding that is not in memory", MACROS,
             (*POINTERS, WORK), meaning, HOOK, touches=touches, row=FOURS,
             order=order),
    {"depthwise_bytes": lower}, anywhere))
