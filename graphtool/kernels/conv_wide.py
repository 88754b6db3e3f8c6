"""conv_wide_cuda.h: convolutions of many pixels, channels last, of floats or bytes, by four
warps of a device together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice import device, wide
from graphtool.kernels.choice.contractions import conv_cost
from graphtool.kernels.choice.device import Cost
from graphtool.kernels import conv_int
from graphtool.kernels.conv_amx import HALF, by_filters
from graphtool.kernels.conv_direct import bf16_cost, bf16_error
from graphtool.kernels.images import (
    HOOK, OUTPUT, POINTERS, STRIDES, UNPADDED, WINDOW, image, image_area, over_pixels, padded,
    padded_space, seen_unpadded, unpadded, window)
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Conv, DType, Dim, Form, Instance, Lowered, Numbers, Plan,
    Record, Rows, Rules, Target, TensorType, Use, elements, half_macros, narrowed,
    need, product, register, sizes, target_op)
from graphtool.kernels.packing import blocks

MACROS = (
    HALF, *OUTPUT, *STRIDES,
    *sizes(C="input channels, a multiple of 16 bytes", O="output channels"), *WINDOW, *UNPADDED,
    *wide.MACROS)


def meaning(t: Instance) -> None:
    """The convolution of the elements that the windows reach, as the C computes it."""
    x, attrs = seen_unpadded(t, t.get("C"))
    t.rows(o.conv_wide(x, t.read("W"), channels=t.get("O"), window=tuple(t.sizes("KH KW")),
                       **attrs))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    c, m, kh, kw = t.sizes("C O KH KW")
    left, right = wide.operands(t)
    t.need(c % blocks.UNITS[right] == 0, "channels of whole pieces of 16 bytes")
    yield Rows((*t.sizes("BATCH OH OW"), m))
    yield image_area(t, c, left)
    yield Area("W", wide.panels(m, kh * kw * c, right), None, (), right, True)


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The tiles of a device."""
    return wide.tiles(macros, 1, prod(macros[size] for size in ("BATCH", "OH", "OW")), macros["O"])


def lower(use: Use) -> Lowered:
    """All pixels are the rows of one product."""
    return convolved(use, {**window(use.node.attrs["window"], use.node.attrs), **unpadded(use)})


def convolved(use: Use, macros: Mapping[str, Any] | None = None) -> Lowered:
    """The use of the template, for a window with these macros; without them it is one pixel."""
    x, out = use.view(0), use.out.type.shape
    how = macros or dict.fromkeys(("KH", "KW", "SH", "SW", "DH", "DW"), 1)
    flops = product(out) * how["KH"] * how["KW"] * x.shape[3] * 2
    return over_pixels(use, "conv_wide", {
        **half_macros(x.dtype), **image(use), "C": x.shape[3], "O": out[3], **how,
        **wide.given(x.dtype, use.plan["unit"])}, flops)


# ---- the op ------------------------------------------------------------------------------------

CONV_WIDE = Form("conv_wide", (device.UNIT,), "bf16")
Padding = tuple[tuple[int, int], tuple[int, int]] | None  # that is not in memory


def _infer(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
           strides: tuple[int, int], dilation: tuple[int, int] = (1, 1), padding: Padding = None,
           plan: Plan | None = None) -> TensorType:
    kind = wide.summed(x, w)
    need(x.rank == 4 and w.rank == 3, f"{x} and {w} are not operands of a packed convolution")
    need(w.shape == wide.panels(channels, product(window) * x.shape[3], w.dtype),
         f"the weights {w} do not fit {x}")
    return TensorType(kind, (*padded_space(x, window, strides, dilation, padding), channels))


def _decompose(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
               padding: Padding = None, plan: Plan | None = None) -> Any:
    c = x.shape[3]
    flat = blocks.plain(w, channels, product(window) * c, blocks.UNITS)
    filters = o.transpose(o.reshape(flat, shape=(*window, c, channels)), perm=(3, 2, 0, 1))
    return by_filters(padded(x, padding), filters, strides, dilation)


OP = target_op("conv_wide", _infer, _decompose, CONV_WIDE,
               lambda y, x, _, *, window, **__: 2 * elements(y) * product(window) * x.shape[3],
               "2-d convolution of floats, or of u8 and i8, channels last, with the filters "
               "[KH·KW·C, O] as `pack_units` lays them out; x includes its padding, but for "
               "`padding`; the sums are float32, or int32, which wrap around")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """A plan for each way to multiply, if pieces of 16 bytes are of one pixel."""
    found = [CONV_WIDE.plan(**how) for how in wide.ways(s, target, rules, True)]
    return [p for p in found if s.groups == 1 and s.c % blocks.UNITS[_weights(s, p)] == 0]


def _weights(s: Conv, p: Plan) -> DType:
    """The type of the filters."""
    return (dtypes.int8 if s.dtype.is_integer else
            dtypes.bfloat16 if wide.rounded(s, p) else s.dtype)


def make(chosen: Chosen, x: Any, w: Any, *, groups: int, **how: Any) -> Any:
    """The convolution node with filters in panels."""
    if wide.rounded(chosen.site, chosen.plan):
        x, w = narrowed(x), narrowed(w)
    out, c, kh, kw = w.shape
    flat = o.reshape(o.transpose(w, perm=(0, 2, 3, 1)), shape=(out, kh * kw * c))
    return chosen.emit(OP, x, o.pack_units(flat, nr=wide.TILE, transpose=True), channels=out,
                       window=(kh, kw), **how)


def _bytes(s: Conv, p: Plan, _: Any) -> int:
    """Bytes of the packed filters."""
    size = prod(wide.panels(s.o, s.kh * s.kw * s.c, _weights(s, p)))
    return size * _weights(s, p).bytes if s.constant else 0


def _of_warps(s: Conv, p: Plan) -> Cost:
    """The cost by the instructions of a warp."""
    if s.dtype.is_integer:
        return conv_int.cost
    return bf16_cost if wide.rounded(s, p) or s.dtype is dtypes.bfloat16 else conv_cost


def _error(s: Conv, p: Plan) -> float:
    return bf16_error(s, p) if wide.rounded(s, p) else device.error(s.kh * s.kw * s.c, p)


SERVES = (Alternative(
    Conv, CONV_WIDE, plans, wide.cost(_of_warps), make, _bytes, error=_error,
    assumes=device.assumed, in_order=lambda s: s.dtype.is_integer),)

register(Record(
    Contract("conv_wide", "a convolution by four warps of a device together", MACROS,
             POINTERS, meaning, HOOK, touches, grain="shares", teams=teams,
             languages={"cuda": "_cuda.h"}),
    {"conv_wide": lower}, serves=SERVES))
