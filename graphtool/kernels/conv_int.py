"""conv_int.h: direct convolution of small integers, channels last, with sums in int32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice import device
from graphtool.kernels.choice.contractions import conv_cost, integers
from graphtool.kernels.images import (
    HOOK, OUTPUT, POINTERS, STRIDES, fits_tile, image, over_pixels, space, tall)
from graphtool.kernels.kit import (
    NV, TILE, Alternative, Area, Array, Chosen, Contract, Conv, DType, Dim, Form, Instance,
    Lowered, MacroValue, Node, Numbers, Plan, Record, Rows, Rules, Sizes, Target, TensorType,
    Use, Value, View, ceildiv, elements, exact, flags, group_of, literals, need, panel_bytes,
    panel_vectors, product, register, rows_of_neighbours, sizes, target_op, unpacked,
    vectors_of, widths, wrapped)
from graphtool.kernels.packing.integers import GROUP

KIND = flags(PAIRS="integers of 16 bits in pairs; else u8 by s8 in groups of four")
MACROS = (
    *KIND, *TILE, *literals(TALL="the greatest number of whole output rows in a "
                                 "tile"), *OUTPUT, *STRIDES,
    *sizes(GROUPS="groups", O="output channels of a group",
           GROUP_STEP="elements between the input channels of adjacent groups",
           KH="rows of the window", SH="stride of rows", SW="stride of columns",
           DH="dilation of rows",
           RUNS="number of runs in a row of the window", RUN="adjacent elements of a run",
           HOP="elements between the starts of adjacent runs"), device.ROWS,
    device.SLICES)


def kind(use: Use, w: View) -> dict[str, MacroValue]:
    """The element types, and the number of vectors in a panel."""
    nr = w.shape[-1]
    assert isinstance(nr, int)
    return {"PAIRS": w.dtype is dtypes.int16,
            "NV": panel_vectors(use.target, nr // GROUP[w.dtype])}


def integers_of(t: Numbers) -> tuple[DType, DType]:
    """The element types of the left and of the right operand."""
    return (dtypes.int16, dtypes.int16) if t.get("PAIRS") else (dtypes.uint8, dtypes.int8)


def panels(t: Sizes, columns: int, rows: int) -> tuple[int, int, int]:
    """The shape of packed weights with so many groups of rows."""
    nr, group = t.get("NV") * t.lanes, 2 if t.get("PAIRS") else 4
    return -(-columns // nr), rows, nr * group


def meaning(t: Instance) -> None:
    """The elements that each output reads, run by run, times the packed weights."""
    n, oh, ow, groups, m, step, kh = t.sizes("BATCH OH OW GROUPS O GROUP_STEP KH")
    xn, xh, xw, sh, sw, dh, runs, run, hop = t.sizes("XN XH XW SH SW DH RUNS RUN HOP")
    group = 2 if t.get("PAIRS") else 4
    whole = -(-run // group) * group  # the weights of a run are padded with zeros
    packed = t.read("W")
    wide = ((ow - 1) * sw * xw + (runs - 1) * hop + run) + (groups - 1) * step
    x: Array = t.array("X", (n, oh, kh, wide), (xn, sh * xh, dh * xh, 1))
    for g in range(groups):
        gathered = np.zeros((n, oh, ow, kh, runs, whole), x.dtype)
        for j, r in np.ndindex(ow, runs):
            first = g * step + j * sw * xw + r * hop
            gathered[:, :, j, :, r, :run] = x[..., first:first + run]
        t.rows(o.gemm_int(gathered.reshape(n, oh, ow, -1), packed[g], n=m), first=g * m)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, groups, m, step, kh = t.sizes("BATCH OH OW GROUPS O GROUP_STEP KH")
    xn, xh, xw, sh, sw, dh, runs, run, hop = t.sizes("XN XH XW SH SW DH RUNS RUN HOP")
    (left, right), group = integers_of(t), 2 if t.get("PAIRS") else 4
    vectors_of(t)
    fits_tile(t)
    yield Rows((n, oh, ow, groups * m))
    yield Area("X", (n, oh, kh, ow, groups, runs, run),
               (xn, sh * xh, dh * xh, sw * xw, step, hop, 1), (), left)
    yield Area("W", (groups, *panels(t, m, kh * runs * -(-run // group))), None, (), right, True)
    yield from device.touched(t, groups, n * oh * ow, m, dtypes.int32)


def teams(macros: Mapping[str, Any], lanes: int) -> Dim:
    """The tiles of a device."""
    rows = macros["BATCH"] * macros["OH"] * macros["OW"]
    return device.tiles(macros, lanes, macros["GROUPS"], rows, macros["O"])


def lower(use: Use) -> Lowered:
    """The use of the template, with groups, window and strides of the node."""
    a, groups = use.node.attrs, use.view(1).shape[0]
    return convolved(use, groups, a["depth"], a)


ONE = {"window": (1, 1), "strides": (1, 1), "dilation": (1, 1), "joined": False}


def convolved(use: Use, groups: Dim, depth: Dim, a: Any = ONE) -> Lowered:
    """The convolution of the operands of a use, `depth` channels in a group, with this window."""
    x, w, (kh, kw), out = use.view(0), use.view(1), a["window"], use.out.type.shape
    (sh, sw), (dh, dw) = a["strides"], a["dilation"]
    kinds = kind(use, w)
    nv = kinds["NV"]
    assert isinstance(nv, int)
    # if a kernel row reads adjacent elements, its columns and channels are one run
    adjacent = dw == 1 and x.strides[2] == depth
    whole = a["joined"] or (adjacent and isinstance(depth, int) and depth % GROUP[w.dtype] == 0)
    macros = {
        **kinds, **tall(use.target, nv, out, x.strides[2] * sw, x.dtype.bytes), **image(use),
        "GROUPS": groups, "O": out[3] // groups, "GROUP_STEP": depth, "KH": kh, "SH": sh, "SW": sw,
        "DH": dh, "RUNS": 1 if whole else kw, "RUN": kw * depth if whole else depth,
        "HOP": dw * x.strides[2]}
    sizes = groups, product(out[:3]), out[3] // groups
    macros |= device.tile(use.target, *sizes, kh * kw * depth, nv, True, 0, 0)
    return over_pixels(use, "conv_int", macros, product(out) * kh * kw * depth * 2,
                       **device.slabs(use, macros, *sizes, dtypes.int32))


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read x here: without gaps between pixels if a kernel row is one run."""
    if x is node.inputs[0] and node.attrs["joined"] and view.strides[2] != view.shape[3]:
        return False
    return rows_of_neighbours(node, x, view)


