"""Where onnxruntime is not a judge: known differences, each with the reason and its condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper

Array = np.ndarray[Any, Any]
Operands = dict[str, Array]


@dataclass(frozen=True)
class Quirk:
    """A difference that is expected of these operators where `when` holds."""

    ops: tuple[str, ...]
    reason: str
    when: Callable[[NodeProto, list[Array]], bool]


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """The attribute of the node, or the default."""
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def special(_: NodeProto, operands: list[Array]) -> bool:
    """Whether an operand holds NaN or infinity."""
    return any(x.dtype.kind == "f" and not np.isfinite(x).all() for x in operands)


def nan(_: NodeProto, operands: list[Array]) -> bool:
    """Whether an operand holds NaN."""
    return any(x.dtype.kind == "f" and bool(np.isnan(x).any()) for x in operands)


def extreme(node: NodeProto, operands: list[Array]) -> bool:
    """Whether a reduction into one element is a maximum or minimum, and NaN takes part."""
    return attribute(node, "reduction") in (b"max", b"min") and nan(node, operands)


def empty_sums(_: NodeProto, operands: list[Array]) -> bool:
    """Whether an operand has no elements."""
    return any(x.size == 0 for x in operands)


def overflows(_: NodeProto, operands: list[Array]) -> bool:
    """Whether integers are so large that a sum or product of them may wrap."""
    x = operands[0]
    return x.dtype.kind in "iu" and bool((np.abs(x.astype(np.float64)) > 2**20).any())


def dilated(node: NodeProto, _: list[Array]) -> bool:
    """Whether a dilated window has an automatic padding."""
    return bool(attribute(node, "dilations")) and attribute(node, "auto_pad", b"")[:4] == b"SAME"


def fraction(node: NodeProto, operands: list[Array]) -> bool:
    """Whether a Resize by scales aligns the corners of an axis of no whole size."""
    x, last = operands[0], operands[-1]
    return (attribute(node, "coordinate_transformation_mode") == b"align_corners"
            and last.dtype.kind == "f" and bool((np.asarray(x.shape) * last % 1 != 0).any()))


def to_the_end(_: NodeProto, operands: list[Array]) -> bool:
    """Whether a Slice with a negative step ends at the greatest int32."""
    return len(operands) == 5 and bool(((operands[2] == 2**31 - 1) & (operands[4] < 0)).any())


def infinite_weights(_: NodeProto, operands: list[Array]) -> bool:
    """Whether the second operand holds NaN or infinity."""
    return not np.isfinite(operands[1]).all()


QUIRKS: tuple[Quirk, ...] = (
    Quirk(("DFT",), "a fast transform adds infinities in another order", special),
    Quirk(("RNN", "LSTM", "GRU"), "onnxruntime clips the activations, so NaN becomes 0", special),
    Quirk(("ScatterND", "ScatterElements"), "onnxruntime's max and min of NaN keep the other "
          "operand, or not, by their order", extreme),
    Quirk(("ReduceMax", "ReduceMin", "ReduceLogSumExp", "MaxPool", "GlobalMaxPool"),
          "onnxruntime's maximum of NaN keeps the other operand, or not, by their order", nan),
    Quirk(("LRN", "BatchNormalization"), "onnxruntime adds and takes away again, or multiplies by "
          "products of the constants, so NaN and infinities differ", special),
    Quirk(("ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare", "ReduceL2"),
          "onnxruntime saturates integers that overflow, or reduces them as floats", overflows),
    Quirk(("Clip",), "onnxruntime takes the greatest finite number for a missing bound", special),
    Quirk(("PRelu",), "ours, as torch: 0 times an infinite slope is NaN", infinite_weights),
    Quirk(("MaxPool",), "onnxruntime leaves dilations out of automatic padding", dilated),
    Quirk(("GridSample", "Resize"), "a neighbour of weight 0 is multiplied or left out", special),
    Quirk(("ArgMax", "ArgMin", "Hardmax", "TopK"), "the place of NaN in an order is not defined",
          nan),
    Quirk(("DynamicQuantizeLinear", "QuantizeLinear"), "NaN has no integer", special),
    Quirk(("Slice",), "onnxruntime takes an end of INT_MAX as no end for negative steps too, where "
          "numpy and the definition clamp it", to_the_end),
    Quirk(("Resize",), "onnxruntime aligns corners by the size rounded down, the onnx suite's own "
          "results by the scaled one", fraction),
    Quirk(("MatMulInteger", "QLinearMatMul"), "onnxruntime leaves sums of no terms uninitialised",
          empty_sums),
    Quirk(("ConvTranspose",), "ours: the zeros between the inputs times an infinite weight are NaN",
          infinite_weights),
)


def quirk(node: NodeProto, operands: Operands) -> str:
    """The reason why a difference of this node says nothing; empty if it does."""
    found = list(operands.values())
    return next((f"{node.op_type}: {q.reason}" for q in QUIRKS
                 if node.op_type in q.ops and q.when(node, found)), "")
