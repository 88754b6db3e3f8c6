"""conv_amx.h: direct convolution by a matrix unit, channels last, of bytes or 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Movement
from graphtool.ir.trace import Tracer
from graphtool.kernels.images import HOOK, OUTPUT, POINTERS, STRIDES, image, over_pixels, space
from graphtool.kernels.kit import (
    HALVES, Alternative, Area, Array, Assumption, Chosen, Contract, Conv, DType, Dim, Form,
    Instance, Lowered, MacroValue, Numbers, Parameter, Plan, Record, Rows, Rules, Sizes, Target,
    TensorType, Use, Value, blocks, ceildiv, elements, half_macros, if_zeros, mark, narrowed,
    need, product, register, rounding, sizes, target_op, word, wrapped)
from graphtool.kernels.packing.blocks import GROUP, LEFT, TILE, plain_filters, rows_of_taps, summed

HALF = word("HALF", "the type of 16-bit operands, whose sums are float; without it they are u8 by "
                    "s8, and sums int32", HALVES, default=None)
MACROS = (
    HALF, *OUTPUT, *STRIDES,
    *sizes(O="output channels", KH="rows of the window", SH="stride of rows",
           SW="stride of columns", DH="dilation of rows",
           RUNS="number of runs in a row of the window", RUN="adjacent elements of a run",
           HOP="elements between the starts of adjacent runs"),
    mark("GATHERED", "what an output reads is copied together before it is multiplied"))


def operands(t: Sizes) -> tuple[DType, DType]:
    """The element types of the left and of the right operand."""
    right = dtypes.dtype(t.get("HALF")) if t.has("HALF") else dtypes.int8
    return LEFT[right], right


def _panels(t: Sizes) -> tuple[int, int, int]:
    right, nr = operands(t)[1], 2 * t.lanes
    m, kh, runs, run = (int(t.get(name)) for name in ("O", "KH", "RUNS", "RUN"))
    deep = rows_of_taps(run, kh * runs, bool(t.get("GATHERED")), right)
    assert isinstance(deep, int)
    return -(-m // nr), deep, nr * GROUP[right]


def meaning(t: Instance) -> None:
    """The elements that each output reads, run by run, times the packed weights."""
    n, oh, ow, kh, runs, run, hop = t.sizes("BATCH OH OW KH RUNS RUN HOP")
    xn, xh, xw, sh, sw, dh, m = t.sizes("XN XH XW SH SW DH O")
    packed, apart = t.read("W"), not t.get("GATHERED")
    wide = (ow - 1) * sw * xw + (runs - 1) * hop + run
    x: Array = t.array("X", (n, oh, kh, wide), (xn, sh * xh, dh * xh, 1))
    deep = packed.shape[1] * packed.shape[2] // (2 * t.lanes)
    gathered = np.zeros((n, oh, ow, kh, runs, deep // (kh * runs) if apart else run), x.dtype)
    for j, r in np.ndindex(ow, runs):
        first = j * sw * xw + r * hop
        gathered[:, :, j, :, r, :run] = x[..., first:first + run]
    whole = np.zeros((n, oh, ow, deep), x.dtype)
    whole[..., :kh * runs * gathered.shape[-1]] = gathered.reshape(n, oh, ow, -1)
    t.rows(o.gemm_amx(whole, packed, n=m))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, m, kh, runs, run, hop = t.sizes("BATCH OH OW O KH RUNS RUN HOP")
    xn, xh, xw, sh, sw, dh = t.sizes("XN XH XW SH SW DH")
    left, right = operands(t)
    t.need(not t.get("GATHERED") or kh * runs * run * left.bytes <= blocks.GATHERED,
           f"at most {blocks.GATHERED} bytes that are copied together")
    yield Rows((n, oh, ow, m))
    yield Area("X", (n, oh, kh, ow, runs, run), (xn, sh * xh, dh * xh, sw * xw, hop, 1), (), left)
    yield Area("W", _panels(t), None, (), right, True)


def lower(use: Use) -> Lowered:
    """The use of the template, with window and strides of the node."""
    return convolved(use, use.view(0).shape[3], use.node.attrs)


ONE = {"window": (1, 1), "strides": (1, 1), "dilation": (1, 1), "gathered": False}


def convolved(use: Use, depth: Dim, a: Any = ONE) -> Lowered:
    """The convolution of the operands of a use with this window; pixels have `depth` channels."""
    x, w, (kh, kw), out = use.view(0), use.view(1), a["window"], use.out.type.shape
    (sh, sw), (dh, dw) = a["strides"], a["dilation"]
    # if a kernel row reads adjacent elements, its columns and channels are one run
    step, row = TILE * GROUP[w.dtype], kw * depth
    full = a["gathered"] or (isinstance(depth, int) and depth % step == 0)
    whole = full and dw == 1 and x.strides[2] == depth
    apart = not a["gathered"] or (whole and isinstance(row, int) and row % step == 0)
    mode: dict[str, MacroValue] = {} if apart else {"GATHERED": True}
    macros = {**half_macros(w.dtype), **mode, **image(use), "O": out[3], "KH": kh,
              "SH": sh, "SW": sw, "DH": dh, "RUNS": 1 if whole else kw,
              "RUN": row if whole else depth, "HOP": dw * x.strides[2]}
    return over_pixels(use, "conv_amx", macros, product(out) * kh * kw * depth * 2)


# ---- the op ------------------------------------------------------------------------------------

CONV_AMX = Form("conv_amx", (Parameter(
    "filled", "1: pixels have further channels, and windows further columns, of zeros, so that a "
              "row of the window fills whole tiles", 0, most=1),), "tile_bf16")


def _infer(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
           strides: tuple[int, int], dilation: tuple[int, int] = (1, 1), gathered: bool = False,
           plan: Plan | None = None) -> TensorType:
    kind = summed(x, w)
    need(x.rank == 4 and w.rank == 3, f"{x} and {w} are not operands of a packed convolution")
    depth = x.shape[3]
    need(w.shape[1] == rows_of_taps(depth, product(window), gathered, w.dtype),
         f"{w} is not packed for windows {window} of {depth} channels")
    need(ceildiv(channels * GROUP[w.dtype], w.shape[2]) == w.shape[0],
         f"{w} does not have the panels for {channels} channels")
    return TensorType(kind, (x.shape[0], *space(x, window, strides, dilation), channels))


def _decompose(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
               gathered: bool, plan: Plan | None = None) -> Any:
    plain = plain_filters(w, channels, x.shape[3], window, gathered)
    return by_filters(x, plain, strides, dilation)


def by_filters(x: Any, plain: Any, strides: Any, dilation: Any) -> Any:
    """The convolution of x by filters [O, C, KH, KW], both of bytes or of 16-bit floats: its sums
    are int32, which wrap around, or float32."""
    whole = plain.dtype is dtypes.int8
    wide = dtypes.float64 if whole else dtypes.float32  # holds sums of bytes exactly
    y = o.conv(o.cast(x, dtype=wide), o.cast(plain, dtype=wide), strides=strides,
               rhs_dilation=dilation, channels_last=True)
    return wrapped(y) if whole else y


OP = target_op("conv_amx", _infer, _decompose, CONV_AMX,
               lambda y, x, _, *, window, **__: 2 * elements(y) * product(window) * x.shape[3],
               "2-d convolution by a matrix unit, channels last, of u8 and i8 or of 16-bit "
               "floats, with weights as `pack_conv_blocks` lays them out; x includes its padding, "
               "the sums are int32, which wrap around, or float32")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """The plans, if the target has a matrix unit for these operands."""
    if not (s.constant and s.groups == 1 and blocks.fits_unit(s, target, rules.bf16)):
        return []
    return [CONV_AMX.plan(), *([CONV_AMX.plan(filled=1)] if blocks.can_fill(s) else [])]


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution node with packed filters."""
    s = chosen.site
    gathered = blocks.gathered(s)
    if chosen.plan.get("filled", 0):
        x, w, gathered = *with_zeros(x, w, blocks.filled(s)), True
    if s.dtype is dtypes.float32:
        x, w = narrowed(x), narrowed(w)
    packed = o.pack_conv_blocks(w, nr=chosen.target.nr, gathered=gathered)
    return chosen.emit(OP, x, packed, channels=w.shape[0], window=w.shape[2:], strides=strides,
                       dilation=dilation, gathered=gathered)


