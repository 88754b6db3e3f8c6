"""Matrix product. Every contraction is written as this op or as conv."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Align, Axes, Precision, Trait, Weighing
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, apply, cast, iterator
from graphtool.ops.common import Array, broadcast_shapes, equal_dims, need
from graphtool.ops.costs import elements
from graphtool.symbolic import Dim, product, symbol_of, text


def _matmul_infer(a: TensorType, b: TensorType, *, transpose_a: bool = False,
                  transpose_b: bool = False, dtype: DType | None = None) -> TensorType:
    need(a.rank >= 2 and b.rank >= 2, f"the operands must have rank 2 or more, got {a} and {b}")
    need(a.dtype is b.dtype, f"element types differ: {a.dtype.short} and {b.dtype.short}")
    need(a.dtype is not dtypes.bool_, "is not defined on bool")
    m, ka = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    kb, n = b.shape[-2:][::-1] if transpose_b else b.shape[-2:]
    equal_dims((ka,), (kb,), f"inner dimensions differ: {text(ka)} and {text(kb)}")
    return TensorType(dtype or a.dtype, (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), m, n)
                      if a.rank > 2 or b.rank > 2 else (m, n))


def _swap(x: Array, flag: bool) -> Array:
    return np.swapaxes(x, -1, -2) if flag else x


def _matmul_eval(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool,
                 dtype: DType | None) -> Array:
    out = dtype.numpy if dtype else a.dtype
    if dtypes.of_numpy(a.dtype).is_float and a.dtype.itemsize < 4:
        a, b = a.astype(np.float32), b.astype(np.float32)
    elif dtype:
        a, b = a.astype(out), b.astype(out)
    with np.errstate(all="ignore"):
        left, right = _swap(a, transpose_a), _swap(b, transpose_b)
        if right.ndim == 2 and left.ndim > 2:  # one product; numpy would compute one for each slice
            rows = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
            product = np.matmul(rows, right).reshape(*left.shape[:-1], right.shape[-1])
        else:
            product = np.matmul(left, right)
    return np.asarray(product).astype(out, copy=False)


def _matmul_lower(k: Names, a: Pull, b: Pull, *, transpose_a: bool, transpose_b: bool,
                  dtype: DType | None) -> Pull:
    out = _matmul_infer(TensorType(a.dtype, a.shape), TensorType(b.dtype, b.shape),
                        transpose_a=transpose_a, transpose_b=transpose_b, dtype=dtype)
    inner = a.shape[-2 if transpose_a else -1]

    def at(idx: Any) -> Reduce:
        lead, m, n = idx[:-2], idx[-2], idx[-1]
        r = iterator(k.new("k"), inner)
        i: Dim = symbol_of(r)
        x = a.at_broadcast((*lead, *((i, m) if transpose_a else (m, i))))
        y = b.at_broadcast((*lead, *((n, i) if transpose_b else (i, n))))
        wide = out.dtype
        if wide.is_narrow:
            wide = dtypes.float32
        product = apply("mul", cast(x, wide), cast(y, wide))
        total = Reduce("add", Const(0, wide), ((r, inner),), product, wide)
        return total if wide is out.dtype else cast(total, out.dtype)  # type: ignore[return-value]
    return Pull(out.dtype, out.shape, at)


def _matmul_vjp(g: Any, _y: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool,
                dtype: Any) -> tuple[Any, ...]:
    mm = o.matmul
    if g.dtype is not a.dtype:  # sums of wider type: so are those of the gradients
        ga, gb = _matmul_vjp(g, None, o.cast(a, dtype=g.dtype), o.cast(b, dtype=g.dtype),
                             transpose_a=transpose_a, transpose_b=transpose_b, dtype=None)
        return o.cast(ga, dtype=a.dtype), o.cast(gb, dtype=b.dtype)
    # the rows of all matrices in the batch are summed over together
    if b.ndim == 2 and a.ndim > 2 and not transpose_a:
        ga = mm(g, b, transpose_b=not transpose_b)
        a, g = (o.reshape(x, shape=(product(x.shape[:-1]), x.shape[-1])) for x in (a, g))
        return ga, mm(g, a, transpose_a=True) if transpose_b else mm(a, g, transpose_a=True)
    ga = mm(b, g, transpose_a=transpose_b, transpose_b=True) if transpose_a else mm(
        g, b, transpose_b=not transpose_b)
    gb = mm(g, a, transpose_a=True, transpose_b=transpose_a) if transpose_b else mm(
        a, g, transpose_a=not transpose_a)
    return ga, gb


def _matmul_cost(y: TensorType, a: TensorType, _b: TensorType, *, transpose_a: bool,
                 **_: Any) -> Dim:
    """2·M·N·K for each matrix of the batch"""
    return 2 * elements(y) * a.shape[-2 if transpose_a else -1]


register(Op("matmul", _matmul_infer, _matmul_eval, _matmul_vjp, _matmul_lower,
            traits=Trait.CONTRACTION, cost=_matmul_cost, precision=Precision.LOW,
            axes=Axes(Align.MATRICES), weighing=Weighing(
                "product", outputs=1, turned="transpose_b", across="transpose_a",
                only={"dtype": None}),
            doc="Σₖ a[…, i, k]·b[…, k, j] over the last two axes of each operand, which may be "
                "transposed; leading axes broadcast. `dtype` is the element type of the sums"))
