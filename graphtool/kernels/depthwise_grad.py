"""depthwise_grad.h: the gradient of a depthwise convolution's filters, channels last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import ops as o
from graphtool.kernels.images import (
    HOOK, OUTPUT, STRIDES, WINDOW, image, image_area, over_pixels, seen, space, window, windows_of)
from graphtool.kernels.kit import (
    HALF, Area, Contract, Dim, Form, Instance, Lowered, MacroValue, Node, Numbers, Plan, Pointer,
    Record, Rows, Target, TensorType, Use, Value, View, ceil, elements, half_macros, literals,
    need, number, product, register, sizes, summed, sums, target_op)
from graphtool.symbolic import typical_size

MOST = 1024  # taps of a window: so many sums are on the stack
TERMS = 128  # about so many products are one running sum
MACROS = (
    HALF, *literals(BH="rows of taps whose sums are in registers", BW="columns of them",
                    NV="vectors of channels that are summed together"),
    *OUTPUT, *STRIDES, *sizes(
        C="channels", BAND="rows of the window that are summed in registers",
        WN="elements between the windows of adjacent images", WH="between their rows",
        WW="between their pixels"), *WINDOW)
POINTERS = (Pointer("X", "the image, its padding included"),
            Pointer("W", "the windows, one for each image"))


def meaning(t: Instance) -> None:
    """The gradient of each image."""
    n, c, kh, kw = t.sizes("BATCH C KH KW")
    g = t.array("W", (n, kh, kw, c), (*t.sizes("WN WH WW"), 1))
    t.rows(o.depthwise_grad(seen(t, c), g, **windows_of(t)))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, c, kh, kw = t.sizes("BATCH OH OW C KH KW")
    high, wide, nv, band = t.sizes("BH BW NV BAND")
    t.need(min(high, wide, nv, band) > 0, "BH, BW, NV and BAND of 1 or more")
    t.need(high * wide * nv <= 64, "BH·BW·NV up to 64")
    t.need(oh * ow <= MOST, f"up to {MOST} taps")
    yield Rows((n, oh, ow, c))
    yield image_area(t, c, number(t))
    yield Area("W", (n, kh, kw, c), (*t.sizes("WN WH WW"), 1), (), number(t))


def lower(use: Use) -> Lowered:
    """The use of the template, with as many sums as the registers hold."""
    x, g, a = use.view(0), use.view(1), use.node.attrs
    _, oh, ow, c = use.out.type.shape
    high, wide, nv = block(use.target, oh, ow, typical_size(c))
    macros: dict[str, MacroValue] = {
        **half_macros(x.dtype), "BH": high, "BW": wide, "NV": nv,
        "BAND": max(1, TERMS // max(1, typical_size(g.shape[2]))), **image(use), "C": c,
        "WN": g.strides[0], "WH": g.strides[1], "WW": g.strides[2], **window(g.shape[1:3], a)}
    return over_pixels(use, "depthwise_grad", macros,
                       2 * product(use.out.type.shape) * product(g.shape[1:3]))


def block(target: Target, oh: Any, ow: Any, channels: int) -> tuple[int, int, int]:
    """Rows and columns of taps, and vectors of channels, whose sums are in registers: two vectors
    if all taps fit twice, because adjacent lines of memory come faster together."""
    most = target.registers - 3
    wide = ow if ow <= most else ceil(ow, ceil(ow, most))
    high = max(1, min(oh, most // wide))
    full = channels >= 2 * target.lanes and 2 * oh * ow < most
    return ceil(oh, ceil(oh, high)), wide, 2 if full else 1


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read an operand here: adjacent channels, whatever is between pixels."""
    return view.shape[-1] == 1 or view.strides[-1] == 1


# ---- the op ------------------------------------------------------------------------------------

def _infer(x: TensorType, g: TensorType, *, strides: tuple[int, int],
           dilation: tuple[int, int] = (1, 1), plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and g.rank == 4 and (x.dtype, x.shape[0], x.shape[3]) == (
        g.dtype, g.shape[0], g.shape[3]), f"depthwise_grad of {x} with {g}")
    return TensorType(sums(x.dtype), (x.shape[0], *space(x, g.shape[1:3], strides, dilation),
                                      x.shape[3]))


def _decompose(x: Any, g: Any, *, strides: Any, dilation: Any, plan: Plan | None = None) -> Any:
    x, g = summed(x, g)
    oh, ow = space(TensorType(x.dtype, x.shape), g.shape[1:3], strides, dilation)
    taps = [_tap(x, g, i * strides[0], j * strides[1], dilation) for i in range(oh)
            for j in range(ow)]
    return o.reshape(o.concat(*taps, axis=1) if len(taps) > 1 else taps[0],
                     shape=(x.shape[0], oh, ow, x.shape[3]))


def _tap(x: Any, g: Any, i: int, j: int, dilation: Any) -> Any:
    """The sums [N, 1, C] of one tap, whose first pixel is (i, j)."""
    n, rows, columns, c = g.shape
    limit = (n, i + (rows - 1) * dilation[0] + 1, j + (columns - 1) * dilation[1] + 1, c)
    pixels = o.slice(x, start=(0, i, j, 0), limit=limit, strides=(1, *dilation, 1))
    return o.reshape(o.reduce_sum(o.mul(pixels, g), axes=(1, 2)), shape=(n, 1, c))


def _flops(y: TensorType, _x: TensorType, g: TensorType, **_: Any) -> Dim:
    return 2 * elements(y) * product(g.shape[1:3])


OP = target_op("depthwise_grad", _infer, _decompose, Form("depthwise_grad"), _flops,
               "the gradient of the filters of a depthwise convolution, for each image: y[n, i, j, "
               "c] = Σ x[n, i·stride + p·dilation, j·stride + q·dilation, c]·g[n, p, q, c] over "
               "all p and q; x includes its padding")

register(Record(
    Contract("depthwise_grad", "the gradient of filters of one channel each", MACROS, POINTERS,
             meaning, HOOK, touches=touches),
    {"depthwise_grad": lower}, reads))
