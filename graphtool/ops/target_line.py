"""Target ops of winograd_line.h: a convolution by Winograd's short sums along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import OPS, Op, register
from graphtool.ops.common import Array, need
from graphtool.ops.costs import elements
from graphtool.ops.plans import LINE, same_tile
from graphtool.ops.target import G, space, sums, unpack
from graphtool.plan import Plan
from graphtool.symbolic import Dim, ceildiv


def _pack_infer(w: TensorType, *, tile: int, nr: int, upright: bool) -> TensorType:
    need(w.rank == 4 and tile in G, f"F({tile}, 3) of {w}")
    o, c, *window = w.shape
    lines, taps = window[::-1] if upright else window
    return TensorType(w.dtype, (tile + 2, ceildiv(o, nr), lines * ceildiv(taps, 3) * c, nr))


def _pack_eval(w: Array, *, tile: int, nr: int, upright: bool) -> Array:
    lined = w.swapaxes(2, 3) if upright else w
    o, c, lines, taps = lined.shape
    cut = np.pad(lined.astype(np.float64), ((0, 0), (0, 0), (0, 0), (0, -taps % 3)))
    u = np.einsum("is,ocrjs->irjco", G[tile], cut.reshape(o, c, lines, -1, 3))
    return np.asarray(OPS["pack"](u.reshape(tile + 2, -1, o).astype(w.dtype), nr=nr))


register(Op("pack_winograd_line", _pack_infer, _pack_eval, category="memory",
            doc="weights whose threes of taps along one axis are transformed to G·g, packed"))


def _line_infer(x: TensorType, w: TensorType, *, channels: int, tile: int,
                window: tuple[int, int], dilation: tuple[int, int], upright: bool,
                plan: Plan | None = None) -> TensorType:
    lines, taps = window[::-1] if upright else window
    need(x.rank == 4 and w.rank == 4 and x.shape[3] * lines * ceildiv(taps, 3) == w.shape[2],
         f"winograd_line of {x} with {w}")
    need(same_tile(plan, tile), f"tiles of {tile}, and {plan} is planned")
    height, width = space(x, window, (1, 1), dilation)
    return TensorType(sums(x.dtype), (x.shape[0], height, width, channels))


def _line_eval(x: Array, w: Array, *, channels: int, tile: int, window: Any, dilation: Any,
               upright: bool, plan: Plan | None) -> Any:
    lines, taps = window[::-1] if upright else window
    u = unpack(w, channels).reshape(tile + 2, lines, -1, x.shape[3], channels)
    g = np.einsum("si,irjco->ocrjs", np.linalg.pinv(G[tile]), u.astype(np.float64))  # g = G⁺·U
    plain = g.reshape(*g.shape[:3], -1)[..., :taps].astype(x.dtype)
    return OPS["conv"](x, plain.swapaxes(2, 3) if upright else plain, rhs_dilation=dilation,
                       channels_last=True)


def _line_cost(y: TensorType, _x: TensorType, w: TensorType, *, tile: int, **_: Any) -> Dim:
    """t+2 products of all lines, threes of taps and channels for t outputs"""
    return 2 * elements(y) * w.shape[2] * (tile + 2) // tile


register(Op("winograd_line", _line_infer, _line_eval,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=_line_cost,
            plans=(LINE,),
            doc="convolution of stride 1, channels last, by Winograd's short sums along one axis: "
                "rows, or columns where it is upright"))