# ---- the op ------------------------------------------------------------------------------------

DIRECT_INT = Form("conv_int", (NV,), "int8")


def _infer(x: TensorType, w: TensorType, *, channels: int, depth: int,
           window: tuple[int, int], strides: tuple[int, int],
           dilation: tuple[int, int] = (1, 1), joined: bool = False,
           plan: Plan | None = None) -> TensorType:
    group = group_of(x, w)
    need(x.rank == 4 and w.rank == 5, f"{x} and {w} are not operands of a packed convolution")
    need(x.shape[3] == depth * w.shape[0],
         f"{w.shape[0]} groups of {depth} channels do not fit {x}")
    count, run = (1, window[1] * depth) if joined else (window[1], depth)
    need(w.shape[3] == count * ceildiv(run, group),
         f"{w} is not packed for windows {window} of {depth} channels")
    return TensorType(dtypes.int32, (x.shape[0], *space(x, window, strides, dilation), channels))


def _decompose(x: Any, w: Any, *, channels: int, depth: int, window: Any, strides: Any,
               dilation: Any, joined: bool, plan: Plan | None = None) -> Any:
    """The runs of a kernel row are unpacked, and are its taps and channels again."""
    groups, panels, kh, rows, wide = w.shape
    outputs, kw = channels // groups, window[1]
    runs, run = (1, kw * depth) if joined else (kw, depth)
    split = o.reshape(exact(w), shape=(groups, panels, kh, runs, rows // runs, wide))
    matrix = unpacked(o.transpose(split, perm=(0, 2, 3, 1, 4, 5)), outputs, run,
                      GROUP[w.dtype])
    taps = o.transpose(o.reshape(matrix, shape=(groups, kh, kw, depth, outputs)),
                       perm=(0, 4, 3, 1, 2))
    plain = o.reshape(taps, shape=(channels, depth, kh, kw))
    return wrapped(o.conv(exact(x), plain, strides=strides, rhs_dilation=dilation, groups=groups,
                          channels_last=True))


OP = target_op("conv_int", _infer, _decompose, DIRECT_INT,
               lambda y, *_, window, depth, **__: 2 * elements(y) * product(window) * depth,
               "2-d convolution of small integers, channels last, with weights as `pack_int_conv` "
               "lays them out; x includes its padding, the sums are int32")


# ---- plans and their costs ---------------------------------------------------------------------

def of_integers(s: Conv) -> bool:
    """Whether the sums are of integers, and a filter reads more than one channel."""
    return s.dtype.is_integer and not s.depthwise


def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """The widths of panels."""
    if target.grid:
        return [DIRECT_INT.plan(nv=nv) for nv in device.widths(s, target)]
    return [DIRECT_INT.plan(nv=nv) for nv in widths(s.o // s.groups, target)]


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution node with packed filters.

    A kernel row is one run if the channels of a tap do not fill whole groups, where a group is the
    elements that one lane sums.
    """
    depth = w.shape[1]
    joined = groups == dilation[1] == 1 and depth % GROUP[w.dtype] != 0
    packed = o.pack_int_conv(w, nr=chosen.columns(), groups=groups, joined=joined)
    return chosen.emit(OP, x, packed, channels=w.shape[0], depth=depth,
                       window=w.shape[2:], strides=strides, dilation=dilation, joined=joined)


def cost(s: Conv, p: Plan, t: Target) -> float:
    """Expected microseconds; they depend on how many products one instruction adds."""
    return conv_cost(s, p, t, *integers(s, t))


def weights(s: Conv, p: Plan, t: Target) -> int:
    """Bytes of the packed filters."""
    return panel_bytes(s, s.kh * s.kw, p.get("nv", t.nv), integers(s, t)[1], t)


SERVES = (Alternative(Conv, DIRECT_INT, plans, device.usually(cost), make, weights,
                      takes=of_integers, usual=True),)

register(Record(
    Contract("conv_int", "a direct convolution of small integers", MACROS,
             (*POINTERS, device.SLABS), meaning, HOOK, touches=touches, grain="shares",
             languages={"c": ".h", "cuda": "_cuda.h", "opencl": "_opencl.h"}, teams=teams),
    {"conv_int": lower}, reads, serves=SERVES))
