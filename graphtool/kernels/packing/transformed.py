"""Filters of 3×3, or of three taps along a line, transformed for Winograd's short sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.kernels.packing.integers import GROUP
from graphtool.kernels.packing.panels import unpacked
from graphtool.ops.common import Array, need
from graphtool.symbolic import ceildiv

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


# ---- pack_int_winograd: [O, C, 3, 3] → [n², ⌈O/nr⌉, ⌈C/2⌉, nr·2] --------------------------------
# Transformed by G times its common denominator, so that all values are integers: 16 bits, in pairs.

def _pack_int_infer(w: TensorType, *, tile: int, nr: int) -> TensorType:
    need(w.rank == 4 and w.shape[2:] == (3, 3) and w.dtype in GROUP and tile in G,
         f"F({tile}, 3) needs 3×3 filters of i8 or i16, got {w}")
    return TensorType(dtypes.int16, ((tile + 2) ** 2, ceildiv(w.shape[0], nr),
                                     ceildiv(w.shape[1], 2), nr * 2))


def _pack_int_eval(w: Array, *, tile: int, nr: int) -> Array:
    g = np.rint(G[tile] / FRACTIONS[tile][:, None])
    u = np.einsum("ir,ocrs,js->ijco", g, w.astype(np.float64), g)
    return np.asarray(o.pack_int(u.reshape(-1, *u.shape[2:]).astype(np.int16), nr=nr))


register(Op("pack_int_winograd", _pack_int_infer, _pack_int_eval, category="memory",
            doc="3×3 integer weights transformed by Winograd's G times its common denominator, so "
                "that they stay integers, in panels of nr output channels"))


# ---- pack_winograd_line: three taps along one axis ----------------------------------------------

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


# ---- the same as plain ops, there and back -------------------------------------------------------

def transformed(w: Any, tile: int, nr: int) -> Any:
    """The ops that transform w [O, C, 3, 3] to G·g·Gᵀ in panels, [(tile + 2)², ceil(O/nr), C, nr].

    They pack first, so that everything after reads memory in order.
    """
    outs, c = w.shape[:2]
    panels = o.pack(o.reshape(w, shape=(outs, c * 9)), nr=nr, transpose=True)
    out: Any = o.transpose(o.reshape(panels, shape=(panels.shape[0], c, 3, 3, nr)),
                           perm=(2, 3, 0, 1, 4))
    for axis in (0, 1):
        out = o.concat(*(_combined(out, axis, row) for row in G[tile]), axis=axis)
    return o.reshape(out, shape=((tile + 2) ** 2, *out.shape[2:]))


def _combined(x: Any, axis: int, row: Any) -> Any:
    """Σᵣ row[r]·x[r] along an axis."""
    total = None
    for r, factor in enumerate(map(float, row)):
        if factor:
            at = [(r, r + 1) if a == axis else (0, d) for a, d in enumerate(x.shape)]
            part = o.slice(x, start=tuple(a for a, _ in at), limit=tuple(b for _, b in at),
                           strides=(1,) * x.ndim)
            part = part if factor == 1.0 else part * factor
            total = part if total is None else total + part
    return total


def plain(w: Any, transform: Any, channels: int, c: int, group: int = 1) -> Any:
    """The ops that give the filters g = G⁺·U·(G⁺)ᵀ, [O, C, 3, 3], of transformed weights in
    float64."""
    n, back = len(transform), w.builder.constant(np.linalg.pinv(transform))
    u = o.reshape(unpacked(w, channels, c, group), shape=(n, n * c * channels))
    left = o.reshape(o.matmul(back, u), shape=(3, n, c * channels))
    g = o.reshape(o.matmul(back, left), shape=(3, 3, c, channels))
    return o.transpose(g, perm=(3, 2, 0, 1))
