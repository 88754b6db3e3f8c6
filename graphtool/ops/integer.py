"""Target ops of small integers with sums in int32: what kernels/int8*.h compute.

Operands are uint8 by int8, with weights in groups of four, or int16 by int16, in pairs: one
instruction multiplies and adds a group. Sums wrap around; zero points are not subtracted here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, Pull
from graphtool.ops.common import Array, broadcast_shapes, need
from graphtool.ops.costs import elements, per_tap, rows_by_columns
from graphtool.ops.plans import DEPTHWISE, DIRECT, GEMM, WINOGRAD, same_tile
from graphtool.ops.target import padded
from graphtool.ops.target_winograd import FRACTIONS, G, winograd_cost
from graphtool.plan import Plan
from graphtool.symbolic import Dim, ceildiv, product

# the number of weights that one lane sums
GROUP: dict[DType, int] = {dtypes.int8: 4, dtypes.int16: 2}


def _group(x: TensorType, w: TensorType) -> int:
    pair = (x.dtype, w.dtype)
    need(pair in ((dtypes.uint8, dtypes.int8), (dtypes.int16, dtypes.int16)),
         f"the operands must be u8 and i8, or i16 and i16, got {x} and {w}")
    return GROUP[w.dtype]


def _wrapped(x: Array) -> Array:
    """Sums that are exact in float64, wrapped around to int32."""
    return x.astype(np.int64).astype(np.int32)


# ---- pack_int: [..., K, N] → [..., ⌈N/nr⌉, ⌈K/G⌉, nr·G] ----------------------------------------

def _pack_infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
    need(b.rank >= 2 and b.dtype in GROUP,
         f"the operand must be i8 or i16 of rank 2 or more, got {b}")
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    group = GROUP[b.dtype]
    return TensorType(b.dtype, (*b.shape[:-2], ceildiv(n, nr), ceildiv(k, group), nr * group))


def _pack_eval(b: Array, *, nr: int, transpose: bool) -> Array:
    b = np.swapaxes(b, -1, -2) if transpose else b
    k, n = b.shape[-2:]
    group = GROUP[dtypes.of_numpy(b.dtype)]
    panels, groups = -(-n // nr), -(-k // group)
    wide = np.zeros((*b.shape[:-2], groups * group, panels * nr), b.dtype)
    wide[..., :k, :n] = b
    split = wide.reshape(*b.shape[:-2], groups, group, panels, nr)
    moved = np.moveaxis(split, (-2, -4, -1, -3), (-4, -3, -2, -1))
    return np.ascontiguousarray(moved).reshape(*b.shape[:-2], panels, groups, nr * group)


def _pack_lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
    shape = _pack_infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    group = GROUP[b.dtype]

    def at(idx: Any) -> Any:
        *lead, panel, row, lane = idx
        return padded(lambda k, n: b.at((*lead, n, k) if transpose else (*lead, k, n)), [
            (row * group + lane % group, k, group), (panel * nr + lane // group, n, nr)])
    return Pull(b.dtype, shape, at)


register(Op("pack_int", _pack_infer, _pack_eval, None, _pack_lower, category="memory",
            traits=Trait.NEST,
            doc="the right-hand side of an integer product in panels of nr columns; the elements "
                "of a sum that one instruction adds are adjacent"))


def _unpacked(b: Array, depth: int, n: int) -> Array:
    """[..., P, ⌈K/G⌉, nr·G] → [..., K, n] in float64"""
    group = GROUP[dtypes.of_numpy(b.dtype)]
    *lead, panels, groups, wide = b.shape
    split = b.reshape(*lead, panels, groups, wide // group, group)
    moved = np.moveaxis(split, (-4, -3, -2, -1), (-2, -4, -1, -3))
    return moved.reshape(*lead, groups * group, -1)[..., :depth, :n].astype(np.float64)


def _matmul_infer(a: TensorType, b: TensorType, *, n: int,
                  plan: Plan | None = None) -> TensorType:
    group = _group(a, b)
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(ceildiv(a.shape[-1], group) == b.shape[-2], f"inner dimensions of {a} and {b} differ")
    need(ceildiv(n * group, b.shape[-1]) == b.shape[-3],
         f"{b} does not have the panels for {n} columns")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(dtypes.int32, (*lead, a.shape[-2], n))


register(Op("gemm_int", _matmul_infer,
            lambda a, b, *, n, plan: _wrapped(np.matmul(a.astype(np.float64),
                                                          _unpacked(b, a.shape[-1], n))),
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=rows_by_columns,
            plans=(GEMM,),
            doc="a·b of small integers, with b as `pack_int` lays it out; the sums are int32 and "
                "wrap around"))


# ---- pack_int_conv: [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, runs·⌈run/G⌉, nr·G] -------------------
# A run is a sequence of elements that are adjacent in x: C of one tap, or with `joined` KW·C of a
# kernel row.

def _runs(w: tuple[Dim, ...], joined: bool) -> tuple[Dim, Dim]:
    """The number of runs in a kernel row, and the elements of one run."""
    _, c, _, kw = w
    return (1, kw * c) if joined else (kw, c)


def _pack_conv_infer(w: TensorType, *, nr: int, groups: int = 1,
                     joined: bool = False) -> TensorType:
    need(w.rank == 4 and w.dtype in GROUP, f"the filters must be i8 or i16, got {w}")
    (count, run), group = _runs(w.shape, joined), GROUP[w.dtype]
    return TensorType(w.dtype, (groups, ceildiv(w.shape[0] // groups, nr), w.shape[2],
                                count * ceildiv(run, group), nr * group))


def _pack_conv_eval(w: Array, *, nr: int, groups: int, joined: bool) -> Array:
    o, c, kh, kw = w.shape
    own, group = o // groups, GROUP[dtypes.of_numpy(w.dtype)]
    count, run = (1, kw * c) if joined else (kw, c)
    rows = w.reshape(groups, own, c, kh, kw).transpose(0, 3, 4, 2, 1)  # [g, kh, kw, c, o]
    packed = _pack_eval(rows.reshape(groups, kh, count, run, own), nr=nr, transpose=False)
    moved = np.moveaxis(packed, 3, 1)  # [g, kh, runs, panels, quads, lanes], panels to the front
    return np.ascontiguousarray(moved).reshape(groups, packed.shape[3], kh, -1, nr * group)


register(Op("pack_int_conv", _pack_conv_infer, _pack_conv_eval, category="memory",
            doc="integer convolution weights in panels of nr output channels; the elements of a "
                "sum that one instruction adds are adjacent"))


def _space(x: TensorType, window: Any, strides: Any, dilation: Any) -> tuple[Dim, ...]:
    return tuple((d - (k - 1) * r - 1) // s + 1
                 for d, k, s, r in zip(x.shape[1:3], window, strides, dilation, strict=True))


def _conv_infer(x: TensorType, w: TensorType, *, channels: int, depth: int,
                window: tuple[int, int], strides: tuple[int, int],
                dilation: tuple[int, int] = (1, 1), joined: bool = False,
                plan: Plan | None = None) -> TensorType:
    group = _group(x, w)
    need(x.rank == 4 and w.rank == 5, f"{x} and {w} are not operands of a packed convolution")
    need(x.shape[3] == depth * w.shape[0],
         f"{w.shape[0]} groups of {depth} channels do not fit {x}")
    count, run = (1, window[1] * depth) if joined else (window[1], depth)
    need(w.shape[3] == count * ceildiv(run, group),
         f"{w} is not packed for windows {window} of {depth} channels")
    return TensorType(dtypes.int32, (x.shape[0], *_space(x, window, strides, dilation), channels))


def _conv_eval(x: Array, w: Array, *, channels: int, depth: int, window: Any, strides: Any,
               dilation: Any, joined: bool, plan: Plan | None) -> Array:
    groups, panels, kh, quads, wide = w.shape
    (count, run), kw = ((1, window[1] * depth) if joined else (window[1], depth)), window[1]
    per = np.moveaxis(w.reshape(groups, panels, kh, count, quads // count, wide), 1, 3)
    own = channels // groups
    return _summed(x, _unpacked(per, run, own).reshape(groups, kh, kw, depth, own), strides,
                   dilation)


def _summed(x: Array, w: Array, strides: Any = (1, 1), dilation: Any = (1, 1)) -> Array:
    """The convolution of x with filters [G, KH, KW, C, O/G] in float64."""
    groups, kh, kw, depth, own = w.shape
    h, v = ((d - (k - 1) * r - 1) // s + 1
            for d, k, s, r in zip(x.shape[1:3], (kh, kw), strides, dilation, strict=True))
    y = np.zeros((x.shape[0], h, v, groups, own))
    split = x.reshape(*x.shape[:3], groups, depth).astype(np.float64)
    for i in range(kh):
        for j in range(kw):
            seen = split[:, i * dilation[0]:, j * dilation[1]:][
                :, :(h - 1) * strides[0] + 1:strides[0], :(v - 1) * strides[1] + 1:strides[1]]
            y += np.einsum("nhwgc,gco->nhwgo", seen, w[:, i, j], optimize=True)
    return _wrapped(y.reshape(*y.shape[:3], groups * own))


register(Op("conv_int", _conv_infer, _conv_eval,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE,
            cost=lambda y, *_, window, depth, **__: 2 * elements(y) * product(window) * depth,
            plans=(DIRECT,),
            doc="2-d convolution of small integers, channels last, with weights as "
                "`pack_int_conv` lays them out; x includes its padding, the sums are int32"))


# ---- pack_int_winograd: [O, C, 3, 3] → [n², ⌈O/nr⌉, ⌈C/2⌉, nr·2] --------------------------------
# Transformed by G times its common denominator, so that all values are integers: 16 bits, in pairs.

def _pack_winograd_infer(w: TensorType, *, tile: int, nr: int) -> TensorType:
    need(w.rank == 4 and w.shape[2:] == (3, 3) and w.dtype in GROUP and tile in G,
         f"F({tile}, 3) needs 3×3 filters of i8 or i16, got {w}")
    return TensorType(dtypes.int16, ((tile + 2) ** 2, ceildiv(w.shape[0], nr),
                                     ceildiv(w.shape[1], 2), nr * 2))


def _pack_winograd_eval(w: Array, *, tile: int, nr: int) -> Array:
    g = np.rint(G[tile] / FRACTIONS[tile][:, None])
    u = np.einsum("ir,ocrs,js->ijco", g, w.astype(np.float64), g)
    return _pack_eval(u.reshape(-1, *u.shape[2:]).astype(np.int16), nr=nr, transpose=False)


register(Op("pack_int_winograd", _pack_winograd_infer, _pack_winograd_eval, category="memory",
            doc="3×3 integer weights transformed by Winograd's G times its common denominator, so "
                "that they stay integers, in panels of nr output channels"))


def _winograd_infer(x: TensorType, w: TensorType, *, channels: int, tile: int,
                    plan: Plan | None = None) -> TensorType:
    need(x.dtype in (dtypes.uint8, dtypes.int16) and w.dtype is dtypes.int16,
         f"the operands must be u8 or i16, and i16, got {x} and {w}")
    need(x.rank == 4 and w.rank == 4 and ceildiv(x.shape[3], 2) == w.shape[2],
         f"{x} and {w} are not operands of this Winograd convolution")
    need(same_tile(plan, tile), f"the plan {plan} is not for tiles of {tile}")
    return TensorType(dtypes.int32, (x.shape[0], x.shape[1] - 2, x.shape[2] - 2, channels))


def _winograd_eval(x: Array, w: Array, *, channels: int, tile: int, plan: Plan | None) -> Array:
    n, c = tile + 2, x.shape[3]
    back = np.linalg.pinv(G[tile] / FRACTIONS[tile][:, None])
    u = _unpacked(w, c, channels).reshape(n, n, c, channels)
    plain = np.rint(np.einsum("ri,ijco,sj->rsco", back, u, back))
    return _summed(x, plain[None])


register(Op("winograd_int", _winograd_infer, _winograd_eval,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=winograd_cost,
            plans=(WINOGRAD,),
            doc="3×3 convolution of small integers of stride 1, channels last, by Winograd's "
                "algorithm; exact while sums stay below 2²⁹ with tiles of 2, 2²⁵ with tiles of 4"))


# ---- pack_int_depthwise: [C, 1, KH, KW] → [Q, high, KW, C, 4] -----------------------------------

def _quads(kh: Dim, high: int, stride: int) -> Dim:
    return ceildiv((high - 1) * stride + kh, 4)


def _pack_depthwise_infer(w: TensorType, *, high: int, stride: int) -> TensorType:
    need(w.rank == 4 and w.shape[1] == 1 and w.dtype is dtypes.int8,
         f"the filters must be i8, got {w}")
    c, _, kh, kw = w.shape
    return TensorType(w.dtype, (_quads(kh, high, stride), high, kw, c, 4))


def _pack_depthwise_eval(w: Array, *, high: int, stride: int) -> Array:
    c, _, kh, kw = w.shape
    rows = -(-((high - 1) * stride + kh) // 4) * 4
    out = np.zeros((rows, high, kw, c), w.dtype)
    for h in range(high):
        out[h * stride:h * stride + kh, h] = w[:, 0].transpose(1, 2, 0)
    return np.ascontiguousarray(out.reshape(-1, 4, high, kw, c).transpose(0, 2, 3, 4, 1))


register(Op("pack_int_depthwise", _pack_depthwise_infer, _pack_depthwise_eval, category="memory",
            doc="integer weights of one filter for each channel; four rows of a filter are "
                "adjacent, for `high` rows of results"))


def _depthwise_infer(x: TensorType, w: TensorType, *, window: tuple[int, int],
                     strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
                     plan: Plan | None = None) -> TensorType:
    _group(x, w)
    need(x.rank == 4 and w.rank == 5 and x.shape[3] == w.shape[3],
         f"{x} and {w} are not operands of this depthwise convolution")
    return TensorType(dtypes.int32, (x.shape[0], *_space(x, window, strides, dilation),
                                     x.shape[3]))


def _depthwise_eval(x: Array, w: Array, *, window: Any, strides: Any, dilation: Any,
                    plan: Plan | None) -> Array:
    kh, kw = window
    plain = w[:, 0].transpose(0, 3, 1, 2).reshape(-1, kw, w.shape[3])[:kh].astype(np.int32)
    h, v = ((d - (k - 1) * r - 1) // s + 1
            for d, k, s, r in zip(x.shape[1:3], window, strides, dilation, strict=True))
    y = np.zeros((x.shape[0], h, v, x.shape[3]), np.int32)
    for i in range(kh):
        for j in range(kw):
            y += x[:, i * dilation[0]:, j * dilation[1]:][
                :, :(h - 1) * strides[0] + 1:strides[0],
                :(v - 1) * strides[1] + 1:strides[1]] * plain[i, j]
    return y


register(Op("depthwise_int", _depthwise_infer, _depthwise_eval,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE,
            cost=lambda *types, **attrs: 2 * per_tap(*types, **attrs),
            plans=(DEPTHWISE,),
            doc="2-d convolution of small integers with one filter for each channel, channels "
                "last; x includes its padding, the sums are int32"))
