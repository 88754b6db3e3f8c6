"""Operator forms from before opset 7 (broadcast by attribute, `is_test`), and ConstantFill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from graphtool.front.names import read
from graphtool.importers.onnx.families import elementwise, reshaping
from graphtool.importers.onnx.kit import OPS, Refused, add, axis_of, dims, element_type, o, onnx_op


def aligned(a: Any, b: Any, axis: int | None) -> Any:
    """b with axes of size 1 appended, so that its first axis lies at a's `axis`."""
    if axis is None:
        return b
    at = axis_of(axis, a.ndim)
    return b.reshape((*b.shape, *[1] * (a.ndim - at - b.ndim)))


def _binary(op: str) -> Callable[..., Any]:
    def handler(a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0,
                consumed_inputs: Any = None) -> Any:
        return OPS[op](a, aligned(a, b, axis) if broadcast else b)
    return handler


for _name, (_word, *_) in read("onnx").items():
    if _word.since == 7:  # before, axes were aligned by an attribute
        add([_name], _binary(_word.op), since=1)


@onnx_op("ConstantFill")
def constant_fill(shape: Any, *, dtype: int = 1, input_as_shape: int = 0,
                  value: float = 0.0) -> Any:
    """A constant broadcast to a shape. Torch wrote this for opsets before 9; ONNX never
    standardised it."""
    if not input_as_shape:
        raise Refused("ConstantFill is supported only with input_as_shape=1")
    fill = np.asarray(value, element_type(dtype).numpy)
    return o.broadcast(shape.builder.constant(fill), shape=dims(shape, "the shape"))


@onnx_op("ImageScaler")
def image_scaler(x: Any, *, scale: float = 1.0, bias: Any = None) -> Any:
    """x · scale plus a number for each channel; an experimental operator of early files."""
    y = x * scale
    if bias is None:
        return y
    return y + x.builder.constant(np.asarray(bias, np.float32).reshape(1, -1, 1, 1))


@onnx_op("PRelu", since=1)
def prelu(x: Any, slope: Any, *, consumed_inputs: Any = None) -> Any:
    """`prelu`; a vector of slopes has one entry for each channel."""
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] != 1:
        slope = aligned(x, slope, 1)
    return elementwise.prelu(x, slope)


@onnx_op("BatchNormalization", since=1)
def batch_norm(x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, consumed_inputs: Any = None,
               epsilon: float = 1e-5, is_test: int = 0, momentum: float = 0.9,
               spatial: int = 1) -> Any:
    """`batch_norm` at inference. Raises Refused for training."""
    if not is_test or not spatial:
        raise Refused("before opset 7 only inference (is_test=1) with statistics for each "
                      "channel (spatial=1) is supported")
    return o.batch_norm(x, *(v.cast(x.dtype) for v in (scale, bias, mean, var)),
                        epsilon=epsilon, momentum=round(1 - momentum, 7))


@onnx_op("Cast", since=1)
def cast(x: Any, *, to: str) -> Any:
    """x as the type of this name, as in "FLOAT"."""
    if to not in TensorProto.DataType.keys():  # noqa: SIM118  (an enum of protobuf)
        raise ValueError(f"there is no element type {to!r}")
    return elementwise.cast_to(x, to=TensorProto.DataType.Value(to))


@onnx_op("Pow", since=1)
def power(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
    """`pow`; the exponent's first axis lies at `axis` of x."""
    return elementwise.power(x, aligned(x, y, axis) if broadcast else y)


@onnx_op("Dropout", since=1)
def dropout(x: Any, *, is_test: int = 0, ratio: float = 0.5, ctx: Any) -> Any:
    """As in opset 7, which has no training."""
    return elementwise.dropout_6(x, ratio=ratio, ctx=ctx)


@onnx_op("Reshape", since=1)
def reshape(x: Any, *, shape: Any, ctx: Any) -> Any:
    """`reshape` to sizes of an attribute; 0 is x's own size, −1 what the others leave."""
    return reshaping.reshape_op(x, x.builder.constant(np.asarray(shape, np.int64)), ctx=ctx)
