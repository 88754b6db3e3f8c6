"""Target ops whose right-hand sides store bfloat16 numbers in pairs, for dot product instructions.

The two elements of a pair belong to the same sum; the sums are float32. The other target ops are in
ops/target.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, Pull, apply, const, index
from graphtool.ops.common import Array, broadcast_shapes, need
from graphtool.ops.costs import rows_by_columns
from graphtool.ops.plans import BF16_CONV, BF16_PRODUCT
from graphtool.ops.target import conv_cost, padded, space
from graphtool.plan import Plan
from graphtool.symbolic import Dim, ceildiv, minimum

# ---- pack_pairs: [..., K, N] → [..., ⌈N/nr⌉, ⌈K/2⌉, nr, 2] --------------------------------------


def _pairs_infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
    need(b.rank >= 2 and b.dtype is dtypes.bfloat16,
         f"the operand must be bfloat16 of rank 2 or more, got {b}")
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    return TensorType(b.dtype, (*b.shape[:-2], ceildiv(n, nr), ceildiv(k, 2), nr, 2))


def _pairs_eval(b: Array, *, nr: int, transpose: bool) -> Array:
    b = np.swapaxes(b, -1, -2) if transpose else b
    k, n = b.shape[-2:]
    panels, pairs = -(-n // nr), -(-k // 2)
    wide = np.zeros((*b.shape[:-2], 2 * pairs, panels * nr), b.dtype)
    wide[..., :k, :n] = b
    split = wide.reshape(*b.shape[:-2], pairs, 2, panels, nr)
    return np.ascontiguousarray(np.moveaxis(split, (-2, -4, -1, -3), (-4, -3, -2, -1)))


def _pairs_lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
    shape = _pairs_infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]

    def at(idx: Any) -> Any:
        *lead, panel, pair, lane, half = idx
        return padded(lambda k, n: b.at((*lead, n, k) if transpose else (*lead, k, n)),
                      [(pair * 2 + half, k, 2), (panel * nr + lane, n, nr)])
    return Pull(b.dtype, shape, at)


register(Op("pack_pairs", _pairs_infer, _pairs_eval, None, _pairs_lower, category="memory",
            traits=Trait.NEST,
            doc="the right-hand side of a bfloat16 product, [..., K, N] → [..., ⌈N/nr⌉, ⌈K/2⌉, "
                "nr, 2]: two elements of the same sum are adjacent"))


def _matmul_bf16_infer(a: TensorType, b: TensorType, *, n: int,
                       plan: Plan | None = None) -> TensorType:
    need(a.rank >= 2 and b.rank >= 3 and a.dtype is b.dtype is dtypes.bfloat16,
         f"{a} and {b} are not operands of a bfloat16 product")
    need(ceildiv(a.shape[-1], 2) == b.shape[-2], f"inner dimensions of {a} and {b} differ")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(dtypes.float32, (*lead, a.shape[-2], n))


def _matmul_bf16(a: Any, b: Any, *, n: int, plan: Plan | None = None) -> Any:
    """Plain ops that mean the same: unpack the pairs to the rows of a matrix, and multiply."""
    *lead, panels, half, wide = b.shape
    rank, nr = len(lead), wide // 2
    split = o.reshape(o.cast(b, dtype=dtypes.float32), shape=(*lead, panels, half, nr, 2))
    rows = o.transpose(split, perm=(*range(rank), rank + 1, rank + 3, rank, rank + 2))
    whole = o.reshape(rows, shape=(*lead, half * 2, panels * nr))
    plain = o.slice(whole, start=(0,) * whole.ndim, limit=(*lead, a.shape[-1], n),
                    strides=(1,) * whole.ndim)
    return o.matmul(o.cast(a, dtype=dtypes.float32), plain)


register(Op("gemm_bf16", _matmul_bf16_infer, decompose=_matmul_bf16,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=rows_by_columns,
            plans=(BF16_PRODUCT,),
            doc="a·b in bfloat16, with b as `pack_pairs` lays it out; the sums are float32"))


# ---- pack_conv_pairs: [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, pairs, nr, 2] -----------------------
# With `whole` a pair may join two taps of a kernel row; otherwise each tap has its own pairs.


def _row_pairs(c: int, kw: int, whole: bool) -> int:
    """The number of pairs in a kernel row; if each tap has its own pairs, an odd number of
    channels leaves the last pair of a tap half empty."""
    return -(-kw * c // 2) if whole else kw * -(-c // 2)


def whole_rows(groups: int, dilation: Any) -> bool:
    """Whether pairs may join two taps: only if the elements of a kernel row are adjacent in x."""
    return groups == 1 and dilation[1] == 1


def _pack_conv_infer(w: TensorType, *, nr: int, groups: int = 1,
                     whole: bool = True) -> TensorType:
    need(w.rank == 4 and w.dtype is dtypes.bfloat16, f"bfloat16 weights [O, C, KH, KW], got {w}")
    out, c, kh, kw = w.shape
    need(isinstance(c, int) and isinstance(kw, int),
         f"the channels and the window of {w} must be known numbers")
    assert isinstance(c, int) and isinstance(kw, int)
    return TensorType(w.dtype, (groups, ceildiv(out // groups, nr), kh, _row_pairs(c, kw, whole),
                                nr, 2))


def _pack_conv_eval(w: Array, *, nr: int, groups: int, whole: bool) -> Array:
    out, c, kh, kw = w.shape
    og = out // groups
    panels, runs = -(-og // nr), 1 if whole else kw
    run = kw * c // runs
    wide = np.zeros((groups, panels * nr, kh, runs, -(-run // 2) * 2), w.dtype)
    rows = w.transpose(0, 2, 3, 1).reshape(groups, og, kh, runs, run)
    wide[:, :og, ..., :run] = rows
    split = wide.reshape(groups, panels, nr, kh, -1, 2)
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2, 5))


def _pack_conv_lower(names: Names, w: Pull, *, nr: int, groups: int, whole: bool) -> Pull:
    shape = _pack_conv_infer(TensorType(w.dtype, w.shape), nr=nr, groups=groups,
                             whole=whole).shape
    out, c, kw = *w.shape[:2], w.shape[3]
    size = out // groups
    assert isinstance(c, int) and isinstance(kw, int)
    zero = const(0.0, w.dtype)

    def at(idx: Any) -> Any:
        group, panel, row, pair, lane, half = idx
        tap, inner = (0, pair) if whole else (pair // -(-c // 2), pair % -(-c // 2))
        depth, run = inner * 2 + half, kw * c if whole else c
        place = panel * nr + lane
        safe = minimum(depth, run - 1) if run % 2 else depth
        value = w.at((group * size + minimum(place, size - 1), safe % c, row, tap + safe // c))
        if run % 2:
            value = _chosen(depth, run, value, zero)
        return value if size % nr == 0 else _chosen(place, size, value, zero)
    return Pull(w.dtype, shape, at)


def _chosen(i: Dim, size: Dim, value: Any, zero: Any) -> Any:
    """`value` where i < size, else `zero`."""
    return apply("select", apply("lt", index(i), index(size), dtype=dtypes.bool_), value, zero,
                 dtype=dtypes.bfloat16)


register(Op("pack_conv_pairs", _pack_conv_infer, _pack_conv_eval, None, _pack_conv_lower,
            category="memory",
            doc="bfloat16 convolution weights in panels of nr output channels, two elements of "
                "the same sum adjacent"))


def _conv_infer(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
                strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
                plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 5 and x.dtype is w.dtype is dtypes.bfloat16,
         f"{x} and {w} are not operands of a bfloat16 convolution")
    groups, c = w.shape[0], x.shape[3]
    assert isinstance(groups, int) and isinstance(c, int)
    need(_row_pairs(c // groups, window[1], whole_rows(groups, dilation)) == w.shape[3],
         f"the weights {w} do not fit {x}")
    return TensorType(dtypes.float32, (x.shape[0], *space(x, window, strides, dilation), channels))


def _conv(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
          plan: Plan | None = None) -> Any:
    """Plain ops that mean the same; they drop the padding of the last pair and of the last
    panel."""
    groups, panels, kh, pairs, wide = w.shape
    kw, c, own, nr = window[1], x.shape[3] // groups, channels // groups, wide // 2
    runs = 1 if whole_rows(groups, dilation) else kw
    split = o.reshape(o.cast(w, dtype=dtypes.float32), shape=(groups, panels, kh, pairs, nr, 2))
    rows = o.reshape(o.transpose(split, perm=(0, 1, 4, 2, 3, 5)),
                     shape=(groups, panels * nr, kh, runs, pairs * 2 // runs))
    taps = o.slice(rows, start=(0,) * 5, limit=(groups, own, kh, runs, kw * c // runs),
                   strides=(1,) * 5)
    plain = o.transpose(o.reshape(taps, shape=(channels, kh, kw, c)), perm=(0, 3, 1, 2))
    return o.conv(o.cast(x, dtype=dtypes.float32), plain, strides=strides,
                  rhs_dilation=dilation, groups=groups, channels_last=True)


register(Op("conv_bf16", _conv_infer, decompose=_conv,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE,
            cost=lambda *types, **attrs: 2 * conv_cost(*types, **attrs),
            plans=(BF16_CONV,),
            doc="2-d convolution in bfloat16, channels last, with weights as `pack_conv_pairs` "
                "lays them out; the sums are float32"))
