"""Target ops: what the kernels in kernels/*.h compute, on weights that are packed for them.

They can be evaluated like any op, so a graph can be run at every stage before lowering. `nr` is the
width of a packed panel; panels are padded with zeros. `plan` holds the parameters of the kernel
that was chosen: lowering reads it, and values do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, PExpr, Pull, apply, const, index
from graphtool.ops.common import Array, broadcast_shapes, need
from graphtool.ops.costs import elements, per_tap, rows_by_columns
from graphtool.ops.plans import (
    ATTEND,
    BLAS,
    DEPTHWISE,
    DIRECT,
    GEMM,
    POOLED,
)
from graphtool.plan import Plan
from graphtool.symbolic import Dim, ceildiv, maximum, minimum, product


def sums(operand: DType) -> DType:
    """The element type of a contraction's sums: float32 for operands of 16 bits."""
    return dtypes.float32 if operand in dtypes.HALVES else operand


def summed(*operands: Any) -> list[Any]:
    """The operands, converted to the type in which their products are summed."""
    half = any(x.dtype in dtypes.HALVES for x in operands)
    return [o.cast(x, dtype=dtypes.float32) if half else x for x in operands]


# ---- pack: [..., K, N] → [..., ⌈N/nr⌉, K, nr] ---------------------------------------------------


def _pack_infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
    need(b.rank >= 2, f"the operand must have rank 2 or more, got {b}")
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    return TensorType(b.dtype, (*b.shape[:-2], ceildiv(n, nr), k, nr))


