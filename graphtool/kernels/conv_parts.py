"""conv_parts.h: direct convolution of float32 by a matrix unit of bfloat16, channels last, each
number as a sum of parts.

It is the product of `gemm_parts.py` with a row for each pixel of the output, of the elements that
the pixel reads, which are copied and split block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import gemm_parts
from graphtool.kernels.gemm_amx_blocked import UNIT
from graphtool.kernels.gemm_blocked import DIVIDED, WORK, divided
from graphtool.kernels.gemm_parts import PARAMETERS
from graphtool.kernels.images import HOOK, OUTPUT, POINTERS, STRIDES, image, over_pixels, space
from graphtool.kernels.kit import (
    Alternative, Area, Array, Chosen, Contract, Conv, Dim, Form, Instance, Lowered, Macro,
    MacroValue, Numbers, Plan, Product, Record, Rows, Rules, Target, TensorType, Use, View,
    elements, if_zeros, need, never, product, register, rows_of_neighbours, sizes, target_op)
from graphtool.kernels.packing import parts

RUNS = sizes(
    KH="rows of the window", SH="stride of rows", SW="stride of columns", DH="dilation of rows",
    RUNS="number of runs in a row of the window", RUN="adjacent elements of a run",
    HOP="elements between the starts of adjacent runs")
MACROS = (
    Macro("PARTS", "literal", "parts of a number"), *OUTPUT, *STRIDES,
    *sizes(GROUPS="groups of channels", O="output channels of a group"), *RUNS, *DIVIDED)
# cycles to copy a number that pixels read, by runs of whole steps, of more than one, or of less
WHOLE, LONG, SHORT = 0.2, 0.4, 3.0


def meaning(t: Instance) -> None:
    """What each pixel reads, as the rows of one product for each group."""
    n, oh, ow, groups, m = t.sizes("BATCH OH OW GROUPS O")
    sums: Any = o.gemm_parts(seen_in_runs(t, groups), t.read("W"), n=m)
    t.rows(sums.reshape(groups, n, oh, ow, m).transpose(1, 2, 3, 0, 4).reshape(n, oh, ow, -1))


def seen_in_runs(t: Instance, groups: int) -> Array:
    """For each group what the pixels read, a row for each of them."""
    n, oh, ow, kh, runs, run, hop = t.sizes("BATCH OH OW KH RUNS RUN HOP")
    xn, xh, xw, sh, sw, dh = t.sizes("XN XH XW SH SW DH")
    seen = t.array("X", (n, oh, ow, kh, runs, groups, run),
                   (xn, sh * xh, sw * xw, dh * xh, hop, run, 1))
    return seen.transpose(5, 0, 1, 2, 3, 4, 6).reshape(groups, n * oh * ow, kh * runs * run)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, kh, runs, run, groups, m = t.sizes("BATCH OH OW KH RUNS RUN GROUPS O")
    yield Rows((n, oh, ow, groups * m))
    yield area_in_runs(t, groups)
    yield from gemm_parts.touched(t, Area("W", (groups,)), kh * runs * run, m)


def area_in_runs(t: Numbers, groups: int) -> Area:
    """What of the image the pixels read."""
    n, oh, ow, kh, runs, run, hop = t.sizes("BATCH OH OW KH RUNS RUN HOP")
    xn, xh, xw, sh, sw, dh = t.sizes("XN XH XW SH SW DH")
    return Area("X", (n, oh, kh, ow, runs, groups * run), (xn, sh * xh, dh * xh, sw * xw, hop, 1))


def lower(use: Use) -> Lowered:
    """The use of the template: a row of the window is one run if its elements are adjacent."""
    x, w, a, out = use.view(0), use.view(1), use.node.attrs, use.out.type.shape
    groups, seen = w.shape[0], prod(a["window"])
    depth, m = x.shape[3] // groups, a["channels"] // groups
    macros, room = gemm_parts.blocks_of(use, seen * depth)
    cut, work = divided(use, room, product(out[:3]), m, seen * depth)
    macros |= {**image(use), "GROUPS": groups, "O": m, **window_in_runs(x, groups, a), **cut}
    return over_pixels(use, "conv_parts", macros, product(out) * seen * depth * 2, WORK=work)


def window_in_runs(x: View, groups: Dim, a: Mapping[str, Any]) -> dict[str, MacroValue]:
    """The macros for what a pixel reads: a row of the window is one run if its elements are
    adjacent."""
    (kh, kw), (sh, sw), (dh, dw) = a["window"], a["strides"], a["dilation"]
    depth = x.shape[3] // groups
    whole = groups == 1 and dw == 1 and x.strides[2] == depth
    return {"KH": kh, "SH": sh, "SW": sw, "DH": dh, "RUNS": 1 if whole else kw,
            "RUN": kw * depth if whole else depth, "HOP": dw * x.strides[2]}


# ---- the op -----------------------------------------------------------------------------------

CONV_PARTS = Form("conv_parts", PARAMETERS, rate="tile_bf16")


def _infer(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
           strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
           plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 4 and x.dtype is dtypes.float32,
         f"{x} and {w} are not operands of a packed convolution")
    groups = w.shape[0]
    need(isinstance(groups, int) and x.shape[3] % groups == 0 and channels % groups == 0,
         f"{groups} groups do not divide {x} and {channels} channels")
    assert isinstance(groups, int)
    rows = TensorType(dtypes.float32, (1, prod(window) * x.shape[3] // groups))
    gemm_parts.infer(rows, TensorType(w.dtype, w.shape[1:]), n=channels // groups)
    return TensorType(dtypes.float32, (x.shape[0], *space(x, window, strides, dilation), channels))


def _decompose(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
               plan: Plan | None = None) -> Any:
    groups, (kh, kw) = w.shape[0], window
    c, m = x.shape[3] // groups, channels // groups
    taps = o.reshape(parts.joined(w, m, kh * kw * c), shape=(groups, kh, kw, c, m))
    filters = o.reshape(o.transpose(taps, perm=(0, 4, 3, 1, 2)), shape=(channels, c, kh, kw))
    return o.conv(x, filters, strides=strides, rhs_dilation=dilation, groups=groups,
                  channels_last=True)


def _flops(y: TensorType, x: TensorType, w: TensorType, *, window: tuple[int, int],
           **_: Any) -> Dim:
    return 2 * elements(y) * prod(window) * (x.shape[3] // w.shape[0])


OP = target_op("conv_parts", _infer, _decompose, CONV_PARTS, _flops,
               "2-d convolution in float32 by a matrix unit of bfloat16, channels last; x includes "
               "its padding and is split into parts. The weights of each group are a matrix "
               "[KH·KW·C, O] as `pack_parts` lays it out")


# ---- plans and their costs ---------------------------------------------------------------------

def as_product(s: Conv) -> Product:
    """The product that the convolution is."""
    return Product(s.groups, s.n * s.h * s.w, s.o // s.groups, s.kh * s.kw * s.c // s.groups,
                   s.constant, dtype=s.dtype, large=s.large)


def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit, and the weights are known and split."""
    one = replace(as_product(s), batch=1)
    return [CONV_PARTS.plan(**dict(p.parameters))
            for p in gemm_parts.plans(one, target, rules) if not s.depthwise]


