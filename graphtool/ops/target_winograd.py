"""Target ops of winograd.h and winograd_line.h: convolutions with fewer products by Winograd's
algorithm.

The first is for 3×3 windows, the second works along one axis. The weights are transformed when they
are packed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ops.common import Array, need
from graphtool.ops.costs import elements
from graphtool.ops.plans import LINE, WINOGRAD, same_tile
from graphtool.ops.target import space, summed, sums, unpacked
from graphtool.plan import Plan
from graphtool.symbolic import Dim, ceildiv

# ---- winograd: F(m×m, 3×3) ----------------------------------------------------------------------

# rows of G for m = 2 and m = 4, points 0, ±1 (±2), ∞ (Lavin and Gray, arXiv:1509.09308)
G = {2: np.array([[1, 0, 0], [.5, .5, .5], [.5, -.5, .5], [0, 0, 1]]),
     4: np.array([[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
                  [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]])}


# G is multiplied by these common denominators where the results must be integers
FRACTIONS = {2: np.array([1, 1 / 2, 1 / 2, 1]),
             4: np.array([1 / 4, -1 / 6, -1 / 6, 1 / 24, 1 / 24, 1])}


def _pack_winograd_infer(w: TensorType, *, tile: int, nr: int) -> TensorType:
    out, c, kh, kw = w.shape
    need((kh, kw) == (3, 3) and tile in G, f"F({tile}, 3) of {w}")
    return TensorType(w.dtype, ((tile + 2) ** 2, ceildiv(out, nr), c, nr))


def _pack_winograd_eval(w: Array, *, tile: int, nr: int) -> Array:
    out, c = w.shape[:2]
    # G·g·Gᵀ as one product; one panel at a time, so that it stays in a cache
    both = np.kron(G[tile], G[tile])
    packed = np.zeros((len(both), -(-out // nr), c, nr), w.dtype)
    for panel in range(packed.shape[1]):
        part = w[panel * nr:(panel + 1) * nr].astype(np.float64)
        u = both @ part.transpose(2, 3, 1, 0).reshape(9, -1)
        packed[:, panel, :, :len(part)] = u.reshape(len(both), c, len(part))
    return packed


register(Op("pack_winograd", _pack_winograd_infer, _pack_winograd_eval, category="memory",
            doc="3×3 weights g transformed to U = G·g·Gᵀ, in panels of nr output channels (Lavin "
                "and Gray, arXiv:1509.09308)"))


def _winograd_infer(x: TensorType, w: TensorType, *, channels: int, tile: int,
                    plan: Plan | None = None, groups: int = 1) -> TensorType:
    need(x.rank == 4 and w.rank == 4 and x.shape[3] == w.shape[2] * groups
         and (groups == 1 or channels % (groups * w.shape[3]) == 0), f"{x} and {w} are not "
                                                                     f"operands of this Winograd "
                                                                     f"convolution")
    need(same_tile(plan, tile), f"tiles of {tile}, and {plan} is planned")
    return TensorType(sums(x.dtype), (x.shape[0], x.shape[1] - 2, x.shape[2] - 2, channels))


def _winograd(x: Any, w: Any, *, channels: int, tile: int, plan: Plan | None = None,
              groups: int = 1) -> Any:
    """Plain ops that mean the same, on the plain weights g = G⁺·U·(G⁺)ᵀ."""
    x, w = summed(x, w)
    n, c = tile + 2, x.shape[3] // groups
    back = np.linalg.pinv(G[tile])
    u = o.reshape(o.cast(unpacked(w, channels), dtype=dtypes.float64), shape=(n, n * c * channels))
    left = o.reshape(o.matmul(w.builder.constant(back), u), shape=(3, n, c * channels))
    g = o.cast(o.matmul(w.builder.constant(back), left), dtype=x.dtype)  # [3, 3, C·O]
    plain = o.transpose(o.reshape(g, shape=(3, 3, c, channels)), perm=(3, 2, 0, 1))
    return o.conv(x, plain, channels_last=True, groups=groups)


def winograd_cost(y: TensorType, _x: TensorType, w: TensorType, *, tile: int, **_: Any) -> Dim:
    """(t+2)² products of all channels for t² outputs; the transforms are not counted."""
    return 2 * elements(y) * w.shape[2] * (tile + 2) ** 2 // tile**2


register(Op("winograd", _winograd_infer, decompose=_winograd,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=winograd_cost,
            plans=(WINOGRAD,),
            doc="3×3 convolution of stride 1, channels last, by Winograd's algorithm F(t×t, 3×3) "
                "with t = `tile` (Lavin and Gray, arXiv:1509.09308)"))


# ---- winograd_line: F(m, 3) along one axis ------------------------------------------------------

def _pack_line_infer(w: TensorType, *, tile: int, nr: int, upright: bool) -> TensorType:
    need(w.rank == 4 and tile in G, f"F({tile}, 3) of {w}")
    out, c, *window = w.shape
    lines, taps = window[::-1] if upright else window
    return TensorType(w.dtype, (tile + 2, ceildiv(out, nr), lines * ceildiv(taps, 3) * c, nr))


def _pack_line_eval(w: Array, *, tile: int, nr: int, upright: bool) -> Array:
    lined = w.swapaxes(2, 3) if upright else w
    out, c, lines, taps = lined.shape
    cut = np.pad(lined.astype(np.float64), ((0, 0), (0, 0), (0, 0), (0, -taps % 3)))
    u = np.einsum("is,ocrjs->irjco", G[tile], cut.reshape(out, c, lines, -1, 3))
    return np.asarray(o.pack(u.reshape(tile + 2, -1, out).astype(w.dtype), nr=nr))


register(Op("pack_winograd_line", _pack_line_infer, _pack_line_eval, category="memory",
            doc="convolution weights in groups of three taps along one axis, each transformed to "
                "G·g, in panels of nr output channels"))


def _line_infer(x: TensorType, w: TensorType, *, channels: int, tile: int,
                window: tuple[int, int], dilation: tuple[int, int], upright: bool,
                plan: Plan | None = None) -> TensorType:
    lines, taps = window[::-1] if upright else window
    need(x.rank == 4 and w.rank == 4 and x.shape[3] * lines * ceildiv(taps, 3) == w.shape[2],
         f"{x} and {w} are not operands of this Winograd convolution")
    need(same_tile(plan, tile), f"tiles of {tile}, and {plan} is planned")
    height, width = space(x, window, (1, 1), dilation)
    return TensorType(sums(x.dtype), (x.shape[0], height, width, channels))


def _line(x: Any, w: Any, *, channels: int, tile: int, window: Any, dilation: Any,
          upright: bool, plan: Plan | None = None) -> Any:
    """Plain ops that mean the same, on the plain weights g = G⁺·U, three taps each; the padding
    of the last three taps is cut."""
    x, w = summed(x, w)
    (lines, taps), c = window[::-1] if upright else window, x.shape[3]
    threes = -(-taps // 3)
    u = o.reshape(o.cast(unpacked(w, channels), dtype=dtypes.float64),
                  shape=(tile + 2, lines * threes * c * channels))
    g = o.cast(o.matmul(w.builder.constant(np.linalg.pinv(G[tile])), u), dtype=x.dtype)
    split = o.transpose(o.reshape(g, shape=(3, lines, threes, c, channels)),
                        perm=(4, 3, 1, 2, 0))
    cut = o.slice(o.reshape(split, shape=(channels, c, lines, threes * 3)), start=(0,) * 4,
                  limit=(channels, c, lines, taps), strides=(1,) * 4)
    return o.conv(x, o.transpose(cut, perm=(0, 1, 3, 2)) if upright else cut,
                  rhs_dilation=dilation, channels_last=True)


def _line_cost(y: TensorType, _x: TensorType, w: TensorType, *, tile: int, **_: Any) -> Dim:
    """t+2 products for t outputs: of all lines, groups of three taps, and channels."""
    return 2 * elements(y) * w.shape[2] * (tile + 2) // tile


register(Op("winograd_line", _line_infer, decompose=_line,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=_line_cost,
            plans=(LINE,),
            doc="convolution of stride 1, channels last, by Winograd's algorithm F(t, 3) along "
                "one axis: along rows, or along columns if `upright`"))