def with_zeros(x: Any, w: Any, wide: Conv) -> tuple[Any, Any]:
    """The image and the filters with the channels and columns of `wide`, zeros where they had
    none."""
    channels, columns = wide.c - w.shape[1], wide.kw - w.shape[3]
    lo, hi = (0,) * 4, (0, 0, columns, channels)
    node = x.builder.made_by.get(x.value)
    fills = node is not None and Movement.FILLS in node.op.movement
    if node is not None and fills and isinstance(node.inputs[0], Value) and not any(
            node.attrs["interior"] or ()) and node.attrs["value"] == 0:
        x, lo = Tracer(node.inputs[0], x.builder), node.attrs["lo"]
        hi = tuple(map(add, node.attrs["hi"], hi))
    return o.pad(x, lo=lo, hi=hi), o.pad(w, lo=(0,) * 4, hi=(0, channels, 0, columns))


def assumes(s: Conv, p: Plan) -> Assumption:
    """Where filters hold zeros that the model does not have, of floats also in further columns of a
    window, which meet pixels beside it; or where zeros that the model has are left out."""
    beside = p.get("filled", 0) and not s.dtype.is_integer
    return "finite" if beside else if_zeros(s, p)


SERVES = (Alternative(
    Conv, CONV_AMX, plans, blocks.conv_cost, make,
    lambda s, p, t: blocks.conv_bytes(s, p, t) if s.constant else 0,
    error=lambda s, p: rounding.bf16(s.kh * s.kw * s.c) if s.dtype is dtypes.float32 else 0.0,
    assumes=assumes, in_order=lambda s: s.dtype.is_integer),)

register(Record(
    Contract("conv_amx", "a direct convolution by a matrix unit", MACROS, POINTERS, meaning, HOOK,
             touches, grain="shares"), {"conv_amx": lower}, serves=SERVES))