def cost(s: Conv, p: Plan, t: Target) -> float:
    """Expected microseconds: those of the product, and of copies of what pixels read."""
    return gemm_parts.cost(as_product(s), p, t) + copies(s, t)


def copies(s: Conv, t: Target) -> float:
    """Microseconds to copy what pixels read."""
    depth = s.c // s.groups
    run = s.kw * depth if s.groups == s.dw == 1 else depth
    each = SHORT if run < UNIT else LONG if run % UNIT else WHOLE
    return s.n * s.h * s.w * s.kh * s.kw * s.c * each / t.threads / t.mhz


def make(chosen: Chosen, x: Any, w: Any, *, groups: int, **how: Any) -> Any:
    """The convolution node with filters in panels of parts."""
    out, c, kh, kw = w.shape
    split = o.reshape(w, shape=(groups, out // groups, c, kh, kw))
    matrix = o.reshape(o.transpose(split, perm=(0, 3, 4, 2, 1)),
                       shape=(groups, kh * kw * c, out // groups))
    packed = o.pack_parts(matrix, nr=chosen.target.nr, parts=chosen.plan.get("parts", 3))
    return chosen.emit(OP, x, packed, channels=out, window=(kh, kw), **how)


SERVES = (Alternative(
    Conv, CONV_PARTS, plans, cost, make,
    weights=lambda s, p, t: gemm_parts.weights(as_product(s), p, t),
    error=lambda s, p: gemm_parts.error(as_product(s), p), assumes=if_zeros, in_order=never),)

register(Record(
    Contract("conv_parts", "a direct convolution of float32 by a matrix unit of bfloat16, each "
             "number as a sum of parts", MACROS, (*POINTERS, WORK), meaning, HOOK, touches,
             grain="pieces"),
    {"conv_parts": lower}, rows_of_neighbours, serves=SERVES))