def _pack_eval(b: Array, *, nr: int, transpose: bool) -> Array:
    b = np.swapaxes(b, -1, -2) if transpose else b
    k, n = b.shape[-2:]
    packed = np.zeros((*b.shape[:-2], -(-n // nr), k, nr), b.dtype)
    for panel in range(packed.shape[-3]):
        part = b[..., panel * nr:(panel + 1) * nr]
        packed[..., panel, :, :part.shape[-1]] = part
    return packed


def _pack(b: Any, *, nr: int, transpose: bool) -> Any:
    rank = b.ndim - 2
    b = o.transpose(b, perm=(*range(rank), rank + 1, rank)) if transpose else b
    *lead, k, n = b.shape
    panels = ceildiv(n, nr)
    wide = o.pad(b, lo=(0,) * b.ndim, hi=(*(0,) * (b.ndim - 1), panels * nr - n))
    split = o.reshape(wide, shape=(*lead, k, panels, nr))
    return o.transpose(split, perm=(*range(rank), rank + 1, rank, rank + 2))


def _pack_lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
    shape = _pack_infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
    n = b.shape[-2 if transpose else -1]

    def at(idx: Any) -> Any:
        *lead, panel, k, lane = idx
        return padded(lambda column: b.at((*lead, column, k) if transpose else (*lead, k, column)),
                      [(panel * nr + lane, n, nr)])
    return Pull(b.dtype, shape, at)


def padded(read: Callable[..., PExpr], places: Sequence[tuple[Dim, Dim, int]]) -> PExpr:
    """The value that `read` gives at these positions (index, size, step), or 0 if an index is past
    its size.

    An index goes up to the next multiple of its step. Only if that can be greater than the size,
    the index is compared with it.
    """
    past = [not isinstance(size, int) or size % step != 0 for _, size, step in places]
    value = read(*(maximum(minimum(i, size - 1), 0) if asked else i
                   for (i, size, _), asked in zip(places, past, strict=True)))
    zero = const(0.0 if value.dtype.is_float else 0, value.dtype)
    for (i, size, _), asked in zip(places, past, strict=True):
        if asked:
            value = apply("select", apply("lt", index(i), index(size), dtype=dtypes.bool_), value,
                          zero, dtype=value.dtype)
    return value


register(Op("pack", _pack_infer, _pack_eval, None, _pack_lower, _pack, category="memory",
            traits=Trait.NEST,
            doc="the right-hand side of a product, [..., K, N] → [..., ⌈N/nr⌉, K, nr]: panels of "
                "nr columns, the last one padded with zeros"))


# ---- gemm ---------------------------------------------------------------------------------------

def _matmul_infer(a: TensorType, b: TensorType, *, n: int,
                  plan: Plan | None = None) -> TensorType:
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(a.shape[-1] == b.shape[-2], f"inner dimensions {a.shape[-1]} and {b.shape[-2]} differ")
    need(ceildiv(n, b.shape[-1]) == b.shape[-3], f"{b} does not have the panels for {n} columns")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(sums(a.dtype), (*lead, a.shape[-2], n))


def unpacked(b: Any, n: Dim) -> Any:
    """Plain columns from panels: [..., P, K, nr] → [..., K, n]."""
    lead, (panels, k, nr) = b.shape[:-3], b.shape[-3:]
    rank = len(lead)
    wide = o.reshape(o.transpose(b, perm=(*range(rank), rank + 1, rank, rank + 2)),
                     shape=(*lead, k, panels * nr))
    return o.slice(wide, start=(0,) * wide.ndim, limit=(*lead, k, n), strides=(1,) * wide.ndim)


def _matmul(a: Any, b: Any, *, n: int, plan: Plan | None = None) -> Any:
    a, b = summed(a, b)
    return o.matmul(a, unpacked(b, n))


register(Op("gemm", _matmul_infer, decompose=_matmul,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=rows_by_columns,
            plans=(GEMM,),
            doc="a·b, with b as `pack` lays it out; sums of 16-bit operands are float32"))


# ---- blas: by a library, on weights that are not packed
# --------------------------------------------------

def _matmul_blas_infer(a: TensorType, b: TensorType, *, plan: Plan | None = None) -> TensorType:
    need(a.rank >= 2 and b.rank == 2 and a.shape[-1] == b.shape[0],
         f"{a} and {b} are not operands of a product")
    return TensorType(a.dtype, (*a.shape[:-1], b.shape[1]))


register(Op("blas", _matmul_blas_infer,
            decompose=lambda a, b, *, plan=None: o.matmul(a, b),
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=rows_by_columns,
            plans=(BLAS,),
            doc="a·b, computed by a CBLAS library"))


# ---- pack_conv: [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, KW·C, nr] ---------------------------------

def _pack_conv_infer(w: TensorType, *, nr: int, groups: int = 1) -> TensorType:
    o, c, kh, kw = w.shape
    return TensorType(w.dtype, (groups, ceildiv(o // groups, nr), kh, kw * c, nr))


def _pack_conv_eval(w: Array, *, nr: int, groups: int) -> Array:
    o, c, kh, kw = w.shape
    og = o // groups
    packed = np.zeros((groups, -(-og // nr), kh, kw, c, nr), w.dtype)
    taps = w.reshape(groups, og, c, kh, kw).transpose(0, 3, 4, 2, 1)
    for panel in range(packed.shape[1]):
        part = taps[..., panel * nr:(panel + 1) * nr]
        packed[:, panel, ..., :part.shape[-1]] = part
    return packed.reshape(groups, -1, kh, kw * c, nr)


def _pack_conv(w: Any, *, nr: int, groups: int) -> Any:
    out, c, kh, kw = w.shape
    size = out // groups
    panels = ceildiv(size, nr)
    wide = o.pad(o.reshape(w, shape=(groups, size, c, kh, kw)), lo=(0,) * 5,
                 hi=(0, panels * nr - size, 0, 0, 0))
    split = o.transpose(o.reshape(wide, shape=(groups, panels, nr, c, kh, kw)),
                        perm=(0, 1, 4, 5, 3, 2))
    return o.reshape(split, shape=(groups, panels, kh, kw * c, nr))


def _pack_conv_lower(_: Names, w: Pull, *, nr: int, groups: int) -> Pull:
    shape = _pack_conv_infer(TensorType(w.dtype, w.shape), nr=nr, groups=groups).shape
    o, c = w.shape[:2]
    size = o // groups
    zero = const(0.0 if w.dtype.is_float else 0, w.dtype)

    def at(idx: Any) -> Any:
        group, panel, row, depth, lane = idx
        place = panel * nr + lane
        read = w.at((group * size + minimum(place, size - 1), depth % c, row, depth // c))
        if isinstance(size, int) and size % nr == 0:
            return read
        return apply("select", apply("lt", index(place), index(size), dtype=dtypes.bool_), read,
                     zero, dtype=w.dtype)
    return Pull(w.dtype, shape, at)


register(Op("pack_conv", _pack_conv_infer, _pack_conv_eval, None, _pack_conv_lower, _pack_conv,
            category="memory",
            doc="convolution weights [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, KW·C, nr]: panels of "
                "nr output channels"))


def _conv_infer(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
                strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
                plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 5, f"{x} and {w} are not operands of a packed convolution")
    groups, depth = w.shape[0], w.shape[3]
    need(depth * groups == window[1] * x.shape[3], f"the weights {w} do not fit {x}")
    return TensorType(sums(x.dtype), (x.shape[0], *space(x, window, strides, dilation), channels))


def space(x: TensorType, window: Any, strides: Any, dilation: Any) -> tuple[Any, ...]:
    """The spatial sizes of the result when a window slides over the channels-last x without
    padding."""
    return tuple((d - (k - 1) * r - 1) // s + 1
                 for d, k, s, r in zip(x.shape[1:3], window, strides, dilation, strict=True))


def _conv(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
          plan: Plan | None = None) -> Any:
    x, w = summed(x, w)
    groups, _, kh, deep, _ = w.shape
    kw = window[1]
    c, size = deep // kw, channels // groups
    rows = unpacked(o.transpose(w, perm=(0, 2, 1, 3, 4)), size)  # [G, KH, KW·C, O/G]
    plain = o.transpose(o.reshape(rows, shape=(groups, kh, kw, c, size)), perm=(0, 4, 3, 1, 2))
    return o.conv(x, o.reshape(plain, shape=(channels, c, kh, kw)), strides=strides,
                  rhs_dilation=dilation, groups=groups, channels_last=True)


def conv_cost(y: TensorType, _x: TensorType, w: TensorType, **_: Any) -> Dim:
    """Operations of a packed convolution; weights are [groups, panels, kh, kw·channels,
    columns]."""
    return 2 * elements(y) * product(w.shape[2:4])


register(Op("conv_packed", _conv_infer, decompose=_conv,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=conv_cost,
            plans=(DIRECT,),
            doc="2-d convolution, channels last, with weights as `pack_conv` lays them out; x "
                "includes its padding"))


# ---- depthwise: w [KH, KW, C] -------------------------------------------------------------------

def _depthwise_infer(x: TensorType, w: TensorType, *, strides: tuple[int, int],
                     dilation: tuple[int, int] = (1, 1), plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 3, f"depthwise of {x} with {w}")
    height, width = space(x, w.shape[:2], strides, dilation)
    if w.shape[2] == x.shape[3]:
        return TensorType(sums(x.dtype), (x.shape[0], height, width, w.shape[2]))
    count = w.shape[2] // x.shape[3]  # adjacent pixels of x that count as one pixel
    need(w.shape[2] == count * x.shape[3] and width == width // count * count
         and strides[1] == 1, f"depthwise of {x} with {w}")
    return TensorType(sums(x.dtype), (x.shape[0], height, width // count, w.shape[2]))


def _depthwise(x: Any, w: Any, *, strides: Any, dilation: Any, plan: Plan | None = None) -> Any:
    x, w = summed(x, w)
    (kh, kw, wide), c = w.shape, x.shape[3]
    own = o.slice(w, start=(0, 0, 0), limit=(kh, kw, c), strides=(1, 1, 1)) if c != wide else w
    y = o.conv(x, o.reshape(o.transpose(own, perm=(2, 0, 1)), shape=(c, 1, kh, kw)),
               strides=strides, rhs_dilation=dilation, groups=c, channels_last=True)
    n, height, width, _ = y.shape
    return y if c == wide else o.reshape(y, shape=(n, height, width * c // wide, wide))


def _depthwise_cost(y: TensorType, _x: TensorType, w: TensorType, **_: Any) -> Dim:
    return 2 * elements(y) * product(w.shape[:2])


register(Op("depthwise", _depthwise_infer, decompose=_depthwise,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=_depthwise_cost,
            plans=(DEPTHWISE,),
            doc="2-d convolution with one filter for each channel, channels last, weights [KH, "
                "KW, C]; x includes its padding. If the weights have more channels than x, "
                "adjacent pixels of x are taken as one pixel with that many channels"))

# ---- pooled -------------------------------------------------------------------------------------

def _pooled_infer(x: TensorType, *, kind: str, window: tuple[int, int], strides: tuple[int, int],
                  dilation: tuple[int, int] = (1, 1), plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and kind in ("sum", "max", "min"),
         f"{kind!r} over windows of this size is not defined on {x}")
    return TensorType(x.dtype, (x.shape[0], *space(x, window, strides, dilation), x.shape[3]))


def _pooled(x: Any, *, kind: str, window: Any, strides: Any, dilation: Any,
            plan: Plan | None = None) -> Any:
    return o.reduce_window(x, kind=kind, window=(1, *window, 1), strides=(1, *strides, 1),
                           window_dilation=(1, *dilation, 1))


register(Op("pooled", _pooled_infer, decompose=_pooled, lowering=Lowering.TEMPLATE, cost=per_tap,
            plans=(POOLED,),
            doc="each window of an image reduced by `kind`, channels last; x includes its "
                "padding"))

# ---- attend: attention, as kernels/attend.h computes it -----------------------------------------


def _attend_infer(q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None, *,
                  causal: bool = False, scale: float, softcap: float = 0.0,
                  plan: Plan | None = None) -> TensorType:
    need(q.rank == k.rank == v.rank >= 3, f"{q}, {k} and {v} are not operands of attention")
    need(q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2],
         f"{q}, {k} and {v} do not fit each other")
    need(mask is None or mask.dtype is q.dtype,
         "the mask is added, so it must have the element type of q")
    return TensorType(q.dtype, (*q.shape[:-1], v.shape[-1]))


def _attend(*xs: Any, plan: Plan | None = None, **attrs: Any) -> Any:
    return o.attention(*xs, **attrs)


def _attend_cost(_y: TensorType, q: TensorType, k: TensorType, v: TensorType, *_: Any,
                 **__: Any) -> Dim:
    """Two products and a softmax of about ten operations for each element; a causal mask reduces
    nothing."""
    scores = product(q.shape[:-1]) * k.shape[-2]
    return scores * (2 * q.shape[-1] + 2 * v.shape[-1] + 10)


register(Op("attend", _attend_infer, decompose=_attend,
            traits=Trait.CONTRACTION, lowering=Lowering.TEMPLATE, cost=_attend_cost,
            plans=(ATTEND,),
            doc="`attention` in one kernel: softmax over whole rows, grouped heads, and a mask "
                "that is added to the scores"))
