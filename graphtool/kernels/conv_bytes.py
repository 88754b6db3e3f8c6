"""conv_bytes.h: convolution of bytes, channels last, with padding that is not in memory, for
processors without vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.images import (
    HOOK, OUTPUT, PADDED, POINTERS, byte_image, bytes_of_image, last_windows, over_pixels,
    padded_space, seen_bytes, window)
from graphtool.kernels.kit import (
    Area, Contract, Form, Instance, Lowered, Numbers, Order, Plan, Pointer, Record, Rows,
    TensorType, Use, anywhere, ceildiv, elements, exact, need, product, register, sizes,
    target_op, unpacked, wrapped)

FILTERS = 2  # whose weights are adjacent
ROW = 4  # filters at most that one step multiplies
WORK = Pointer("WORK", "memory for what windows see of the image", writes=True)
MACROS = (*PADDED, *OUTPUT, *sizes(C="input channels", O="output channels"))


def meaning(t: Instance) -> None:
    """The convolution of the image as it is in memory."""
    x, attrs = seen_bytes(t)
    t.rows(o.conv_bytes(x, t.read("W"), channels=t.get("O"), **attrs))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, c, out, kh, kw = t.sizes("BATCH OH OW C O KH KW")
    quads = -(-kh * kw * c // 4)
    t.need(c > 0, "channels")
    yield Rows((n, oh, ow, out))
    yield bytes_of_image(t)
    yield Area("W", (-(-out // FILTERS), quads, FILTERS * 4), None, (), dtypes.int8, True)
    yield Area("WORK", (_work(quads, c, t.get("XC")),), None, (), dtypes.int32)


def order(t: Numbers) -> Order:
    """A step gathers what two pixels see, then gives all their channels to the hook."""
    n, oh, ow, ih, iw = t.sizes("BATCH OH OW IH IW")
    pixels = np.arange(n * oh * ow).reshape(n, oh, ow) // 2
    rows, columns = last_windows(t, "H", ih, oh), last_windows(t, "W", iw, ow)
    return Order("X", pixels[:, rows][:, :, columns][..., None], pixels[..., None])


def _work(quads: Any, channels: Any, step: Any) -> Any:
    """Words for the windows of two pixels, and for the bytes of one that are no neighbours in
    fours."""
    return quads * (4 if channels % 4 == 0 and step == 1 else 5)


def lower(use: Use) -> Lowered:
    """The use of the template, with the node's window and padding."""
    x, a = use.view(0), use.node.attrs
    (kh, kw), c, out = a["window"], x.shape[3], a["channels"]
    macros = {**byte_image(use), **window((kh, kw), a), "C": c, "O": out}
    work = use.scratch(_work(ceildiv(kh * kw * c, 4), c, x.strides[3]), dtypes.int32)
    return over_pixels(use, "conv_bytes", macros, product(use.out.type.shape) * kh * kw * c * 2,
                       WORK=(work, 0))


# ---- the op ------------------------------------------------------------------------------------

def _infer(x: TensorType, w: TensorType, *, channels: int, zero: int, window: tuple[int, int],
           strides: tuple[int, int] = (1, 1), dilation: tuple[int, int] = (1, 1),
           padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
           plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and x.dtype in (dtypes.uint8, dtypes.int8), f"{x} is no image of bytes")
    depth = ceildiv(x.shape[3] * window[0] * window[1], 4)
    need(w == TensorType(dtypes.int8, (ceildiv(channels, FILTERS), depth, FILTERS * 4)),
         f"{w} are not the weights of {channels} filters of {window} for {x}")
    return TensorType(dtypes.int32, (*padded_space(x, window, strides, dilation, padding),
                                     channels))


def _decompose(x: Any, w: Any, *, channels: int, zero: int, window: Any, strides: Any,
               dilation: Any, padding: Any, plan: Plan | None = None) -> Any:
    (kh, kw), depth = window, x.shape[3]
    rows = unpacked(exact(w), channels, kh * kw * depth, 4)
    taps = o.transpose(o.reshape(rows, shape=(kh, kw, depth, channels)), perm=(3, 2, 0, 1))
    return wrapped(o.conv(o.sub(exact(x), float(zero)), taps, strides=strides, padding=padding,
                          rhs_dilation=dilation, channels_last=True))


OP = target_op("conv_bytes", _infer, _decompose, Form("conv_bytes"),
               lambda y, x, *_, window, **__: 2 * elements(y) * product(window) * x.shape[3],
               "2-d convolution of bytes less their zero point, channels last, with padding of "
               "the zero point, and weights as `pack_int` lays out [KH·KW·C, O] in panels of 2; "
               "the sums are int32")


def packed(w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The weights of filters [O, C, KH, KW] as the op takes them."""
    rows = w.transpose(2, 3, 1, 0).reshape(-1, w.shape[0])
    return np.asarray(o.pack_int(np.ascontiguousarray(rows), nr=FILTERS))


register(Record(
    Contract("conv_bytes", "a convolution of bytes, with padding that is not in memory", MACROS,
             (*POINTERS, WORK), meaning, HOOK, touches=touches, row=ROW,
             order=order),
    {"conv_bytes": lower}, anywhere))
