"""Values without operands, and ops that stop or change gradients: constant, dim, stop_gradient…"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.errors import Unsupported, UnsupportedError
from graphtool.io.weights import Weight
from graphtool.ir.facets import BROADCAST, Lowering
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Pull, cast, index
from graphtool.ops.common import Array, check_axis, need
from graphtool.ops.costs import nothing
from graphtool.symbolic import Dim

# ---- constants ---------------------------------------------------------------------------------


def _constant_infer(*, data: Weight, param: bool = False) -> TensorType:
    return TensorType(data.dtype, data.shape)


register(Op("constant", _constant_infer, lambda *, data, param: data.source, category="data",
            lowering=Lowering.DATA, traffic=nothing,
            doc="an array of the model; `param` marks an array that training may change"))


def _iota_infer(*, shape: tuple[Dim, ...], axis: int, dtype: DType) -> TensorType:
    check_axis(axis, len(shape))
    return TensorType(dtype, shape)


def _iota_eval(*, shape: tuple[int, ...], axis: int, dtype: DType) -> Array:
    line = np.arange(shape[axis]).astype(dtype.numpy)
    ones = [1] * len(shape)
    ones[axis] = -1
    return np.broadcast_to(line.reshape(ones), shape)


register(Op("iota", _iota_infer, _iota_eval, None,
            lambda _, *, shape, axis, dtype: Pull(
                dtype, shape, lambda idx: cast(index(idx[axis]), dtype)),
            category="data", span=lambda _, *, shape, axis, dtype: (0, shape[axis] - 1),
            doc="the index along an axis: 0, 1, 2, …"))

# ---- dim and stop_gradient ---------------------------------------------------------------------


def _dim_infer(*, of: Dim, dtype: DType) -> TensorType:
    return TensorType(dtype, ())


register(Op("dim", _dim_infer, lambda *, of, dtype: np.asarray(of).astype(dtype.numpy), None,
            lambda _, *, of, dtype: Pull(dtype, (), lambda idx: cast(index(of), dtype)),
            category="shape", known=lambda _, *, of, dtype: np.array(of, object),
            span=lambda _, *, of, dtype: (of, of),
            doc="the value of a dimension, symbolic ones included, as a scalar"))


def _same_infer(x: TensorType) -> TensorType:
    return x


register(Op("stop_gradient", _same_infer, lambda x: x, lambda g, y, x: (None,), lambda _, x: x,
            decompose=lambda x: x, axes=BROADCAST, category="data",
            doc="x itself; no gradient flows through it"))

def _unknown_infer(x: TensorType, *, reason: str) -> TensorType:
    return x


def _unknown_vjp(g: Any, y: Any, x: Any, *, reason: str) -> Any:
    raise UnsupportedError("GT0612", "a gradient that capture could not see",
                           (Unsupported(y.value.hint, reason),))


register(Op("unknown_gradient", _unknown_infer, lambda x, **_: x, _unknown_vjp,
            lambda _, x, **__: x, decompose=lambda x, **_: x, axes=BROADCAST, category="data",
            doc="x itself. Its author defined a gradient that capture could not see, so "
                "differentiating through it is refused"))


def _gradient_infer(x: TensorType, *, of: str) -> TensorType:
    return x


register(Op("gradient", _gradient_infer, lambda x, *, of: x, lambda g, y, x, *, of: (g,),
            lambda _, x, *, of: x, decompose=lambda x, *, of: x, axes=BROADCAST, category="data",
            doc="x itself, which is the gradient of the loss with respect to the value called `of` "
                "in a training step; where `of` is empty, with respect to the loss itself: the "
                "backward pass starts there"))

register(Op("barrier", _same_infer, lambda x: x, lambda g, y, x: (g,), lambda _, x: x,
            decompose=lambda x: x, axes=BROADCAST, category="data", lowering=Lowering.VIEW,
            doc="x itself. Passes do not merge computations on the result with the same "
                "computations on x, so they are done a second time"))


def _checkpoint_infer(x: TensorType, *, region: int, edge: str) -> TensorType:
    need(edge in ("in", "out"), f"edge must be in or out, not {edge!r}")
    return x


register(Op("checkpoint", _checkpoint_infer, lambda x, **_: x, lambda g, y, x, **_: (g,),
            lambda _, x, **__: x, decompose=lambda x, **_: x, axes=BROADCAST, category="data",
            lowering=Lowering.VIEW,
            doc="x itself, at the edge of a region whose values the backward pass computes again "
                "instead of storing them (torch.utils.checkpoint)"))
