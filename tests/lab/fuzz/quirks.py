"""Where onnxruntime is not a judge: known differences, each with its reason and condition.

A row says what the text of the operator, numpy or torch has instead; one names a page of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper

Array = np.ndarray[Any, Any]
INT_MAX = 2**31 - 1
EXACT = 2**24  # above it float32 leaves integers out
# the oracle computes these as differences of numbers near 1, ours by expm1 or in double precision
NEAR_ONE = ("Elu", "Selu", "Celu", "HannWindow", "HammingWindow", "BlackmanWindow")


@dataclass(frozen=True)
class Use:
    """A node and its operands; `constants` are the names of those that the model holds."""

    node: NodeProto
    operands: dict[str, Array]
    constants: Collection[str] = ()

    def at(self, i: int) -> Array | None:
        """The operand at this position, if there is one."""
        return self.operands.get(self.node.input[i]) if i < len(self.node.input) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """The attribute of the node, or the default."""
        return next((helper.get_attribute_value(a) for a in self.node.attribute
                     if a.name == name), default)

    def some(self, test: Callable[[Array], Any], *positions: int) -> bool:
        """Whether the test holds for an element of one of these operands that are floats."""
        found = [x for x in map(self.at, positions) if x is not None and x.dtype.kind == "f"]
        return any(bool(np.any(test(x))) for x in found)


When = Callable[[Use], bool]


@dataclass(frozen=True)
class Quirk:
    """A difference that is expected of these operators where `when` holds."""

    ops: tuple[str, ...]
    reason: str
    when: When


def special(*positions: int) -> When:
    """Whether one of the operands at these positions holds NaN or infinity."""
    return lambda use: use.some(lambda x: ~np.isfinite(x), *positions)


def nan(*positions: int) -> When:
    """Whether one of the operands at these positions holds NaN."""
    return lambda use: use.some(np.isnan, *positions)


def extreme(use: Use) -> bool:
    """Whether a reduction into one element is a maximum or minimum, and NaN takes part."""
    return use.attribute("reduction") in (b"max", b"min") and nan(0, 2)(use)


def biased(use: Use) -> bool:
    """Whether a recurrence has a bias, and NaN or infinity somewhere."""
    return use.at(3) is not None and special(0, 1, 2, 3, 5, 6, 7)(use)


def first_state(use: Use) -> bool:
    """Whether a recurrence without a first state has weights of the state with NaN or infinity."""
    return use.at(5) is None and special(2)(use)


def large_power(use: Use) -> bool:
    """Whether a power of integers may be greater than what doubles have exactly."""
    x, y = use.at(0), use.at(1)
    if x is None or y is None or x.dtype.kind not in "iu" or not x.size or not y.size:
        return False
    most, power = max(abs(int(x.min())), abs(int(x.max()))), max(int(y.max()), 0)
    return most > 1 and power * math.log2(most) > 53


def no_bound(use: Use) -> bool:
    """Whether an infinite number is clipped, or a NaN, and a bound is missing."""
    return use.some(lambda x: ~np.isfinite(x), 0) and (use.at(1) is None or use.at(2) is None)


def no_terms(use: Use) -> bool:
    """Whether a product of matrices has sums of no terms."""
    x = use.at(0)
    return x is not None and x.shape[-1:] == (0,)


def overflows(use: Use) -> bool:
    """Whether a sum or product of these integers may leave its type, or what float32 has
    exactly."""
    x = use.at(0)
    if x is None or x.dtype.kind not in "iu" or not x.size:
        return False
    most, op = max(abs(int(x.min())), abs(int(x.max()))), use.node.op_type
    reach = (most ** x.size if op == "ReduceProd" else x.size * most * (
        most if op in ("ReduceSumSquare", "ReduceL2") else 1))
    return reach > min(int(np.iinfo(x.dtype).max), EXACT)


def whole(use: Use) -> bool:
    """Whether x has integers."""
    x = use.at(0)
    return x is not None and x.dtype.kind in "iu"


def beyond_float32(use: Use) -> bool:
    """Whether float32 has another number than one of x."""
    x = use.at(0)
    if x is None or x.dtype.kind not in "iuf":
        return False
    with np.errstate(all="ignore"):
        rounded = x.astype(np.float32).astype(np.float64)
    return bool(((rounded != x.astype(np.float64)) & (x == x)).any()) or (
        whole(use) and bool((np.abs(x.astype(np.float64)) > EXACT).any()))


def dilated(use: Use) -> bool:
    """Whether a dilated window has an automatic padding."""
    return any(d != 1 for d in use.attribute("dilations", ())) and (
        use.attribute("auto_pad", b"")[:4] == b"SAME")


def fraction(use: Use) -> bool:
    """Whether a Resize by scales aligns the corners of an axis of no whole size."""
    x, scales = use.at(0), use.at(2)
    if x is None or scales is None or scales.dtype.kind != "f" or not scales.size:
        return False
    axes = use.attribute("axes") or range(x.ndim)
    return use.attribute("coordinate_transformation_mode") == b"align_corners" and any(
        x.shape[a] * s % 1 for a, s in zip(axes, scales.tolist(), strict=True))


def between_rows(use: Use) -> bool:
    """Whether a Resize rounds down or up a coordinate that is a whole number, by half pixels."""
    x, scales, sizes = use.at(0), use.at(2), use.at(3)
    if x is None or use.attribute("nearest_mode") not in (b"floor", b"ceil") or use.attribute(
            "coordinate_transformation_mode", b"half_pixel") != b"half_pixel":
        return False
    axes = use.attribute("axes") or range(x.ndim)
    ends = sizes.tolist() if sizes is not None and sizes.size else [
        int(x.shape[a] * s) for a, s in zip(axes, () if scales is None else scales, strict=True)]
    return any(((2 * i + 1) * x.shape[a] - n) % (2 * n) == 0
               for a, n in zip(axes, ends, strict=True) if n != x.shape[a] for i in range(n))


def tiny_steps(use: Use) -> bool:
    """Whether what a recurrence reads is so small that its first states are below 1e-4."""
    x, w = use.at(0), use.at(1)
    return x is not None and w is not None and x.size > 0 and use.at(3) is None and bool(
        np.abs(x).max() * np.abs(w).max() * x.shape[-1] < 1e-4)


def empty_part(use: Use) -> bool:
    """Whether a tensor without elements is joined with one of other sizes off the axis."""
    parts = [x for i in range(len(use.node.input)) if (x := use.at(i)) is not None]
    axis = use.attribute("axis", 0)
    off = {tuple(n for a, n in enumerate(x.shape) if a != axis % x.ndim) for x in parts if x.ndim}
    return len(off) > 1 and any(x.size == 0 for x in parts)


def cancels(use: Use) -> bool:
    """Whether terms of a sum cancel so far that its logarithm is one of roundings."""
    x, axes = use.at(0), use.at(1)
    if x is None or x.dtype.kind != "f" or not x.size:
        return False
    over = tuple(int(a) for a in axes.ravel()) if axes is not None and axes.size else None
    wide = x.astype(np.float64)
    share = float(np.finfo(x.dtype).eps) * x.size
    with np.errstate(all="ignore"):
        return bool((np.abs(wide.sum(over)) <= share * np.abs(wide).sum(over)).any())


def on_a_step(use: Use) -> bool:
    """Whether a half is a whole number, and a little less or more is not."""
    x = use.at(0)
    return x is not None and x.dtype == np.float16 and bool((x == np.round(x)).any())


def to_the_end(use: Use) -> bool:
    """Whether a Slice with a negative step ends at the greatest int32."""
    ends, steps = use.at(2), use.at(4)
    return ends is not None and steps is not None and bool(
        ((ends == INT_MAX) & (steps < 0)).any())


def no_quotient(use: Use) -> bool:
    """Whether a number divided by its scale is NaN."""
    return nan(0, 1)(use) or use.some(np.isinf, 1) or use.some(lambda s: s == 0, 1)


def doubles_without_order(use: Use) -> bool:
    """Whether doubles are infinite or NaN."""
    x = use.at(0)
    return x is not None and x.dtype == np.float64 and bool((np.isposinf(x) | np.isnan(x)).any())


def flat_group(use: Use) -> bool:
    """Whether the variance of a group is small beside the square of its mean."""
    x, groups = use.at(0), use.attribute("num_groups")
    if x is None or not x.size:
        return False
    return flat(x.reshape(x.shape[0] * groups, -1), (1,))


def flat_channel(use: Use) -> bool:
    """Whether the variance over the axes is small beside the square of the mean."""
    x = use.at(0)
    return x is not None and x.size > 0 and flat(x, tuple(use.attribute("axes", (0, 2, 3))))


def flat_instance(use: Use) -> bool:
    """Whether the variance of a picture is small beside the square of its mean."""
    x = use.at(0)
    return x is not None and x.size > 0 and flat(x, tuple(range(2, x.ndim)))


def flat(x: Array, axes: tuple[int, ...]) -> bool:
    """Whether some variance over these axes is at most a hundredth of the square of its mean."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        return bool((np.var(wide, axes) <= np.mean(wide, axes)**2 / 100).any())


