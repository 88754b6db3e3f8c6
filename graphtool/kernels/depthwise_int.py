"""depthwise_int.h: one filter of small integers for each channel, channels last, with sums in
int32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import depthwise
from graphtool.kernels.choice.sites import BLOCK
from graphtool.kernels.conv_int import KIND, integers_of
from graphtool.kernels.images import (
    HOOK, OUTPUT, POINTERS, STRIDES, WINDOW, fits_block, image, image_area, over_pixels, seen,
    space, window, windows_of)
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Conv, Dim, Form, Instance, Lowered, MacroValue, Numbers,
    Plan, Record, Rows, Rules, Target, TensorType, Use, ceildiv, exact, group_of, literals, need,
    product, register, sizes, target_op, wrapped)
from graphtool.kernels.packing.integers import GROUP
from graphtool.ops.costs import per_tap

MACROS = (*KIND, *literals(BH="rows of the register block",
                           BW="the greatest number of pixels in a row of it"),
          *OUTPUT, *STRIDES, *sizes(C="channels"), *WINDOW)


def meaning(t: Instance) -> None:
    """The convolution by the first of the filters that are packed for a block of rows."""
    t.rows(o.depthwise_int(seen(t, t.get("C")), t.read("W"), window=tuple(t.sizes("KH KW")),
                           **windows_of(t)))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, c, kh, kw, sh, high = t.sizes("BATCH OH OW C KH KW SH BH")
    fits_block(t)
    t.need(high == 1 or t.get("DH") == 1, "a dilation of 1 where a block has several rows")
    yield Rows((n, oh, ow, c))
    left, right = integers_of(t)
    yield image_area(t, c, left)
    quads = -(-((high - 1) * sh + kh) // GROUP[right])
    yield Area("W", (quads, high, kw, c, GROUP[right]), None, (), right)


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The blocks of a device: a thread has four channels of some pixels of a row."""
    strips, pieces = ceildiv(macros["OW"], macros["BW"]), ceildiv(macros["C"], 4)
    return ceildiv(macros["BATCH"] * macros["OH"] * strips * pieces, depthwise.TEAM)


def lower(use: Use) -> Lowered:
    """Blocks have as many rows as those for which the weights are packed."""
    x, w, a = use.view(0), use.view(1), use.node.attrs
    high, size = w.shape[1], a["window"]
    assert isinstance(high, int)
    macros: dict[str, MacroValue] = {
        "PAIRS": w.dtype is dtypes.int16, "BH": high, "BW": _width(use.target, high, size[1]),
        **image(use), "C": x.shape[3], **window(size, a)}
    return over_pixels(use, "depthwise_int", macros,
                       product(use.out.type.shape) * product(size) * 2)


def _width(target: Target, high: int, kw: int) -> int:
    """Pixels of a row of a register block: with the filters of a column for each row, an element
    and a product, the sums fit the registers."""
    if target.devices:
        return depthwise.ON_DEVICE
    return max(1, min(BLOCK, (target.registers - 2) // high - kw))


# ---- the op ------------------------------------------------------------------------------------

DEPTHWISE_INT = Form("depthwise_int", depthwise.DEPTHWISE.parameters[1:], "int8")


def _infer(x: TensorType, w: TensorType, *, window: tuple[int, int],
           strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
           plan: Plan | None = None) -> TensorType:
    group_of(x, w)
    need(x.rank == 4 and w.rank == 5 and x.shape[3] == w.shape[3],
         f"{x} and {w} are not operands of this depthwise convolution")
    return TensorType(dtypes.int32, (x.shape[0], *space(x, window, strides, dilation),
                                     x.shape[3]))


def _decompose(x: Any, w: Any, *, window: Any, strides: Any, dilation: Any,
               plan: Plan | None = None) -> Any:
    """The filters as they are packed for the first row of a block."""
    (kh, kw), (quads, _, _, c, group) = window, w.shape
    first = o.slice(exact(w), start=(0,) * 5, limit=(quads, 1, kw, c, group), strides=(1,) * 5)
    rows = o.reshape(o.transpose(first, perm=(3, 1, 0, 4, 2)), shape=(c, 1, quads * group, kw))
    plain = o.slice(rows, start=(0,) * 4, limit=(c, 1, kh, kw), strides=(1,) * 4)
    return wrapped(o.conv(exact(x), plain, strides=strides, rhs_dilation=dilation, groups=c,
                          channels_last=True))


OP = target_op("depthwise_int", _infer, _decompose, DEPTHWISE_INT,
               lambda *types, **attrs: 2 * per_tap(*types, **attrs),
               "2-d convolution of small integers with one filter for each channel, channels "
               "last; x includes its padding, the sums are int32")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """The output rows of a register block: two if it still has several pixels of a row; a thread of
    a device has one."""
    if target.devices:
        return [DEPTHWISE_INT.plan(high=1)]
    tall = s.dh == 1 and _width(target, 2, s.kw) >= 2
    return [DEPTHWISE_INT.plan(high=high) for high in ((2, 1) if tall else (1,))]


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution node; the rows of its filters that one lane sums are adjacent."""
    packed = o.pack_int_depthwise(w, high=chosen.plan.get("high", 1), stride=strides[0])
    return chosen.emit(OP, x, packed, window=w.shape[2:], strides=strides,
                       dilation=dilation)


SERVES = (Alternative(Conv, DEPTHWISE_INT, plans, depthwise.cost, make,
                      takes=lambda s: s.depthwise and s.dtype.is_integer),)

register(Record(
    Contract("depthwise_int", "a convolution of small integers with one filter for each channel",
             MACROS,
             POINTERS, meaning, HOOK, touches=touches, grain="shares",
             languages={"c": ".h", "cuda": "_cuda.h"}, teams=teams),
    {"depthwise_int": lower}, serves=SERVES))