QUIRKS: tuple[Quirk, ...] = (
    Quirk(("DFT",), "a sum with NaN or infinity depends on the order of its terms, and both "
          "transforms are fast ones", special(0)),
    Quirk(("RNN", "LSTM", "GRU"), "onnxruntime clips what it adds a bias to even without `clip`, "
          "and a clipped NaN is a number", biased),
    Quirk(("RNN", "LSTM", "GRU"), "onnxruntime leaves out the product of R with a state that is "
          "not given; the text takes zeros, and 0 · ∞ is NaN", first_state),
    Quirk(("RNN", "LSTM", "GRU"), "onnxruntime's tanh in recurrences is 2σ(2x) − 1, which has no "
          "digits of numbers around 1e-8", tiny_steps),
    Quirk(("Resize",), "onnxruntime divides by the scale in float32, so that the coordinate 3 may "
          "become 2.9999998 before it is rounded down", between_rows),
    Quirk(("ScatterND", "ScatterElements"), "onnxruntime's max and min of NaN keep the operand on "
          "one side; numpy's give NaN", extreme),
    Quirk(("ReduceMax", "ReduceMin", "ReduceLogSumExp", "MaxPool", "GlobalMaxPool"),
          "onnxruntime's maximum of NaN keeps the operand on one side; numpy's and torch's give "
          "NaN", nan(0)),
    Quirk(("MaxPool",), "onnxruntime's maximum begins at the least finite number, torch's at −∞",
          lambda use: use.some(np.isneginf, 0)),
    Quirk(("LRN",), "onnxruntime moves its sum on by adding and subtracting, so NaN and infinity "
          "stay in it beyond the window of the text", special(0)),
    Quirk(("BatchNormalization",), "onnxruntime computes x·s + (b − m·s) with s = scale / √(var + "
          "ε), so infinities meet that the text, (x − m)·s + b, keeps apart", special(1, 3, 4)),
    Quirk(("InstanceNormalization",), "as BatchNormalization: the scale times the mean is "
          "subtracted alone", special(1)),
    Quirk(("ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2"),
          "onnxruntime saturates integers that overflow, or reduces them as floats; numpy's wrap",
          overflows),
    Quirk(("ReduceLogSum", "ReduceLogSumExp"), "onnxruntime rounds each step of integers to an "
          "integer, or saturates their sum; ours computes in floats", whole),
    Quirk(("Shrink",), "onnxruntime computes integers and doubles in float32", beyond_float32),
    Quirk(("Sign",), "onnxruntime's sign of NaN is 0 in float16, and NaN in float32", nan(0)),
    Quirk(("Unique",), "onnxruntime has no order for NaN, and takes it for its neighbour", nan(0)),
    Quirk(("ReduceProd",), "where finite factors vanish before they meet an infinite one is a "
          "matter of their order", special(0)),
    Quirk(("Pow",), "onnxruntime computes powers of integers in doubles; numpy does not",
          large_power),
    Quirk(("Clip",), "onnxruntime takes the greatest finite number for a missing bound; the text "
          "has no bound then", no_bound),
    Quirk(("MaxPool", "AveragePool", "LpPool"), "onnxruntime leaves dilations out of automatic "
          "padding; the text says ((kernel − 1)·dilation + 1)", dilated),
    Quirk(("GridSample", "Resize"), "a neighbour of weight 0 is multiplied by one and left out by "
          "the other; the text does not say", special(0, 1)),
    Quirk(("ArgMax", "ArgMin", "Hardmax", "TopK"), "the text does not give NaN a place in the "
          "order; ours is numpy's", nan(0)),
    Quirk(("DynamicQuantizeLinear",), "a range with infinity has no scale, and NaN no integer",
          special(0)),
    Quirk(("DynamicQuantizeLinear",), "of zeros the scale is 0 by the text, and 1 in onnxruntime",
          lambda use: not use.some(lambda x: x != 0, 0)),
    Quirk(("QuantizeLinear",), "NaN has no integer", no_quotient),
    Quirk(("Slice",), "onnxruntime takes an end of INT_MAX as no end for negative steps too; the "
          "text takes INT_MIN for that, and clamps", to_the_end),
    Quirk(("Concat",), "onnxruntime leaves out tensors without elements, whatever their sizes",
          empty_part),
    Quirk(("ReduceLogSum",), "terms that cancel leave the rounding of their sum, by its order",
          cancels),
    Quirk(("Floor", "Ceil", "Round"), "onnxruntime computes halves as float32, and does not round "
          "them in between: what rounds to 1 is below it", on_a_step),
    Quirk(("Resize",), "onnxruntime aligns corners by the size rounded down, the onnx suite's own "
          "results by the scaled one", fraction),
    Quirk(("MatMulInteger", "QLinearMatMul"), "onnxruntime leaves sums of no terms uninitialised",
          no_terms),
    Quirk(("LogSoftmax",), "onnxruntime's doubles beside ∞ are −∞, and beside NaN numbers; its own "
          "floats, torch and the reference give NaN", doubles_without_order),
    Quirk(("GroupNormalization",), "onnxruntime's variance is the mean of squares minus the square "
          "of the mean, which cancel", flat_group),
    Quirk(("InstanceNormalization",), "onnxruntime multiplies the mean by the scale before it "
          "subtracts it, and the digits of both are lost", flat_instance),
    Quirk(("MeanVarianceNormalization",), "onnxruntime's variance is a difference of squares, and "
          "where they cancel it divides by 0 or by NaN", flat_channel),
)


def quirk(use: Use) -> str:
    """The reason why a difference of this node says nothing; empty if it does."""
    return next((f"{use.node.op_type}: {q.reason}" for q in QUIRKS
                 if use.node.op_type in q.ops and q.when(use)), "")
